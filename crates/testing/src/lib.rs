//! What the tests of several crates share: running a command, skipping with a reason, waiting for something,
//! files that hold expected texts, and damaged inputs.
#![forbid(unsafe_code)]

mod damage;
mod expected;
mod program;

pub use damage::{DEEPER, Reader};
pub use expected::{expect_file, expect_section, expected_bytes};
pub use program::{Ended, Program, signal};

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A scenario of some milliseconds: four vCPUs on two pCPUs fight for a ticket lock.
pub const SCENARIO: &str = r#"
limit = "20ms"
[host]
cores = 2
[[domain]]
name = "guest"
vcpus = 4
lock = "ticket"
workload = { kind = "lock-loop" }
"#;

/// An axis for [`SCENARIO`] with two locks.
pub const LOCKS: &str = r#"
[[vary]]
name = "lock"
set = "domain.guest.lock"
to = ["ticket", "lock-byte"]
"#;

/// An axis for [`SCENARIO`] with two sizes of its host.
pub const CORES: &str = r#"
[[vary]]
name = "cores"
set = "host.cores"
to = ["2", "1"]
"#;

/// A scenario whose two vCPUs share a pCPU without noise.
pub const TWO_ON_ONE: &str = r#"
limit = "20ms"
[host]
cores = 1
noise = { placement = "none" }
[[domain]]
name = "guest"
vcpus = 2
lock = "ticket"
workload = { kind = "lock-loop" }
"#;

/// A legal scenario, in which tests make one mistake each.
pub const GOOD: &str = r#"name = "good"
limit = "1s"
[host]
cores = 2
[host.scheduler_params]
tslice = "30ms"
[[domain]]
name = "guest"
vcpus = 4
lock = "ticket"
affinity = "0-1"
cap = 0
[domain.kernel]
hz = 1000
[domain.workload]
kind = "lock-loop"
section = "2us"
[[domain]]
name = "other"
vcpus = 1
lock = "ticket-small"
workload = { kind = "kernbench", jobs = 3 }
"#;

/// The folder of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("this tree")
}

/// Says why a test does nothing.
///
/// It writes to standard error itself, because the test harness hides what `eprintln!` prints in a test that passes. Other
/// runners hide that too; so it also writes to the file that `OVERSPIN_SKIPPED` names, which `.ci/run` repeats at its end.
pub fn skip(reason: &str) {
    let line = format!("skipped: {reason}\n");
    // Failures are ignored: there is nobody else to tell.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os("OVERSPIN_SKIPPED") {
        let _ = OpenOptions::new()
            .append(true)
            .open(file)
            .and_then(|mut f| f.write_all(line.as_bytes()));
    }
}

/// Looks every 200 us whether something has come about.
///
/// # Panics
/// After five minutes. The limit is only against hanging: no machine is so slow.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(300), "after five minutes not yet: {what}");
        sleep(Duration::from_micros(200));
    }
}

/// Keeps a test that hangs from hanging for ever; see [`must_end`].
#[derive(Debug)]
pub struct MustEnd {
    _ended: Sender<()>,
}

/// For a test whose threads nothing ends if they wait in vain. If the guard is not dropped within two minutes, this program
/// says so and aborts. The limit is only against hanging: no machine is so slow.
#[must_use = "it guards until it is dropped"]
pub fn must_end() -> MustEnd {
    let (ended, end) = channel();
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    std::thread::spawn(move || {
        if end.recv_timeout(Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout) {
            // As in `skip`, past the test harness, which can no longer list the test as one that failed.
            let hangs = format!("{test} hangs: it has not ended within two minutes\n");
            let _ = std::io::stderr().write_all(hangs.as_bytes());
            let _ = std::io::stdout().write_all(format!("\nfailures:\n    {test}\n").as_bytes());
            let _ = std::io::stdout().flush();
            std::process::abort();
        }
    });
    MustEnd { _ended: ended }
}

/// Whether models, random schedules and rare faults are searched as deeply as in CI, which takes ten times as long.
/// `.ci/run` sets `OVERSPIN_DEEP=1`.
#[must_use]
pub fn deep() -> bool {
    std::env::var_os("OVERSPIN_DEEP").is_some()
}
