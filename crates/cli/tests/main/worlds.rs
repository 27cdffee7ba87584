//! Runs in the world of threads: what the command says and writes, and what it refuses.

use crate::{json, overspin};
use overspin_testing::{Ended, Program, signal, until};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

const SCENARIO: &str = r#"
name = "both"
limit = "500ms"
[host]
cores = 1
[[domain]]
name = "guest"
vcpus = 2
lock = "ticket"
workload = { kind = "lock-loop", section = "2us", outside = "10us" }
"#;

fn folder(scenario: &str) -> Program {
    let overspin = overspin();
    overspin.write("s.toml", scenario);
    overspin
}

#[test]
fn a_measured_record_says_where_it_is_from_and_is_never_repeated() {
    let overspin = folder(SCENARIO);
    let threads = ["run", "s.toml", "--world", "threads", "--json", "t.json"];
    let (out, err) = overspin.fine(&threads);
    let warnings: Vec<&str> = err.lines().filter(|l| l.starts_with("warning")).collect();
    assert_eq!(warnings.len(), 1, "{err}");
    for key in ["host.scheduler", "host.noise", "domain.workload.irqs_off"] {
        assert!(warnings[0].contains(key), "{err}");
    }
    assert!(out.contains("Measured in the world `threads`") && !out.contains("simulated"), "{out}");
    let t = json(&overspin.read("t.json"));
    assert_eq!(t["world"], "threads");
    assert!(t["unhonoured"].as_array().unwrap().iter().any(|u| u["key"] == "host.scheduler"));
    assert!(t["environment"].is_object() && t["command"].is_string());
    let run = &t["runs"][0];
    assert!(run["trace_hash"].is_null());
    assert!(run["outcome"]["measurement"]["steps_per_us"].as_f64().unwrap() > 0.0);
    assert!(run["outcome"]["domains"][0]["locks"][0]["acquisitions"].as_u64().unwrap() > 0);

    let (out, _) = overspin.fine(&["explain", "t.json"]);
    assert!(
        out.split_whitespace().collect::<Vec<_>>().join(" ").contains("never happens twice"),
        "{out}"
    );
    let err = overspin.fails(&["top", "t.json"], 2);
    assert!(err.contains("world `threads`") && err.contains("overspin explain"), "{err}");
    // It can be measured again, and watched meanwhile.
    for file in ["t.json", "s.toml"] {
        let (out, _) = overspin.fine(&["top", file, "--world", "threads", "--once"]);
        assert!(out.contains("program  ") && out.contains("; watching took "), "{out}");
    }
    overspin.fine(&["report", "t.json", "-o", "t.html"]);

    // The same scenario in the other world is another thing.
    overspin.fine(&["run", "s.toml", "--json", "s.json"]);
    assert!(json(&overspin.read("s.json")).get("world").is_none());
    let Ended { out, err, .. } = overspin.run(&["compare", "s.json", "t.json"]);
    assert!((out + &err).contains("different worlds"), "{err}");
    // A record is run again where it was made.
    let (out, _) = overspin.fine(&["run", "t.json"]);
    assert!(out.contains("Measured in the world `threads`"), "{out}");
}

#[test]
fn a_sweep_of_one_world_is_not_continued_in_another() {
    let overspin = folder(SCENARIO);
    let sweep = ["sweep", "s.toml", "-L", "domain.guest.lock=ticket,mutex", "--set", "limit=50ms"];
    let sweep = [&sweep[..], &["--out", "dir", "--no-report"]].concat();
    overspin.fine(&[&sweep[..], &["--world", "threads"]].concat());
    assert_eq!(json(&overspin.read("dir/manifest.json"))["record"]["world"], "threads");
    let err = overspin.fails(&sweep, 2);
    assert!(err.contains("`world` is \"threads\" there"), "{err}");
}

#[test]
fn what_cannot_run_is_refused_with_a_remedy() {
    let overspin = folder(SCENARIO);
    let run = |more: &[&str]| {
        let args: Vec<&str> = ["run", "s.toml"].iter().chain(more).copied().collect();
        let Ended { code, err, .. } = overspin.run(&args);
        (code, err)
    };
    let (code, err) = run(&["--world", "threads", "--set", "host.cores=1024"]);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("1024 pCPUs") && err.contains("--set host.cores="), "{err}");
    let (code, err) = run(&["--world", "moon"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("worlds are: sim, threads"), "{err}");
    let stream = "domain.guest.workload={ kind = \"stream\" }";
    let (code, err) = run(&["--world", "threads", "--set", stream]);
    assert_eq!(code, Some(2), "{err}");
}

#[test]
fn ctrl_c_ends_a_run_and_what_was_measured_is_written() {
    let overspin = folder(&SCENARIO.replace("500ms", "1h"));
    let args = ["run", "s.toml", "--world", "threads", "--json", "t.json"];
    let child = overspin.start(&args);
    sleep(Duration::from_secs(1));
    signal(&child, "INT");
    Ended::wait(child).with(130);
    let t = json(&overspin.read("t.json"));
    assert_eq!(t["runs"][0]["ending"]["by"], "interrupted");
    assert!(
        t["runs"][0]["outcome"]["domains"][0]["locks"][0]["acquisitions"].as_u64().unwrap() > 0
    );
}

/// Numbers of the processes that a process has started.
fn children(of: u32) -> Vec<String> {
    let all = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten();
    let texts = all.filter_map(|t| fs::read_to_string(t.ok()?.path().join("children")).ok());
    texts.flat_map(|t| t.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Clock ticks for which a process has had a CPU; 0 if there is none.
fn ticks(process: &str) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name of the program, which may have spaces, ends with a parenthesis.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

#[test]
fn domains_are_processes_which_end_with_the_command() {
    let two = format!(
        "{}\n{}",
        SCENARIO.replace("500ms", "1h"),
        SCENARIO.split("[[domain]]").nth(1).unwrap()
    );
    let two = two
        .replacen("name = \"guest\"", "name = \"first\"", 1)
        .replace("\n\nname", "\n[[domain]]\nname");
    let overspin = folder(&two);
    let args = ["run", "s.toml", "--world", "processes", "--json", "p.json"];
    for (name, code) in [("INT", Some(130)), ("KILL", None)] {
        let child = overspin.start(&args);
        let mut workers = Vec::new();
        until("both domains have a process", || {
            workers = children(child.id());
            workers.len() >= 2
        });
        // A fifth of a second each, however busy the machine is: calibration is over, and the loops run.
        until("both have run for 20 clock ticks", || workers.iter().all(|w| ticks(w) >= 20));
        signal(&child, name);
        let ended = Ended::wait(child);
        assert_eq!(ended.code, code, "{}", ended.err);
        for worker in workers {
            // The kernel may take a moment to end a process that it kills.
            until("the workers have ended", || {
                let status = fs::read_to_string(format!("/proc/{worker}/status"));
                status.map_or(true, |s| s.contains("State:\tZ"))
            });
        }
    }
    let p = json(&overspin.read("p.json"));
    assert_eq!(
        (&p["world"], &p["runs"][0]["ending"]["by"]),
        (&"processes".into(), &"interrupted".into())
    );
    for domain in p["runs"][0]["outcome"]["domains"].as_array().unwrap() {
        assert!(domain["locks"][0]["acquisitions"].as_u64().unwrap() > 0, "{domain}");
    }
}

#[test]
fn the_workers_of_a_plan_can_be_processes() {
    let overspin = folder("");
    let plan = r#"{ "Input": { "WorkerPresets": { "A": { "Args": ["report_interval", "100", "burnwait", "70", "200000"] } },
        "SimpleMatrix": { "Schedulers": ["credit"], "Workers": ["A"], "Count": [2] } },
        "RunConfig": { "Pool": "p", "Cpus": [0] } }"#;
    overspin.write("p.bench", plan);
    overspin.fine(&["schedbench", "plan", "p.bench"]);
    let text = overspin.read("p.bench");
    let short = text.replace("\"RuntimeSeconds\": 10", "\"RuntimeSeconds\": 1");
    assert_ne!(text, short);
    overspin.write("p.bench", short);
    let args = ["schedbench", "run", "p.bench", "--world", "processes"];
    let (out, _) = overspin.fine(&args);
    assert!(out.starts_with("Runs on the world `processes`"), "{out}");
    let done = json(&overspin.read("p.bench"));
    for run in done["Runs"].as_array().unwrap() {
        assert_eq!(run["Completed"], true);
        assert!(run["Results"]["Raw"].as_array().is_some_and(|raw| !raw.is_empty()), "{run}");
    }
}
