//! Why a setting has no result, with the remedy.

use overspin_experiment::ReproduceError;
use overspin_host::Refused;
use overspin_located::{LocatedError, plain};
use overspin_page::DetailError;
use overspin_runs::parallel::ParallelError;
use overspin_runs::record::LoadError;
use overspin_runs::sweep::SweepError;

/// A cause and a remedy, as the page shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) cause: String,
    pub(crate) remedy: String,
    /// The place in a file.
    pub(crate) place: Option<String>,
}

/// What to do about a scenario that the simulator refuses.
const CHANGE: &str = "change the scenario; docs/scenario.md lists what it can contain";

impl Problem {
    pub(crate) fn new(cause: impl ToString, remedy: impl Into<String>) -> Self {
        Self { cause: cause.to_string(), remedy: remedy.into(), place: None }
    }
}

impl From<Box<LocatedError>> for Problem {
    fn from(error: Box<LocatedError>) -> Self {
        (*error).into()
    }
}

impl From<LocatedError> for Problem {
    fn from(error: LocatedError) -> Self {
        Self { place: Some(plain(&error)), ..Self::new(&error, &*error.help) }
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Self {
        use overspin_runs::scenario_file::LoadError as FileError;
        match error {
            LoadError::File(FileError::Invalid(error)) => error.into(),
            other => {
                Self::new(other, "the file has changed since the start: repair it, or start again")
            }
        }
    }
}

impl From<Refused> for Problem {
    fn from(error: Refused) -> Self {
        Self::new(error, CHANGE)
    }
}

impl From<DetailError> for Problem {
    fn from(error: DetailError) -> Self {
        Self::new(error, CHANGE)
    }
}

impl From<ParallelError> for Problem {
    fn from(error: ParallelError) -> Self {
        Self::new(error, CHANGE)
    }
}

impl From<SweepError> for Problem {
    fn from(error: SweepError) -> Self {
        Self::new(error, CHANGE)
    }
}

impl From<ReproduceError> for Problem {
    fn from(error: ReproduceError) -> Self {
        match error {
            ReproduceError::Plan(error) => error.into(),
            ReproduceError::Stopped => Self::new(
                "the experiment takes longer than a run may",
                "choose fewer seeds, or start `overspin serve` with a longer --max-wall, such as 5min",
            ),
            other => Self::new(other, CHANGE),
        }
    }
}
