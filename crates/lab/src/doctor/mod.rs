//! What this machine offers, what the commands lack here, and what each missing thing costs.
//!
//! A diagnosis only reads: files of `/proc`, `/sys` and `/dev`, and the names of programs in `PATH`. Simulated
//! results depend on none of it; a finding says which command's real times suffer, and by how much.

mod machine;
mod programs;
mod report;

pub use report::report;

use overspin_record::environment::Environment;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing is missing.
    Fine,
    /// It costs something.
    Costs,
    /// A command or a test cannot do its work.
    Missing,
    /// This system does not tell.
    Unknown,
}

impl State {
    /// The state in a word, for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Costs => "costs",
            Self::Missing => "MISSING",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// How serious it is.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What this costs the user: the affected commands or tests, and by how much figures get worse. Empty if
    /// it is fine.
    pub cost: String,
    /// What to do about it. Empty if there is nothing to do.
    pub remedy: String,
}

impl Finding {
    fn fine(what: &'static str, found: impl Into<String>) -> Self {
        let (cost, remedy) = (String::new(), String::new());
        Self { what, state: State::Fine, found: found.into(), cost, remedy }
    }

    fn new(
        what: &'static str,
        state: State,
        found: impl Into<String>,
        cost: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { what, state, found: found.into(), cost: cost.into(), remedy: remedy.into() }
    }
}

/// Where to look. Tests look at a made-up machine.
#[derive(Clone, Debug)]
pub struct Place {
    /// The root of the file system.
    pub root: PathBuf,
    /// Folders with programs, as in `PATH`.
    pub path: OsString,
    /// The preload library for `overspin exec`, or the reason why there is none.
    pub preload: Result<PathBuf, String>,
    /// The Python whose packages the tests use, as `OVERSPIN_PYTHON` names it.
    pub python: OsString,
    /// CPUs that this process may use.
    pub usable_cpus: Option<usize>,
}

impl Place {
    /// The machine at hand.
    #[must_use]
    pub fn here(preload: Result<PathBuf, String>) -> Self {
        Self {
            root: PathBuf::from("/"),
            path: std::env::var_os("PATH").unwrap_or_default(),
            preload,
            python: std::env::var_os("OVERSPIN_PYTHON").unwrap_or_else(|| "python3".into()),
            usable_cpus: std::thread::available_parallelism().ok().map(Into::into),
        }
    }

    /// The text of a file of the kernel, if it can be read and is not empty.
    fn read(&self, file: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.root.join(file)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The file of this program, if a folder in the path has it.
    fn program(&self, name: &str) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|file| file.is_file());
        }
        std::env::split_paths(&self.path).map(|folder| folder.join(name)).find(|f| f.is_file())
    }

    /// Whether a device can be opened for reading and writing; `None` if it does not exist.
    fn device(&self, file: &str) -> Option<bool> {
        let file = self.root.join(file);
        let open = |file: &Path| std::fs::OpenOptions::new().read(true).write(true).open(file);
        file.exists().then(|| open(&file).is_ok())
    }
}

/// Everything that was found on a machine.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// All findings, in the order of reports.
    pub findings: Vec<Finding>,
}

/// Looks at the machine. It takes half a second, in which it watches the load.
#[must_use]
pub fn diagnose(place: &Place, environment: &Environment) -> Diagnosis {
    let mut findings = machine::findings(place, environment);
    findings.extend(programs::findings(place));
    Diagnosis { findings }
}

#[cfg(test)]
mod tests;
