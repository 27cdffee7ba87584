//! `overspin run --seeds`, and files that vary the seed.

use crate::{json, overspin};
use overspin_testing::{Ended, Program, SCENARIO};
use serde_json::Value;

const VARY: &str = r#"
[[vary]]
name = "seed"
set = "seed"
to = ["5", "6", "7"]
"#;

fn run(overspin: &Program, scenario: &str, args: &[&str]) -> Ended {
    overspin.write("s.toml", scenario);
    overspin.run(&[&["run", "s.toml"], args].concat())
}

fn record(overspin: &Program, scenario: &str, args: &[&str]) -> Value {
    json(&run(overspin, scenario, &[args, &["--json", "-"]].concat()).with(0).0)
}

/// What records and reports of many seeds contain is tested in `crates/page/tests/main/seeds.rs`.
#[test]
fn options_and_files_choose_the_seeds() {
    let overspin = overspin();
    let seeds = |record: &Value| -> Vec<Value> {
        record["runs"].as_array().unwrap().iter().map(|run| run["seed"].clone()).collect()
    };
    let over = record(&overspin, SCENARIO, &["--seed=5", "--seeds=3"]);
    assert_eq!((&over["schema"], &over["kind"]), (&"overspin-record/1".into(), &"seeds".into()));
    assert_eq!(seeds(&over), [5, 6, 7]);
    // The run with one of these seeds is the same run.
    let one = record(&overspin, SCENARIO, &["--seed=6"]);
    assert_eq!(one["runs"][0]["trace_hash"], over["runs"][1]["trace_hash"]);
    // A file that varies only the seed is the same thing.
    let varied = record(&overspin, &format!("{SCENARIO}{VARY}"), &[]);
    assert_eq!((&varied["runs"], &varied["samples"]), (&over["runs"], &over["samples"]));
    // --seed alone asks for one run of it.
    let alone = record(&overspin, &format!("{SCENARIO}{VARY}"), &["--seed=6"]);
    assert_eq!(alone["runs"], one["runs"]);
    let (out, _) = run(&overspin, SCENARIO, &["--seeds=6"]).with(0);
    assert!(out.contains("6 runs") && out.contains("seeds 1 to 6"), "{out}");
}

#[test]
fn mistakes() {
    let overspin = overspin();
    for (scenario, args, cause) in [
        (SCENARIO, &["--seeds=1"][..], "1 is not in 2..=10000"),
        (SCENARIO, &["--seeds=3", "--trace=t.pftrace"], "cannot be used with"),
        (&*format!("{SCENARIO}{VARY}"), &["--trace=t.pftrace"], "a trace is of one run"),
        (&*format!("{SCENARIO}{VARY}").replace("\"7\"", "\"x\""), &[], "`x` is not a seed"),
    ] {
        let Ended { code, out, err, .. } = run(&overspin, scenario, args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(cause), "{args:?}: {err}");
    }
    assert!(!overspin.path("t.pftrace").exists());
}

#[test]
fn a_file_that_varies_only_the_seed_is_explained_with_the_first() {
    let overspin = overspin();
    overspin.write("s.toml", format!("{SCENARIO}{VARY}"));
    let (text, _) = overspin.fine(&["explain", "s.toml"]);
    assert!(text.to_lowercase().contains("seed 5"), "{text}");
}
