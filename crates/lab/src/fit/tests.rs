use super::*;
use overspin_report::text;
use overspin_runs::scenario_file::parse;
use overspin_scenario::{NS, Parameters};
use overspin_workload::LockLoop;

/// Two threads hold a mutex for 4 to 5 us and compute for 16 to 20 us, a thousand times each.
const GOOD: &str = r#"{
  "schema": "overspin-recording/1", "version": "0.1.0", "lock": "mutex", "program": "./p", "cpus": 2,
  "elapsed_ns": 28000000, "cpu_ns": 56000000, "clock_ns": 20,
  "mutexes": [
    { "address": "0x1", "mutexes": 1, "first_locked_at": "./p+0x1 (run)", "threads": 2, "acquisitions": 2000, "contended": 300,
      "from_ns": 0, "to_ns": 27000000,
      "section": [[4096, 1980, 9108000], [10485760, 20, 210000000]],
      "wait": [[0, 1700, 0], [2048, 300, 690000]],
      "outside": [[16384, 1998, 36783180]] },
    { "address": "0x2", "mutexes": 1, "first_locked_at": "./p+0x2", "threads": 1, "acquisitions": 1, "contended": 0,
      "from_ns": 0, "to_ns": 0,
      "section": [[8, 1, 9]], "wait": [[0, 1, 0]],
      "outside": [] }
  ]
}"#;

#[test]
fn percentiles_and_usual_times() {
    let h = Histogram { buckets: vec![(3, 50, 150), (4096, 49, 49 * 4500), (1 << 30, 1, 1 << 30)] };
    // A mean of 4500 ns is in a bucket of 32 ns, whatever the width of the recording's bucket.
    let all = [2, 10, 100, 1000].map(|one_in| h.of_all_but(one_in));
    assert_eq!(all, [3, 4511, 4511, (1 << 30) + (1 << 23) - 1]);
    // The longest one in a hundred does not count.
    let usual = (50.0 * 3.0 + 49.0 * 4500.0) / 99.0;
    assert!((h.usual() - usual).abs() < 1e-6, "{}", h.usual());
    assert!(Histogram::default().usual().abs() < 1e-9);
}

#[test]
fn a_mutex_becomes_a_lock_loop() {
    let recording = read("r.json", GOOD).unwrap();
    assert_eq!(recording.hottest(), 0);
    let fitted = scenario("r.json", &recording, &recording.mutexes[0]);
    assert_eq!(fitted.doubts, Vec::<String>::new());
    let s = parse("f.toml", "f", &fitted.text, &[]).unwrap();
    assert_eq!((s.host.cores, s.domains[0].vcpus, s.domains[0].lock.as_str()), (2, 2, "mutex"));
    let workload = s.domains[0].workload.get::<LockLoop>().unwrap();
    assert_eq!(s.domains[0].workload.0[0].kind, LockLoop::KIND);
    // The means without the longest twenty sections, less the clock: 4600 - 20 and 18410 - 20 ns.
    assert_eq!((workload.section, workload.outside), (4580 * NS, 18390 * NS));
    assert!(workload.fixed, "all times outside are in one bucket");
    // The comments are tables that work.
    let (before, after) = fitted.text.split_once("combinations:\n").unwrap();
    let tables: String = after
        .lines()
        .map(|l| l.trim_start_matches("# ").trim_start_matches('#').to_owned() + "\n")
        .collect();
    assert!(
        parse("f.toml", "f", &format!("{before}combinations\n{tables}"), &[]).is_ok(),
        "{tables}"
    );
}

#[test]
fn the_report_puts_the_recording_first() {
    let recording = read("r.json", GOOD).unwrap();
    let fitted = scenario("r.json", &recording, &recording.mutexes[0]);
    let report = text(&report("r.json", &recording, 0, &fitted, &["ticket".into()]).unwrap());
    // 2000 acquisitions in 27 ms.
    assert!(report.contains("74074"), "{report}");
    assert!(report.contains("15.00") && report.contains("ticket"), "{report}");
    let unknown = super::report("r.json", &recording, 0, &fitted, &["tiket".into()]).unwrap_err();
    assert!(unknown.to_string().contains("tiket"), "{unknown}");
}

#[test]
fn what_the_scenario_lacks_is_told() {
    let idle = GOOD.replace("\"cpu_ns\": 56000000", "\"cpu_ns\": 5600000");
    let crowded = GOOD.replace("\"cpus\": 2", "\"cpus\": 1");
    for (text, doubt) in
        [(idle, "used 10 % of the CPU time"), (crowded, "2.0 threads for each CPU")]
    {
        let recording = read("r.json", &text).unwrap();
        let doubts = scenario("r.json", &recording, &recording.mutexes[0]).doubts;
        assert!(doubts.iter().any(|d| d.contains(doubt)), "{doubts:?}");
    }
}

#[test]
fn faults_have_a_place_and_a_remedy() {
    for (text, line, message) in [
        (String::new(), 1, "the recording is empty"),
        (GOOD.replace("\"cpus\": 2", "\"cpus\": x"), 2, "this is no recording"),
        (GOOD.replace("recording/1", "recording/2"), 1, "the schema is `overspin-recording/2`"),
    ] {
        let e = read("r.json", &text).unwrap_err();
        assert_eq!(e.line, line, "{e}");
        assert!(e.message.contains(message) && e.help.contains("exec --record"), "{e}");
    }
}
