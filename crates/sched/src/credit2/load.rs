//! Load averages: how much each vCPU and each runqueue wanted to run recently, in fixed point.
//!
//! One always-runnable vCPU counts 2^P (P is the precision). Time is counted in units of 1.024 us,
//! and the window is 2^W units. An average moves towards the present load by the part of a window
//! that has passed. A runqueue has a second average, its *forecast*. It changes by the load of a
//! vCPU as soon as that vCPU comes or goes, so that moves are judged by their future effect.
//! Source: schedulers specification §4.7.

use super::Credit2;
use crate::ids::VcpuId;
use crate::machine::Machine;
use crate::time::Nanos;

/// Granularity of load time: 2^10 ns.
const GRANULARITY: u32 = 10;

/// How load is averaged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// W: log2 of its length in units of 1.024 us; at most 24, so that products fit.
    pub shift: u32,
    /// P: log2 of the load of one runnable vCPU; at most 23.
    pub precision: u32,
    /// Before Xen 4.8: the new average is rounded down; since then, what the old one loses is.
    pub early: bool,
}

impl Window {
    pub(super) fn units(now: Nanos) -> i64 {
        now.0 >> GRANULARITY
    }

    /// The load of a vCPU that is runnable half of the time: the guess for a new one.
    pub(super) fn half(self) -> i64 {
        1 << (self.precision - 1)
    }

    /// The average at `at`, if it was `average` at `last` and `load` vCPUs were runnable since.
    pub(super) fn average(self, average: i64, load: i64, last: i64, at: i64) -> i64 {
        let full = load << self.precision;
        if last + (1 << self.shift) < at {
            return full;
        }
        let passed = (at - last).max(0);
        if self.early {
            return (passed * full + ((1 << self.shift) - passed) * average) >> self.shift;
        }
        average + ((passed * full) >> self.shift) - ((passed * average) >> self.shift)
    }
}

/// The load of a runqueue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// vCPUs that are queued, on a pCPU, or leaving one.
    pub count: i64,
    pub average: i64,
    pub forecast: i64,
    last: i64,
}

impl Load {
    /// Brings the averages up to date, then changes the number of vCPUs.
    pub(super) fn update(&mut self, window: Window, now: Nanos, change: i64) {
        let at = Window::units(now);
        self.average = window.average(self.average, self.count, self.last, at);
        self.forecast = window.average(self.forecast, self.count, self.last, at);
        self.count += change;
        self.last = at;
    }
}

impl Credit2 {
    /// Adds `change`, for `v`, to the number of vCPUs of runqueue `q`, and updates the load of `v`.
    pub(super) fn update_load(
        &mut self,
        machine: &Machine,
        now: Nanos,
        q: usize,
        v: VcpuId,
        change: i64,
    ) {
        self.queues[q].load.update(self.params.window, now, change);
        // The load of `v` until now.
        let load = match change {
            -1 => 1,
            1 => 0,
            _ => i64::from(machine.is_runnable(v)),
        };
        self.update_vcpu_load(now, v, load);
    }

    /// Brings the average of `v` up to date. `load` is 1 if it was runnable since the last time,
    /// else 0.
    pub(super) fn update_vcpu_load(&mut self, now: Nanos, v: VcpuId, load: i64) {
        let at = Window::units(now);
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.average = self.params.window.average(vcpu.average, load, vcpu.average_at, at);
        vcpu.average_at = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credit2::bench::Bench;
    use crate::credit2::profile::{TODAY_PROFILE, Y2016_PROFILE};
    use crate::{Affinity, PcpuId, Scheduler, Topology};

    /// Example D5: half a window on a pCPU, then half a window idle.
    #[test]
    fn d5_an_average_moves_towards_the_present_load() {
        let window = Window { shift: 20, precision: 18, early: false };
        let half = 1 << 19;
        assert_eq!(window.half(), 131_072);
        let ran = window.average(131_072, 1, 0, half);
        assert_eq!(ran, 196_608, "75 %");
        assert_eq!(window.average(ran, 0, half, 2 * half), 98_304, "37.5 %");
        assert_eq!(
            window.average(ran, 1, half, 4 * half),
            1 << 18,
            "a window or more is forgotten"
        );
        assert_eq!(window.average(ran, 1, half, half - 1), ran, "time never runs backwards");
    }

    /// An average of 3 that an idle unit of time of a window of 16 takes 3/16 from. Xen before 4.8 rounds the rest, 2.8, down;
    /// later, the loss.
    #[test]
    fn early_versions_round_the_new_average_down() {
        let after = |early| Window { shift: 4, precision: 4, early }.average(3, 0, 0, 1);
        assert_eq!((after(true), after(false)), (2, 3));
    }

    /// Two passes that let one vCPU go on. Today's version brings its load up to date in the second; Xen
    /// 4.7 and earlier do that only when vCPUs come and go.
    #[test]
    fn a_vcpu_that_goes_on_updates_its_load_since_2016() {
        let updated = |profile| {
            let mut bench = Bench::new(profile, Topology::flat(1), &[Affinity::any()]);
            let (v, p) = (VcpuId(0), PcpuId(0));
            bench.machine.vcpu_mut(v).flags = 0;
            bench.at(Nanos::ZERO, |credit2, cx| credit2.wake(cx, v));
            let next = bench.at(Nanos::ZERO, |credit2, cx| credit2.schedule(cx, p)).next;
            assert_eq!(next, Some(v));
            bench.machine.vcpu_mut(v).running = true;
            bench.machine.current[p.index()] = next;
            bench.at(Nanos::MS, |credit2, cx| credit2.schedule(cx, p));
            bench.credit2.vcpus[v.index()].average_at
        };
        // 1 ms is 976.6 units.
        assert_eq!((updated(&TODAY_PROFILE), updated(&Y2016_PROFILE)), (976, 0));
    }
}
