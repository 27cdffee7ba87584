//! The table "Add a part" of CONTRIBUTING.md, tried out: a copy of the workspace gets a part of each kind, in the files that
//! the table names and in no others, and the command that is built there uses all of them.
//!
//! A copy takes minutes to build, so this runs at full depth only; that the table and the additions name the same
//! files is compared always.

use overspin_testing::{deep, root, skip};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is done to a file of the copy.
enum Change {
    /// It is new, with this text.
    New(String),
    /// This text comes before the first line that begins with `line`.
    Before { line: &'static str, text: &'static str },
}

/// A part, as somebody adds it who has read the table.
struct Addition {
    /// The first cell of its row.
    row: &'static str,
    /// Stands for NAME in the row.
    name: &'static str,
    changes: Vec<(&'static str, Change)>,
}

/// A file of the example crate, as it would be in a crate of ours.
fn example(name: &str) -> Change {
    let text = fs::read_to_string(root().join("examples/own-parts/src").join(name)).unwrap();
    Change::New(text)
}

fn before(line: &'static str, text: &'static str) -> Change {
    Change::Before { line, text }
}

fn inside(change: Change, replaced: &[(&str, &str)]) -> Change {
    let Change::New(mut text) = change else { panic!("it is no new file") };
    for (from, to) in replaced {
        assert!(text.contains(from), "`{from}` is not in the example any more");
        text = text.replace(from, to);
    }
    Change::New(text)
}

fn additions() -> Vec<Addition> {
    // Our crates have no standard library.
    let lock = inside(example("deli.rs"), &[("overspin_locks::", "crate::"), ("std::", "core::")]);
    let scheduler = inside(
        example("stride.rs"),
        &[(
            "use overspin_sched::",
            "use alloc::{boxed::Box, format, string::String, vec::Vec};
use crate::",
        )],
    );
    let workload = inside(
        example("meeting.rs"),
        &[(
            "use overspin_workload::",
            "use alloc::{boxed::Box, format, string::String, vec, vec::Vec};\nuse crate::",
        )],
    );
    vec![
        Addition {
            row: "a lock",
            name: "deli",
            changes: vec![
                ("crates/locks/src/deli.rs", lock),
                ("crates/locks/src/lib.rs", before("mod delay;", "pub mod deli;\n")),
                (
                    "crates/locks/src/registry.rs",
                    before("    mutex: ", "    deli: Deli, INFO, aliases [];\n"),
                ),
            ],
        },
        Addition {
            row: "a scheduler",
            name: "stride",
            changes: vec![
                ("crates/sched/src/stride.rs", scheduler),
                ("crates/sched/src/lib.rs", before("mod time;", "mod stride;\n")),
                (
                    "crates/sched/src/builtin.rs",
                    before("    bvt::INFO,", "    crate::stride::STRIDE,\n"),
                ),
            ],
        },
        Addition {
            row: "a workload",
            name: "meeting",
            changes: vec![
                ("crates/workload/src/meeting.rs", workload),
                ("crates/workload/src/lib.rs", before("mod parameters;", "mod meeting;\n")),
                (
                    "crates/workload/src/registry.rs",
                    before("    crate::count::INFO,", "    crate::meeting::MEETING,\n"),
                ),
            ],
        },
        Addition {
            row: "a key of `host.noise`",
            name: "steady",
            changes: vec![
                (
                    "crates/scenario/src/noise.rs",
                    before(
                        "        weight: u32",
                        "        steady: bool = Boolean, Is(\"false\"), \"Sleeps are fixed instead of exponential.\";\n",
                    ),
                ),
                (
                    "crates/workload/src/noise.rs",
                    before(
                        "    let domain = Domain::new(",
                        "    let wait_distribution =
        if noise.steady { Distribution::Fixed } else { Distribution::Exponential };
    let work = BurnWait { wait_distribution, ..work };
",
                    ),
                ),
            ],
        },
        Addition {
            row: "a metric of sweeps",
            name: "switches",
            changes: vec![
                (
                    "crates/record/src/metric/simulated.rs",
                    before(
                        "    THROUGHPUT = ",
                        "    SWITCHES = \"switches\", \"1/s\", \"Switches of all pCPUs to a vCPU, per second.\";\n",
                    ),
                ),
                (
                    "crates/runs/src/sweep/measure.rs",
                    before(
                        "];",
                        "    Measure {
        metric: &simulated::SWITCHES,
        title: \"Switches\",
        more_is_better: false,
        of: |s| {
            let switches = s.outcome.pcpus.iter().map(|p| p.switches as f64).sum::<f64>();
            switches / s.outcome.elapsed.seconds()
        },
    },
",
                    ),
                ),
            ],
        },
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
    for addition in additions() {
        let files: BTreeSet<String> =
            addition.changes.iter().map(|(path, _)| (*path).into()).collect();
        assert_eq!(named(addition.row, addition.name), files, "{}", addition.row);
    }
}

/// Copies the files of the workspace; `false` if git does not list them. They stay as old as they are, so that cargo
/// compiles only what is new.
fn copy_of_the_workspace(tree: &Path) -> bool {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = Command::new("git").args(list).current_dir(root()).output();
    let Some(listed) = listed.ok().filter(|listed| listed.status.success()) else { return false };
    for path in String::from_utf8(listed.stdout).unwrap().split_terminator('\0') {
        let (from, to) = (root().join(path), tree.join(path));
        // Git also lists a file that was deleted and is not yet committed.
        let Ok(meta) = fs::symlink_metadata(&from) else { continue };
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        if meta.is_symlink() {
            symlink(fs::read_link(&from).unwrap(), &to).unwrap();
        } else {
            fs::copy(&from, &to).unwrap();
            fs::File::options()
                .write(true)
                .open(&to)
                .unwrap()
                .set_modified(meta.modified().unwrap())
                .unwrap();
        }
    }
    true
}

fn apply(tree: &Path, path: &str, change: Change) {
    let to = tree.join(path);
    let text = match change {
        Change::New(text) => {
            assert!(!root().join(path).exists(), "{path} exists");
            text
        }
        Change::Before { line, text } => {
            let old = fs::read_to_string(&to).unwrap();
            let at = old.lines().position(|l| l.starts_with(line));
            let at = at.unwrap_or_else(|| panic!("{path} has no line that begins with `{line}`"));
            let mut lines: Vec<&str> = old.split_inclusive('\n').collect();
            lines.insert(at, text);
            lines.concat()
        }
    };
    fs::write(&to, text).unwrap();
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
        return skip(
            "adding a part of each kind to a copy of the workspace: it builds for minutes",
        );
    }
    let kept = root().join("target/additions");
    let tree = kept.join("tree");
    let _ = fs::remove_dir_all(&tree);
    if !copy_of_the_workspace(&tree) {
        return skip("adding a part of each kind: git does not list the files of the workspace");
    }
    for addition in additions() {
        for (path, change) in addition.changes {
            apply(&tree, path, change);
        }
    }
    let build = ["build", "--quiet", "--offline", "--package", "overspin"];
    let target = kept.join("target");
    let built = Command::new(env!("CARGO"))
        .args(build)
        .env("CARGO_TARGET_DIR", &target)
        .current_dir(&tree)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let overspin: PathBuf = target.join("debug/overspin");
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
