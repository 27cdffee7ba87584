//! Tests of the command as a program: arguments in; outputs, files, exit codes and signals out. They are one program,
//! so that it is linked once. What a record, a report or a page contains is tested in `crates/lab`, without processes.

// `overspin advise`: its page, its files, and the commands that repeat its numbers.
mod advise;
// ARCHITECTURE.md names files and items that exist.
mod architecture;
// Scenarios and arguments with mistakes: place, key and remedy in the message.
mod bad_input;
// `overspin bench locks`: what it writes, and its mistakes.
mod bench_locks;
// The report page in a real browser.
mod browser;
// `overspin calibrate`, and the profile that it writes.
mod calibrate;
// `overspin check`: its table, its JSON and its exit codes.
mod check;
// `overspin compare`: what it reads and prints, and its exit codes.
mod compare;
// CONTRIBUTING.md names the files that a new part needs.
mod contributing;
// The commands of the README and of the pages, run as their readers run them.
mod docs;
// `overspin exec`: the library, the environment and the end of the program.
mod exec;
// Runs in guests of KVM.
mod hv;
// The links of the pages.
mod links;
// `overspin linux`: guests with a kernel of ours.
mod linux;
// The manifests and packages of all crates.
mod manifests;
// `overspin measure noise`.
mod measure;
// `overspin measure` with real benchmarks.
mod measure_real;
// Outputs that can be written, and outputs that cannot: full disks, closed pipes.
mod output;
// The commands that write records and the commands that read them, joined by files.
mod records;
// `overspin report`: where it writes, and what it refuses.
mod report;
// `overspin schedbench` and `overspin import`.
mod schedbench;
// `overspin run --seeds`.
mod seeds;
// `overspin serve`: its address, its mistakes, its end.
mod serve;
// Runs without an end that a limit or a signal stops.
mod stopping;
// `overspin sweep` with directories of results: killed, resumed, in parts, on full disks.
mod sweep;
// Widths, characters and manual pages of the terminal; `overspin doctor`.
mod terminal;
// `overspin top`, with and without a terminal.
mod top;
// `overspin validate`: both sides of a few cases.
mod validate;
// `overspin watch`: its screen, its files, the program that it starts.
mod watch;
// Runs on threads and in processes.
mod worlds;
// `overspin schedbench run --world xen`, with a script instead of `xl`.
mod xen;

use overspin_testing::Program;
use std::path::PathBuf;

/// The command, in a new folder.
fn overspin() -> Program {
    Program::new(env!("CARGO_BIN_EXE_overspin"))
}

/// The command, in a folder with the short scenario `s.toml`.
fn with_scenario() -> Program {
    Program::with_scenario(env!("CARGO_BIN_EXE_overspin"))
}

/// An output or a file as JSON.
#[track_caller]
fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The library of `overspin exec`, which is built beside the tests.
fn preload() -> PathBuf {
    let library = std::env::current_exe().unwrap().with_file_name("liboverspin_preload.so");
    assert!(library.is_file(), "{} is built with the tests", library.display());
    library
}
