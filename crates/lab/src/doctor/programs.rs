//! Programs and files that commands and tests use.

use super::{Finding, Place, State};
use std::process::{Command, Stdio};

pub(super) fn findings(place: &Place) -> Vec<Finding> {
    let mut findings = vec![preload(place), perfetto(place)];
    findings.extend(NEEDED.iter().map(|needed| needed.finding(place)));
    findings
}

fn preload(place: &Place) -> Finding {
    match &place.preload {
        Ok(file) => Finding::fine("preload library", file.display().to_string()),
        Err(reason) => Finding::new(
            "preload library",
            State::Missing,
            reason.clone(),
            "`overspin exec` cannot run a program; it ends with exit code 3",
            "build or unpack the command again, which brings it, and see `overspin exec --help` for where it may be",
        ),
    }
}

/// Perfetto's message definitions for Python.
fn perfetto(place: &Place) -> Finding {
    let name = place.python.to_string_lossy();
    let cost = "the test that decodes traces with Perfetto's own definitions skips; `run --trace` works without";
    let install = "`python3 -m venv target/python && target/python/bin/pip install perfetto protobuf`, then set \
                   OVERSPIN_PYTHON to target/python/bin/python";
    let Some(python) = place.program(&name) else {
        let found = format!("there is no `{name}`");
        let cost = format!(
            "tests that run Python skip, and the commands in docs/json.md that read records with it; {cost}"
        );
        return Finding::new(
            "Python",
            State::Missing,
            found,
            cost,
            format!("install python3; then {install}"),
        );
    };
    let import = Command::new(&python)
        .args(["-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match import.is_ok_and(|status| status.success()) {
        true => Finding::fine("Python", format!("{}, with the package perfetto", python.display())),
        false => {
            let found = format!("{}, without the package perfetto", python.display());
            Finding::new("Python", State::Missing, found, cost, install)
        }
    }
}

/// Programs that a test needs, all of them.
struct Needed {
    what: &'static str,
    programs: &'static [&'static str],
    /// What happens without them.
    cost: &'static str,
    remedy: &'static str,
}

const NEEDED: &[Needed] = &[
    Needed {
        what: "C compiler",
        programs: &["cc"],
        cost: "the tests of the C interface and of the preload library skip; no command needs it",
        remedy: "install gcc or clang",
    },
    Needed {
        what: "C++ compiler",
        programs: &["g++"],
        cost: "one test of the preload library (condition variables of C++) skips",
        remedy: "install g++",
    },
    Needed {
        what: "binutils",
        programs: &["objdump", "nm"],
        cost: "the tests that look at the machine code of the paravirtual ticket lock and at the symbols of the \
               preload library skip",
        remedy: "install binutils",
    },
    Needed {
        what: "pkg-config",
        programs: &["pkg-config"],
        cost: "the test that installs the C interface skips",
        remedy: "install pkg-config",
    },
    Needed {
        what: "real programs",
        programs: &["memcached", "redis-server", "sysbench"],
        cost: "the tests that run them under `overspin exec` skip",
        remedy: "install memcached, redis-server and sysbench",
    },
    Needed {
        what: "kernbench",
        programs: &["make", "gcc", "flex", "bison", "bc", "xz"],
        cost: "`overspin measure kernbench` cannot build a kernel; any other tree needs only make",
        remedy: "install make, gcc, flex, bison, bc and xz-utils",
    },
    Needed {
        what: "dbench",
        programs: &["dbench"],
        cost: "`overspin measure dbench` ends with exit code 3, and its test skips",
        remedy: "install dbench",
    },
    Needed {
        what: "virtual network cables",
        programs: &["ip"],
        cost: "`overspin measure pft` and `count` cannot send packets beside their work; without --packets they work",
        remedy: "install iproute2",
    },
];

impl Needed {
    fn finding(&self, place: &Place) -> Finding {
        let missing: Vec<&str> =
            self.programs.iter().copied().filter(|name| place.program(name).is_none()).collect();
        match missing.is_empty() {
            true => Finding::fine(self.what, self.programs.join(", ")),
            false => Finding::new(
                self.what,
                State::Missing,
                format!("not installed: {}", missing.join(", ")),
                self.cost,
                self.remedy,
            ),
        }
    }
}
