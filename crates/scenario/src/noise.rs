//! What else a host does: threads of its own, or a control domain, that wake at random for a moment.

use crate::{MS, Picos, US};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Threads of the host that wake at random, work for a moment and sleep again. The host's scheduler
/// schedules them as it does vCPUs: a thread that wakes preempts a guest, takes its turn, or waits, by
/// the scheduler's own rules.
///
/// A host without any is a special case: equal guests that begin together stay in step for ever, and
/// rare accidents last, since nothing ever disturbs them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noise {
    /// Where the threads may run.
    pub placement: NoisePlacement,
    /// Mean time that a thread sleeps (exponential).
    pub every: Picos,
    /// Mean CPU time of a thread each time that it wakes (exponential).
    pub length: Picos,
    /// Threads of each pool, for [`NoisePlacement::Anywhere`]; 0 is as many as there are pCPUs.
    pub vcpus: u32,
    /// Only on these pCPUs; on all if empty.
    pub cpus: Vec<u32>,
    /// Scheduler weight.
    pub weight: u32,
}

/// Where the threads of a host's noise may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoisePlacement {
    /// One on each pCPU, and only there, as a kernel's threads for each CPU. Each is a domain of its own
    /// to the scheduler.
    PerCpu,
    /// On all pCPUs of a pool, as the vCPUs of a control domain. They are one domain to the scheduler.
    Anywhere,
}

impl Default for Noise {
    /// As `overspin measure noise` found it in three runs on a quiet machine (`docs/measure.md`); their
    /// histograms are in `data/`.
    fn default() -> Self {
        Self {
            placement: NoisePlacement::PerCpu,
            every: 59 * MS,
            length: 350 * US,
            vcpus: 0,
            cpus: Vec::new(),
            weight: 256,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NS;

    /// The default is the mean of the committed histograms, to two digits, and not a figure of anybody's.
    #[test]
    fn the_default_is_what_was_measured() {
        let runs = [
            include_str!("../data/noise-1.csv"),
            include_str!("../data/noise-2.csv"),
            include_str!("../data/noise-3.csv"),
        ];
        let (mut gaps, mut inside_ns, mut watched_ns) = (0, 0, 0);
        for run in runs {
            let mut cpu = "";
            for line in run.lines().skip(1) {
                let field: Vec<&str> = line.split(',').collect();
                let number = |i: usize| field[i].parse::<u64>().unwrap();
                if field[1] == "thread" {
                    gaps += number(4);
                    inside_ns += number(5);
                }
                if cpu != field[0] {
                    cpu = field[0];
                    watched_ns += number(6);
                }
            }
        }
        let Noise { every, length, .. } = Noise::default();
        let mean = |total_ns: u64, step: Picos| {
            (total_ns as f64 * NS as f64 / gaps as f64 / step as f64).round() as Picos * step
        };
        assert_eq!(gaps, 11_988);
        assert_eq!(every, mean(watched_ns - inside_ns, MS));
        assert_eq!(length, mean(inside_ns, 10 * US));
    }
}
