//! `overspin calibrate`, and the profile that it writes.

use crate::{json, overspin};
use overspin_testing::skip;

const SCENARIO: &str = r#"
limit = "5ms"
[host]
cores = 1
machine = "here.toml"
[[domain]]
name = "guest"
vcpus = 1
lock = "ticket"
workload = { kind = "lock-loop" }
"#;

#[test]
fn a_measured_profile_is_a_machine_of_scenarios() {
    let overspin = overspin();
    let (out, _) =
        overspin.fine(&["calibrate", "--time", "1ms", "-o", "here.toml", "--json", "c.json"]);
    assert!(out.contains("context_switch") && out.contains("Not measured"), "{out}");
    let profile = overspin.read("here.toml");
    assert!(profile.contains("# migration = "), "{profile}");
    let record = json(&overspin.read("c.json"));
    assert_eq!(record["kind"], "calibration");
    let samples = record["samples"].as_array().unwrap();
    let of = |place: &str| samples.iter().filter(|s| s["where"] == place).count();
    assert!(of("atomic") >= 3 && of("sleep") >= 3, "{samples:?}");

    overspin.write("s.toml", SCENARIO);
    overspin.fine(&["run", "s.toml", "--json", "r.json"]);
    let record = json(&overspin.read("r.json"));
    let atomic = record["scenario"]["host"]["costs"]["atomic"].as_u64().unwrap();
    assert!(profile.contains(&format!("atomic = \"{atomic}ps\"")), "{atomic}: {profile}");
    assert_eq!(record["scenario"]["host"]["costs"]["migration"], 50_000_000, "generic-2008's");
    // Where guests run, their exits and kicks are measured too; elsewhere the report says why not.
    match out.contains("exit of a vCPU") && !profile.contains("# hypercall = ") {
        true => assert!(of("hypercall") >= 3, "{samples:?}"),
        false => skip("no guest runs here, so no exit of one is measured"),
    }
}

#[test]
fn a_wrong_profile_is_an_error_with_a_place_and_a_remedy() {
    let overspin = overspin();
    overspin.write("s.toml", SCENARIO);
    let err = overspin.fails(&["run", "s.toml"], 2);
    assert!(err.contains("here.toml") && err.contains("overspin calibrate"), "{err}");
    overspin.write("here.toml", "[costs]\natomik = \"5ns\"\n");
    let err = overspin.fails(&["run", "s.toml"], 2);
    assert!(err.contains("here.toml:2: there is no cost `atomik`"), "{err}");
}
