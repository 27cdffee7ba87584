//! What can be wrong with a results directory.

use crate::output::OutputError;
use std::io;
use std::path::Path;

/// Why a results directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// It cannot be read or written.
    #[error(transparent)]
    Io(#[from] OutputError),
    /// It has other files.
    #[error("`{dir}` is not empty and holds no result: there is `{file}`")]
    NotEmpty {
        /// The directory.
        dir: String,
        /// A file in it.
        file: String,
    },
    /// It is no results directory.
    #[error("`{dir}` is a directory without a manifest.json")]
    NoResults {
        /// The directory.
        dir: String,
    },
    /// Another command writes to it.
    #[error("another command is writing to `{dir}`")]
    InUse {
        /// The directory.
        dir: String,
    },
    /// It has the result of something else.
    #[error("`{dir}` holds another result: {difference}")]
    Other {
        /// The directory.
        dir: String,
        /// The first difference.
        difference: String,
    },
    /// A file of it is broken.
    #[error("{path}:{line}: {cause}")]
    Broken {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The reason.
        cause: String,
    },
    /// Directories that do not belong together.
    #[error("`{dir}` does not belong to `{first}`: {difference}")]
    NoPart {
        /// The directory.
        dir: String,
        /// The first directory.
        first: String,
        /// The difference.
        difference: String,
    },
}

impl ResultsError {
    /// What to do if an error has no remedy of its own.
    pub const NEXT: &'static str = "run the command of the first directory again";

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Io(error) => error.remedy(),
            Self::NotEmpty { .. } | Self::Other { .. } => {
                "name another directory with --out, or remove this one"
            }
            Self::NoResults { .. } => "name a directory that --out wrote, or a record",
            Self::InUse { .. } => "wait until it ends, or name another directory with --out",
            Self::Broken { .. } => "remove the directory and run the command again",
            Self::NoPart { .. } => "merge directories of one command, run with --shard 1/n to n/n",
        }
    }

    /// Whether the environment is at fault, and not what the user asked for.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        matches!(self, Self::Io(_) | Self::InUse { .. })
    }
}

/// Makes the error of the system an error about `path`.
pub(super) fn io_error(action: &'static str, path: &Path) -> impl Fn(io::Error) -> ResultsError {
    let path = path.display().to_string();
    move |cause| OutputError { action, path: path.clone(), cause }.into()
}
