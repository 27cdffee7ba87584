//! Every command knows the parts of this example.

use assert_cmd::Command;
use serde_json::Value;

fn own(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("own-parts").expect("it is built beside its tests");
    command.args(args).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command
}

fn out(args: &[&str]) -> String {
    let output = own(args).assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("text")
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
    let text = out(&["run", "examples/own-parts/meeting.toml", "--no-progress"]);
    assert!(text.contains("All tasks ended") && text.contains("scheduler stride"), "{text}");
    assert!(text.contains("table"), "the lock of the workload: {text}");
    let alias = ["run", "examples/own-parts/meeting.toml", "--set", "host.scheduler=waldspurger"];
    assert_eq!(out(&alias), text);
}

#[test]
fn a_sweep_has_them_among_all() {
    let vary =
        "\n[[vary]]\nname = \"lock\"\nset = \"domain.light.lock\"\nto = [\"deli\", \"ticket\"]\n";
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/meeting.toml"));
    let sweep = std::env::temp_dir().join(format!("own-parts-{}.toml", std::process::id()));
    std::fs::write(&sweep, text.expect("it lies here") + vary).expect("a place to write to");
    let text = out(&["run", sweep.to_str().expect("text"), "--no-progress"]);
    std::fs::remove_file(&sweep).expect("it was written");
    assert!(text.contains("deli") && text.contains("ticket"), "{text}");
}

#[test]
fn a_slip_is_told_with_the_own_names() {
    let slip = ["run", "examples/own-parts/meeting.toml", "--set", "domain.light.lock=dely"];
    let error = own(&slip).assert().code(2).get_output().stderr.clone();
    let error = String::from_utf8(error).expect("text");
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
