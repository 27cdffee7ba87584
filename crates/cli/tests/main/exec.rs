//! `overspin exec`: how it finds the library, what the program receives, and how it ends.

use crate::{json, overspin, preload};
use overspin_testing::{Ended, Program, root, skip};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// The head of a shared library, with nothing in it: the loader warns, and the program runs.
fn no_library() -> Vec<u8> {
    let mut elf = vec![0; 64];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    elf[16] = 3;
    elf[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    elf
}

/// `overspin exec` with these arguments and this library.
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
    overspin.write("lib.so", no_library());
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
    overspin.write("lib.so", no_library());
    let (library, file) = (overspin.path("lib.so"), overspin.path("r.json"));
    let file = file.to_str().unwrap();
    let show = ["--", "sh", "-c", "test \"$OVERSPIN_RECORD\" = \"$$:$0\"", file];
    let args = [&["--lock", "mutex", "--record", file], &show[..]].concat();
    exec(&overspin, &library, &args).with(0);
    // The library of this test is no library, so nothing was recorded.
    let message = overspin.fails(&["fit", file], 2);
    assert!(message.contains("`sh` ended before the library was loaded"), "{message}");
    // Nothing of a program that is not there.
    let none = overspin.path("none.json");
    let args = ["--lock", "mutex", "--record", none.to_str().unwrap(), "--", "/no/such/program"];
    exec(&overspin, &library, &args).with(2);
    assert!(!none.exists());
    // A recording stays until there is another one.
    overspin.write("r.json", "an old one");
    let args = ["--lock", "mutex", "--record", file, "--", "true"];
    let (_, message) = exec(&overspin, &library, &args).with(0);
    assert!(message.contains("keeps its recording until"), "{message}");
    assert_eq!(fs::read_to_string(file).unwrap(), "an old one");
    let args = [&["--lock", "mcs", "--record", "/no/such/f"], &SHOW[..]].concat();
    let (_, message) = exec(&overspin, &library, &args).with(3);
    assert!(message.contains("cannot write `/no/such/f`"), "{message}");
}

/// The library read `/dev/full` to its end, which it does not have.
#[test]
fn only_a_file_takes_a_recording() {
    let overspin = overspin();
    let pipe = overspin.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let folder = overspin.path(".");
    for (file, what) in [
        (Path::new("/dev/full"), "a device"),
        (Path::new("/dev/zero"), "a device"),
        (&pipe, "a pipe"),
        (&folder, "a folder"),
    ] {
        let file = file.to_str().unwrap();
        let args = ["--lock", "mutex", "--record", file, "--", "sh", "-c", "echo runs"];
        let ended = exec(&overspin, &preload(), &args);
        assert_eq!(ended.out, "", "{file}");
        let message = ended.with(2).1;
        assert!(message.contains(&format!("`{file}`: it is {what}")), "{message}");
        assert!(message.contains("name a file"), "{message}");
    }
}

#[test]
fn what_is_wrong_is_told_before_anything_runs() {
    let overspin = overspin();
    let library = overspin.path("lib.so");
    let mcs = [&["--lock", "mcs"], &SHOW[..]].concat();
    let told = |library: &Path, args: &[&str], code| exec(&overspin, library, args).with(code).1;
    let message = told(&library, &mcs, 3);
    assert!(message.contains("there is no preload library"), "{message}");
    assert!(message.contains("the package has liboverspin_preload.so"), "{message}");

    overspin.write("lib.so", no_library());
    let message = told(&library, &[&["--lock", "tiket"], &SHOW[..]].concat(), 2);
    assert!(message.contains("there is no lock `tiket`"), "{message}");
    let message = told(&library, &["--lock", "mcs", "--", "/no/such/program"], 2);
    assert!(message.contains("cannot run /no/such/program"), "{message}");
    assert!(told(&library, &["--lock", "mcs"], 2).contains("PROGRAM"));

    overspin.write("text.so", "a text that is long enough for a head");
    let message = told(&overspin.path("text.so"), &mcs, 3);
    assert!(message.contains("this is no library for this machine"), "{message}");
    assert!(message.contains("set OVERSPIN_PRELOAD to"), "{message}");

    let script = overspin.path("script");
    fs::write(&script, "#! /no/such/shell -e\necho runs\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let message = told(&library, &["--lock", "mcs", "--", script.to_str().unwrap()], 2);
    assert!(message.contains("there is no \"/no/such/shell\", its interpreter"), "{message}");

    overspin.write("a:b.so", no_library());
    let message = told(&overspin.path("a:b.so"), &mcs, 3);
    assert!(message.contains("a colon or a space"), "{message}");
}

/// The library may be beside the command, or in ../lib relative to it, or where it was built with the command. So a command that
/// cargo has built or installed needs nothing else.
#[test]
fn the_library_is_looked_for_beside_the_command_in_lib_and_where_it_was_built() {
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
    let linked = Program::new(link.to_str().unwrap());
    let run = || {
        let mut command = linked.command(&[&["exec", "--lock", "mcs"], &SHOW[..]].concat());
        for name in ["LD_PRELOAD", "OVERSPIN_STATS", "OVERSPIN_PRELOAD"] {
            command.env_remove(name);
        }
        Ended::of(&mut command)
    };
    assert_eq!(run().with(7).0, format!("mcs  {}\n", preload().display()));
    for place in ["lib", "bin"] {
        let library = folder.join(place).join("liboverspin_preload.so");
        fs::write(&library, no_library()).unwrap();
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

/// `true` under the real library, with these options, in the program of a folder of its own.
fn really(overspin: &Program, args: &[&str], code: i32) -> String {
    exec(overspin, &preload(), args).with(code).1
}

/// A program that the loader gives no library: this test makes one of another that is there.
#[test]
fn a_program_without_the_library_is_told_before_it_starts_and_runs() {
    let overspin = overspin();
    // The head of an ELF file of this machine without a loader. The kernel refuses to run it, and then a shell tries, so its
    // exit code says nothing.
    let mut elf = vec![0; 64];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    elf[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    let as_bytes = |file: &str, bytes: &[u8]| {
        let path = overspin.path(file);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let still = as_bytes("still", &elf);
    let message = exec(&overspin, &preload(), &["--lock", "mcs", "--", &still]).err;
    assert!(message.contains("still runs without `mcs`: it is linked statically"), "{message}");
    assert!(message.contains("help: link it dynamically"), "{message}");
    let script = as_bytes("script", format!("#!{still}\n").as_bytes());
    let message = exec(&overspin, &preload(), &["--lock", "mcs", "--", &script]).err;
    assert!(message.contains("script runs without `mcs`: its interpreter is linked"), "{message}");
    elf[18] = 3;
    let other = as_bytes("other", &elf);
    let message = exec(&overspin, &preload(), &["--lock", "mcs", "--", &other]).err;
    assert!(message.contains("is for another kind of machine"), "{message}");
    // What can be said of the program is said by `fit`, too.
    let busybox =
        ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|it| Path::new(it).exists());
    let Some(busybox) = busybox else { return skip("no static program: busybox") };
    let file = overspin.path("r.json");
    let file = file.to_str().unwrap();
    let message =
        really(&overspin, &["--lock", "mcs", "--record", file, "--", busybox, "false"], 1);
    assert!(message.contains("linked statically"), "{message}");
    let message = overspin.fails(&["fit", file], 2);
    assert!(message.contains("was not recorded: it is linked statically"), "{message}");
}

#[test]
fn a_run_without_a_mutex_says_so_at_its_end() {
    let overspin = overspin();
    let message = really(&overspin, &["--lock", "mcs", "--", "true"], 0);
    assert_eq!(
        message,
        "overspin: true took 0 mutexes: it has one thread, so nothing ran on `mcs`\n"
    );
    let shell = ["--lock", "mcs", "--", "sh", "-c", "true; /bin/true; /bin/true; exit 3"];
    let message = really(&overspin, &shell, 3);
    assert!(message.contains("sh took 0 mutexes, nor did 2 more: "), "{message}");
    // In one line together, besides the one of the first process.
    let shell =
        ["--lock", "mcs", "--stats", "--", "sh", "-c", "/bin/true; /bin/true; /bin/true; exit 3"];
    let message = really(&overspin, &shell, 3);
    assert!(message.contains("overspin: 3 more processes took 0 mutexes\n"), "{message}");
    assert_eq!(message.matches(" in process ").count(), 1, "{message}");
}

/// `ls` closes its standard error at exit; the same goes for `sort`, `cat`, awk and others.
#[test]
fn programs_that_close_their_standard_error_are_told_of_too() {
    let message = really(&overspin(), &["--lock", "mutex", "--", "ls", "-d", "."], 0);
    assert!(message.contains("overspin: ls took 0 mutexes: "), "{message}");
}

#[test]
fn a_child_without_the_environment_is_told() {
    let overspin = overspin();
    let shell = ["--lock", "mcs", "--", "sh", "-c", "env -i /bin/true; env -i /bin/true; exit 3"];
    let message = really(&overspin, &shell, 3);
    let told = "/bin/true (2 times) ran without `mcs`: it was started without LD_PRELOAD";
    assert!(message.contains(told), "{message}");
    // The first process itself: at once, because nobody is left at the end.
    let message = really(&overspin, &["--lock", "mcs", "--", "env", "-i", "/bin/true"], 0);
    assert_eq!(
        message,
        "overspin: /bin/true runs without `mcs`: it was started without LD_PRELOAD\n"
    );
}

/// A limit that nobody may raise stands for a full disk.
#[test]
fn a_recording_that_cannot_be_written_leaves_the_earlier_one() {
    let overspin = overspin();
    let old = "an old one\n".repeat(1000);
    // Beside a file with so long a name there is none: the recording is written into the file itself.
    for name in ["r.json", &"r".repeat(250)] {
        overspin.write(name, &old);
        let file = overspin.path(name);
        let record = ["--lock", "mutex", "--record", file.to_str().unwrap(), "--", "sh", "-c"];
        let message = really(&overspin, &[&record[..], &["ulimit -f 0; exit 0"]].concat(), 0);
        assert!(message.contains("cannot write the recording"), "{name}: {message}");
        assert!(fs::read_to_string(&file).unwrap() == old, "{name}: the old one stays");
        let names = fs::read_dir(overspin.path(".")).unwrap().map(|e| e.unwrap().file_name());
        let mut beside = names.filter(|name| name.to_str().unwrap().ends_with(".tmp"));
        assert_eq!(beside.next(), None);
        really(&overspin, &[&record[..], &["exit 0"]].concat(), 0);
        assert_eq!(json(&fs::read_to_string(&file).unwrap())["schema"], "overspin-recording/1");
    }
}

#[test]
fn a_recording_whose_file_was_removed_is_written_again_or_missed() {
    let overspin = overspin();
    let file = overspin.path("folder/r.json");
    let folder = file.parent().unwrap();
    fs::create_dir(folder).unwrap();
    let record = ["--lock", "mutex", "--record", file.to_str().unwrap(), "--", "sh", "-c"];
    let run = |work: &str| really(&overspin, &[&record[..], &[work]].concat(), 0);
    run(&format!("rm {}; exit 0", file.display()));
    assert_eq!(json(&fs::read_to_string(&file).unwrap())["schema"], "overspin-recording/1");
    let message = run(&format!("rm -r {}; exit 0", folder.display()));
    assert!(message.contains("the file was removed while the program ran"), "{message}");
}

#[test]
fn fit_speaks_of_recordings_where_there_is_none() {
    let overspin = overspin();
    overspin.write("program", b"\x7fELF\xff\xfe");
    for file in ["none.json", ".", "program"] {
        let message = overspin.fails(&["fit", file], 2);
        assert!(message.contains("overspin exec --record FILE"), "{file}: {message}");
        assert!(!message.contains("scenario"), "{file}: {message}");
    }
}

/// known.c records itself; the program changes its user and its root before it ends.
#[test]
fn a_recording_outlives_privileges() {
    let overspin = overspin();
    let source = root().join("crates/preload/tests/drops.c");
    let program = overspin.path("drops");
    let mut compiler = Command::new("cc");
    compiler.args(["-pthread", "-o"]).arg(&program).arg(source);
    if !compiler.status().is_ok_and(|status| status.success()) {
        return skip("no C compiler");
    }
    let file = overspin.path("r.json");
    let (file, program) = (file.to_str().unwrap(), program.to_str().unwrap());
    for round in 0..2 {
        // The second time there is an older recording.
        let message = really(&overspin, &["--lock", "mutex", "--record", file, "--", program], 0);
        assert_eq!(message.contains("keeps its recording"), round == 1, "{message}");
        assert!(!message.contains("cannot write"), "{message}");
        let recording = json(&fs::read_to_string(file).unwrap());
        assert_eq!(recording["mutexes"][0]["acquisitions"], 300);
        assert_eq!(recording["file"], program);
        // Its name was overwritten by the program, and yet the place is that of its file, with the build ID of that.
        let place = recording["mutexes"][0]["first_locked_at"].as_str().unwrap();
        assert!(place.starts_with(&format!("{program}+0x")), "{place}");
        assert!(recording["build_ids"].as_object().is_some(), "{recording}");
        let (_, offset) = place.split_once('+').unwrap();
        let offset = offset.split(' ').next().unwrap();
        let Ok(line) = Command::new("addr2line").args(["-f", "-e", program, offset]).output()
        else {
            skip("no addr2line");
            continue;
        };
        let line = String::from_utf8(line.stdout).unwrap();
        assert!(line.starts_with("take\n"), "the function at {place}: {line}");
    }
    // The child of the program has one of its own.
    let others = fs::read_dir(overspin.path(".")).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_str().unwrap().starts_with("r.json.")
    });
    assert_eq!(others.count(), 2);
}
