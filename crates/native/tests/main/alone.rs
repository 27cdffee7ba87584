//! The numbers of threads and the children are those of the process, so tests of them must not meet other tests.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The variable that names the test in its own process.
const ALONE: &str = "OVERSPIN_TEST_ALONE";

/// Waits for the turn of a test. Runs on the same CPUs would starve each other, and a test that looks at the children of
/// this process must not see those of another test.
pub fn turn() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the body of the test with this full name in a process of its own, which is this program once more.
pub fn in_own_process(test: &str, body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some_and(|name| name == test) {
        return body();
    }
    let _turn = turn();
    let mut command = Command::new(std::env::current_exe().expect("its own path"));
    command.args(["--exact", test, "--nocapture", "--include-ignored"]).env(ALONE, test);
    let output = command.output().expect("this program starts");
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{test}: {}\n{out}{err}", output.status);
    // A name that no test has would run nothing, and succeed.
    assert!(out.contains("1 passed"), "{test} is not the name of a test:\n{out}");
}
