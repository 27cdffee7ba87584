//! What a recording and a run of its scenario are compared by.

use overspin_host::{Interest, Moment, Observer, Timed, VcpuState};
use overspin_scenario::{Outcome, Picos};

/// Figures of a recording, or of a run. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceFigures {
    /// From the first event to the last.
    pub elapsed: u64,
    /// CPUs.
    pub cpus: usize,
    /// Switches from one task to another, or to and from the idle task.
    pub switches: u64,
    /// Times from when tasks could run until they ran.
    pub delays: Delays,
    /// CPU time of each task.
    pub ran: Vec<u64>,
    /// The same tasks one by one, of a recording.
    pub tasks: Vec<TaskFigures>,
    /// CPU time by the kernel's own account, which leaves out interrupts; 0 if the recording does not have it.
    pub accounted: u64,
}

impl TraceFigures {
    /// CPU time of all tasks.
    #[must_use]
    pub fn all_ran(&self) -> u64 {
        self.ran.iter().fold(0, |sum, ran| sum.saturating_add(*ran))
    }

    /// Switches in a second.
    #[must_use]
    pub fn switch_rate(&self) -> f64 {
        self.switches as f64 / (self.elapsed.max(1) as f64 / 1e9)
    }
}

/// Figures of one task, or of several. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFigures {
    /// The name.
    pub name: String,
    /// CPU time.
    pub ran: u64,
    /// Times when it ran after it had waited for a CPU.
    pub dispatches: u64,
    /// All these waits together.
    pub delay: u64,
    /// The longest of them.
    pub longest: u64,
}

/// Scheduling delays in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// After a wake-up.
    pub woken: Vec<u64>,
    /// After a preemption.
    pub preempted: Vec<u64>,
}

impl Delays {
    pub(super) fn add(&mut self, delay: u64, woken: bool) {
        if woken { &mut self.woken } else { &mut self.preempted }.push(delay);
    }

    /// This percentile of the delays after wake-ups, and of those after preemptions too if `all`; `None` if there
    /// are none. It is the smallest delay that so many of a hundred do not exceed.
    #[must_use]
    pub fn percentile(&self, percent: u64, all: bool) -> Option<u64> {
        let preempted = if all { &self.preempted[..] } else { &[] };
        of_thousand(&self.woken, preempted, percent * 10)
    }

    /// The smallest delay that so many of a thousand do not exceed; `None` without any.
    #[must_use]
    pub fn per_mille(&self, thousandths: u64) -> Option<u64> {
        of_thousand(&self.woken, &self.preempted, thousandths)
    }
}

fn of_thousand(some: &[u64], others: &[u64], thousandths: u64) -> Option<u64> {
    let mut delays = [some, others].concat();
    delays.sort_unstable();
    let rank = (delays.len() as u64 * thousandths).div_ceil(1_000).max(1) as usize;
    delays.get(rank - 1).copied()
}

/// Watches a run of the scenario, in which each task has a vCPU of its own.
#[derive(Debug, Default)]
pub struct Watch {
    measured: TraceFigures,
    /// Since when each vCPU wants to run.
    vcpus: Vec<At>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum At {
    /// Running, asleep or not known yet.
    #[default]
    Elsewhere,
    Ready {
        since: Picos,
        woken: bool,
    },
}

impl Watch {
    /// The figures of the run, on so many CPUs.
    #[must_use]
    pub fn finish(self, outcome: &Outcome, cpus: usize) -> TraceFigures {
        let mut measured = self.measured;
        // A world that does not know when a task was woken takes the moment when it ran.
        if measured.delays.woken.iter().all(|delay| *delay == 0) {
            measured.delays = Delays::default();
        }
        let vcpus = outcome.domains.iter().flat_map(|domain| &domain.vcpus);
        measured.ran = vcpus.map(|vcpu| ns(vcpu.running)).collect();
        (measured.elapsed, measured.cpus) = (ns(outcome.counted()), cpus);
        measured
    }

    fn at(&mut self, vcpu: u32) -> &mut At {
        let vcpu = vcpu as usize;
        if self.vcpus.len() <= vcpu {
            self.vcpus.resize(vcpu + 1, At::Elsewhere);
        }
        &mut self.vcpus[vcpu]
    }
}

fn ns(time: Picos) -> u64 {
    time.0 / 1_000
}

impl Observer for Watch {
    fn interest(&self) -> Interest {
        Interest::SCHEDULING
    }

    fn observe(&mut self, moments: &[Timed]) {
        for Timed { at: now, moment } in moments {
            let now = *now;
            match *moment {
                Moment::Switch { prev, prev_state, next, .. } => {
                    self.measured.switches += 1;
                    if let Some(prev) = prev {
                        *self.at(prev) = match prev_state {
                            VcpuState::Runnable => At::Ready { since: now, woken: false },
                            _ => At::Elsewhere,
                        };
                    }
                    if let Some(next) = next {
                        let was = std::mem::take(self.at(next));
                        if let At::Ready { since, woken } = was {
                            self.measured.delays.add(ns(now - since), woken);
                        }
                    }
                }
                Moment::Wake { vcpu, runnable: true, .. } => {
                    *self.at(vcpu) = At::Ready { since: now, woken: true };
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::US;

    #[test]
    fn percentiles_are_ranks() {
        let delays = Delays { woken: (1..=10).collect(), preempted: vec![1000; 10] };
        let of = |percent, all| delays.percentile(percent, all).unwrap();
        assert_eq!((of(50, false), of(90, false), of(99, false)), (5, 9, 10));
        assert_eq!((of(50, true), of(51, true)), (10, 1000));
        assert_eq!(Delays::default().percentile(50, true), None);
    }

    #[test]
    fn a_run_is_watched_from_wake_up_to_sleep() {
        let mut watch = Watch::default();
        let switch = |at: u64, prev: Option<u32>, prev_state, next: Option<u32>| Timed {
            at: at * US,
            moment: Moment::Switch { pcpu: 0, prev, prev_state, why: None, next },
        };
        let wake = |at: u64, vcpu| Timed {
            at: at * US,
            moment: Moment::Wake { vcpu, pcpu: None, runnable: true },
        };
        let (ready, asleep) = (VcpuState::Runnable, VcpuState::Blocked);
        watch.observe(&[
            wake(1, 0),
            switch(3, None, asleep, Some(0)),
            wake(5, 1),
            switch(9, Some(0), ready, Some(1)),
            switch(11, Some(1), asleep, Some(0)),
        ]);
        // vCPU 0 waits for 2 us after its wake-up and for 2 us after its preemption, vCPU 1 for 4 us.
        let seen = &watch.measured;
        assert_eq!(seen.delays, Delays { woken: vec![2_000, 4_000], preempted: vec![2_000] });
        assert_eq!(seen.switches, 3);
    }
}
