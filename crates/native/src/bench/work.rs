//! Time: a cheap clock, and work of a given length.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::PlanError;

/// A clock that uses the time stamp counter where there is one. Reading the kernel's clock takes as long
/// as a short section.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    ns_per_tick: f64,
}

impl Clock {
    /// Compares the counter with the kernel's clock, for 20 ms.
    pub(crate) fn calibrated() -> Self {
        let (start, first) = (Instant::now(), Self::ticks());
        std::thread::sleep(Duration::from_millis(20));
        let (time, ticks) = (start.elapsed(), Self::ticks() - first);
        Self { ns_per_tick: time.as_nanos() as f64 / ticks as f64 }
    }

    /// The clock that counted from `first` to `last`: the longer that was, the more exact.
    #[cfg(feature = "world")]
    pub(crate) fn between(first: Reading, last: Reading) -> Self {
        let (ns, ticks) =
            (last.ns.saturating_sub(first.ns), last.ticks.saturating_sub(first.ticks));
        Self { ns_per_tick: ns.max(1) as f64 / ticks.max(1) as f64 }
    }

    /// The counter.
    #[inline]
    #[must_use]
    pub fn ticks() -> u64 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 has the instruction, and Linux allows it.
        return unsafe { std::arch::x86_64::_rdtsc() };
        #[cfg(not(target_arch = "x86_64"))]
        return <crate::Threads as overspin_locks::Platform>::now();
    }

    /// Converts the ticks from `start` to `end` to nanoseconds; 0 if the counters of two CPUs differ by
    /// more than that.
    #[inline]
    pub(crate) fn ns(self, start: u64, end: u64) -> u64 {
        (end.saturating_sub(start) as f64 * self.ns_per_tick) as u64
    }
}

/// The counter and the monotonic clock of this machine at the same time.
#[cfg(feature = "world")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The counter.
    pub ticks: u64,
    /// The clock, nanoseconds.
    pub ns: u64,
}

#[cfg(feature = "world")]
impl Reading {
    /// Reads both. A thread may lose its CPU in between, so it is the fastest of several attempts.
    pub(crate) fn now() -> Self {
        let attempt = |_| {
            let before = Clock::ticks();
            let ns = <crate::Threads as overspin_locks::Platform>::now();
            let took = Clock::ticks().saturating_sub(before);
            (took, Self { ticks: before + took / 2, ns })
        };
        let (_, first) = attempt(0);
        (1..10).map(attempt).min_by_key(|(took, _)| *took).map_or(first, |(_, reading)| reading)
    }
}

/// What both clocks were again and again: neither is steady enough to tell microseconds of the other after seconds.
#[cfg(feature = "world")]
#[derive(Clone, Debug, Default)]
pub struct Readings(Vec<Reading>);

#[cfg(feature = "world")]
impl Readings {
    /// Adds one.
    pub fn take(&mut self) {
        self.0.push(Reading::now());
    }

    /// The clock, in nanoseconds, when the counter was `ticks`: between the nearest two readings, or in line with them.
    ///
    /// Complexity: logarithmic in the number of readings.
    #[must_use]
    pub fn ns(&self, ticks: u64) -> u64 {
        if self.0.len() < 2 {
            return self.0.first().map_or(0, |only| only.ns);
        }
        let i = self.0.partition_point(|r| r.ticks <= ticks).clamp(1, self.0.len() - 1);
        let (from, to) = (self.0[i - 1], self.0[i]);
        let rate = (to.ns - from.ns) as f64 / (to.ticks - from.ticks).max(1) as f64;
        let after = ticks.wrapping_sub(from.ticks).cast_signed() as f64 * rate;
        from.ns.saturating_add_signed(after as i64)
    }
}

/// Keeps the CPU busy with a chain of shifts and multiplications. Work is counted in steps, not in time: as in a real
/// section, a preempted thread still has the rest of its work to do.
///
/// It is never inlined, and its steps stay in registers. A loop that is inlined runs at a speed that depends on its
/// place in the code, and so does a loop whose value passes through memory. With such loops one thread alone was up to
/// 28 % faster with one lock than with another. In another build it was the other way round.
#[inline(never)]
pub(crate) fn work(steps: u32) {
    let mut value = black_box(1u64);
    for _ in 0..steps {
        // The compiler knows no shorter way to the result.
        value = (value ^ (value >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    black_box(value);
}

/// Steps of [`work`] per nanosecond. It uses the best of many short trials, because the worse ones were
/// disturbed.
pub(super) fn steps_per_ns(clock: Clock) -> f64 {
    const STEPS: u32 = 10_000;
    let trial = || {
        let start = Clock::ticks();
        work(STEPS);
        clock.ns(start, Clock::ticks()).max(1)
    };
    let best = (0..200).map(|_| trial()).min().unwrap_or(1);
    f64::from(STEPS) / best as f64
}

/// Converts `time` to steps of [`work`].
pub(super) fn steps(time: Duration, steps_per_ns: f64) -> Result<u32, PlanError> {
    let steps = time.as_nanos() as f64 * steps_per_ns;
    // Draws go up to twice the mean.
    if steps < f64::from(u32::MAX / 2) { Ok(steps as u32) } else { Err(PlanError::TooLong(time)) }
}

/// A random generator for outside times and for the order of runs (Marsaglia's xorshift, 64 bits).
#[derive(Debug)]
pub(crate) struct Lots(u64);

impl Lots {
    pub(crate) fn new(seed: u64) -> Self {
        // The state must not be 0. The multiplication separates neighbouring seeds.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    #[inline]
    pub(super) fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Draws uniformly from 0 to `max`. Uses the upper half of the number, which is the better one.
    #[inline]
    pub(super) fn up_to(&mut self, max: u32) -> u32 {
        (((self.draw() >> 32) * (u64::from(max) + 1)) >> 32) as u32
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            // The number of items fits 32 bits: they are runs that a person waits for.
            items.swap(end, self.up_to(end as u32) as usize);
        }
    }
}

#[cfg(all(test, feature = "world"))]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_told_between_readings_and_beyond_them() {
        let reading = |(ticks, ns)| Reading { ticks, ns };
        // Two ticks a nanosecond, later one.
        let readings = Readings([(100, 1000), (120, 1010), (140, 1030)].map(reading).into());
        for (ticks, ns) in [(90, 995), (100, 1000), (110, 1005), (130, 1020), (150, 1040)] {
            assert_eq!(readings.ns(ticks), ns, "{ticks}");
        }
        assert_eq!(Readings(vec![reading((5, 7))]).ns(9), 7);
        assert_eq!(Readings::default().ns(9), 0);
    }
}
