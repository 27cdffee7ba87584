//! How short of CPU time this machine is now, as its kernel tells.

use crate::watch::{Guests, throttling_within};
use overspin_report::two_digits;
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long counters without a history are watched.
const WATCHED: Duration = Duration::from_secs(2);

/// What was seen, and what this kernel does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pressure {
    /// In sentences.
    pub seen: Vec<String>,
    /// What could not be read, in words.
    pub lacks: Vec<String>,
}

/// Counters that grow.
#[derive(Clone, Copy, Default)]
struct Counters {
    /// Periods in which a control group used up its quota, and all.
    throttled: Option<[u64; 2]>,
    /// Yields to another vCPU that pause-loop exits caused.
    yields: Option<u64>,
}

/// Looks at this machine for two seconds.
#[must_use]
pub fn pressure(root: &Path) -> Pressure {
    let before = Counters::read(root);
    let second = overspin_real::seconds::watched(WATCHED);
    let after = Counters::read(root);
    let minute = read(root, "proc/pressure/cpu").as_deref().and_then(last_minute);
    let mut pressure = Pressure::default();
    let mut tell = |what: &str, words: Option<String>| match words {
        Some(words) => pressure.seen.push(words),
        None => pressure.lacks.push(what.into()),
    };
    let seconds = WATCHED.as_secs();
    tell(
        "the pressure on CPUs (/proc/pressure/cpu)",
        minute.map(|p| {
            format!("some task waited for a CPU in {} % of the last minute", two_digits(p))
        }),
    );
    tell(
        "steal (/proc/stat)",
        second.shares.map(|s| {
            format!("{} % of the CPU time was stolen in the last {seconds} s", two_digits(s.steal))
        }),
    );
    tell(
        "throttling (nr_throttled of control groups)",
        before.throttled.zip(after.throttled).map(|([hit, all], [hits, periods])| {
            let (hit, all) = (hits.saturating_sub(hit), periods.saturating_sub(all));
            format!("control groups were throttled in {hit} of their {all} periods")
        }),
    );
    tell(
        "pause-loop exits (KVM's counters in debugfs)",
        before.yields.zip(after.yields).map(|(before, after)| {
            let rate = after.saturating_sub(before) as f64 / WATCHED.as_secs_f64();
            format!("vCPUs that spun yielded {} times a second", two_digits(rate))
        }),
    );
    pressure
}

impl Pressure {
    /// In a paragraph.
    #[must_use]
    pub fn words(&self) -> String {
        let seen = match self.seen.is_empty() {
            true => String::new(),
            false => format!("This machine now: {}.", self.seen.join("; ")),
        };
        let lacks = match self.lacks.is_empty() {
            true => String::new(),
            false => format!(" Not readable here: {}.", self.lacks.join(", ")),
        };
        format!("{seen}{lacks}").trim().to_owned()
    }
}

fn read(root: &Path, file: &str) -> Option<String> {
    fs::read_to_string(root.join(file)).ok()
}

/// `some avg10=0.00 avg60=1.23 avg300=0.50 total=123`
fn last_minute(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some"))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("avg60="))?.parse().ok()
}

impl Counters {
    fn read(root: &Path) -> Self {
        Self {
            throttled: throttling_within(&root.join("sys/fs/cgroup"))
                .map(|all| [all.throttled, all.periods]),
            yields: Guests::read(root).ok().map(|guests| guests.yields),
        }
    }
}
