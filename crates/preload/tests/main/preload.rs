//! Tests the library with programs that use mutexes in all ways, and with real programs.
//!
//! Locks with spinning waiters get few rounds: with more threads than CPUs each of them may cost a slice.

use crate::common::{compile, compile_with, finish, library, some, succeeds, with_lock};
use overspin_testing::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The locks with their rounds: locks that sleep or yield, and one of each family that spins. By default tests take
/// the first ones.
const LOCKS: [(&str, &str); 10] = [
    ("mutex", "200"),
    ("futex", "200"),
    ("malthusian", "200"),
    ("mcs", "4"),
    ("mutexee", "200"),
    ("flexguard", "100"),
    ("pv-qspinlock", "100"),
    ("lock-byte", "100"),
    ("ticket", "4"),
    ("hemlock", "4"),
];

#[test]
fn every_kind_of_use_comes_out_as_without_the_library() {
    let Some(program) = compile("cc", "stress.c") else { return };
    for (lock, rounds) in some(&LOCKS, 4) {
        let expected = succeeds(with_lock(&program, None).arg(rounds));
        assert!(expected.stdout.ends_with(b"done\n"));
        let output = succeeds(with_lock(&program, Some(lock)).arg(rounds));
        assert_eq!(output.stdout, expected.stdout, "{lock}");
        assert_eq!(output.stderr, b"", "{lock}");
    }
}

/// conditions.c prints the same without the library. Its last part releases a mutex past the library, which is said.
#[test]
fn waits_on_condition_variables_come_out_as_without_the_library() {
    let Some(program) = compile("cc", "conditions.c") else { return };
    for (lock, rounds) in some(&LOCKS, 4) {
        let expected = succeeds(with_lock(&program, None).arg(rounds));
        assert!(expected.stdout.ends_with(b"done\n"));
        let output = succeeds(with_lock(&program, Some(lock)).arg(rounds));
        assert_eq!(output.stdout, expected.stdout, "{lock}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains("was released past this library"), "{told}");
    }
}

#[test]
fn a_library_loaded_with_deepbind_may_signal() {
    let Some((program, library)) =
        compile("cc", "conditions.c").zip(compile_with("cc", "deepbind.c", &["-shared", "-fPIC"]))
    else {
        return;
    };
    for lock in ["mutex", "futex"] {
        let output = succeeds(with_lock(&program, Some(lock)).arg("1").arg(&library));
        assert_eq!(output.stdout, b"signals past\ndone\n", "{lock}");
        assert_eq!(output.stderr, b"", "{lock}");
    }
}

/// Native locks serve at most 1024 threads at a time.
#[test]
fn threads_beyond_the_last_number_are_served() {
    let Some(program) = compile("cc", "stress.c") else { return };
    let output = succeeds(with_lock(&program, Some("futex")).args(["1", "1300"]));
    assert_eq!(output.stdout, b"crowd: 2600\n");
}

/// stats.c makes 100 acquisitions of one mutex, 7 of another, 3 of each of 12 that it destroys, and one in a child
/// process. One of them finds the mutex held, unless the machine is very busy.
#[test]
fn statistics_count_every_acquisition() {
    let Some(program) = compile("cc", "stats.c") else { return };
    let contended = (0..20).any(|_| {
        let output = succeeds(with_lock(&program, Some("mcs")).env("OVERSPIN_STATS", "1"));
        let told = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<&str> = told.lines().collect();
        let child = "1 mutexes, 1 acquisitions, 0 contended";
        assert!(lines[0].starts_with("overspin: mcs in process "), "{told}");
        assert!(lines[0].ends_with(child), "the child ends first: {told}");
        let contended = lines[3].contains(" 1 contended");
        let sums = format!("14 mutexes, 143 acquisitions, {} contended", u8::from(contended));
        assert!(lines[3].ends_with(&sums), "{told}");
        let fields = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
        assert_eq!(fields(5)[1..3], ["100", if contended { "1" } else { "0" }], "{told}");
        assert!(fields(5)[3].starts_with("0x"), "{told}");
        assert!(lines[5].ends_with("(main)"), "where it was first locked: {told}");
        assert_eq!(fields(6)[1..5], ["36", "0", "(12", "ended)"], "{told}");
        assert_eq!(fields(7)[1..3], ["7", "0"], "{told}");
        assert!(lines[7].ends_with("(use)"), "{told}");
        assert_eq!(lines.len(), 8, "{told}");
        contended
    });
    assert!(contended, "none of 20 runs has met a held mutex");
}

/// closes.c takes one mutex once. Many programs close their standard error at exit, before this library's end; `quick_exit`
/// calls other handlers than `exit`.
#[test]
fn statistics_are_told_by_programs_that_close_their_files_or_end_quickly() {
    let Some(program) = compile("cc", "closes.c") else { return };
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    for part in ["error", "others", "quick"] {
        let mut command = with_lock(&program, Some("mutex"));
        let command = command.env("OVERSPIN_STATS", "1").arg(part).arg(&own);
        let told = String::from_utf8(succeeds(command).stderr).unwrap();
        assert!(told.contains("1 mutexes, 1 acquisitions, 0 contended"), "{part}: {told}");
    }
    assert_eq!(std::fs::read(own).unwrap(), b"", "a file of the program's");
    // A daemon keeps nobody waiting who reads the standard error of the program that started it.
    succeeds(with_lock(&program, Some("mutex")).arg("daemon"));
}

/// known.c holds a mutex for 5 us and leaves it alone for 20 us. The clock decides, so only a busy machine makes these
/// times longer, and hardly half of them.
#[test]
fn a_recording_has_the_known_times() {
    let Some(program) = compile("cc", "known.c") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("known.json");
    // The number of no process: the program takes itself for a child, and appends its own.
    let request = format!("0:{}", file.display());
    let mut child = with_lock(&program, Some("mutex"));
    let mut child = child.env("OVERSPIN_RECORD", request).args(["2", "500"]).spawn().unwrap();
    assert!(child.wait().unwrap().success());
    let text = std::fs::read_to_string(format!("{}.{}", file.display(), child.id())).unwrap();
    assert!(text.contains("\"schema\": \"overspin-recording/1\""), "{text}");
    assert!(text.contains("\"threads\": 2") && text.contains("\"acquisitions\": 1000,"), "{text}");
    assert!(text.contains("+0x"), "where it was first locked: {text}");
    // Each bucket is [least, number, sum].
    let median = |name: &str, of: u64| {
        let list =
            text.split(&format!("\"{name}\": [")).nth(1).unwrap().split('\n').next().unwrap();
        let mut seen = 0;
        let buckets = list.split('[').filter_map(|b| b.split_once(", "));
        let mut all = buckets.map(|(least, rest)| {
            let number = rest.split(", ").next().unwrap();
            (least.parse::<u64>().unwrap(), number.parse::<u64>().unwrap())
        });
        all.find(|(_, number)| {
            seen += number;
            seen > of / 2
        })
        .unwrap()
        .0
    };
    // 5000 ns are in a bucket from 4992 ns, 20000 ns in one from 19968 ns.
    assert!((4992..6144).contains(&median("section", 1000)), "{text}");
    assert!((19_968..24_576).contains(&median("outside", 998)), "{text}");
}

#[test]
fn a_name_that_is_no_lock_stops_the_program() {
    let Some(program) = compile("cc", "stats.c") else { return };
    let output = finish(&mut with_lock(&program, Some("tiket")));
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("there is no lock \"tiket\""), "{told}");
}

#[test]
fn the_library_alone_does_nothing() {
    let Some(program) = compile("cc", "stress.c") else { return };
    let output = succeeds(
        with_lock(&program, None).env("LD_PRELOAD", library()).env("OVERSPIN_STATS", "1").arg("4"),
    );
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

/// Returns bypass.c and the library that it loads. Prints a message and returns `None` without a compiler.
fn bypass_program() -> Option<(PathBuf, PathBuf)> {
    Some((compile("cc", "bypass.c")?, compile_with("cc", "deepbind.c", &["-shared", "-fPIC"])?))
}

/// Returns the standard output of bypass.c, and the number of bypass messages of the library.
fn bypass(paths: &(PathBuf, PathBuf), lock: Option<&str>, scenario: &str) -> (String, usize) {
    bypass_of(paths, lock, &[scenario])
}

fn bypass_of(
    (program, library): &(PathBuf, PathBuf),
    lock: Option<&str>,
    arguments: &[&str],
) -> (String, usize) {
    let output = succeeds(with_lock(program, lock).arg(library).args(arguments));
    let told = String::from_utf8(output.stderr).unwrap();
    let said = told.matches("was released past this library").count();
    assert_eq!(said, told.lines().count(), "{lock:?} {arguments:?}: {told}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

/// A library loaded with `RTLD_DEEPBIND` calls the C library's own functions. The next locker and all waiters go on,
/// and one message reports it. The locks spin, sleep, or hand over in ways of their own.
#[test]
fn a_release_past_the_library_is_noticed_and_hangs_nobody() {
    let Some(program) = bypass_program() else { return };
    for (scenario, said) in [
        ("next", 1),
        ("waiters", 1),
        ("again", 1),
        ("condition", 1),
        ("locked", 0),
        ("tried", 1),
        ("crossed", 1),
        ("ended", 1),
        ("cancelled", 1),
        ("heir", 1),
        ("stranger", 1),
        // The child prints a message of its own.
        ("forked", 2),
        ("mixed", 1),
    ] {
        let (expected, silence) = bypass(&program, None, scenario);
        assert_eq!(silence, 0);
        for lock in ["mutex", "malthusian", "mcs", "hemlock"] {
            let result = bypass(&program, Some(lock), scenario);
            assert_eq!(result, (expected.clone(), said), "{lock} {scenario}");
        }
        // A release of a mutex for which no thread has waited yet concerns nobody.
        let (output, said_fresh) = bypass_of(&program, Some("mutex"), &[scenario, "fresh"]);
        assert_eq!(output, expected, "fresh {scenario}");
        assert!(said_fresh <= said, "fresh {scenario}: {said_fresh}");
    }
}

/// Each lock has its own way to wait, and its own records, which the release must find.
#[test]
fn a_release_past_the_library_is_noticed_under_every_lock() {
    let Some(program) = bypass_program() else { return };
    let (expected, _) = bypass(&program, None, "all");
    // By default one of each kind: those that sleep, queue, hand over, and know their waiters.
    let few = ["mutex", "futex", "pv-qspinlock", "ticket", "clh", "mcs-tp"];
    let others = overspin_locks::infos().iter().map(|info| info.name);
    let others = others.filter(|name| !few.contains(name));
    let all: Vec<&str> = few.into_iter().chain(others).collect();
    for lock in some(&all, few.len()) {
        let result = bypass(&program, Some(lock), "all");
        assert_eq!(result, (expected.clone(), 1), "{lock}");
    }
}

/// Returns the explanation in the statistics for a program without pthread mutexes.
fn why_none(command: &mut Command) -> String {
    let output = succeeds(command.env("OVERSPIN_STATS", "1"));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains(": 0 mutexes, 0 acquisitions, 0 contended\n"), "{told}");
    assert!(told.contains("no pthread mutex has been locked through it"), "{told}");
    told
}

#[test]
fn zeros_in_the_statistics_are_explained() {
    let Some(program) = compile("cc", "none.c") else { return };
    let told = why_none(&mut with_lock(&program, Some("futex")));
    assert!(told.contains("this process has one thread"), "{told}");
    let told = why_none(with_lock(&program, Some("futex")).arg("semaphores"));
    assert!(told.contains("Python by semaphores, OpenMP, Go"), "{told}");
    assert!(told.contains("run a program that locks pthread mutexes"), "{told}");

    // The explanation appears only if there are none.
    let Some(program) = compile("cc", "stats.c") else { return };
    let output = succeeds(with_lock(&program, Some("mcs")).env("OVERSPIN_STATS", "1"));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!told.contains("no pthread mutex"), "{told}");

    if let Some(program) = compile_with("cc", "none.c", &["-fopenmp"]) {
        let told = why_none(with_lock(&program, Some("futex")).arg("openmp"));
        assert!(told.contains("OpenMP"), "{told}");
    }
}

#[test]
fn python_runs_and_is_told_what_its_locks_are() {
    const THREADS: &str = "
import threading
lock, count = threading.Lock(), 0
def add():
    global count
    for _ in range(100):
        with lock: count += 1
threads = [threading.Thread(target=add) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(count)";
    let mut command = with_lock(Path::new("python3"), Some("futex"));
    command.env("OVERSPIN_STATS", "1").args(["-S", "-c", THREADS]);
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("no python3");
    }
    let output = succeeds(&mut command);
    assert_eq!(output.stdout, b"300\n");
    // In some versions the interpreter's own lock is a pthread mutex, so there is something to count.
    let told = String::from_utf8(output.stderr).unwrap();
    let zeros = told.contains(": 0 mutexes, ");
    assert_eq!(zeros, told.contains("no pthread mutex has been locked through it"), "{told}");
}

/// A thread releases a mutex that another thread holds. This is undefined; glibc allows it, and so does this library,
/// with a message.
#[test]
fn a_release_by_a_stranger_is_told() {
    let Some(program) = compile("cc", "stats.c") else { return };
    let output = succeeds(with_lock(&program, Some("mcs")).arg("stranger"));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("by a thread that had not locked it"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}
