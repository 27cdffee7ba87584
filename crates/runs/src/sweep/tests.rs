use super::*;
use crate::scenario_file;

const TWO_BY_TWO: &str = r#"
limit = "20ms"
[host]
cores = 2
[[domain]]
name = "guest"
vcpus = 2
lock = "ticket"
[domain.workload]
kind = "lock-loop"
section = "2us"
[[vary]]
name = "lock"
set = "domain.guest.lock"
to = ["ticket", "lock-byte"]
[[vary]]
name = "vCPUs/pCPUs"
set = "domain.guest.vcpus / host.cores"
to = ["2/2", "2/1"]
"#;

fn sweep(text: &str) -> Result<Sweep, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    match scenario_file::load(file.path(), &[]) {
        Ok(scenario_file::Loaded::Sweep(sweep)) => Ok(sweep),
        Ok(_) => Err("not a sweep".into()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn every_combination_is_the_run_that_its_set_arguments_describe() {
    let sweep = sweep(TWO_BY_TWO).unwrap();
    let measured = run(&sweep, Settings { threads: 2, ..Settings::default() }, &|_, _| {}).unwrap();
    let at: Vec<String> = measured.points.iter().map(|p| p.at.join(" ")).collect();
    assert_eq!(at, ["ticket 2/2", "ticket 2/1", "lock-byte 2/2", "lock-byte 2/1"]);
    for (cell, point) in measured.cells().zip(&sweep.points) {
        let alone = scenario_file::parse("t", "t", TWO_BY_TWO, &point.sets).unwrap();
        let seed = cell.run.seed.unwrap();
        let outcome = overspin_sim::run(&alone, seed).unwrap();
        assert_eq!(Some(outcome.trace_hash), cell.run.trace_hash, "{:?}", point.sets);
        let of = |name| cell.values[MEASURES.iter().position(|m| m.metric.name == name).unwrap()];
        let (throughput, burned) = (of("throughput"), of("burned"));
        let [p50, p99, p999] = ["wait-p50", "wait-p99", "wait-p99.9"].map(of);
        assert!(throughput > 0.0 && (0.0..=100.0).contains(&burned));
        assert!(p50 <= p99 && p99 <= p999);
    }
    // No vCPU is descheduled while each has a pCPU.
    let throughput = |i: usize| measured.points[i].cells[0].values[THROUGHPUT];
    assert!(throughput(0) > throughput(1));
}

const SEEDS: &str = "[[vary]]\nname = \"seed\"\nset = \"seed\"\nto = [\"3\", \"5\", \"4\"]\n";

#[test]
fn seeds_are_no_axis_and_each_point_runs_with_each_of_them() {
    let with_seeds = sweep(&format!("{TWO_BY_TWO}{SEEDS}")).unwrap();
    assert_eq!((with_seeds.axes.len(), with_seeds.points.len()), (2, 4));
    let measure = |sweep: &Sweep, seed, seeds| {
        run(sweep, Settings { seed, seeds, threads: 2, ..Settings::default() }, &|_, _| {}).unwrap()
    };
    let named = measure(&with_seeds, None, None);
    let seeds: Vec<u64> = named.cells().filter_map(|c| c.run.seed).collect();
    assert_eq!(seeds, [3, 5, 4].repeat(4));
    assert_eq!(named.most_seeds(), 3);
    for point in &named.points {
        let mean = point.cells.iter().map(|c| c.values[THROUGHPUT]).sum::<f64>() / 3.0;
        let spread = point.spread(THROUGHPUT).unwrap();
        assert!((spread.summary.mean - mean).abs() < 1e-9 * mean);
    }
    // The options win over the file, and do the same without the file's seeds.
    let asked = measure(&with_seeds, Some(3), Some(3));
    let plain = measure(&sweep(TWO_BY_TWO).unwrap(), Some(3), Some(3));
    let hashes = |m: &Outcome| m.cells().map(|c| c.run.trace_hash).collect::<Vec<_>>();
    assert_eq!(hashes(&asked), hashes(&plain));
    assert_eq!(hashes(&asked)[0], hashes(&named)[0]);
    let alone = measure(&with_seeds, Some(4), None);
    assert_eq!((alone.cells().count(), alone.most_seeds()), (4, 1));
    let text = overspin_report::text(&crate::sweep::report(&named));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("mean over seeds 3, 5, 4") && text.contains('±'), "{text}");
    assert!(!overspin_report::text(&crate::sweep::report(&alone)).contains('±'));
}

#[test]
fn the_tail_of_a_lock_that_collapsed_is_marked() {
    let sweep = sweep(TWO_BY_TWO).unwrap();
    let mut measured =
        run(&sweep, Settings { threads: 2, ..Settings::default() }, &|_, _| {}).unwrap();
    // The ticket lock has the shortest waits, since it hardly made any in the second column.
    for (point, (rate, wait)) in
        measured.points.iter_mut().zip([(1e6, 1.0), (4e3, 2.0), (9e5, 10.0), (1e4, 20.0)])
    {
        (point.cells[0].values[THROUGHPUT], point.cells[0].values[3]) = (rate, wait);
    }
    let text = overspin_report::text(&report(&measured));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|row: &Vec<&str>| row.len() == 3 && matches!(row[0], "ticket" | "lock-byte"))
        .collect();
    assert!(rows.contains(&vec!["ticket", "1.0", "2.0?"]), "{text}");
    assert!(rows.contains(&vec!["lock-byte", "10", "20"]), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("?: it did less than half of the best in its column"), "{text}");
}

#[test]
fn a_file_that_varies_only_the_seed_is_one_scenario() {
    let text = format!("{}{SEEDS}", TWO_BY_TWO.split("[[vary]]").next().unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let loaded = scenario_file::load(file.path(), &[]).unwrap();
    assert!(matches!(loaded, scenario_file::Loaded::Seeds(_, seeds) if seeds == [3, 5, 4]));
}

#[test]
fn more_runs_than_anybody_waits_for_are_refused() {
    let sweep = sweep(TWO_BY_TWO).unwrap();
    let settings = Settings { seeds: Some(30_000), ..Settings::default() };
    assert!(matches!(
        run(&sweep, settings, &|_, _| {}),
        Err(SweepError::TooMany { runs: 120_000 })
    ));
}

#[test]
fn mistakes_in_seeds_have_their_place() {
    for (from, to, message) in [
        ("\"4\"]", "\"-4\"]", "`-4` is not a seed"),
        ("\"4\"]", "\"3\"]", "seed 3 is listed twice"),
        ("\"4\"]\n", &format!("\"4\"]\n{SEEDS}"), "the seed is varied twice"),
    ] {
        let error = sweep(&format!("{TWO_BY_TWO}{}", SEEDS.replacen(from, to, 1))).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let cases = [
        ("to = [\"2/2\", \"2/1\"]", "to = [\"2/2\", \"2\"]", "has 1 parts for 2 keys"),
        ("to = [\"2/2\", \"2/1\"]", "to = []", "is empty"),
        ("\"lock-byte\"]", "\"lock-bite\"]", "there is no lock `lock-bite`"),
        ("set = \"domain.guest.lock\"", "", "`set` is missing"),
    ];
    for (from, to, message) in cases {
        let error = sweep(&TWO_BY_TWO.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    assert_eq!(sweep(TWO_BY_TWO.split("[[vary]]").next().unwrap()).unwrap_err(), "not a sweep");
}
