//! Why a run on Xen failed.

/// The reason why a run did not take place, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum XlError {
    /// `xl` cannot be started.
    #[error("`{program}` cannot be started: {cause}")]
    NoXl {
        /// The program.
        program: String,
        /// The reason.
        #[source]
        cause: std::io::Error,
    },
    /// `xl` works, but there is no Xen below.
    #[error("`{program} info` fails, so this is not the dom0 of a Xen host: {said}")]
    NoXen {
        /// The program.
        program: String,
        /// Its error output.
        said: String,
    },
    /// A command of `xl` failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The command.
        command: String,
        /// Its error output.
        said: String,
    },
    /// The pool exists.
    #[error("there is a cpupool `{0}` already")]
    PoolExists(String),
    /// A pCPU of the plan is not free.
    #[error("pCPU {cpu} does not belong to Pool-0, which has {has}")]
    NoCpu {
        /// The pCPU.
        cpu: u32,
        /// What Pool-0 has.
        has: String,
    },
    /// Pool-0 would lose all its pCPUs.
    #[error("the run takes all pCPUs of Pool-0 ({0}), which dom0 needs")]
    AllCpus(String),
    /// A guest says that it cannot work, or it ended.
    #[error("guest `{guest}`: {said}")]
    Guest {
        /// The guest.
        guest: String,
        /// What it said.
        said: String,
    },
    /// Guests did not do something in time.
    #[error("{guests} did not {what} within {seconds} s")]
    Late {
        /// The guests.
        guests: String,
        /// What they did not do.
        what: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {cause}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        #[source]
        cause: std::io::Error,
    },
    /// There is no terminal for a guest's console.
    #[error("no terminal for a guest's console: {cause}")]
    Terminal {
        /// The reason.
        #[source]
        cause: std::io::Error,
    },
    /// The caller wanted to stop.
    #[error("stopped")]
    Stopped,
}

impl XlError {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoXl { .. } | Self::NoXen { .. } => {
                "run this as root in the dom0 of a Xen host with its tools (Debian: xen-system-amd64), or without \
                 Xen: overspin xen-emulated FILE.bench"
            }
            Self::Command { .. } => {
                "`xl dmesg` and /var/log/xen may say more; try the command by hand, as root"
            }
            Self::PoolExists(_) => {
                "another run may use it; if not: xl cpupool-destroy NAME, and xl cpupool-cpu-add Pool-0 CPU for each \
                 of its CPUs; or name another pool in RunConfig.Pool"
            }
            Self::NoCpu { .. } | Self::AllCpus(_) => {
                "name other pCPUs in RunConfig.Cpus; `xl cpupool-list -c` shows those of Pool-0"
            }
            Self::Guest { .. } => {
                "check the guests' kernel (--kernel): a Linux for Xen's paravirtual guests with its module xen-privcmd"
            }
            Self::Late { .. } => "check the guests' kernel (--kernel) and the load of the host",
            Self::Terminal { .. } => {
                "mount devpts on /dev/pts, or end programs that hold terminals"
            }
            Self::File { .. } => "free some space in the folder for temporary files",
            Self::Stopped => "run the command again to go on",
        }
    }
}
