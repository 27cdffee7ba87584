//! An emulated machine with real Xen: from Debian's packages, by QEMU, without any privilege.
//!
//! QEMU emulates every instruction (TCG). With [`Clock::Instructions`], its time is the number of instructions,
//! each of which takes a nanosecond, for example. A run then does not depend on the load of this machine.

mod dom0;
mod machine;
mod packages;
mod unpacked;

pub use machine::{Clock, Machine, memory_for, run};
pub use packages::{Cache, Fetched};
pub use unpacked::Unpacked;

/// Why there is no emulated machine, or why it stopped.
#[derive(Debug, thiserror::Error)]
pub enum EmulatedError {
    /// This was not built for guests of Xen.
    #[error(transparent)]
    NoWorker(#[from] crate::NoWorker),
    /// A program of this machine is missing or fails.
    #[error("`{command}` failed: {said}")]
    Program {
        /// The command.
        command: String,
        /// Its error output, or why it could not be started.
        said: String,
    },
    /// The packages are not complete.
    #[error("the packages have no {what}: {folder}")]
    Missing {
        /// What is not there.
        what: &'static str,
        /// Where it was looked for.
        folder: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {cause}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        #[source]
        cause: std::io::Error,
    },
    /// The guests' kernel cannot be made to spin fast.
    #[error(
        "{kernel}: its instructions `pause` cannot be replaced: it is not packed with xz, or has data among its \
         instructions"
    )]
    Pauses {
        /// The kernel.
        kernel: String,
    },
    /// There is no place for the packages.
    #[error("there is no folder for cached files: neither XDG_CACHE_HOME nor HOME is set")]
    NoCache,
    /// The emulated machine stopped early.
    #[error(
        "the emulated machine stopped before its work was done; its console ended with: {console}"
    )]
    Died {
        /// The end of Xen's console.
        console: String,
    },
    /// The dom0 failed.
    #[error("the emulated dom0 failed: {0}")]
    Dom0(String),
}

impl EmulatedError {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NoWorker(_) => "use a build for x86-64 Linux".into(),
            Self::Program { command, .. } if command.starts_with("apt") || command.starts_with("dpkg") => {
                "this needs a Debian 12 or its like with package lists: as root, apt-get update; or copy the cache of \
                 another machine (docs/xen.md)"
                    .into()
            }
            Self::Program { .. } => "docs/xen.md lists what this needs".into(),
            Self::Missing { folder, .. } => {
                format!("remove {folder}, and the packages are fetched again")
            }
            Self::File { .. } => "free some space, or set XDG_CACHE_HOME to another folder".into(),
            Self::Pauses { .. } => {
                "give each guest one vCPU, or use --clock host on a machine with more CPUs than the emulated one".into()
            }
            Self::NoCache => "set XDG_CACHE_HOME to a folder that takes 300 MB".into(),
            Self::Died { .. } | Self::Dom0(_) => {
                "run it again with --keep DIR: the console is then in DIR/console.txt".into()
            }
        }
    }
}
