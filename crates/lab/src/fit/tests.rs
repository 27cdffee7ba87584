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
    { "address": "0x1", "mutexes": 1, "first_locked_at": "./p+0x1 (run)", "threads": 2, "acquisitions": 2000, "contended": 100,
      "from_ns": 0, "to_ns": 27000000,
      "section": [[4096, 1980, 9108000], [10485760, 20, 210000000]],
      "wait": [[0, 1900, 0], [2048, 100, 230000]],
      "outside": [[16384, 1998, 36783180]] },
    { "address": "0x2", "mutexes": 1, "first_locked_at": "./p+0x2", "threads": 1, "acquisitions": 1, "contended": 0,
      "from_ns": 0, "to_ns": 0,
      "section": [[8, 1, 9]], "wait": [[0, 1, 0]],
      "outside": [] }
  ]
}"#;

#[test]
fn percentiles_and_usual_times() {
    let h = vec![(3, 50, 150), (4096, 49, 49 * 4500), (1 << 30, 1, 1 << 30)];
    let h = Histogram::try_from(h).unwrap();
    // A mean of 4500 ns is in a bucket of 32 ns, whatever the width of the recording's bucket.
    let all = [2, 10, 100, 1000].map(|one_in| h.of_all_but(one_in));
    assert_eq!(all, [3, 4511, 4511, (1 << 30) + (1 << 23) - 1]);
    // The longest one in a hundred does not count.
    let usual = (50.0 * 3.0 + 49.0 * 4500.0) / 99.0;
    assert!((h.usual() - usual).abs() < 1e-6, "{}", h.usual());
    assert!(Histogram::default().usual().abs() < 1e-9);
}

#[test]
fn a_mutex_of_the_start_is_not_the_hottest() {
    // Nine acquisitions, of which one waited for longer than all thousand of the other mutex.
    let start = GOOD.replace(
        r#""threads": 1, "acquisitions": 1, "contended": 0"#,
        r#""threads": 5, "acquisitions": 9, "contended": 1"#,
    );
    let start =
        start.replace(r#""wait": [[0, 1, 0]]"#, r#""wait": [[0, 8, 0], [16777216, 1, 17000000]]"#);
    let mut recording = read("r.json", &start, &[]).unwrap();
    assert!(recording.mutexes[1].wait.sum() > recording.mutexes[0].wait.sum());
    assert_eq!(recording.hottest(), 0);
    // Alone it is taken all the same.
    recording.mutexes.swap_remove(0);
    assert_eq!(recording.hottest(), 0);
}

#[test]
fn a_mutex_becomes_a_lock_loop() {
    let recording = read("r.json", GOOD, &[]).unwrap();
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
    let recording = read("r.json", GOOD, &[]).unwrap();
    let fitted = scenario("r.json", &recording, &recording.mutexes[0]);
    let report =
        text(&report("r.json", &recording, 0, &fitted, &["ticket".into()]).unwrap().blocks);
    // 2000 acquisitions in 27 ms.
    assert!(report.contains("74074"), "{report}");
    assert!(report.contains(" 5.00 ") && report.contains("ticket"), "{report}");
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
        let recording = read("r.json", &text, &[]).unwrap();
        let doubts = scenario("r.json", &recording, &recording.mutexes[0]).doubts;
        assert!(doubts.iter().any(|d| d.contains(doubt)), "{doubts:?}");
    }
}

#[test]
fn faults_have_a_place_and_a_remedy() {
    for (text, line, message) in [
        (String::new(), 1, "the file is empty"),
        (GOOD.replace("\"cpus\": 2", "\"cpus\": x"), 2, "this is no recording"),
        (GOOD.replace("recording/1", "recording/2"), 1, "the schema is `overspin-recording/2`"),
    ] {
        let e = read("r.json", &text, &[]).unwrap_err();
        assert_eq!(e.line, line, "{e}");
        assert!(e.message.contains(message) && e.help.contains("exec --record"), "{e}");
    }
}

/// Two threads use a mutex for 5 us every 10 ms and sleep meanwhile; two more have used it once. Every eighth section sleeps for
/// 2 ms with the mutex held.
fn server() -> String {
    // 1000 acquisitions in 5 s; 125 sections with 2 ms asleep.
    r#"{
  "schema": "overspin-recording/1", "version": "0.1.0", "lock": "mutex", "program": "server", "cpus": 2,
  "elapsed_ns": 5100000000, "cpu_ns": 20000000, "clock_ns": 20,
  "mutexes": [
    { "address": "0x1", "mutexes": 1, "first_locked_at": "/bin/server+0x1", "threads": 4, "acquisitions": 1000, "contended": 40,
      "from_ns": 0, "to_ns": 5000000000,
      "section": [[4096, 875, 4375000], [2097152, 125, 250625000]],
      "wait": [[0, 960, 0], [1048576, 40, 42000000]],
      "outside": [[4194304, 996, 9700000000]],
      "section_looks": [[4096, 60, 300000, 300000, 0, 0], [2097152, 10, 20050000, 50000, 10, 20000000]],
      "outside_looks": [[8388608, 64, 623000000, 640000, 64, 622360000]] }
  ]
}"#
    .to_owned()
}

#[test]
fn sleeps_inside_and_outside_become_sleeps() {
    let recording = read("r.json", &server(), &[]).unwrap();
    let fitted = scenario("r.json", &recording, &recording.mutexes[0]);
    let s = parse("f.toml", "f", &fitted.text, &[]).unwrap();
    // 1000 times (255 us held, 42 us waiting, 9.74 ms left alone) in 5 s: two threads at a time.
    assert_eq!(s.domains[0].vcpus, 2, "{}", fitted.text);
    let w = s.domains[0].workload.get::<LockLoop>().unwrap();
    assert_eq!((w.asleep_every, w.idle_every), (8, 1));
    // What is asleep is off the CPU: 2 ms, less nothing; a section itself takes 5 us.
    assert!((1_900..2_100).contains(&(w.asleep.0 / 1_000_000)), "{}", fitted.text);
    assert!((4_000..6_000).contains(&(w.section.0 / 1_000)), "{}", fitted.text);
    let report = report("r.json", &recording, 0, &fitted, &["ticket".into()]).unwrap();
    let words = text(&report.blocks);
    assert!(report.agrees, "{words}");
    assert!(!words.contains("No prediction"), "{words}");
}

/// Two threads take one of eight mutexes of a table by lot, hold it for 5 us and compute for 15 us: 100,000 rounds a second.
/// So each leaves a mutex alone for 155 us, and computes meanwhile. One thread meets the other in 1 of 8 rounds times a quarter.
#[test]
fn several_mutexes_of_one_place_become_several_locks() {
    let several = GOOD
        .replace(r#""address": "0x1", "mutexes": 1"#, r#""address": "0x0", "mutexes": 8"#)
        .replace(
            "\"acquisitions\": 2000, \"contended\": 100",
            "\"acquisitions\": 2000, \"contended\": 62",
        )
        .replace("\"to_ns\": 27000000", "\"to_ns\": 20000000")
        .replace("[[4096, 1980, 9108000], [10485760, 20, 210000000]]", "[[4992, 2000, 10040000]]")
        .replace("[[0, 1900, 0], [2048, 100, 230000]]", "[[0, 1938, 0], [2048, 62, 154000]]")
        .replace(
            "[[16384, 1998, 36783180]]",
            "[[131072, 1990, 308450000]], \"section_looks\": [[4096, 128, 642560, 642560, 0, 0]], \
             \"outside_looks\": [[131072, 128, 19840000, 19840000, 0, 0]]",
        );
    let recording = read("r.json", &several, &[]).unwrap();
    let fitted = scenario("r.json", &recording, &recording.mutexes[0]);
    let s = parse("f.toml", "f", &fitted.text, &[]).unwrap();
    let w = s.domains[0].workload.get::<LockLoop>().unwrap();
    assert_eq!((w.locks, s.domains[0].vcpus), (8, 2), "{}", fitted.text);
    assert!((4_900..5_100).contains(&(w.section.0 / 1_000)), "{}", fitted.text);
    assert!((14_500..15_500).contains(&(w.outside.0 / 1_000)), "{}", fitted.text);
    let report = report("r.json", &recording, 0, &fitted, &["ticket".into()]).unwrap();
    let words = text(&report.blocks);
    assert!(report.agrees, "{words}");
    assert!(
        fitted.doubts[0].contains("8 mutexes of one place, and the scenario has 8 locks"),
        "{:?}",
        fitted.doubts
    );
    // Mutexes that came one after the other: a thread leaves the present one alone for 15 us.
    let turns =
        several.replace("[[131072, 1990, 308450000]]", "[[14976, 1990, 29850000]]").replace(
            "[[131072, 128, 19840000, 19840000, 0, 0]]",
            "[[8192, 128, 1920000, 1920000, 0, 0]]",
        );
    let recording = read("r.json", &turns, &[]).unwrap();
    let fitted = scenario("r.json", &recording, &recording.mutexes[0]);
    assert!(!fitted.text.contains("locks ="), "{}", fitted.text);
    assert!(fitted.doubts[0].contains("has one lock"), "{:?}", fitted.doubts);
}

#[test]
fn a_fit_that_contradicts_its_recording_predicts_nothing() {
    // The threads never wait, it is said, but they use the mutex all the time.
    let never = GOOD
        .replace("\"contended\": 100", "\"contended\": 0")
        .replace("[[16384, 1998, 36783180]]", "[[1024, 1998, 2100000]]");
    let never = never.replace("\"to_ns\": 27000000", "\"to_ns\": 6000000");
    let recording = read("r.json", &never, &[]).unwrap();
    let fitted = scenario("r.json", &recording, &recording.mutexes[0]);
    let report = report("r.json", &recording, 0, &fitted, &["ticket".into()]).unwrap();
    let words = text(&report.blocks);
    assert!(!report.agrees);
    assert!(words.starts_with("No prediction for ./p: contended 0.0 %, simulated "), "{words}");
    assert!(words.contains("Record a longer run"), "{words}");
    assert!(!words.contains("2:1 overcommit") && !words.contains("ticket"), "{words}");
}

/// The second mutex of `GOOD` was locked once, so its rate is one by the least time that there is.
#[test]
fn a_mutex_that_was_locked_a_few_times_has_no_rate() {
    let mut recording = read("r.json", GOOD, &[]).unwrap();
    let words = |recording: &Recording, number: usize| {
        let fitted = scenario("r.json", recording, &recording.mutexes[number]);
        let report = report("r.json", recording, number, &fitted, &["ticket".into()]).unwrap();
        assert!(!report.agrees);
        text(&report.blocks)
    };
    let one = words(&recording, 1);
    assert!(one.starts_with("No prediction for ./p: 1 acquisition is too few\n"), "{one}");
    assert!(one.contains("A fit needs 100") && one.contains("--mutex 0."), "{one}");
    assert!(!one.contains("rate") && !one.contains("simulated\n"), "{one}");
    recording.mutexes.swap_remove(0);
    recording.mutexes[0].acquisitions = 99;
    let few = words(&recording, 0);
    assert!(few.contains("99 acquisitions are too few"), "{few}");
    assert!(few.contains("Record a longer run.") && !few.contains("--mutex"), "{few}");
}

#[test]
fn a_file_without_a_recording_says_why() {
    let note = |state: &str, process: u32, more: &str| {
        format!(
            "{{ \"schema\": \"overspin-recording-begun/1\", \"state\": \"{state}\", \"process\": {process}, \"program\": \"p\"{more} }}"
        )
    };
    let cut = &GOOD[..GOOD.len() / 2];
    let [many, long] = ["[8, 18446744073709551615, 9]", "[8, 1, 18446744073709551615], [9, 1, 9]"]
        .map(|buckets| GOOD.replace("[8, 1, 9]", buckets));
    // No process has the last number.
    let gone = 4_194_304;
    for (text, message) in [
        (note("runs", std::process::id(), ""), "`p`, still runs"),
        (note("runs", gone, ""), "by a signal that it does not handle"),
        (note("runs", gone, ""), "by a system call of its own, as Go programs do"),
        (note("begins", gone, ""), "before the library was loaded"),
        (note("begins", gone, ", \"obstacle\": \"is set-user-ID\""), "it is set-user-ID"),
        (cut.to_owned(), "the recording is cut off"),
        (many, "durations are too many or too long"),
        (long, "durations are too many or too long"),
        (
            GOOD[..GOOD.find("\"mutexes\"").unwrap()].to_owned() + "\"mutexes\": [] }",
            "`./p` locked no mutex",
        ),
    ] {
        let e = read("r.json", &text, &["r.json.7".into()]).unwrap_err();
        assert!(e.message.contains(message), "{message}: {e}");
        assert!(
            e.help.ends_with("or take r.json.7, which another process of the run recorded"),
            "{}",
            e.help
        );
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["r.json", "r.json.12", "r.json.7", "r.json.bak", "r.jsonl.1"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    assert_eq!(others(&folder.path().join("r.json")), ["r.json.12", "r.json.7"]);
}
