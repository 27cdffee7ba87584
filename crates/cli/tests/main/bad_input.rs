//! A mistake in a scenario or in the arguments ends with exit code 2, and says its place, its key and a remedy.

use crate::overspin;
use overspin_testing::{Ended, GOOD};

/// Two of the mistakes that `crates/page/tests/main/mistakes.rs` tests: in the TOML, and in a value.
#[test]
fn mistakes_in_scenarios() {
    let overspin = overspin();
    for (from, to, line, column, message, help) in [
        ("cores = 2", "cores = 2\ncores = 3", 5, 1, "not TOML", "once"),
        ("\"ticket\"", "\"tiket\"", 10, 8, "no lock `tiket`", "did you mean `ticket`"),
    ] {
        overspin.write("bad.toml", GOOD.replacen(from, to, 1));
        let Ended { code, out, err, .. } = overspin.run(&["run", "bad.toml"]);
        assert_eq!((code, &*out), (Some(2), ""), "{to}: {err}");
        assert!(err.contains(&format!("bad.toml:{line}:{column}: ")), "{to}: {err}");
        // The drawing below the first line wraps; the message is also on the first line, unbroken.
        let flat = err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(message) && flat.replace("│ ", "").contains(help), "{to}: {err}");
    }
}

#[test]
fn the_whole_file_is_wrong() {
    let overspin = overspin();
    for (content, message) in [(&b""[..], "`host` is missing"), (b"\xff\xfe", "UTF-8")] {
        overspin.write("bad.toml", content);
        let err = overspin.fails(&["run", "bad.toml"], 2);
        assert!(err.contains(message) && err.contains("help:"), "{message}: {err}");
    }
}

#[test]
fn wrong_usage() {
    let overspin = overspin();
    overspin.write("good.toml", GOOD);
    overspin.write("e.toml", "id = 3");
    overspin.write("rec.json", include_str!("../../../../examples/recorded-mutex.json"));
    for (args, message) in [
        (&["run", "missing.toml"][..], "cannot read `missing.toml`"),
        (&["run", "."], "`.` is a directory without a manifest.json"),
        (&["run"], "SCENARIO"),
        (&["run", "good.toml", "--seed", "x"], "--seed"),
        (&["run", "good.toml", "--set", "limit"], "has no `=`"),
        (&["run", "good.toml", "--set", "domain.gest.vcpus=2"], "no element `gest`"),
        (&["run", "good.toml", "--set", "domain.guest.vcpus=0"], "--set:1:20"),
        (&["run", "good.toml", "--json", "-", "--trace", "-"], "same destination, standard output"),
        (&["reproduce", "2008-spinlock"], "did you mean `2008-spinlocks`"),
        (&["reproduce", "e.toml"], "e.toml:1:"),
        (&["reproduce", "--seeds", "0"], "--seeds"),
        (&["reproduce", "--svg", "x.svg"], "EXPERIMENT"),
        (&["reproduce", "--threads", "1000000"], "--threads"),
        (&["report", "rec.json"], "overspin fit"),
        (&["compare", "rec.json", "rec.json"], "overspin fit"),
        (&["explain", "rec.json"], "overspin fit"),
        (&["list", "lock"], "locks"),
        (&["man", "runn"], "no command `runn`"),
        (&["frobnicate"], "frobnicate"),
        (&[], "Usage"),
    ] {
        let stderr = overspin.fails(args, 2);
        assert!(stderr.contains(message), "{args:?}: {stderr}");
    }
}

#[test]
fn a_world_that_does_not_exist() {
    let overspin = overspin();
    overspin.write("good.toml", GOOD);
    let run = |world: &'static str| ["run", "good.toml", "--world", world];
    let stderr = overspin.fails(&run("moon"), 2);
    assert!(stderr.contains("no world `moon`") && stderr.contains("worlds are: sim"), "{stderr}");
    overspin.fine(&run("sim"));
}
