//! How commands end: exit codes, and errors as a line of cause and a line of remedy.

use crate::window::Window;
use miette::{Diagnostic, LabeledSpan, SourceCode};
use overspin_lab::output::OutputError;
use overspin_lab::scenario_file::{LoadError, ScenarioError};
use overspin_scenario::Stopped;
use std::fmt;
use std::process::ExitCode;

/// Exit code of wrong usage or input.
pub(crate) const USAGE: u8 = 2;
const ENVIRONMENT: u8 = 3;

/// How a command that did its work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing to complain about.
    Fine,
    /// A check failed, something got worse, or the user is strict and a claim failed or a run deadlocked.
    Finding,
    /// Could not be decided.
    Undecided,
    /// Stopped before the end, with what there was.
    Stopped(Stopped),
}

impl Verdict {
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Fine => 0,
            Self::Finding => 1,
            Self::Undecided | Self::Stopped(Stopped::MaxWall) => 4,
            // What shells say of a command that SIGINT ended.
            Self::Stopped(Stopped::Interrupted) => 130,
        })
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Input that a place in a text can be shown for.
    Scenario(Box<ScenarioError>),
    /// Anything else, with its exit code.
    Plain { code: u8, cause: String, remedy: String },
    /// Nobody reads our output any more.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn usage(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Plain { code: USAGE, cause: cause.into(), remedy: remedy.into() }
    }

    /// The simulator refused what the scenario reader did not.
    pub(crate) fn refused(scenario: &str, cause: &dyn fmt::Display) -> Self {
        let remedy = "change the scenario; docs/scenario.md says what it can hold";
        Self::usage(format!("{scenario}: {cause}"), remedy)
    }

    pub(crate) fn environment(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Plain { code: ENVIRONMENT, cause: cause.into(), remedy: remedy.into() }
    }

    /// Prints the error to standard error and gives its exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Scenario(error) => {
                // Ignored: a hook is set already, which cannot be, and would do as well.
                let _ = miette::set_hook(Box::new(|_| {
                    // Words are never broken, so that names can be searched for and copied.
                    Box::new(miette::MietteHandlerOpts::new().width(110).break_words(false).build())
                }));
                eprintln!("error: {error}");
                eprintln!("{:?}", miette::Report::new(Located::new(*error)));
                ExitCode::from(USAGE)
            }
            Self::Plain { code, cause, remedy } => {
                eprintln!("error: {cause}\n help: {remedy}");
                ExitCode::from(code)
            }
            Self::BrokenPipe => ExitCode::SUCCESS,
        }
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

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Invalid(error) => Self::Scenario(error),
            LoadError::Read { ref cause, .. } => {
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

/// A scenario error as miette draws it.
struct Located {
    error: ScenarioError,
    window: Window,
}

impl Located {
    fn new(error: ScenarioError) -> Self {
        let window = Window::of(&error);
        Self { error, window }
    }
}

impl fmt::Debug for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error.message)
    }
}

impl std::error::Error for Located {}

impl Diagnostic for Located {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.error.help))
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.window.span();
        let label = LabeledSpan::new(Some("here".into()), span.start, span.len());
        Some(Box::new(std::iter::once(label)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.window)
    }
}
