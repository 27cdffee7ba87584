//! The governor of stolen time (preferred CPUs, in Linux's scheduler tree since September 2026, expected in 7.4): a guest that
//! waits for pCPUs folds its tasks onto fewer vCPUs.
//!
//! A vCPU's steal clock is the time for which it wanted a pCPU and had none, as KVM's `MSR_KVM_STEAL_TIME` says it. Once in a
//! period the kernel sums up these clocks. The ratio is the stolen time over the time of *all* vCPUs, preferred or not:
//!
//! | ratio | preferred vCPUs | then |
//! |---|---|---|
//! | above `high` | more than one core | the last core is no longer preferred |
//! | above `high` | one core | nothing changes |
//! | above `low`, at most `high` | any | nothing changes |
//! | at most `low` | not all | one more core is preferred |
//! | at most `low` | all | nothing changes |
//!
//! All tasks here are of the fair class. They obey so:
//!
//! | a vCPU | its tasks | new and woken tasks | an idle vCPU that looks for tasks |
//! |---|---|---|---|
//! | preferred | stay | come | takes them from preferred vCPUs only |
//! | not preferred | the running one leaves at the next tick | go to the preferred vCPU with the fewest tasks | takes none |
//!
//! A task whose own affinity (`vcpus` of its workload) has no preferred vCPU is not concerned, wherever it runs. One whose
//! affinity has some uses only those.
//!
//! A tick that finds a task where it should not be wakes the stopper of that vCPU, which moves the task. The idle loop stands
//! for the stopper, as it stands for the migration thread (`process.rs`): two task switches and both run queues' locks.
//! Waiting tasks follow one at a time, as each becomes the running one. Nobody moves tasks between two busy vCPUs, with or
//! without the governor.
//!
//! # What is not modelled
//! In Linux a kernel thread samples, here the timer interrupt of vCPU 0 does, for the time of a tick. Linux updates the clock
//! of a vCPU that waits when it runs again; here the clock includes the wait that goes on. Classes other than the fair one,
//! housekeeping CPUs, and a governor that is switched off later do not exist. The ratio's denominator in Linux is not known
//! to us; over preferred vCPUs only, the limits would be reached at less stolen time.

use super::runqueue::Resched;
use super::{Guest, TaskRef};
use crate::engine::Engine;
use crate::vcpu::Vcpu;
use overspin_host::picos;
use overspin_scenario::{Domain, FoldingOutcome, Picos, StealGovernor};
use std::cell::Cell;

/// The preferred vCPUs of a guest, and how they came to be.
#[derive(Debug)]
pub(super) struct Folding {
    of: StealGovernor,
    vcpus: u32,
    /// The first so many are preferred.
    preferred: Cell<u32>,
    /// Since when.
    since: Cell<Picos>,
    /// When it looked last, and the sum of the steal clocks then.
    looked: Cell<(Picos, Picos)>,
    /// When it looks next.
    next: Cell<Picos>,
    counts: Cell<FoldingOutcome>,
}

impl Folding {
    /// Of a kernel that has a governor.
    pub(super) fn of(domain: &Domain) -> Option<Self> {
        domain.kernel.steal_governor.as_ref().map(|of| Self {
            of: of.clone(),
            vcpus: domain.vcpus,
            preferred: Cell::new(domain.vcpus),
            since: Cell::default(),
            looked: Cell::default(),
            next: Cell::new(of.period),
            counts: Cell::default(),
        })
    }

    fn count(&self, what: impl FnOnce(&mut FoldingOutcome)) {
        let mut counts = self.counts.get();
        what(&mut counts);
        self.counts.set(counts);
    }

    /// How many vCPUs are preferred from now on, after `stolen` was stolen in `time`.
    fn decide(&self, stolen: Picos, time: Picos) -> u32 {
        let StealGovernor { high_permille, low_permille, core, .. } = self.of;
        let preferred = self.preferred.get();
        // stolen / (time x vCPUs) against a limit in thousandths, without a division.
        let stolen = u128::from(stolen.0) * 1000;
        let limit =
            |permille: u32| u128::from(time.0) * u128::from(self.vcpus) * u128::from(permille);
        if stolen > limit(high_permille) {
            // The last core may have fewer vCPUs than the others.
            let fewer = (preferred - 1) / core * core;
            if fewer == 0 { preferred } else { fewer }
        } else if stolen <= limit(low_permille) {
            (preferred / core * core + core).min(self.vcpus)
        } else {
            preferred
        }
    }

    /// Looks at the steal clocks, whose sum is `clock` at `now`.
    fn look(&self, clock: Picos, now: Picos) {
        let (at, before) = self.looked.replace((now, clock));
        let stolen = clock.saturating_sub(before);
        let (had, has) = (self.preferred.get(), self.decide(stolen, now - at));
        self.count(|c| {
            c.samples += 1;
            c.steal += stolen;
            c.narrowed += u64::from(has < had);
            c.widened += u64::from(has > had);
            c.preferred += (now - self.since.replace(now)) * u64::from(had);
        });
        self.preferred.set(has);
        self.next.set(now + self.of.period);
    }
}

impl Guest {
    /// Whether all tasks may use this vCPU.
    pub(super) fn is_preferred(&self, vcpu: u32) -> bool {
        self.folding.as_ref().is_none_or(|f| vcpu < f.preferred.get())
    }

    /// Whether `task` should not be on this vCPU, which its own affinity allows.
    pub(super) fn avoids(&self, task: TaskRef, vcpu: u32) -> bool {
        !self.is_preferred(vcpu)
            && (task.vcpus.is_empty() || task.vcpus.iter().any(|v| self.is_preferred(*v)))
    }

    /// Whether a placement of `task` may choose this vCPU.
    pub(super) fn may_run(&self, task: TaskRef, vcpu: u32) -> bool {
        task.may_use(vcpu) && !self.avoids(task, vcpu)
    }

    /// When the timer of `v` must fire for the governor.
    pub(super) fn next_look(&self, v: &Vcpu) -> Picos {
        let looks = self.folding.as_ref().filter(|_| v.index == 0);
        looks.map_or(Picos::MAX, |f| f.next.get())
    }

    /// In the timer interrupt of the current vCPU: looks at the steal clocks if that is due.
    pub(super) fn govern(&self, engine: &Engine) {
        let v = engine.cpu();
        let Some(folding) = self.folding.as_ref().filter(|_| self.next_look(v) <= engine.now())
        else {
            return;
        };
        engine.burn(self.domain.kernel.tick_work);
        folding.look(self.steal_clock(engine), engine.now());
    }

    /// The time for which its vCPUs wanted a pCPU and had none.
    fn steal_clock(&self, engine: &Engine) -> Picos {
        let now = engine.nanos();
        let waited = |v| engine.look_at(v, |h, local| picos(h.run_times(local, now).runnable));
        (self.first..self.first + self.vcpus).map(waited).sum()
    }

    /// In a tick of `v`: has the stopper move the running task if that should not be here.
    pub(super) fn push_away(&self, engine: &Engine, v: &Vcpu, task: TaskRef) {
        let Some(folding) = self.folding.as_ref().filter(|_| self.avoids(task, v.index)) else {
            return;
        };
        let queue = self.queue(v);
        if queue.moving.get().is_none() {
            queue.moving.set(Some((task, self.idlest(engine, task))));
            queue.resched.set(Resched::Now);
            folding.count(|c| c.pushed += 1);
        }
    }

    /// What the governor did; `None` if there is none.
    pub(crate) fn folding_outcome(&self, now: Picos) -> Option<FoldingOutcome> {
        self.folding.as_ref().map(|f| {
            let mut counts = f.counts.get();
            counts.preferred += (now - f.since.get()) * u64::from(f.preferred.get());
            counts
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::{Kernel, MS, Workloads};

    fn folding(vcpus: u32, core: u32) -> Folding {
        let governor = StealGovernor { core, ..StealGovernor::default() };
        let kernel = Kernel { steal_governor: Some(governor), ..Kernel::default() };
        let domain = Domain { kernel, ..Domain::new("d", vcpus, "ticket", Workloads(Vec::new())) };
        Folding::of(&domain).expect("its kernel has one")
    }

    /// Feeds it periods of 1 s in which that part of the time of all vCPUs was stolen, and returns how many vCPUs are
    /// preferred after each.
    fn after(folding: &Folding, permille: &[u64]) -> Vec<u32> {
        let look = |part: &u64| {
            let (at, clock) = folding.looked.get();
            folding.look(clock + MS * *part * u64::from(folding.vcpus), at + 1000 * MS);
            folding.preferred.get()
        };
        permille.iter().map(look).collect()
    }

    #[test]
    fn a_ratio_above_high_removes_a_core_and_at_most_low_adds_one() {
        let f = folding(4, 1);
        // 5 % is not above 5 %, 2 % is at most 2 %, and what lies between changes nothing.
        assert_eq!(after(&f, &[50, 51, 750, 50, 21, 20, 0, 0]), [4, 3, 2, 2, 2, 3, 4, 4]);
        let counts = f.counts.get();
        assert_eq!((counts.samples, counts.narrowed, counts.widened), (8, 2, 2));
        assert_eq!(counts.steal, 4 * MS * (50 + 51 + 750 + 50 + 21 + 20));
        // Each period counts with what was preferred in it, before the look at its end.
        assert_eq!(counts.preferred, 1000 * MS * (4 + 4 + 3 + 2 + 2 + 2 + 3 + 4));
    }

    #[test]
    fn one_core_always_stays() {
        assert_eq!(after(&folding(3, 1), &[1000; 5]), [2, 1, 1, 1, 1]);
        assert_eq!(after(&folding(8, 4), &[1000; 3]), [4, 4, 4]);
        assert_eq!(after(&folding(2, 8), &[1000, 0]), [2, 2], "all its vCPUs are one core");
    }

    #[test]
    fn siblings_come_and_go_together() {
        // The last of three cores has two vCPUs only.
        assert_eq!(after(&folding(10, 4), &[90, 90, 0, 0]), [8, 4, 8, 10]);
    }

    #[test]
    fn a_late_look_counts_all_the_time() {
        let f = folding(4, 1);
        // 0.3 s of four vCPUs, stolen in 2 s instead of 1 s, are 3.75 %, not 7.5 %.
        f.look(300 * MS, 2000 * MS);
        assert_eq!(f.preferred.get(), 4);
        assert_eq!(f.next.get(), 3000 * MS);
    }
}
