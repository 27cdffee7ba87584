//! Quanta of fixed work, and the gaps in them.
//!
//! A thread does the same work over and over and reads the clock after each piece, as FWQ of the Sequoia
//! benchmarks does. A quantum that took longer than the others was interrupted. The kind of interruption is
//! classified as the kernel's osnoise tracer does it, but with what a thread can see of itself: whether it
//! was switched out meanwhile.

use super::histogram::Histogram;

/// Shorter delays count as jitter of the quantum: cache misses, the clock. The shortest interrupt takes
/// longer.
pub const SHORTEST_NS: u64 = 500;

/// Gaps of this length or longer without a switch count as time taken below the kernel. Interrupts and their
/// follow-up work seldom take so long, and a hypervisor that runs another vCPU seldom returns earlier.
pub const LONG_NS: u64 = 100_000;

/// Quanta per estimate of the unperturbed length. They take some milliseconds, in which a CPU seldom changes
/// its frequency, and are enough for a quartile.
const BLOCK: usize = 256;

/// A CPU that can be measured, with its thread.
pub(super) trait Cpu {
    /// Nanoseconds since a fixed moment.
    fn now(&mut self) -> u64;
    /// Does this many steps of work, which take the same time each.
    fn work(&mut self, steps: u32);
    /// Counts how often the thread has been switched out involuntarily.
    fn switches(&mut self) -> u64;
    /// The kernel's counters so far.
    fn counters(&mut self) -> Counters;
}

/// The kernel's counters of a CPU and of its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Time that the hypervisor gave to others (steal), nanoseconds, in steps of a clock tick.
    pub(super) steal_ns: Option<u64>,
    /// Time that the thread could have run but did not, nanoseconds.
    pub(super) run_delay_ns: Option<u64>,
}

impl Counters {
    fn since(self, before: Self) -> Self {
        let difference = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            steal_ns: difference(self.steal_ns, before.steal_ns),
            run_delay_ns: difference(self.run_delay_ns, before.run_delay_ns),
        }
    }
}

/// The gaps by cause, and the quanta in which they were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GapsByCause {
    /// Time during which quanta were watched, nanoseconds, gaps included.
    pub watched_ns: u64,
    /// Quanta.
    pub quanta: u64,
    /// Unperturbed length of a quantum, nanoseconds: the mean over all blocks, ...
    pub quantum_ns: f64,
    /// ... the shortest, and the longest.
    pub quantum_range_ns: [u64; 2],
    /// Gaps in which the thread was switched out: another thread of this kernel ran.
    pub thread: Histogram,
    /// Gaps of [`LONG_NS`] or longer without a switch: the hypervisor ran others, or the firmware took the
    /// CPU.
    pub taken: Histogram,
    /// Shorter gaps without a switch: ticks, other interrupts, short exits to the hypervisor.
    pub short: Histogram,
    /// Intervals from one gap of `thread` to the next.
    pub intervals: Histogram,
}

/// One measured quantum.
#[derive(Clone, Copy, Debug)]
struct Quantum {
    end: u64,
    length: u64,
    switched: bool,
}

/// Estimates the unperturbed length of some quanta by the lower quartile. This holds while at most three
/// quarters of them are interrupted.
fn unperturbed(quanta: &[Quantum]) -> u64 {
    let mut lengths: Vec<u64> = quanta.iter().map(|q| q.length).collect();
    let at = lengths.len() / 4;
    lengths.select_nth_unstable(at);
    lengths[at]
}

impl GapsByCause {
    /// Records a block of quanta. `last` is the end of the last gap of `thread`.
    fn note(&mut self, block: &[Quantum], last: &mut Option<u64>) {
        let base = unperturbed(block);
        let blocks = self.quanta as f64 / BLOCK as f64;
        self.quantum_ns = (self.quantum_ns * blocks + base as f64) / (blocks + 1.0);
        let [least, most] = self.quantum_range_ns;
        let first = self.quanta == 0;
        self.quantum_range_ns = [if first { base } else { least.min(base) }, most.max(base)];
        self.quanta += block.len() as u64;
        for q in block {
            self.watched_ns += q.length;
            let gap = q.length.saturating_sub(base);
            if gap < SHORTEST_NS {
                continue;
            }
            if q.switched {
                self.thread.record(gap);
                if let Some(last) = last.replace(q.end) {
                    self.intervals.record(q.end - last);
                }
            } else if gap >= LONG_NS {
                self.taken.record(gap);
            } else {
                self.short.record(gap);
            }
        }
    }
}

/// Finds the steps of work that take `quantum_ns` on `cpu`. It uses the best of many short trials, because
/// the worse ones were disturbed.
pub(super) fn calibrate(cpu: &mut impl Cpu, quantum_ns: u64) -> u32 {
    const STEPS: u32 = 2_000;
    let mut trial = || {
        let start = cpu.now();
        cpu.work(STEPS);
        (cpu.now() - start).max(1)
    };
    let best = (0..500).map(|_| trial()).min().unwrap_or(1);
    (u64::from(STEPS) * quantum_ns / best).clamp(1, u64::from(u32::MAX)) as u32
}

/// Watches `cpu` for `duration_ns` after `warm_up_ns`, in quanta of `steps`, which should take `quantum_ns`.
pub(super) fn watch(
    cpu: &mut impl Cpu,
    (steps, quantum_ns): (u32, u64),
    warm_up_ns: u64,
    duration_ns: u64,
) -> (GapsByCause, Counters) {
    let mut noted = GapsByCause::default();
    let mut last = None;
    let mut block = Vec::with_capacity(BLOCK);
    let mut base = quantum_ns;
    let mut warm_end = Some(cpu.now().saturating_add(warm_up_ns));
    let mut end = u64::MAX;
    let mut before = Counters::default();
    loop {
        block.clear();
        let mut switches = cpu.switches();
        let mut start = cpu.now();
        for _ in 0..BLOCK {
            cpu.work(steps);
            let now = cpu.now();
            let length = now - start;
            let mut switched = false;
            start = now;
            // Read the switches only where there may have been one: reading them takes as long as a short
            // interrupt. That time belongs to no quantum.
            if length >= base.saturating_add(SHORTEST_NS) {
                let after = cpu.switches();
                switched = after != switches;
                switches = after;
                start = cpu.now();
            }
            block.push(Quantum { end: now, length, switched });
        }
        base = unperturbed(&block);
        if warm_end.is_none() {
            noted.note(&block, &mut last);
        }
        let now = cpu.now();
        if now >= end {
            return (noted, cpu.counters().since(before));
        }
        if warm_end.is_some_and(|warm_end| now >= warm_end) {
            warm_end = None;
            before = cpu.counters();
            end = cpu.now().saturating_add(duration_ns);
        }
    }
}

/// Measures the cost of reading the clock of `cpu`, and the smallest step seen, both in nanoseconds.
pub(super) fn clock(cpu: &mut impl Cpu) -> (f64, u64) {
    const READS: u32 = 20_000;
    let first = cpu.now();
    let (mut last, mut step) = (first, u64::MAX);
    for _ in 0..READS {
        let now = cpu.now();
        if now > last {
            step = step.min(now - last);
        }
        last = now;
    }
    ((last - first) as f64 / f64::from(READS), step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interruption by a fake kernel.
    #[derive(Clone, Copy)]
    struct Event {
        at: u64,
        length: u64,
        switch: bool,
    }

    /// A CPU whose time advances by its work, 5 ns a step, and by the events of its kernel.
    struct Fake {
        now: u64,
        ns_per_step: u64,
        slower_from: u64,
        events: Vec<Event>,
        next: usize,
        switches: u64,
        stolen: u64,
    }

    impl Fake {
        fn new(events: Vec<Event>) -> Self {
            let slower_from = u64::MAX;
            Self {
                now: 1_000,
                ns_per_step: 5,
                slower_from,
                events,
                next: 0,
                switches: 0,
                stolen: 0,
            }
        }

        fn pass(&mut self, ns: u64) {
            let mut left = ns;
            while let Some(event) = self.events.get(self.next).filter(|e| e.at <= self.now + left) {
                left -= event.at.saturating_sub(self.now).min(left);
                self.now = self.now.max(event.at) + event.length;
                self.switches += u64::from(event.switch);
                self.stolen += if event.switch { 0 } else { event.length };
                self.next += 1;
            }
            self.now += left;
        }
    }

    impl Cpu for Fake {
        fn now(&mut self) -> u64 {
            self.pass(20);
            self.now
        }

        fn work(&mut self, steps: u32) {
            let slow = if self.now >= self.slower_from { 2 } else { 1 };
            self.pass(u64::from(steps) * self.ns_per_step * slow);
        }

        fn switches(&mut self) -> u64 {
            self.pass(300);
            self.switches
        }

        fn counters(&mut self) -> Counters {
            // As /proc/stat: in ticks of 10 ms.
            let ticks = self.stolen / 10_000_000 * 10_000_000;
            Counters { steal_ns: Some(ticks), run_delay_ns: None }
        }
    }

    const QUANTUM: u64 = 15_000;

    fn measure(fake: &mut Fake) -> (GapsByCause, Counters) {
        let steps = calibrate(fake, QUANTUM);
        watch(fake, (steps, QUANTUM), 100_000_000, 1_000_000_000)
    }

    /// Events every `every` for 2 s.
    fn every(every: u64, length: u64, switch: bool) -> Vec<Event> {
        (1..2_000_000_000 / every).map(|i| Event { at: i * every, length, switch }).collect()
    }

    #[test]
    fn an_undisturbed_cpu_has_no_gaps() {
        let (noted, counters) = measure(&mut Fake::new(Vec::new()));
        assert_eq!((noted.thread.count, noted.taken.count, noted.short.count), (0, 0, 0));
        // 15 us of work, give or take the reading of the clock in the trials.
        assert!((14_900.0..15_100.0).contains(&noted.quantum_ns), "{}", noted.quantum_ns);
        assert_eq!(noted.quantum_range_ns[0], noted.quantum_range_ns[1]);
        assert!(noted.watched_ns.abs_diff(1_000_000_000) < 10_000_000, "{}", noted.watched_ns);
        assert_eq!(counters.steal_ns, Some(0));
    }

    #[test]
    fn each_kind_of_gap_is_told_from_the_others() {
        // Ticks of 2 us each millisecond, a thread for 40 us every 10 ms, and 3 ms stolen every 50 ms.
        let mut events = every(1_000_003, 2_000, false);
        // Threads come between two ticks, and steals between two threads, because two events in one quantum
        // would be one gap.
        let late =
            |events: Vec<Event>, by| events.into_iter().map(move |e| Event { at: e.at + by, ..e });
        events.extend(late(every(10_000_019, 40_000, true), 500_000));
        events.extend(late(every(50_000_017, 3_000_000, false), 5_000_000));
        events.sort_by_key(|e| e.at);
        let (noted, counters) = measure(&mut Fake::new(events));
        // 1000 ms hold 100 and 20 of the rarer events, except at the ends; 60 of the ticks fall into the 3
        // ms.
        assert!((95..=101).contains(&noted.thread.count), "{}", noted.thread.count);
        assert!((18..=21).contains(&noted.taken.count), "{}", noted.taken.count);
        assert!((900..=960).contains(&noted.short.count), "{}", noted.short.count);
        assert!((noted.thread.of_all_but(2)).abs_diff(40_000) < 5_000);
        let every = noted.intervals.mean_ns().unwrap();
        assert!((every - 10_000_019.0).abs() < 500_000.0, "{every}");
        assert!(noted.intervals.variation().unwrap() < 0.2);
        // 60 ms and the ticks, counted in ticks of 10 ms.
        let stolen = counters.steal_ns.unwrap();
        assert!((50_000_000..=70_000_000).contains(&stolen), "{stolen}");
        let taken = noted.taken.time_ns;
        assert!((54_000_000..66_000_000).contains(&taken), "{taken}");
    }

    #[test]
    fn a_short_gap_with_a_switch_is_a_threads() {
        let (noted, _) = measure(&mut Fake::new(every(10_000_019, 3_000, true)));
        assert!((98..=101).contains(&noted.thread.count), "{}", noted.thread.count);
        assert_eq!(noted.taken.count + noted.short.count, 0);
    }

    #[test]
    fn a_change_of_frequency_is_no_gap_for_long() {
        let mut fake = Fake::new(Vec::new());
        fake.slower_from = 500_000_000;
        let (noted, _) = measure(&mut fake);
        // In the block with the change, at most three quarters look slow.
        assert!(noted.short.count <= BLOCK as u64 * 3 / 4, "{}", noted.short.count);
        assert!(noted.quantum_range_ns[1] > noted.quantum_range_ns[0] * 19 / 10);
    }

    #[test]
    fn the_clock_is_measured() {
        assert_eq!(clock(&mut Fake::new(Vec::new())), (20.0, 20));
    }
}
