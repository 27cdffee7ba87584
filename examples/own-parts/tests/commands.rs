//! Every command knows the parts of this example.

use overspin_testing::{Program, root};
use serde_json::Value;

fn own() -> Program {
    Program::new(env!("CARGO_BIN_EXE_own-parts"))
}

fn out(args: &[&str]) -> String {
    own().fine(args).0
}

/// The scenario of this example.
fn meeting() -> String {
    root().join("examples/own-parts/meeting.toml").to_str().expect("text").to_owned()
}

#[test]
fn they_are_listed_once_among_the_others() {
    let list: Value = serde_json::from_str(&out(&["list", "--json", "-"])).expect("JSON");
    for (what, name) in [("locks", "deli"), ("schedulers", "stride"), ("workloads", "meeting")] {
        let names = list[what].as_array().expect("a list").iter();
        assert_eq!(names.clone().filter(|n| n["name"] == name).count(), 1, "{name}");
        assert!(names.count() > 5, "{what}: and the built-in ones");
    }
}

#[test]
fn a_scenario_names_them() {
    let text = out(&["run", &meeting(), "--verbose", "--no-progress"]);
    assert!(text.contains("All tasks ended") && text.contains("scheduler stride"), "{text}");
    assert!(text.contains("table"), "the lock of the workload: {text}");
    assert_eq!(out(&["run", &meeting(), "--verbose", "--set", "host.scheduler=waldspurger"]), text);
}

#[test]
fn a_sweep_has_them_among_all() {
    let vary =
        "\n[[vary]]\nname = \"lock\"\nset = \"domain.light.lock\"\nto = [\"deli\", \"ticket\"]\n";
    let own = own();
    own.write("sweep.toml", std::fs::read_to_string(meeting()).expect("it lies here") + vary);
    let (text, _) = own.fine(&["run", "sweep.toml", "--no-progress"]);
    assert!(text.contains("deli") && text.contains("ticket"), "{text}");
}

#[test]
fn a_slip_is_told_with_the_own_names() {
    let error = own().fails(&["run", &meeting(), "--set", "domain.light.lock=dely"], 2);
    assert!(error.contains("deli"), "{error}");
}

#[test]
fn the_lock_is_checked() {
    let text = out(&["check", "deli", "--schedules", "100"]);
    assert!(text.contains("deli") && text.contains("a CPU stops for ever"), "{text}");
    assert!(!text.contains("FAILS"), "{text}");
}

#[test]
fn the_lock_is_measured() {
    let args = ["bench", "locks", "--locks", "deli,ticket", "--threads", "2", "--runs", "2"];
    let text = out(&[&args[..], &["--time", "10ms", "--no-progress"]].concat());
    assert!(text.contains("deli") && text.contains("ticket"), "{text}");
}
