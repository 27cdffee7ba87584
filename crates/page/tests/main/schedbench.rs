//! schedbench: plans expand as published, files survive the round trip, and workers do what hand calculation
//! predicts.

use overspin_experiment::schedbench_machine;
use overspin_page::Entry;
use overspin_runs::schedbench::{
    BenchFile, Machine, RunSummary, WorkerSummary, fairness, simulate, summarize,
};
use overspin_scenario::{Costs, Governor, MS, Picos};

/// The published plan, with keys that are unknown to us.
const PLAN: &str = r#"{
  "Input": {
    "WorkerPresets": {
      "A": { "Args": ["burnwait", "70", "200000"] },
      "B": { "Args": ["burnwait", "10", "300000", "20", "300000", "10", "300000", "10", "300000",
                      "10", "300000", "10", "300000", "30", "300000"] }
    },
    "SimpleMatrix": { "Schedulers": ["credit", "credit2"], "Workers": ["A", "B"],
                      "Count": [1, 2, 4, 8, 16], "NumaDisable": null }
  },
  "WorkerType": 1,
  "RunConfig": { "Pool": "schedbench", "Cpus": [12, 13, 14, 15] },
  "Runs": null,
  "Notes": "kept"
}"#;

fn planned(text: &str) -> BenchFile {
    let mut file = BenchFile::parse("t.bench", text).unwrap();
    file.plan().unwrap();
    file
}

/// A machine with negligible costs: `pcpus` cores of one thread each.
fn ideal(pcpus: u32) -> Machine {
    let mut machine = schedbench_machine().unwrap();
    (machine.host.cores, machine.host.threads) = (pcpus, 1);
    machine.host.governor = None;
    machine.host.scheduler = "credit2".into();
    let free = Costs {
        context_switch: Picos::ZERO.into(),
        hypercall: Picos::ZERO.into(),
        ipi: Picos::ZERO.into(),
        interrupt: Picos::ZERO,
        migration: Picos::ZERO,
        ..Costs::default()
    };
    machine.host.costs = free;
    machine
}

/// Runs workers together on `pcpus`.
fn together(workers: &[&str], pcpus: u32, vcpus: u32) -> RunSummary {
    let sets: Vec<_> = workers
        .iter()
        .map(|w| {
            let args: Vec<&str> = w.split_whitespace().collect();
            serde_json::json!({ "Params": { "Args": args, "Vcpus": vcpus }, "Count": 1 })
        })
        .collect();
    let run = serde_json::json!({
        "Label": "together", "WorkerSets": sets, "RuntimeSeconds": 5, "RunConfig": {}
    });
    let text = serde_json::json!({ "Runs": [run] }).to_string();
    let file = BenchFile::parse("t.bench", &text).unwrap();
    let (done, ..) = simulate(&file, &file.runs[0], &ideal(pcpus), 1, None).unwrap();
    summarize(&done).unwrap()
}

fn near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.01, "{value} instead of {expected}");
}

#[test]
fn the_published_plan_expands_as_published() {
    let file = planned(PLAN);
    let labels: Vec<&str> = file.runs.iter().map(|r| r.label.as_str()).collect();
    assert_eq!(labels.len(), 14);
    let first = ["A baseline credit", "B baseline credit", "A 1 + B 1 credit", "A 2 + B 2 credit"];
    assert_eq!(labels[..4], first);
    assert_eq!(labels[13], "A 16 + B 16 credit2");
    assert!(file.runs.iter().all(|r| r.runtime_seconds == 10 && !r.completed));
    assert_eq!(file.runs[13].worker_sets[1].count, 16);
    assert_eq!(file.runs[13].run_config.cpus.as_deref(), Some(&[12, 13, 14, 15][..]));
}

#[test]
fn without_schedulers_there_is_one_run_of_each_and_the_built_in_worker_needs_no_preset() {
    let text =
        r#"{"Input":{"SimpleMatrix":{"Workers":["P001"],"Count":[3],"NumaDisable":[false,true]}}}"#;
    let labels: Vec<String> = planned(text).runs.into_iter().map(|r| r.label).collect();
    let expected =
        ["P001 baseline NumaOn ", "P001 3 NumaOn ", "P001 baseline NumaOff", "P001 3 NumaOff"];
    assert_eq!(labels, expected);
}

#[test]
fn files_survive_the_round_trip_with_keys_that_we_do_not_know() {
    let mut file = planned(PLAN);
    let machine = schedbench_machine().unwrap();
    file.runs[0] = simulate(&file, &file.runs[0], &machine, 1, None).unwrap().0;
    let text = file.to_json();
    let again = BenchFile::parse("t.bench", &text).unwrap();
    assert_eq!(again.to_json(), text);
    assert_eq!(again.runs.iter().filter(|r| r.completed).count(), 1);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["Notes"], "kept");
    let raw = &value["Runs"][0]["Results"]["Raw"];
    for key in ["Id", "Now", "Kops", "MaxDelta", "Cputime"] {
        assert!(!raw[1][key].is_null(), "{key}: {}", raw[1]);
    }
    // A run with the older name of its configuration keeps that name, and the other contents.
    let old = r#"{"Runs":[{"Label":"x","Comment":7,"WorkerSets":[{"Params":{"Args":["burnwait","1","1"]},
        "Count":1}],"WorkerConfig":{"Pool":"p"},"RuntimeSeconds":1}]}"#;
    let kept: serde_json::Value =
        serde_json::from_str(&BenchFile::parse("o", old).unwrap().to_json()).unwrap();
    assert_eq!(kept["Runs"][0]["WorkerConfig"]["Pool"], "p");
    assert_eq!(kept["Runs"][0]["Comment"], 7);
}

#[test]
fn a_worker_alone_does_what_its_cycle_allows() {
    // 70,000 operations at 350 million a second take 200 us, as long as its wait.
    let run = together(&["burnwait 70 200000"], 1, 1);
    let w = &run.sets[0].workers[0];
    near(w.throughput, 70.0 / 400e-6);
    near(w.utilization, 0.5);
    // 1 ms of work and no wait: never idle.
    let run = together(&["burnwait 350 0"], 1, 1);
    near(run.sets[0].workers[0].utilization, 1.0);
}

#[test]
fn two_timers_of_one_worker_wait_at_the_same_time() {
    // Each cycle serves both: 100 us and 100 us of work. The first is due again 300 us after its work was
    // done; by then the second's work has been done for 200 us. So the period is 400 us.
    let run = together(&["burnwait 35 300000 35 300000"], 1, 1);
    let w = &run.sets[0].workers[0];
    near(w.throughput, 70.0 / 400e-6);
    near(w.utilization, 0.5);
}

#[test]
fn deadlines_are_met_alone_and_missed_in_a_crowd() {
    let periodic = "deadline 70 1000000";
    let alone = together(&[periodic], 1, 1);
    let w = &alone.sets[0].workers[0];
    near(w.throughput, 70.0 / 1e-3);
    assert!(w.deadlines > 3_900 && w.missed == 0, "{} of {}", w.missed, w.deadlines);
    // Ten workers that want a fifth of a CPU each.
    let crowd = together(&[periodic; 10], 1, 1);
    let missed: u64 = crowd.sets.iter().flat_map(|s| &s.workers).map(|w| w.missed).sum();
    assert!(missed > 1_000, "{missed}");
}

#[test]
fn a_worker_of_two_vcpus_does_twice_the_work_and_uses_two_cpus() {
    let run = together(&["burnwait 350 0"], 2, 2);
    let w = &run.sets[0].workers[0];
    near(w.utilization, 2.0);
    near(w.throughput, 2.0 * 350e3);
}

#[test]
fn a_quiet_package_is_slower_and_a_second_worker_wakes_it() {
    let mut machine = ideal(2);
    machine.host.governor =
        Some(Governor { interval: 10 * MS, busy_permille: 1_100, quiet_permille: 500 });
    let text = |n: u32| {
        format!(
            r#"{{"Runs":[{{"Label":"r","WorkerSets":[{{"Params":{{"Args":["burnwait","350","0"]}},
            "Count":{n}}}],"RuntimeSeconds":3}}]}}"#
        )
    };
    let run = |n| -> Vec<WorkerSummary> {
        let file = BenchFile::parse("t", &text(n)).unwrap();
        let done = simulate(&file, &file.runs[0], &machine, 1, None).unwrap().0;
        summarize(&done).unwrap().sets.remove(0).workers
    };
    near(run(1)[0].throughput, 175e3);
    near(run(2)[0].throughput, 350e3);
}

#[test]
fn fairness_is_against_the_share_that_a_worker_could_have_had() {
    let text = r#"{"Input":{"WorkerPresets":{"hog":{"Args":["burnwait","350","0"]},
        "light":{"Args":["burnwait","35","900000"]}},
        "SimpleMatrix":{"Schedulers":["credit2"],"Workers":["hog","light"],"Count":[2]}},
        "RunConfig":{"Cpus":[0]}}"#;
    let mut file = planned(text);
    for i in 0..file.runs.len() {
        file.runs[i] = simulate(&file, &file.runs[i], &ideal(1), 1, None).unwrap().0;
    }
    let all: Vec<RunSummary> = file.runs.iter().filter_map(summarize).collect();
    let fair = fairness(&all[2], &all).unwrap();
    // The light workers want a tenth each; the hogs could share the other eight.
    let hogs = fair[0];
    assert!(hogs.objective.min > 0.9 && hogs.objective.max < 1.25, "{hogs:?}");
    assert!(hogs.degradation.max < 0.55, "{hogs:?}");
    // There is no baseline with this number of pCPUs, so there is no result.
    let mut other = all[2].clone();
    other.cpus = Some(2);
    assert_eq!(fairness(&other, &all), None);
}

#[test]
fn faults_have_a_place_and_a_remedy() {
    let cases = [
        ("{", 1, "EOF"),
        ("{\n \"Input\": 7}", 2, "invalid type"),
        ("{\"RunConfig\":{\n\"Cpus\": [-1]}}", 2, "-1"),
        ("{\"Runs\":[{\"Label\":\"x\",\n\"RuntimeSeconds\":1}]}", 1, "0 workers"),
    ];
    for (text, line, message) in cases {
        let e = BenchFile::parse("t.bench", text).expect_err(text);
        assert!(e.line == line && e.message.contains(message), "{text}: {e}");
        assert!(!e.help.is_empty());
    }
    let plans = [
        ("\"Input\"", "\"Imput\"", "`Input` is missing"),
        ("\"SimpleMatrix\"", "\"Matrix\"", "`SimpleMatrix` is missing"),
        ("\"Workers\": [\"A\"", "\"Workers\": [\"C\"", "preset `C` is missing"),
        ("{ \"Args\": [\"burnwait\", \"70\", \"200000\"] }", "{}", "preset `A` has no Args"),
        ("\"70\"", "\"seventy\"", "`seventy` is not work in kops"),
        ("\"burnwait\", \"70\"", "\"burn\", \"70\"", "`burn` is not a command"),
        ("[1, 2, 4, 8, 16]", "[0]", "0 workers"),
        ("[1, 2, 4, 8, 16]", "[9000000000000000000]", "workers"),
    ];
    for (from, to, message) in plans {
        let text = PLAN.replacen(from, to, 1);
        let e = BenchFile::parse("t.bench", &text).and_then(|mut f| f.plan()).expect_err(to);
        assert!(e.message.contains(message) && !e.help.is_empty(), "{to}: {e}");
    }
    // Small files, whose plans would be millions of runs or of workers.
    let list = |of: usize| format!("[{}]", vec!["1"; of].join(","));
    let schedulers = format!("[{}]", vec!["\"a\""; 5000].join(","));
    for (from, to, message) in [
        // Two workers alone and 10,000 times together, with two schedulers; then 2 and 5 times with 5,000 of them.
        ("[1, 2, 4, 8, 16]", list(10_000), "the matrix has 20004 runs"),
        ("[\"credit\", \"credit2\"]", schedulers, "the matrix has 35000 runs"),
    ] {
        let text = PLAN.replacen(from, &to, 1);
        let e = BenchFile::parse("t.bench", &text).and_then(|mut f| f.plan()).unwrap_err();
        assert!(e.message.contains(message) && e.help.contains("at most 10,000 runs"), "{e}");
    }
    let workers = format!("\"Workers\": [{}], \"X\": [\"A\"", vec!["\"A\""; 1000].join(","));
    let text = PLAN.replacen("\"Workers\": [\"A\"", &workers, 1).replacen(
        "[1, 2, 4, 8, 16]",
        &list(1000),
        1,
    );
    let e = BenchFile::parse("t.bench", &text).and_then(|mut f| f.plan()).unwrap_err();
    assert!(e.message.contains("sets of workers") && e.help.contains("100,000"), "{e}");
    let mut twice = planned(PLAN);
    assert!(twice.plan().unwrap_err().message.contains("already has runs"));
}

#[test]
fn a_page_shows_lateness_shares_and_fairness_with_the_first_second_apart() {
    // Of real Xen. The figures below are those of the file's reports, read by hand.
    let path = overspin_testing::root().join("docs/xen/seed-1.bench");
    let file = BenchFile::parse("seed-1.bench", &std::fs::read_to_string(path).unwrap()).unwrap();
    let record = overspin_runs::schedbench::record(&file, "seed-1.bench");
    let of = |place: &str, metric: &str| -> Vec<f64> {
        let found = record.samples.iter().filter(|s| s.place == place && s.metric == metric);
        found.map(|s| s.value).collect()
    };
    let a = "A 1 + B 1 + hog 1 credit2.0";
    // The worst wake-up was in the first second.
    let [all, later] = ["late-max", "late-max-later"].map(|metric| of(a, metric)[0]);
    assert!((all - 9.83).abs() < 0.01 && (later - 0.88).abs() < 0.01, "{all} {later}");
    // Alone, A uses 0.48 of the pCPU and B 0.72, so that beside a hog a third is fair to each of the three.
    let share = of(a, "utilization-total")[0];
    assert!((of(a, "fair")[0] - 3.0 * share).abs() < 1e-9, "{:?}", of(a, "fair"));
    let alone = of("A baseline credit2.0", "throughput-total")[0];
    let of_alone = of(a, "throughput-total")[0] / alone;
    assert!((of(a, "of-alone")[0] - of_alone).abs() < 1e-9, "{:?}", of(a, "of-alone"));
    assert_eq!(of("A 2 + B 2 + hog 2 credit.1", "fair").len(), 2, "one for each worker");

    let page = overspin_page::page(&[Entry { record, detail: None }]);
    let chart = |title: &str| -> &str {
        let after = page.split(&format!("<h4>{title}")).nth(1);
        after.unwrap_or_else(|| panic!("no `{title}`")).split("</figure>").next().unwrap()
    };
    for title in ["throughput of a worker", "CPU time of a worker", "CPU time over the fair share"]
    {
        assert!(chart(title).contains(a), "{title}");
    }
    let first = chart("MaxDelta of a worker in the first second, ms");
    let later = chart("MaxDelta of a worker in each later second, ms");
    let median = |chart: &str| -> f64 {
        let after = chart.split(&format!("{a}: median ")).nth(1).unwrap();
        after.split(' ').next().unwrap().parse().unwrap()
    };
    assert!((median(first) - 9.83).abs() < 0.01, "{}", median(first));
    assert!(median(later) <= 0.88, "{}", median(later));
    assert!(chart("throughput over that when alone").contains(&format!("{a}:")));
}
