//! The part of a run that counts: what comes after its warm-up, and whether that was steady.

use crate::{
    DiskOutcome, DomainOutcome, ExcursionOutcome, ExtensionOutcome, FoldingOutcome, LatencyOutcome,
    LineOutcome, LockOutcome, NoiseOutcome, Outcome, PcpuOutcome, Picos, ShootdownOutcome,
    TaskOutcome, ThrottlingOutcome, VcpuOutcome, WindowOutcome,
};
use alloc::string::String;
use alloc::vec::Vec;

/// The two halves of the part of a run that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Halves {
    /// Items in the first half, and in the second.
    pub items: [f64; 2],
    /// Seconds of a half.
    pub seconds: f64,
}

impl Halves {
    /// Halves that differ by more than this part of the larger one are not those of a steady run, unless they have so few
    /// items that chance makes such a difference.
    pub const MOST: f64 = 0.2;
    /// How many standard deviations a difference by chance has at most, if items come independently of each other.
    const CHANCE: f64 = 3.0;

    /// Whether both halves tell the same. If they do not, the rate of the run depends on its length: it is no property of
    /// what was run.
    #[must_use]
    pub fn are_alike(self) -> bool {
        let [first, second] = self.items;
        let difference = (first - second).abs();
        difference <= Self::MOST * first.max(second)
            || difference * difference <= Self::CHANCE * Self::CHANCE * (first + second)
    }
}

impl Outcome {
    /// The time that counts: from the end of the warm-up to the end of the run.
    #[must_use]
    pub fn counted(&self) -> Picos {
        self.elapsed.saturating_sub(self.warmup)
    }

    /// The time that counts in the life of a domain: it begins when the domain starts, at the earliest at the end of the
    /// warm-up, and ends when the domain finishes, at the latest at the end of the run.
    #[must_use]
    pub fn lifetime(&self, of: &DomainOutcome) -> Picos {
        of.finished.unwrap_or(self.elapsed).saturating_sub(of.started.max(self.warmup))
    }

    /// The items of a domain in the two halves of the time that counts. `None` if its work has an end, so that its
    /// rate may change on the way, or if the run is too short to tell.
    #[must_use]
    pub fn halves(&self, of: &DomainOutcome) -> Option<Halves> {
        if of.finished.is_some() || of.tasks.iter().any(|t| t.ended.is_some()) {
            return None;
        }
        let begin = of.started.max(self.warmup);
        let half = self.elapsed.saturating_sub(begin) / 2;
        let middle = begin + half;
        let at = |time| of.done_by(time, self.progress_step);
        let (begin, middle, end) = (at(begin)?, at(middle)?, at(self.elapsed)?);
        (half >= self.progress_step * 4 && end > begin)
            .then(|| Halves { items: [middle - begin, end - middle], seconds: half.seconds() })
    }

    /// The names of the domains that were not steady.
    #[must_use]
    pub fn unsteady(&self) -> Vec<String> {
        let of = |d: &&DomainOutcome| self.halves(d).is_some_and(|halves| !halves.are_alike());
        self.domains.iter().filter(of).map(|d| d.name.clone()).collect()
    }

    /// The items of a domain for each second, in each step from the start of the run.
    #[must_use]
    pub fn rates(&self, of: &DomainOutcome) -> Vec<f64> {
        let before = core::iter::once(0).chain(of.progress.iter().copied());
        let steps = of.progress.iter().zip(before);
        let rate = |(now, then): (&u64, u64)| (now - then) as f64 / self.progress_step.seconds();
        steps.map(rate).collect()
    }

    /// What happened after the end of the warm-up, of which `before` is the outcome up to then: every count and every time
    /// is less by what it was. Longest times and quantiles are left as they are: what counts them must begin anew
    /// there. So are reports of workers and lines of `vmstat`, which have their own times.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        self.warmup = before.elapsed;
        self.pcpus.less(&before.pcpus);
        self.domains.less(&before.domains);
        self.noise.less(&before.noise);
        self
    }
}

impl DomainOutcome {
    /// Items by a time, between two steps in proportion.
    fn done_by(&self, at: Picos, step: Picos) -> Option<f64> {
        if step == Picos::ZERO || self.progress.is_empty() {
            return None;
        }
        let items = |steps: u64| match steps {
            0 => Some(0.0),
            n => self.progress.get(n as usize - 1).map(|items| *items as f64),
        };
        let steps = at.0 / step.0;
        let part = (at.0 % step.0) as f64 / step.0 as f64;
        let before = items(steps)?;
        // The run may have ended within a step: there the last whole step stands for the rest.
        let after = items(steps + 1)
            .unwrap_or_else(|| 2.0 * before - items(steps.saturating_sub(1)).unwrap_or(0.0));
        Some(before + part * (after - before))
    }
}

/// What is less by what it was earlier.
trait Less {
    fn less(&mut self, before: &Self);
}

/// A real machine may count backwards.
impl Less for u64 {
    fn less(&mut self, before: &Self) {
        *self = self.saturating_sub(*before);
    }
}

impl Less for Picos {
    fn less(&mut self, before: &Self) {
        *self = self.saturating_sub(*before);
    }
}

/// What is new at the end has no earlier value.
impl<T: Less> Less for Vec<T> {
    fn less(&mut self, before: &Self) {
        self.iter_mut().zip(before).for_each(|(now, then)| now.less(then));
    }
}

impl<T: Less> Less for Option<T> {
    fn less(&mut self, before: &Self) {
        if let (Some(now), Some(then)) = (self, before) {
            now.less(then);
        }
    }
}

/// Structures, with their fields that are counts, sums of times, or such structures.
macro_rules! less {
    ($($name:ident { $($field:ident)* })*) => {
        $(impl Less for $name {
            fn less(&mut self, before: &Self) {
                $(self.$field.less(&before.$field);)*
            }
        })*
    };
}

less! {
    PcpuOutcome { busy switching idle switches }
    NoiseOutcome { running runnable wakes }
    DomainOutcome { vcpus locks tasks lines disk shootdowns extensions excursions throttling folding }
    VcpuOutcome {
        running runnable blocked offline spinning waiting dispatches migrations ticks spin_exits exiting interrupted
        directed_yields polling windows
    }
    WindowOutcome { offered used expired left refused time }
    LockOutcome { acquisitions contended wait_total hold_total slow_paths kicks holder_preempted }
    TaskOutcome { cpu user_ticks system_ticks sleeps preemptions items latency }
    LatencyOutcome { answers total }
    LineOutcome { accesses misses lost stalled }
    DiskOutcome { pages requests seeks busy }
    ThrottlingOutcome { periods throttled time }
    ShootdownOutcome { shootdowns interrupts skipped waited preempted }
    ExcursionOutcome { number preempted }
    ExtensionOutcome { granted yielded aborted expired revoked }
    FoldingOutcome { samples steal narrowed widened pushed preferred }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ending, MS};
    use std::vec;
    use std::vec::Vec;

    /// A run of one domain with these items at the end of each ms.
    fn of(progress: Vec<u64>, warmup: Picos, elapsed: Picos) -> Outcome {
        let domain = DomainOutcome { name: "guest".into(), progress, ..DomainOutcome::default() };
        Outcome {
            seed: 1,
            ending: Ending::Limit,
            elapsed,
            warmup,
            progress_step: MS,
            events: 0,
            run_ahead: 0,
            trace_hash: 0,
            pcpus: Vec::new(),
            domains: vec![domain],
            changes: Vec::new(),
            worst_waits: Vec::new(),
            noise: None,
            measurement: None,
        }
    }

    fn halves(progress: Vec<u64>, warmup: Picos, elapsed: Picos) -> Option<Halves> {
        let run = of(progress, warmup, elapsed);
        run.halves(&run.domains[0])
    }

    #[test]
    fn a_collapse_is_not_steady_and_its_warm_up_hides_it() {
        // 1000 items in each of the first 4 ms, 1 afterwards.
        let collapse: Vec<u64> = (1..=20).map(|ms| 1000 * ms.min(4) + ms).collect();
        let whole = halves(collapse.clone(), Picos::ZERO, 20 * MS).unwrap();
        assert_eq!((whole.items, whole.seconds), ([4010.0, 10.0], 0.01));
        assert!(!whole.are_alike());
        let later = halves(collapse.clone(), 4 * MS, 20 * MS).unwrap();
        assert_eq!(later.items, [8.0, 8.0]);
        assert!(later.are_alike());
        let run = of(collapse, Picos::ZERO, 20 * MS);
        assert_eq!((run.unsteady(), run.counted()), (vec!["guest".into()], 20 * MS));
        assert_eq!(run.rates(&run.domains[0])[3..5], [1_001_000.0, 1_000.0]);
    }

    #[test]
    fn a_half_may_end_within_a_step_and_the_run_within_another() {
        // 100 items in each ms: a run of 9.5 ms that counts from 0.5 ms on has halves of 4.5 ms.
        let even: Vec<u64> = (1..=9).map(|ms| 100 * ms).collect();
        let both = halves(even, MS / 2, 9 * MS + MS / 2).unwrap();
        assert!(both.items.iter().all(|items| (items - 450.0).abs() < 1e-6), "{both:?}");
    }

    #[test]
    fn little_is_said_of_few_items_and_nothing_of_work_that_ends() {
        // 60 and 40 items: 20 is two standard deviations of 100.
        let alike = |items| Halves { items, seconds: 1.0 }.are_alike();
        assert!(alike([60.0, 40.0]) && !alike([600.0, 400.0]) && alike([600.0, 481.0]));
        assert_eq!(halves((1..=3).collect(), Picos::ZERO, 3 * MS), None, "too short");
        assert_eq!(halves(vec![0; 20], Picos::ZERO, 20 * MS), None, "no items at all");
        let mut run = of((1..=20).collect(), Picos::ZERO, 20 * MS);
        run.domains[0].finished = Some(19 * MS);
        assert_eq!(run.halves(&run.domains[0]), None);
    }
}
