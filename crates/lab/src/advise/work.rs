//! Kinds of work, in operators' words.

use overspin_runs::catalog;
use overspin_scenario::{Outcome, Picos, Scenario, US};
use serde::Serialize;
use std::fmt::Write;

/// What the guests do. Each kind stands for a class of programs; its times are round figures, not
/// measurements of yours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// A parallel compile.
    Build,
    /// A database in memory.
    Database,
    /// Servers that answer requests and are idle in between.
    Web,
    /// Threads that fight for one lock.
    Locks,
}

impl Work {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Build, Self::Database, Self::Web, Self::Locks];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Database => "database",
            Self::Web => "web",
            Self::Locks => "locks",
        }
    }

    /// What a guest does, in a sentence.
    #[must_use]
    pub fn brief(self) -> &'static str {
        match self {
            Self::Build => {
                "a parallel compile (make with 4 jobs for each vCPU): user code, and four kernel locks held for \
                 3 us each"
            }
            Self::Database => {
                "a database in memory (4 clients for each vCPU): transactions of 115 us between processes, and \
                 two kernel locks"
            }
            Self::Web => {
                "a server on each vCPU that answers 4 clients in 200 us each, and is idle for some 60 % of the \
                 time when it has a pCPU to itself"
            }
            Self::Locks => {
                "a thread on each vCPU that takes one kernel lock again and again, 2 us inside and 20 us outside: \
                 the hardest case"
            }
        }
    }

    /// One unit of its work, as the page names it.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Build => {
                "acquisitions of kernel locks (a build acquires one for each 80 us of kernel time)"
            }
            Self::Database => "transactions",
            Self::Web => "answers",
            Self::Locks => "acquisitions",
        }
    }

    /// What waits, in the words of the page.
    #[must_use]
    pub fn wait(self) -> &'static str {
        match self {
            Self::Web => "time from a request to its answer",
            _ => "wait for the worst lock",
        }
    }

    /// Whether the guests want more CPU time than there is at any ratio from 1:1 on.
    #[must_use]
    pub fn saturates(self) -> bool {
        self != Self::Web
    }

    /// Simulated time of a run in milliseconds: all runs together take some 20 s on two cores.
    pub(super) fn milliseconds(self, all_vcpus: u32) -> u64 {
        let vcpu_seconds = match self {
            Self::Build => 72_000,
            Self::Database => 24_000,
            Self::Web => 48_000,
            Self::Locks => 7_200,
        };
        // Slices take up to 30 ms, so a run must have many of them for each vCPU.
        (vcpu_seconds / u64::from(all_vcpus.max(1))).clamp(400, 10_000)
    }

    /// The `[domain.workload]` tables of a guest with this many vCPUs.
    pub(super) fn tables(self, vcpus: u32) -> String {
        let each = 4 * vcpus;
        let lock = |name: &str, hold: &str, every: &str, irqs_off: bool| {
            format!(
                "\n[[domain.workload.locks]]\nname = \"{name}\"\nhold = \"{hold}\"\nevery = \"{every}\"\n\
                 irqs_off = {irqs_off}\n"
            )
        };
        match self {
            // The guest of experiment 2008-spinlocks, with units of a quarter of the size.
            Self::Build => {
                let head = format!(
                    "[domain.workload]\nkind = \"kernbench\"\njobs = {each}\nunits = 1000000\n\
                     user = \"17.35ms\"\nsystem = \"3.85ms\"\npipe_sleeps = 1\n"
                );
                head + &lock("zone_lock", "3us", "250us", true)
                    + &lock("lru_lock", "3us", "286us", true)
                    + &lock("dcache_lock", "3us", "667us", false)
                    + &lock("inode_lock", "3us", "1ms", false)
            }
            // As in experiment 2012-pv-ticketlocks: each transaction acquires each lock once.
            Self::Database => {
                let head =
                    format!("[domain.workload]\nkind = \"pgbench\"\nclients = {each}\nworkers = {vcpus}\n");
                head + &lock("buffer_lock", "1us", "40us", false) + &lock("net_lock", "1us", "40us", true)
            }
            Self::Web => (0..vcpus).fold(String::new(), |mut text, v| {
                // Writing to a String cannot fail.
                let _ = write!(
                    text,
                    "[[domain.workload]]\nkind = \"stream\"\nname = \"web{v}\"\nvcpus = [{v}]\nwindow = 4\n\
                     round_trip = \"2ms\"\ninterrupt = \"5us\"\nservice = \"200us\"\n\n"
                );
                text
            }),
            Self::Locks => "[domain.workload]\nkind = \"lock-loop\"\nsection = \"2us\"\noutside = \"20us\"\n".into(),
        }
    }

    /// Units of work of all guests in a simulated second.
    pub(super) fn rate(self, scenario: &Scenario, outcome: &Outcome) -> f64 {
        let tasks = || outcome.domains.iter().flat_map(|d| &d.tasks);
        let units: u64 = match self {
            Self::Database => tasks().map(|t| t.items).sum(),
            Self::Web => tasks().filter_map(|t| t.latency).map(|l| l.answers).sum(),
            Self::Build | Self::Locks => locks(scenario, outcome).map(|l| l.acquisitions).sum(),
        };
        match outcome.counted() {
            Picos::ZERO => 0.0,
            time => units as f64 / time.seconds(),
        }
    }

    /// The waits that 99 % and 99.9 % did not exceed, in microseconds.
    pub(super) fn waits(self, scenario: &Scenario, outcome: &Outcome) -> [f64; 2] {
        let worst = |all: &mut dyn Iterator<Item = [Picos; 2]>| {
            all.fold([Picos::ZERO; 2], |[a, b], [p99, p999]| [a.max(p99), b.max(p999)])
        };
        let waits = match self {
            Self::Web => {
                let tasks = outcome.domains.iter().flat_map(|d| &d.tasks);
                worst(&mut tasks.filter_map(|t| t.latency).map(|l| [l.p99, l.p999]))
            }
            _ => worst(&mut locks(scenario, outcome).map(|l| [l.wait_p99, l.wait_p999])),
        };
        waits.map(|wait| wait.ratio(US))
    }
}

/// The locks of the work; the guest kernel's own locks follow them.
fn locks<'a>(
    scenario: &'a Scenario,
    outcome: &'a Outcome,
) -> impl Iterator<Item = &'a overspin_scenario::LockOutcome> {
    let own = |domain| catalog::names().locks_of(domain).len();
    outcome
        .domains
        .iter()
        .zip(&scenario.domains)
        .flat_map(move |(of, domain)| of.locks.iter().take(own(domain)))
}
