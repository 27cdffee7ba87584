//! Why a benchmark cannot run, or did not end well.

use std::io;
use std::path::Path;

/// The reason, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The user asked for something that makes no sense.
    #[error("{cause}")]
    Usage {
        /// What.
        cause: String,
        /// What to do.
        remedy: String,
    },
    /// The machine lacks something.
    #[error("{cause}")]
    Needs {
        /// What.
        cause: String,
        /// What to do.
        remedy: String,
    },
    /// The user, or the time limit, stopped it. This is no fault: what was measured is kept.
    #[error("stopped")]
    Stopped,
}

impl Failed {
    /// A request that makes no sense, and the remedy.
    pub fn usage(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Usage { cause: cause.into(), remedy: remedy.into() }
    }

    /// Something that the machine lacks, and the remedy.
    pub fn needs(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Needs { cause: cause.into(), remedy: remedy.into() }
    }

    /// A failure of the system to do `what` with `path`.
    pub(crate) fn io(what: &str, path: &Path, cause: &io::Error) -> Self {
        let remedy = match cause.kind() {
            io::ErrorKind::StorageFull => {
                "free some space, or choose another disk with --scratch DIR"
            }
            _ => "choose a folder that you may write to with --scratch DIR",
        };
        Self::needs(format!("cannot {what} `{}`: {cause}", path.display()), remedy)
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &str {
        match self {
            Self::Usage { remedy, .. } | Self::Needs { remedy, .. } => remedy,
            Self::Stopped => "run the same command again",
        }
    }
}
