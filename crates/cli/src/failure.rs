//! How commands end: exit codes, and errors with a line of cause and a line of remedy.

use crate::screen;
use crate::window::Window;
use miette::{
    Diagnostic, LabeledSpan, MietteHandler, MietteHandlerOpts, ReportHandler, SourceCode,
};
use overspin_host::Refused;
use overspin_lab::output::OutputError;
use overspin_lab::results::ResultsError;
use overspin_lab::scenario_file::{LoadError, ScenarioError};
use overspin_scenario::Stopped;
use std::fmt;
use std::process::ExitCode;

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
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Fine => 0,
            Self::Finding => 1,
            Self::Undecided | Self::Stopped(Stopped::MaxWall) => 4,
            // The exit code that shells report for a command that SIGINT ended.
            Self::Stopped(Stopped::Interrupted) => 130,
        })
    }
}

/// The reason why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Faulty input, with a place in a text.
    Scenario(Box<ScenarioError>),
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

    /// The same with `said` as its cause, which says which run of several was refused.
    pub(crate) fn refused_as(scenario: &str, cause: &Refused, said: &dyn fmt::Display) -> Self {
        if let Refused::Machine { remedy, .. } = cause {
            return Self::environment(format!("{scenario}: {said}"), remedy);
        }
        let remedy = "change the scenario; docs/scenario.md lists what it can contain";
        Self::usage(format!("{scenario}: {said}"), remedy)
    }

    pub(crate) fn environment(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Plain { code: ENVIRONMENT, cause: cause.into(), remedy: remedy.into() }
    }

    /// The cause in words.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Scenario(error) => error.to_string(),
            Self::Plain { cause, .. } => cause.clone(),
            Self::BrokenPipe => "the reader went away".into(),
        }
    }

    /// Prints the error to standard error and gives its exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Scenario(error) => {
                eprintln!("error: {error}");
                eprintln!("{}", Located::new(*error).drawing());
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
            LoadError::Invalid(error) => Self::Scenario(error),
            LoadError::Results(error) => error.into(),
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

/// Widest drawing of a place.
const WIDTH: usize = 110;

/// A scenario error, for display by miette. Its text is empty: the line above the drawing has the message,
/// unbroken, so that it can be searched for.
struct Located {
    error: ScenarioError,
    window: Window,
}

impl Located {
    fn new(error: ScenarioError) -> Self {
        let window = Window::of(&error);
        Self { error, window }
    }

    /// The place in its file, and the remedy.
    fn drawing(&self) -> String {
        // Words are never broken, so that names can be searched for and copied.
        let options = MietteHandlerOpts::new().break_words(false);
        let width = screen::of_stderr().width.map_or(WIDTH, |width| width.min(WIDTH));
        let options = options.width(width);
        let options = if screen::is_ascii() { options.unicode(false) } else { options };
        let drawn = format!("{:?}", Drawn { handler: options.build(), error: self });
        // Above the place stands the mark of an error without text.
        let place = drawn.lines().position(|line| line.contains(&*self.error.path));
        let lines: Vec<&str> = drawn.lines().skip(place.unwrap_or(0)).collect();
        screen::of_stderr().spell(&lines.join("\n"))
    }
}

/// An error as a handler draws it.
struct Drawn<'a> {
    handler: MietteHandler,
    error: &'a Located,
}

impl fmt::Debug for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handler.debug(self.error, f)
    }
}

impl fmt::Debug for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl fmt::Display for Located {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
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
