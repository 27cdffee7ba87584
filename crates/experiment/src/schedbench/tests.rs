use super::*;
use overspin_claims::{Formula, Index};
use overspin_runs::schedbench::{BenchFile, summarize};
use std::sync::Arc;

/// A run of two workers that report these latenesses, in ms, at the ends of two seconds.
fn run_of(seed: u64, late: [[u64; 2]; 2]) -> BenchSample {
    let raw: Vec<_> = (0..3_usize)
        .flat_map(|second| (0..2).map(move |id| (second, id)))
        .map(|(second, id)| {
            // A worker's report at its start belongs to no second and must not count.
            let late = if second == 0 { 99 } else { late[id][second - 1] };
            serde_json::json!({
                "Id": { "Set": 0, "Id": id }, "Now": second as u64 * 1_000_000_000,
                "Kops": second * 100, "MaxDelta": late * 1_000_000, "Cputime": 0
            })
        })
        .collect();
    let run = serde_json::json!({
        "Label": "x", "RuntimeSeconds": 2, "Completed": true, "Results": { "Raw": raw },
        "WorkerSets": [{ "Params": { "Args": ["burnwait", "1", "1"] }, "Count": 2 }]
    });
    let text = serde_json::json!({ "Runs": [run] }).to_string();
    let file = BenchFile::parse("t.bench", &text).unwrap();
    BenchSample {
        run: "2a+2b".into(),
        scheduler: "credit".into(),
        seed,
        workers: vec!["A".into()],
        summary: summarize(&file.runs[0]).unwrap(),
    }
}

#[test]
fn a_statistic_is_of_the_reports_of_one_run_and_the_runs_have_a_mean() {
    let names = Arc::new(crate::schedbench_2016().unwrap().vocabulary());
    let samples = samples::samples(&[run_of(1, [[1, 2], [3, 8]]), run_of(2, [[5, 5], [5, 7]])]);
    let of = |scheduler: &str, function: &str| {
        let text = format!("mean({function}({scheduler}.\"2a+2b\".A.report.late) by seed)");
        let formula = Formula::parse(&text, &names).unwrap();
        formula.compute(&Index::new(&samples)).map(|s| (s.mean, s.n))
    };
    assert_eq!(of("credit", "min"), Ok((3.0, 2)));
    assert_eq!(of("credit", "median"), Ok((3.75, 2)));
    assert_eq!(of("credit", "max"), Ok((7.5, 2)));
    assert!(of("credit2", "median").is_err());
}

const SPACE: &str = include_str!("../../../../experiments/boost-space.toml");

fn read(text: &str) -> Result<(Head, Schedbench), LocatedError> {
    let document = Document::parse("space.toml", text)?;
    crate::registry::read_as(&document, text, Schedbench::parse)
}

#[test]
fn a_scheduler_sets_its_parameters_and_its_machine() {
    let (_, space) = read(SPACE).unwrap();
    let of = |name: &str| {
        let i = space.policies.iter().position(|p| p.name == name).unwrap();
        let host = &space.machines[i].host;
        (host.smt_permille, host.params.contains_key("smt_space"))
    };
    assert_eq!([of("off"), of("space"), of("space-620")], [(455, false), (455, true), (620, true)]);
    // Without `set`, a scheduler has the machine of the file.
    let machines = crate::schedbench_2016().unwrap().machines;
    assert_eq!(machines[0].host, machines[1].host);
}

#[test]
fn a_scheduler_sets_nothing_that_is_not_legal() {
    let refused = |from: &str, to: &str| {
        assert!(SPACE.contains(from));
        let error = read(&SPACE.replacen(from, to, 1)).unwrap_err();
        format!("{} / {}", error.message, error.help)
    };
    let unknown = refused("smt_charge=455", "smt_chrage=455");
    assert!(unknown.contains("smt_chrage") && unknown.contains("smt_charge"), "{unknown}");
    let other = refused("host.smt_permille=620", "host.cores=4");
    assert!(other.contains("number of pCPUs") && other.contains("keep"), "{other}");
}
