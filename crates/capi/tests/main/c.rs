//! Compares the header with the library, and runs programs in C and C++ with both.

use overspin_testing::skip;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the libraries that are built with the tests.
fn libraries() -> PathBuf {
    env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// Runs a tool. If there is none, says so and returns `None`.
fn tool(command: &mut Command) -> Option<String> {
    match command.output() {
        Ok(Output { status, stdout, stderr }) => {
            assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
            Some(String::from_utf8(stdout).unwrap())
        }
        Err(error) => {
            skip(&format!("{}: {error}", command.get_program().display()));
            None
        }
    }
}

fn compile(compiler: &[&str], source: &Path, program: &Path) -> Option<String> {
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-Wall", "-Wextra", "-Werror", "-pthread", "-O1", "-I"]);
    command.arg(here().join("include")).arg(source).arg("-o").arg(program);
    command.arg("-L").arg(libraries()).arg("-loverspin");
    tool(&mut command)
}

/// A folder in which the loader finds the library by its soname, which is not the name of its file here.
fn loaded_from() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("liboverspin.so.{}", env!("CARGO_PKG_VERSION_MAJOR"));
        symlink(libraries().join("liboverspin.so"), folder.path().join(name)).unwrap();
        folder
    });
    folder.path()
}

fn run(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", loaded_from());
    command
}

#[test]
fn every_function_and_error_in_c() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("use");
    let source = here().join("tests/use.c");
    if compile(&["cc", "-std=gnu99"], &source, &program).is_none() {
        return;
    }
    let said = tool(&mut run(&program)).unwrap();
    assert_eq!(said.trim(), env!("CARGO_PKG_VERSION"));
}

/// An example lists the locks if its argument names none.
fn refuses_a_wrong_name(program: &Path) {
    let refused = run(program).arg("tiket").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(
        told.starts_with("tiket: there is no lock of that name; locks are: lock-byte "),
        "{told}"
    );
}

#[test]
fn the_example_counts() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("counter");
    let source = here().join("examples/counter.c");
    if compile(&["cc"], &source, &program).is_none() {
        return;
    }
    for lock in ["malthusian", "ticket"] {
        assert_eq!(tool(run(&program).arg(lock)).unwrap(), format!("{lock}: 400\n"));
    }
    refuses_a_wrong_name(&program);
}

/// Links with the libraries that the pkg-config file names for static linking.
#[test]
fn the_static_library_links() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("counter");
    let file = fs::read_to_string(here().join("overspin.pc.in")).unwrap();
    let private = file.lines().find_map(|line| line.strip_prefix("Libs.private: ")).unwrap();
    let mut command = Command::new("cc");
    command.arg("-I").arg(here().join("include")).arg(here().join("examples/counter.c"));
    command.arg("-o").arg(&program).arg(libraries().join("liboverspin.a")).arg("-pthread");
    if tool(command.args(private.split(' '))).is_some() {
        assert_eq!(tool(Command::new(&program).arg("mcs")).unwrap(), "mcs: 400\n");
    }
}

const CPP: [&str; 2] = ["g++", "-std=c++17"];

#[test]
fn the_header_is_c_plus_plus_too() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("version.cpp");
    fs::write(
        &source,
        "#include <overspin.h>\nint main() { return overspin_version()[0] == 0; }\n",
    )
    .unwrap();
    let program = folder.path().join("version");
    if compile(&["g++"], &source, &program).is_some() {
        tool(&mut run(&program)).unwrap();
    }
}

#[test]
fn the_guards_and_the_condition_variable_of_c_plus_plus_take_the_mutex() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("queue");
    if compile(&CPP, &here().join("examples/queue.cpp"), &program).is_none() {
        return;
    }
    // A mutex that sleeps, one that culls waiters, and one that only spins. Two producers make 500 items each, and
    // what one account loses the other one gains.
    for lock in ["mutex", "malthusian", "ttas"] {
        let said = tool(run(&program).arg(lock)).unwrap();
        assert_eq!(said, format!("{lock}: 1000 items, the accounts balance to 0\n"));
    }
    refuses_a_wrong_name(&program);
}

#[test]
fn the_mutex_of_c_plus_plus_reports_what_goes_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("use-cpp");
    if compile(&CPP, &here().join("tests/use.cpp"), &program).is_none() {
        return;
    }
    tool(&mut run(&program)).unwrap();
    // A guard cannot throw from its destructor, so a wrong release ends the program, with the reason.
    let ended = run(&program).arg("release").output().unwrap();
    assert!(!ended.status.success());
    assert_eq!(
        String::from_utf8(ended.stderr).unwrap(),
        "overspin::mutex: unlock: this thread does not hold the mutex\n"
    );
}

/// Names followed by a parenthesis outside of comments.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(here().join("include/overspin.h")).unwrap();
    let code: String = header
        .split("/*")
        .enumerate()
        .map(|(i, part)| if i == 0 { part } else { part.split_once("*/").unwrap().1 })
        .collect();
    let names = code.split('(').filter_map(|before| {
        let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        name.starts_with("overspin_").then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn the_header_declares_what_the_library_exports() {
    let declared = declared();
    assert!(declared.contains("overspin_mutex_init"), "{declared:?}");
    let library = libraries().join("liboverspin.so");
    let nm = ["-D", "--defined-only", "--format=posix"];
    let Some(symbols) = tool(Command::new("nm").args(nm).arg(library)) else { return };
    let exported: BTreeSet<String> =
        symbols.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect();
    assert_eq!(exported, declared);
}
