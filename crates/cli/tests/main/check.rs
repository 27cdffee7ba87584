//! `overspin check`: its printed output, its files, and its exit codes.

use crate::{json, overspin};

/// Small enough for a test.
const SMALL: [&str; 5] = ["check", "--cpus=2", "--pairs=1", "--preemptions=2", "--schedules=100"];

#[test]
fn every_world_has_its_lines_and_its_json() {
    let overspin = overspin();
    let (out, err) = overspin.fine(&[&SMALL[..], &["ticket", "--json", "ticket.json"]].concat());
    for part in ["model", "schedules", "threads", "caught", "NoRelease", "Not covered", "passes"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    // Progress is for terminals; the table reports the panics of caught bugs.
    assert_eq!(err, "");

    let json = json(&overspin.read("ticket.json"));
    assert_eq!(json["schema"], "overspin-check/1");
    let lock = &json["locks"][0];
    assert_eq!(lock["name"], "ticket");
    let checks = lock["checks"].as_array().unwrap();
    let model = &checks[0];
    assert_eq!(model["bound"], "1 pair each, preemptions: 2");
    assert!(model["runs"].as_u64() > Some(1), "two CPUs interleave in more than one way: {model}");
    assert!(checks.iter().all(|check| check["verdict"] == "passes"));
    assert!(lock["seeded"].as_array().unwrap().iter().all(|bug| bug["caught"] == true));
}

#[test]
fn a_known_flaw_is_shown_and_is_no_failure() {
    let (out, _) = overspin().fine(&[&SMALL[..], &["xen-pv"]].concat());
    assert!(out.contains("known flaw model     access after release"), "{out}");
    assert!(out.contains("access to a freed lock"), "{out}");
}

#[test]
fn json_on_standard_output_is_alone_there() {
    let json = json(&overspin().fine(&[&SMALL[..], &["byte", "--json", "-"]].concat()).0);
    assert_eq!(json["locks"][0]["name"], "lock-byte", "an alias is told by its name");
}

#[test]
fn a_model_out_of_time_is_undecided() {
    // A million times more than fits into a second.
    let size = ["--cpus=4", "--pairs=4", "--preemptions=16", "--schedules=1", "--time-limit=1"];
    let (out, _) = overspin().run(&[&["check", "xen-pv"], &size[..]].concat()).with(4);
    assert!(out.contains("unfinished"), "{out}");
}

#[test]
fn mistakes_are_usage_errors() {
    let error = overspin().fails(&["check", "mutes"], 2);
    assert!(error.contains("there is no lock `mutes`"), "{error}");
    assert!(error.contains("lock-byte, ") && error.contains("flexguard"), "{error}");
    for args in [
        &["check"][..],
        &["check", "ticket", "--all"],
        &["check", "ticket", "--cpus", "5"],
        &["check", "ticket", "--pairs", "0"],
        &["check", "ticket", "--preemptions", "x"],
    ] {
        overspin().fails(args, 2);
    }
}
