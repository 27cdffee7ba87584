//! What the host and a guest say to each other: a line of JSON each, through a virtio port. The guest is compiled with this
//! file, too.

use serde::{Deserialize, Serialize};

/// Name of the port, as the guest finds it in `/sys/class/virtio-ports`.
pub const PORT: &str = "overspin";

/// The mount tag of the host's root.
pub const HOST: &str = "host";

/// What the host asks for. The guest does one thing at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// From now on programs see this file system, with what they write in memory.
    Root(Root),
    /// Reads all files below this folder, so that the first run does not wait for the disk.
    Read(String),
    /// Runs a program to its end.
    Run {
        /// The program and its arguments.
        command: Vec<String>,
        /// Where it runs.
        folder: String,
    },
    /// Threads of one process duplicate a file descriptor and close it.
    Dup {
        /// Number of threads.
        threads: u32,
        /// How long.
        seconds: u32,
    },
    /// From now on it reads its kernel's counters each second.
    Watch,
    /// Ends that, and tells what was read.
    Watched,
    /// Gets threads of the kernel ready for this job: `kernel/overspin_work.c` says what it is.
    Work(String),
    /// Gets programs ready that do the work of this scenario's domain.
    Programs {
        /// The scenario, as JSON.
        scenario: String,
        /// The seed of the run.
        seed: u64,
    },
    /// They begin. The answer comes when all have ended.
    Go,
    /// They end now. It has no answer of its own.
    Stop,
    /// Tells the counter of its CPU.
    Clock,
    /// Sends what threads of the kernel noted of their acquisitions.
    Notes,
    /// Powers off.
    Off,
}

/// A file system for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Root {
    /// The disk's.
    Disk,
    /// The host's own, through the mount tag [`HOST`].
    Host,
}

/// What a guest says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Say {
    /// It is up, and waits for the first question.
    Ready,
    /// It did what needs no answer.
    Done,
    /// A line that the program printed.
    Line(String),
    /// The program came to its end.
    Ran(Ran),
    /// Pairs of calls in each second, of all threads together.
    Dups(Vec<u64>),
    /// What its kernel counted.
    Watched(Watched),
    /// What threads of the kernel did, in the kernel's words, or programs, as an outcome in JSON.
    Worked(String),
    /// The time stamp counter.
    Clock(u64),
    /// So many bytes follow this line.
    Bytes(u64),
    /// It cannot do that.
    Failed(String),
}

/// A program that ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// Its exit status, 128 and more for a signal.
    pub status: i32,
    /// By the guest's clock, in seconds.
    pub elapsed_s: f64,
    /// User time of the program and of all that it waited for, in seconds.
    pub user_s: f64,
    /// System time of the same processes, in seconds.
    pub system_s: f64,
    /// Their involuntary switches.
    pub preempted: u64,
    /// Their voluntary switches.
    pub slept: u64,
}

/// What a guest's kernel counted while it was watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// Its counters at the begin, each second, and at the end.
    pub readings: Vec<Reading>,
    /// Counts of the kernel's own queued locks that changed meanwhile, by their names; a kernel may lack them.
    pub lock_events: Vec<(String, u64)>,
    /// `/proc/lock_stat`; none: the kernel has no such file.
    pub lock_stat: Option<String>,
}

/// Counters of a kernel at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Seconds since the begin, by the guest's clock.
    pub at_s: f64,
    /// Lines of `/proc/stat` and `/proc/vmstat` with a name and numbers that are told.
    pub stat: String,
    /// As `stat`.
    pub vmstat: String,
    /// How often the kernel's own queued locks were found taken so far.
    pub slow_paths: u64,
}
