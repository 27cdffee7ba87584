//! Comparisons: the tests of difference against scipy's figures, which are stored as data with their origin, and what is
//! said of the samples of files.

use overspin_lab::compare::{self, Choice, Finding, Input, choose, common, differences};
use overspin_stats::Summary;
use overspin_stats::difference::{mann_whitney, student, welch};
use serde_json::{Value, json};

const SCIPY: &str = include_str!("data/scipy-1.17.1.json");

#[test]
fn as_scipy_computes_them() {
    let data: Value = serde_json::from_str(SCIPY).unwrap();
    let near = |value: f64, expected: &Value, what: &str| {
        let Some(expected) = expected.as_f64() else { return 0 };
        assert!((value / expected - 1.0).abs() < 1e-9, "{what}: {value} for {expected}");
        1
    };
    let mut checked = 0;
    for case in data["cases"].as_array().unwrap() {
        let samples = |key: &str| -> Vec<f64> {
            case[key].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
        };
        let (a, b) = (samples("a"), samples("b"));
        let (sa, sb) = (Summary::of(&a).unwrap(), Summary::of(&b).unwrap());
        let w = welch(&sa, &sb, 0.99).unwrap();
        let s = student(&sa, &sb, 0.99).unwrap();
        let (u, p) = mann_whitney(&a, &b).unwrap();
        for (value, key) in [
            (w.t, "welch_t"),
            (w.p, "welch_p"),
            (w.df, "welch_df"),
            (w.difference - w.margin, "welch_99_low"),
            (w.difference + w.margin, "welch_99_high"),
            (s.t, "student_t"),
            (s.p, "student_p"),
            (u, "u"),
            (p, "u_p"),
        ] {
            checked += near(value, &case[key], key);
        }
    }
    assert_eq!(checked, 14);
}

/// ministat's own example.
const IGUANA: &str = "50\n200\n150\n400\n750\n400\n150\n";
const CHAMELEON: &str = "150\n400\n720\n500\n930\n";

fn read(name: &str, text: &str) -> (String, Input) {
    (name.to_owned(), compare::read(name, text, 1).unwrap_or_else(|e| panic!("{e}")))
}

#[test]
fn ministats_example() {
    let files = [read("iguana", IGUANA), read("chameleon", CHAMELEON)];
    let all = compare::compare(&files, 0.95, None);
    assert_eq!(all[0].finding, Finding::Same);
    let out = overspin_report::text(&compare::report(&all, 0.95));
    assert!(out.contains("No difference proven at 95% confidence."), "{out}");
    // As on the manual page: 7 50 750 200 300 238.04761; 5 150 930 500 540 299.08193.
    assert!(out.contains("238.0") && out.contains("299.1") && out.contains("540.0"), "{out}");
    assert!(out.contains("A |---") && out.contains("M"), "{out}");
    // The means are those of the manual page.
    let csv = compare::csv(&all);
    assert!(csv.starts_with("run,seed,where,metric,unit,value\n0,,,n-a,,7\n"), "{csv}");
    assert!(csv.contains("0,,,mean-a,,300\n0,,,mean-b,,540\n"), "{csv}");
    // One line is one sample of each column.
    let row = [read("iguana", IGUANA), read("-", "150 400 720 500 930")];
    let all = compare::compare(&row, 0.95, None);
    assert_eq!(all[0].finding, Finding::Undecided);
    assert!(overspin_report::text(&compare::report(&all, 0.95)).contains("only 1 samples"));
    let low = compare::compare(&files, 0.8, None);
    let out = overspin_report::text(&compare::report(&low, 0.8));
    assert!(out.contains("proven") || out.contains("Difference at 80%"), "{out}");
}

#[test]
fn records_of_different_machines_are_told_apart() {
    let record = |cpu: &str, model: u32| {
        let samples: Vec<Value> = (1..=5)
            .map(|n| json!({"run": n - 1, "where": "x", "metric": "time", "unit": "s", "value": n}))
            .collect();
        let record = json!({
            "schema": "overspin-record/1", "version": "1", "model_version": model, "kind": "bench",
            "name": "x", "description": "", "seed": null, "runs": [], "samples": samples,
            "environment": {
                "overspin": "1", "model_version": model, "debug_build": false, "cpu": cpu, "cpus": 2,
                "usable_cpus": 2, "cores": 1, "kernel": "Linux 6", "hypervisor": null,
            },
        });
        record.to_string()
    };
    let a = read("a.json", &record("Abacus", 1));
    let b = read("b.json", &record("Babbage", 2));
    let warnings = differences((&a.0, &a.1.origin), (&b.0, &b.1.origin));
    assert_eq!(warnings.len(), 2);
    let said = warnings.join("\n");
    assert!(said.contains("a.json and b.json are of different machines: Abacus"), "{said}");
    assert!(said.contains("simulated by different models, of version 1 and 2"), "{said}");
    assert!(differences((&a.0, &a.1.origin), (&a.0, &a.1.origin)).is_empty());
}

#[test]
fn what_cannot_be_compared_says_what_there_is() {
    let error = compare::read("bad", "1\n2\nx\n", 1).expect_err("x is no number");
    assert!(error.to_string().contains("bad:3:1: `x` is not a number"), "{error}");
    let hyperfine = r#"{"results":[{"command":"ls","times":[1,2]}]}"#;
    let mut files = [read("iguana", IGUANA), read("h.json", hyperfine)];
    assert!(compare::compare(&files, 0.95, None).is_empty());
    assert!(common(&files).contains("h.json has ls: time"), "{}", common(&files));
    let choice = Choice { metrics: vec!["speed".into()], places: Vec::new() };
    let error = choose(&choice, &mut files[1..]).expect_err("there is no such metric");
    assert!(error.to_string().contains("h.json has no metric `speed`"), "{error}");
    assert!(error.known.contains("time"), "{}", error.known);
}
