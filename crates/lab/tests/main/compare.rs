//! The tests of difference against scipy's figures, which are stored as data with their origin.

use overspin_lab::compare::difference::{mann_whitney, student, welch};
use overspin_lab::stats::Summary;
use serde_json::Value;

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
