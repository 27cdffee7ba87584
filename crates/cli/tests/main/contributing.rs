//! The table "Add a part" of CONTRIBUTING.md, tried out: a copy of the workspace gets a part of each kind, in the files that
//! the table names and in no others, and the command that is built there uses all of them.
//!
//! A copy takes minutes to build, so this runs at full depth only; that the table and the additions name the same
//! files is compared always.

use overspin_testing::{deep, root, skip};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A file; the beginning of a line of it, or nothing if the file is new; and the text that comes before that line.
type Change = (&'static str, &'static str, String);

/// The first cell of a row of the table, what NAME stands for in it, and the changes that somebody makes who has read it.
type Addition = (&'static str, &'static str, Vec<Change>);

/// A part of the example crate as it would be in `ours`, a crate without the standard library.
fn example(file: &str, ours: &str) -> String {
    let text = fs::read_to_string(root().join("examples/own-parts/src").join(file)).unwrap();
    let from = format!("use {ours}::");
    assert!(text.contains(&from), "{file} has no `{from}` any more");
    let alloc = "#[allow(unused_imports)]\nuse alloc::{boxed::Box, format, string::String, vec, vec::Vec};\n";
    let alloc = if ours == "overspin_locks" { "" } else { alloc };
    text.replace(&from, &format!("{alloc}use crate::")).replace("use std::", "use core::")
}

fn additions() -> Vec<Addition> {
    let part = |row, name, changes: &[(&'static str, &'static str, &str)]| {
        (
            row,
            name,
            changes.iter().map(|(file, line, text)| (*file, *line, (*text).into())).collect(),
        )
    };
    vec![
        part(
            "a lock",
            "deli",
            &[
                ("crates/locks/src/deli.rs", "", &example("deli.rs", "overspin_locks")),
                ("crates/locks/src/lib.rs", "mod delay;", "pub mod deli;\n"),
                ("crates/locks/src/registry.rs", "    mutex: ", "    deli: Deli, INFO, aliases [];\n"),
            ],
        ),
        part(
            "a scheduler",
            "stride",
            &[
                ("crates/sched/src/stride.rs", "", &example("stride.rs", "overspin_sched")),
                ("crates/sched/src/lib.rs", "mod time;", "mod stride;\n"),
                ("crates/sched/src/builtin.rs", "    bvt::INFO,", "    crate::stride::STRIDE,\n"),
            ],
        ),
        part(
            "a workload",
            "meeting",
            &[
                ("crates/workload/src/meeting.rs", "", &example("meeting.rs", "overspin_workload")),
                ("crates/workload/src/lib.rs", "mod parameters;", "mod meeting;\n"),
                ("crates/workload/src/registry.rs", "    crate::count::INFO,", "    crate::meeting::MEETING,\n"),
            ],
        ),
        part(
            "a key of `host.noise`",
            "steady",
            &[
                (
                    "crates/scenario/src/noise.rs",
                    "        weight: u32",
                    "steady: bool = Boolean, Is(\"false\"), \"Sleeps are fixed instead of exponential.\";\n",
                ),
                (
                    "crates/workload/src/noise.rs",
                    "        let domain = Domain::new(",
                    "let wait_distribution = if noise.steady { Distribution::Fixed } else { Distribution::Exponential };
                    let work = BurnWait { wait_distribution, ..work };\n",
                ),
            ],
        ),
        part(
            "a metric of sweeps",
            "switches",
            &[
                (
                    "crates/record/src/metric/simulated.rs",
                    "    THROUGHPUT = ",
                    "SWITCHES = \"switches\", \"1/s\", \"Switches of all pCPUs to a vCPU, per second.\";\n",
                ),
                (
                    "crates/runs/src/sweep/measure.rs",
                    "];",
                    "Measure { metric: &simulated::SWITCHES, title: \"Switches\", more_is_better: false, of: |s| {
                        let switches = s.outcome.pcpus.iter().map(|p| p.switches as f64).sum::<f64>();
                        Some(switches / s.outcome.elapsed.seconds())
                    } },\n",
                ),
            ],
        ),
    ]
}

/// The files that the row `first` of the table names.
fn named(first: &str, name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let start = format!("| {first} |");
    let row = text.lines().find(|line| line.starts_with(&start));
    let row = row.unwrap_or_else(|| panic!("CONTRIBUTING.md has no row `{start}`"));
    // The last cell is about tests.
    let cells: Vec<&str> = row.split('|').collect();
    let quoted = cells[2..4].iter().flat_map(|cell| cell.split('`').skip(1).step_by(2));
    quoted.filter(|word| word.contains('/')).map(|path| path.replace("NAME", name)).collect()
}

#[test]
fn the_table_names_the_files_of_each_addition() {
    for (row, name, changes) in additions() {
        let files: BTreeSet<String> = changes.iter().map(|(file, ..)| (*file).into()).collect();
        assert_eq!(named(row, name), files, "{row}");
    }
}

/// Copies the files of the workspace, each as old as it is, so that cargo compiles only what is new. Git also lists files that
/// were deleted and are not yet committed.
const COPY: &str = "git ls-files -z --cached --others --exclude-standard | xargs -0 cp --archive --parents --target-directory $0 || true";

fn apply(tree: &Path, (file, line, text): &Change) {
    let path = tree.join(file);
    let old = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(line.is_empty(), old.is_empty(), "{file}");
    let mut lines: Vec<&str> = old.split_inclusive('\n').collect();
    let at = if line.is_empty() { Some(0) } else { lines.iter().position(|l| l.starts_with(line)) };
    lines.insert(at.unwrap_or_else(|| panic!("no line of {file} begins with `{line}`")), text);
    fs::write(path, lines.concat()).unwrap();
}

/// What a command says on its standard output.
fn said(tree: &Path, program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(tree).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program:?} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_part_of_each_kind_is_added_in_the_files_of_the_table_and_works() {
    if !deep() {
        return skip("adding parts to a copy of the workspace: it builds for minutes");
    }
    let tree = root().join("target/additions/tree");
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree).unwrap();
    Command::new("sh").args(["-c", COPY]).arg(&tree).current_dir(root()).status().unwrap();
    if !tree.join("Cargo.toml").exists() {
        return skip("adding parts to a copy of the workspace: git does not list its files");
    }
    additions().iter().flat_map(|(.., changes)| changes).for_each(|change| apply(&tree, change));
    let build =
        ["build", "--quiet", "--offline", "--package", "overspin", "--target-dir", "../target"];
    said(&tree, Path::new(env!("CARGO")), &build);
    let overspin = root().join("target/additions/target/debug/overspin");
    // The scenario has the lock, the scheduler and the workload.
    let run = said(&tree, &overspin, &["run", "examples/own-parts/meeting.toml"]);
    assert!(run.contains("deli") && run.contains("stride"), "{run}");
    let [noisy, steady] = ["false", "true"].map(|steady| {
        let set = format!("host.noise.steady={steady}");
        said(&tree, &overspin, &["run", "examples/ticket-overcommit.toml", "--set", &set])
    });
    assert_ne!(noisy, steady);
    let sweep = said(&tree, &overspin, &["sweep", "examples/host-ratio.toml", "--csv", "-", "-q"]);
    assert!(sweep.contains(",switches,"), "{sweep}");
}
