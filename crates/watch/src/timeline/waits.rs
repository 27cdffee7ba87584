//! Counts the waits for each lock by their length, for the histograms of a report page.

use overspin_histogram::{Histogram, upper_end};
use overspin_host::{Interest, LockEvent, Moment, Observer, Timed};
use overspin_scenario::{NS, Picos, Scenario};
use std::collections::BTreeMap;

/// Bars for each factor of ten.
const BARS: f64 = 5.0;

/// Number of waits by length, as they are drawn. Bar `i` holds the waits from 10^(i/5) ns up to 10^((i+1)/5) ns; the first one
/// holds shorter waits, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bars {
    /// Waits in each bar, up to the last bar that is not empty.
    pub counts: Vec<u64>,
}

impl Bars {
    /// The bars of a histogram. All waits of a bucket count as the longest of it, as they do for a quantile.
    #[must_use]
    pub fn of(waits: &Histogram) -> Self {
        let mut counts = Vec::new();
        for (bucket, count) in waits.buckets() {
            let bar = ((upper_end(bucket).max(1) as f64).log10() * BARS) as usize;
            if bar >= counts.len() {
                counts.resize(bar + 1, 0);
            }
            counts[bar] += count;
        }
        Self { counts }
    }

    /// Where bar `i` begins, in nanoseconds.
    #[must_use]
    pub fn from_ns(i: usize) -> f64 {
        10_f64.powf(i as f64 / BARS)
    }
}

/// An observer that counts the waits of a run: those that ended with the lock.
#[derive(Debug)]
pub struct WaitLengths {
    domains: Vec<u32>,
    /// The beginning of each wait that goes on, by vCPU and lock.
    open: BTreeMap<(u32, u32), Picos>,
    /// The same of tasks that wait for a lock of user mode, by domain, task and lock.
    open_of_tasks: BTreeMap<(u32, u32, u32), Picos>,
    /// By domain and by number of the lock in it.
    by_lock: BTreeMap<(u32, u32), Histogram>,
}

impl WaitLengths {
    /// For a run of `scenario`.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let sizes = scenario.domain_sizes();
        let of = |(domain, vcpus): (u32, &u32)| std::iter::repeat_n(domain, *vcpus as usize);
        Self {
            domains: (0..).zip(&sizes).flat_map(of).collect(),
            open: BTreeMap::new(),
            open_of_tasks: BTreeMap::new(),
            by_lock: BTreeMap::new(),
        }
    }

    /// The waits for a lock of a domain, by their indices; `None` if no vCPU waited for it.
    #[must_use]
    pub fn of(&self, domain: usize, lock: usize) -> Option<&Histogram> {
        self.by_lock.get(&(u32::try_from(domain).ok()?, u32::try_from(lock).ok()?))
    }
}

impl Observer for WaitLengths {
    fn interest(&self) -> Interest {
        Interest::WAITS
    }

    fn observe(&mut self, moments: &[Timed]) {
        for Timed { at, moment } in moments {
            match *moment {
                Moment::LockWait { vcpu, lock, .. } => {
                    self.open.insert((vcpu, lock), *at);
                }
                Moment::LockAcquired { vcpu, lock, contended: true } => {
                    if let Some(since) = self.open.remove(&(vcpu, lock)) {
                        let domain = self.domains[vcpu as usize];
                        self.by_lock.entry((domain, lock)).or_default().record((*at - since) / NS);
                    }
                }
                Moment::TaskLock { domain, task, lock, what } => {
                    let (domain, key) = (domain.into(), (domain.into(), task, lock));
                    match what {
                        LockEvent::Waits { .. } => _ = self.open_of_tasks.insert(key, *at),
                        LockEvent::Acquired { .. } => {
                            if let Some(since) = self.open_of_tasks.remove(&key) {
                                let waits = self.by_lock.entry((domain, lock)).or_default();
                                waits.record((*at - since) / NS);
                            }
                        }
                        _ => {}
                    }
                }
                Moment::Counts => self.by_lock.clear(),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_falls_into_the_bar_that_begins_below_it() {
        let mut waits = Histogram::default();
        [0, 1, 2, 999, 1000, 1_000_000].into_iter().for_each(|ns| waits.record(ns));
        let counts = Bars::of(&waits).counts;
        // 1000 ns is 10^(15/5): the first of its bar. 999 ns is in the bar before it.
        let full: Vec<usize> = (0..counts.len()).filter(|i| counts[*i] > 0).collect();
        assert_eq!((full, counts[0]), (vec![0, 1, 14, 15, 30], 2));
        assert!((Bars::from_ns(15) - 1000.0).abs() < 1e-9);
    }
}
