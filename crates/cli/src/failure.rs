//! How commands end: exit codes, and errors with a line of cause and a line of remedy.

use crate::{screen, signals};
use overspin_host::Refused;
use overspin_located as located;
use overspin_located::LocatedError;
use overspin_record::output::OutputError;
use overspin_record::results::ResultsError;
use overspin_runs::parallel::ParallelError;
use overspin_runs::record::LoadError;
use overspin_runs::scenario_file;
use overspin_scenario::Stopped;
use std::path::Path;
use std::{fmt, io};

/// Exit code of wrong usage or input.
pub(crate) const USAGE: u8 = 2;
const ENVIRONMENT: u8 = 3;

/// How a command ends that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No findings.
    Fine,
    /// A check failed, something got worse, or the user is strict and a claim failed or a run deadlocked.
    Finding,
    /// No decision was possible.
    Undecided,
    /// Stopped before the end, with partial results.
    Stopped(Stopped),
}

impl Verdict {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Finding => 1,
            Self::Undecided | Self::Stopped(Stopped::MaxWall) => 4,
            Self::Stopped(Stopped::Interrupted) => signals::exit_code(),
        }
    }
}

/// The reason why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Faulty input, with a place in a text.
    Scenario(Box<LocatedError>),
    /// Arguments that make no command, or that ask for help.
    Arguments(Box<clap::Error>),
    /// Anything else, with its exit code.
    Plain { code: u8, cause: String, remedy: String },
    /// The reader of our output went away.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn usage(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Plain { code: USAGE, cause: cause.into(), remedy: remedy.into() }
    }

    /// A world refused a scenario that the reader accepted.
    pub(crate) fn refused(scenario: &str, cause: &Refused) -> Self {
        Self::refused_as(scenario, cause, cause)
    }

    /// A scenario that a world refuses, with `said` as the cause, which says which run of several was refused.
    pub(crate) fn refused_as(scenario: &str, cause: &Refused, said: &dyn fmt::Display) -> Self {
        if let Refused::Machine { remedy, .. } = cause {
            return Self::environment(format!("{scenario}: {said}"), remedy);
        }
        let remedy = "change the scenario; docs/scenario.md lists what it can contain";
        Self::usage(format!("{scenario}: {said}"), remedy)
    }

    /// Some of many runs of `scenario` failed.
    pub(crate) fn parallel(scenario: &str, error: &ParallelError) -> Self {
        let remedy = match error {
            ParallelError::Sim { cause, .. } => return Self::refused_as(scenario, cause, error),
            ParallelError::Threads { .. } => "ask for fewer with --threads",
            ParallelError::Keep(error) => error.remedy(),
        };
        Self::environment(error.to_string(), remedy)
    }

    pub(crate) fn environment(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Plain { code: ENVIRONMENT, cause: cause.into(), remedy: remedy.into() }
    }

    /// A file that cannot be written.
    pub(crate) fn cannot_write(file: &Path, cause: io::Error) -> Self {
        OutputError { action: "write to", path: file.display().to_string(), cause }.into()
    }

    /// The cause in words.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Scenario(error) => error.to_string(),
            Self::Arguments(error) => error.to_string(),
            Self::Plain { cause, .. } => cause.clone(),
            Self::BrokenPipe => "the reader went away".into(),
        }
    }

    /// Prints the error to standard error and gives its exit code.
    pub(crate) fn report(self) -> u8 {
        match self {
            Self::Scenario(error) => {
                eprintln!("error: {error}");
                eprintln!("{}", located::drawing(&error, &screen::of_stderr()));
                USAGE
            }
            Self::Arguments(error) => {
                // A failure to print is ignored: nobody reads the message.
                let _ = error.print();
                if error.use_stderr() { USAGE } else { 0 }
            }
            Self::Plain { code, cause, remedy } => {
                eprintln!("error: {cause}\n help: {remedy}");
                code
            }
            Self::BrokenPipe => 0,
        }
    }
}

impl From<Box<LocatedError>> for Failure {
    fn from(error: Box<LocatedError>) -> Self {
        Self::Scenario(error)
    }
}

impl From<LocatedError> for Failure {
    fn from(error: LocatedError) -> Self {
        Box::new(error).into()
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        if error.is_broken_pipe() {
            Self::BrokenPipe
        } else {
            Self::environment(error.to_string(), error.remedy())
        }
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        match error.is_environment() {
            true => Self::environment(error.to_string(), error.remedy()),
            false => Self::usage(error.to_string(), error.remedy()),
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::File(error) => error.into(),
            LoadError::Results(error) => error.into(),
        }
    }
}

impl From<scenario_file::LoadError> for Failure {
    fn from(error: scenario_file::LoadError) -> Self {
        match error {
            scenario_file::LoadError::Invalid(error) => error.into(),
            scenario_file::LoadError::Read { ref cause, .. } => {
                let remedy = match cause.kind() {
                    std::io::ErrorKind::NotFound => {
                        "check the name; the folder examples/ has scenarios to start from"
                    }
                    std::io::ErrorKind::InvalidData => "scenarios are UTF-8 text",
                    _ => "name a scenario file that you may read",
                };
                Self::usage(error.to_string(), remedy)
            }
        }
    }
}
