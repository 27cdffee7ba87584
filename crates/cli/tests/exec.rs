//! `overspin exec`: how it finds the library, what the program receives, and how it ends.

use assert_cmd::Command;
use serde_json::Value;
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The command with a library that is only a name: the loader warns, and the program runs.
fn overspin(library: Option<&Path>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    command.env_remove("LD_PRELOAD").env_remove("OVERSPIN_STATS").env_remove("OVERSPIN_PRELOAD");
    if let Some(library) = library {
        command.env("OVERSPIN_PRELOAD", library);
    }
    command
}

const SHOW: [&str; 4] =
    ["--", "sh", "-c", "echo \"$OVERSPIN_LOCK $OVERSPIN_STATS $LD_PRELOAD\"; exit 7"];

fn told(command: &mut Command, code: i32) -> String {
    let output = command.assert().code(code);
    String::from_utf8(output.get_output().stderr.clone()).unwrap()
}

#[test]
fn the_program_gets_the_lock_and_the_library_and_its_exit_code_counts() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("lib.so");
    fs::write(&library, "").unwrap();
    let name = library.display();
    let mut command = overspin(Some(&library));
    // The argument is an alias; the program sees the name.
    let output = command.args(["exec", "--lock", "byte", "--stats"]).args(SHOW).assert().code(7);
    assert_eq!(output.get_output().stdout, format!("lock-byte 1 {name}\n").as_bytes());
    let mut command = overspin(Some(&library));
    let output = command.args(["exec", "--lock", "mcs"]).args(SHOW).assert().code(7);
    assert_eq!(output.get_output().stdout, format!("mcs  {name}\n").as_bytes());
}

#[test]
fn a_recording_is_requested_for_the_process_that_the_command_becomes() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("lib.so");
    fs::write(&library, "").unwrap();
    let file = folder.path().join("r.json");
    let show = ["--", "sh", "-c", "test \"$OVERSPIN_RECORD\" = \"$$:$0\""];
    let mut command = overspin(Some(&library));
    command.args(["exec", "--lock", "mutex", "--record"]).arg(&file).args(show).arg(&file);
    command.assert().code(0);
    // The program has recorded nothing.
    let message = told(overspin(None).arg("fit").arg(&file), 2);
    assert!(message.contains("the recording is empty"), "{message}");
    let mut command = overspin(Some(&library));
    let message =
        told(command.args(["exec", "--lock", "mcs", "--record", "/no/such/f"]).args(SHOW), 3);
    assert!(message.contains("cannot write `/no/such/f`"), "{message}");
}

#[test]
fn what_is_wrong_is_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("lib.so");
    let mut command = overspin(Some(&library));
    let message = told(command.args(["exec", "--lock", "mcs"]).args(SHOW), 3);
    assert!(message.contains("there is no preload library"), "{message}");
    assert!(message.contains("cargo build --release -p overspin-preload"), "{message}");

    fs::write(&library, "").unwrap();
    let mut command = overspin(Some(&library));
    let message = told(command.args(["exec", "--lock", "tiket"]).args(SHOW), 2);
    assert!(message.contains("there is no lock `tiket`"), "{message}");
    let mut command = overspin(Some(&library));
    let message = told(command.args(["exec", "--lock", "mcs", "--", "/no/such/program"]), 2);
    assert!(message.contains("cannot run /no/such/program"), "{message}");
    let mut command = overspin(Some(&library));
    assert!(told(command.args(["exec", "--lock", "mcs"]), 2).contains("PROGRAM"));

    let colon = folder.path().join("a:b.so");
    fs::write(&colon, "").unwrap();
    let mut command = overspin(Some(&colon));
    let message = told(command.args(["exec", "--lock", "mcs"]).args(SHOW), 3);
    assert!(message.contains("a colon or a space"), "{message}");
}

/// The library may be beside the command, or in ../lib relative to it. The test gives the command another
/// name in a separate folder, because the build folder may contain the real library.
#[test]
fn the_library_is_looked_for_beside_the_command_and_in_lib() {
    // It must be on the same file system as the command, which is too large to copy.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir(folder.join("lib")).unwrap();
    let named = bin.join("overspin");
    fs::hard_link(env!("CARGO_BIN_EXE_overspin"), &named).unwrap();
    // Through a link from elsewhere, as package managers install it.
    let link = folder.join("link");
    symlink(&named, &link).unwrap();
    let run = || {
        let mut command = Command::new(&link);
        command
            .env_remove("LD_PRELOAD")
            .env_remove("OVERSPIN_STATS")
            .env_remove("OVERSPIN_PRELOAD");
        command.args(["exec", "--lock", "mcs"]).args(SHOW);
        command
    };
    assert!(told(&mut run(), 3).contains("../lib"));
    for library in ["lib/liboverspin_preload.so", "bin/liboverspin_preload.so"] {
        let library = folder.join(library);
        fs::write(&library, "").unwrap();
        let output = run().assert().code(7);
        let expected = format!("mcs  {}\n", library.display());
        assert_eq!(String::from_utf8_lossy(&output.get_output().stdout), expected);
    }
}

/// The real library under a real program: this one, whose `bench locks` uses the C library's mutex. Its other
/// locks are its own and are not replaced.
#[test]
fn a_program_runs_on_the_lock_that_was_chosen() {
    let library = env::current_exe().unwrap().with_file_name("liboverspin_preload.so");
    assert!(library.is_file(), "{} is built with the tests", library.display());
    let program = env!("CARGO_BIN_EXE_overspin");
    let work = ["bench", "locks", "--locks=pthread", "--threads=3", "--time=5ms", "--runs=2"];
    for lock in ["mutex", "futex", "malthusian"] {
        let mut command = overspin(Some(&library));
        command.args(["exec", "--lock", lock, "--stats", "--", program]).args(work).arg("--json=-");
        let output = command.assert().code(0).get_output().clone();
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(record["runs"].as_array().unwrap().len(), 2);
        // Acquisitions of each thread in each run.
        let samples = record["samples"].as_array().unwrap();
        let counts = samples.iter().filter(|sample| sample["metric"] == "share");
        let measured = counts.map(|sample| sample["value"].as_f64().unwrap()).sum::<f64>() as u64;
        assert!(measured > 0);
        // The library counts every acquisition; the program does not report those of its warm-ups.
        let told = String::from_utf8(output.stderr).unwrap();
        let first = told.lines().next().unwrap_or_default();
        assert!(first.starts_with(&format!("overspin: {lock} in process ")), "{told}");
        let words: Vec<&str> = first.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "acquisitions,").expect(&told);
        let counted: u64 = words[at - 1].parse().unwrap();
        assert!(counted >= measured, "{counted} of {measured}: {told}");
    }
}
