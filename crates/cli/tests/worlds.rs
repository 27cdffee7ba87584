//! Runs in the world of threads: what the command says and writes, and what it refuses.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
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

fn folder(scenario: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.toml"), scenario).unwrap();
    dir
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    command.current_dir(dir).env("NO_COLOR", "1").args(args);
    command
}

fn overspin(dir: &Path, args: &[&str]) -> (Output, String, String) {
    let output = command(dir, args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

fn record(dir: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(dir.join(name)).unwrap()).unwrap()
}

#[test]
fn a_measured_record_says_where_it_is_from_and_is_never_repeated() {
    let dir = folder(SCENARIO);
    let dir = dir.path();
    let threads = ["run", "s.toml", "--world", "threads", "--json", "t.json"];
    let (output, out, err) = overspin(dir, &threads);
    assert!(output.status.success(), "{err}");
    let warnings: Vec<&str> = err.lines().filter(|l| l.starts_with("warning")).collect();
    assert_eq!(warnings.len(), 1, "{err}");
    for key in ["host.scheduler", "host.noise", "domain.workload.irqs_off"] {
        assert!(warnings[0].contains(key), "{err}");
    }
    assert!(out.contains("Measured in the world `threads`") && !out.contains("simulated"), "{out}");
    let t = record(dir, "t.json");
    assert_eq!(t["world"], "threads");
    assert!(t["unhonoured"].as_array().unwrap().iter().any(|u| u["key"] == "host.scheduler"));
    assert!(t["environment"].is_object() && t["command"].is_string());
    let run = &t["runs"][0];
    assert!(run["trace_hash"].is_null());
    assert!(run["outcome"]["measurement"]["steps_per_us"].as_f64().unwrap() > 0.0);
    assert!(run["outcome"]["domains"][0]["locks"][0]["acquisitions"].as_u64().unwrap() > 0);

    let (output, out, err) = overspin(dir, &["explain", "t.json"]);
    assert!(output.status.success(), "{err}");
    assert!(
        out.split_whitespace().collect::<Vec<_>>().join(" ").contains("never happens twice"),
        "{out}"
    );
    let (output, _, err) = overspin(dir, &["top", "t.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err.contains("world `threads`") && err.contains("overspin explain"), "{err}");
    let (output, _, err) = overspin(dir, &["report", "t.json", "-o", "t.html"]);
    assert!(output.status.success(), "{err}");

    // The same scenario in the other world is another thing.
    assert!(overspin(dir, &["run", "s.toml", "--json", "s.json"]).0.status.success());
    assert!(record(dir, "s.json").get("world").is_none());
    let (_, out, err) = overspin(dir, &["compare", "s.json", "t.json"]);
    assert!((out + &err).contains("different worlds"), "{err}");
    // A record is run again where it was made.
    let (_, out, _) = overspin(dir, &["run", "t.json"]);
    assert!(out.contains("Measured in the world `threads`"), "{out}");
}

#[test]
fn a_sweep_of_one_world_is_not_continued_in_another() {
    let dir = folder(SCENARIO);
    let dir = dir.path();
    let sweep =
        ["sweep", "s.toml", "-L", "domain.guest.lock=ticket,mutex", "--out", "dir", "--no-report"];
    let threads: Vec<&str> = sweep.iter().copied().chain(["--world", "threads"]).collect();
    let (output, _, err) = overspin(dir, &threads);
    assert!(output.status.success(), "{err}");
    assert_eq!(record(dir, "dir/manifest.json")["record"]["world"], "threads");
    let (output, _, err) = overspin(dir, &sweep);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("`world` is \"threads\" there"), "{err}");
}

#[test]
fn what_cannot_run_is_refused_with_a_remedy() {
    let dir = folder(SCENARIO);
    let dir = dir.path();
    let run = |more: &[&str]| {
        let args: Vec<&str> = ["run", "s.toml"].iter().chain(more).copied().collect();
        let (output, _, err) = overspin(dir, &args);
        (output.status.code(), err)
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
    let dir = folder(&SCENARIO.replace("500ms", "1h"));
    let args = ["run", "s.toml", "--world", "threads", "--json", "t.json"];
    let child = command(dir.path(), &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    sleep(Duration::from_secs(1));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{:?}", String::from_utf8_lossy(&output.stderr));
    let t = record(dir.path(), "t.json");
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
    let dir = folder(&two);
    let args = ["run", "s.toml", "--world", "processes", "--json", "p.json"];
    for (signal, code) in [("-INT", Some(130)), ("-KILL", None)] {
        let child = command(dir.path(), &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let child = child.unwrap();
        let mut workers = Vec::new();
        while workers.len() < 2 {
            sleep(Duration::from_millis(20));
            workers = children(child.id());
        }
        sleep(Duration::from_millis(300));
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), code, "{err}");
        for worker in workers {
            // The kernel may take a moment to end a process that it kills.
            let gone = |_: &u32| {
                sleep(Duration::from_millis(20));
                let status = fs::read_to_string(format!("/proc/{worker}/status"));
                status.map_or(true, |s| s.contains("State:\tZ"))
            };
            assert!((0..250).find(gone).is_some(), "process {worker} is left");
        }
    }
    let p = record(dir.path(), "p.json");
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
    let dir = folder("");
    let plan = r#"{ "Input": { "WorkerPresets": { "A": { "Args": ["report_interval", "100", "burnwait", "70", "200000"] } },
        "SimpleMatrix": { "Schedulers": ["credit"], "Workers": ["A"], "Count": [2] } },
        "RunConfig": { "Pool": "p", "Cpus": [0] } }"#;
    fs::write(dir.path().join("p.bench"), plan).unwrap();
    assert!(overspin(dir.path(), &["schedbench", "plan", "p.bench"]).0.status.success());
    let text = fs::read_to_string(dir.path().join("p.bench")).unwrap();
    let short = text.replace("\"RuntimeSeconds\": 10", "\"RuntimeSeconds\": 1");
    assert_ne!(text, short);
    fs::write(dir.path().join("p.bench"), short).unwrap();
    let args = ["schedbench", "run", "p.bench", "--world", "processes"];
    let (output, out, err) = overspin(dir.path(), &args);
    assert!(output.status.success(), "{err}");
    assert!(out.starts_with("Runs on the world `processes`"), "{out}");
    let done = record(dir.path(), "p.bench");
    for run in done["Runs"].as_array().unwrap() {
        assert_eq!(run["Completed"], true);
        assert!(run["Results"]["Raw"].as_array().is_some_and(|raw| !raw.is_empty()), "{run}");
    }
}
