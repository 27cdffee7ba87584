//! `overspin exec`: how it finds the library, what the program receives, and how it ends.

use crate::{json, overspin, preload};
use overspin_testing::{Ended, Program};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// `overspin exec` with these arguments and this library. If that is only a name, the loader warns, and the program
/// runs.
fn exec(overspin: &Program, library: &Path, args: &[&str]) -> Ended {
    let mut command = overspin.command(&[&["exec"], args].concat());
    command.env_remove("LD_PRELOAD").env_remove("OVERSPIN_STATS");
    Ended::of(command.env("OVERSPIN_PRELOAD", library))
}

const SHOW: [&str; 4] =
    ["--", "sh", "-c", "echo \"$OVERSPIN_LOCK $OVERSPIN_STATS $LD_PRELOAD\"; exit 7"];

#[test]
fn the_program_gets_the_lock_and_the_library_and_its_exit_code_counts() {
    let overspin = overspin();
    overspin.write("lib.so", "");
    let library = overspin.path("lib.so");
    let name = library.display();
    // The argument is an alias; the program sees the name.
    let args = [&["--lock", "byte", "--stats"], &SHOW[..]].concat();
    assert_eq!(exec(&overspin, &library, &args).with(7).0, format!("lock-byte 1 {name}\n"));
    let args = [&["--lock", "mcs"], &SHOW[..]].concat();
    assert_eq!(exec(&overspin, &library, &args).with(7).0, format!("mcs  {name}\n"));
}

#[test]
fn a_recording_is_requested_for_the_process_that_the_command_becomes() {
    let overspin = overspin();
    overspin.write("lib.so", "");
    let (library, file) = (overspin.path("lib.so"), overspin.path("r.json"));
    let file = file.to_str().unwrap();
    let show = ["--", "sh", "-c", "test \"$OVERSPIN_RECORD\" = \"$$:$0\"", file];
    let args = [&["--lock", "mutex", "--record", file], &show[..]].concat();
    exec(&overspin, &library, &args).with(0);
    // The program has recorded nothing.
    let message = overspin.fails(&["fit", file], 2);
    assert!(message.contains("the recording is empty"), "{message}");
    let args = [&["--lock", "mcs", "--record", "/no/such/f"], &SHOW[..]].concat();
    let (_, message) = exec(&overspin, &library, &args).with(3);
    assert!(message.contains("cannot write `/no/such/f`"), "{message}");
}

#[test]
fn what_is_wrong_is_told_before_anything_runs() {
    let overspin = overspin();
    let library = overspin.path("lib.so");
    let mcs = [&["--lock", "mcs"], &SHOW[..]].concat();
    let told = |library: &Path, args: &[&str], code| exec(&overspin, library, args).with(code).1;
    let message = told(&library, &mcs, 3);
    assert!(message.contains("there is no preload library"), "{message}");
    assert!(message.contains("cargo build --profile dist -p overspin-preload"), "{message}");

    overspin.write("lib.so", "");
    let message = told(&library, &[&["--lock", "tiket"], &SHOW[..]].concat(), 2);
    assert!(message.contains("there is no lock `tiket`"), "{message}");
    let message = told(&library, &["--lock", "mcs", "--", "/no/such/program"], 2);
    assert!(message.contains("cannot run /no/such/program"), "{message}");
    assert!(told(&library, &["--lock", "mcs"], 2).contains("PROGRAM"));

    overspin.write("a:b.so", "");
    let message = told(&overspin.path("a:b.so"), &mcs, 3);
    assert!(message.contains("a colon or a space"), "{message}");
}

/// The library may be beside the command, or in ../lib or ../dist relative to it. The test gives the command another
/// name in a separate folder, because the build folder may contain the real library.
#[test]
fn the_library_is_looked_for_beside_the_command_in_lib_and_in_dist() {
    // It must be on the same file system as the command, which is too large to copy.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir(folder.join("lib")).unwrap();
    fs::create_dir(folder.join("dist")).unwrap();
    let named = bin.join("overspin");
    fs::hard_link(env!("CARGO_BIN_EXE_overspin"), &named).unwrap();
    // Through a link from elsewhere, as package managers install it.
    let link = folder.join("link");
    symlink(&named, &link).unwrap();
    let linked = Program::new(link.to_str().unwrap());
    let run = || {
        let mut command = linked.command(&[&["exec", "--lock", "mcs"], &SHOW[..]].concat());
        for name in ["LD_PRELOAD", "OVERSPIN_STATS", "OVERSPIN_PRELOAD"] {
            command.env_remove(name);
        }
        Ended::of(&mut command)
    };
    assert!(run().with(3).1.contains("../lib"));
    for place in ["dist", "lib", "bin"] {
        let library = folder.join(place).join("liboverspin_preload.so");
        fs::write(&library, "").unwrap();
        assert_eq!(run().with(7).0, format!("mcs  {}\n", library.display()));
    }
}

/// The real library under a real program: this one, whose `bench locks` uses the C library's mutex. Its other
/// locks are its own and are not replaced.
#[test]
fn a_program_runs_on_the_lock_that_was_chosen() {
    let library = preload();
    let program = env!("CARGO_BIN_EXE_overspin");
    let work =
        ["bench", "locks", "--locks=pthread", "--threads=3", "--time=5ms", "--runs=2", "--quiet"];
    for lock in ["mutex", "futex", "malthusian"] {
        let args = [&["--lock", lock, "--stats", "--", program], &work[..], &["--json=-"]].concat();
        let (out, told) = exec(&overspin(), &library, &args).with(0);
        let record = json(&out);
        assert_eq!(record["runs"].as_array().unwrap().len(), 2);
        // Acquisitions of each thread in each run.
        let samples = record["samples"].as_array().unwrap();
        let counts = samples.iter().filter(|sample| sample["metric"] == "share");
        let measured = counts.map(|sample| sample["value"].as_f64().unwrap()).sum::<f64>() as u64;
        assert!(measured > 0);
        // The library counts every acquisition; the program does not report those of its warm-ups.
        let first = told.lines().next().unwrap_or_default();
        assert!(first.starts_with(&format!("overspin: {lock} in process ")), "{told}");
        let words: Vec<&str> = first.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "acquisitions,").expect(&told);
        let counted: u64 = words[at - 1].parse().unwrap();
        assert!(counted >= measured, "{counted} of {measured}: {told}");
    }
}
