//! A clock that is read rarely, because reading it takes a tenth of a short critical section.

use core::sync::atomic::Ordering::Relaxed;

use crate::AtomicCell;

/// Counts calls, and about every nth call tells how long ago an event happened.
///
/// | Bits | Meaning |
/// |---|---|
/// | 0 to 3 | calls since the clock was read, and a few more |
/// | 4 to 31 | time of the last event, in microseconds, wrapping after 268 s |
///
/// All accesses are relaxed, and some concurrent updates may be lost: it is for hints, which then come early or
/// late. After 268 s of silence a hint may come late, as after an event that is [`AHEAD`].
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct CoarseClock<C>(C);

/// Maximum number of calls between two readings of the clock.
pub(crate) const MOST: u32 = COUNT + 1;

const COUNT: u32 = 15;
const TIME: u32 = u32::MAX / MOST;

/// An event may be recorded up to so many microseconds before it happens.
pub(crate) const AHEAD: u32 = 1 << 16;

/// A reading of the clock, in microseconds.
pub(crate) struct Reading {
    now: u32,
    /// Time since the last event, in microseconds. 0 if that is yet to happen.
    pub since: u32,
}

impl<C: AtomicCell<Value = u32>> CoarseClock<C> {
    /// Makes one from a cell that is 0.
    pub const fn of(cell: C) -> Self {
        Self(cell)
    }

    /// Counts a call. After `every` calls, at most [`MOST`], or down to half as many, it reads the clock, in
    /// nanoseconds.
    ///
    /// The number varies on purpose. If it were the same each time, and two threads called this in turn, then
    /// the same thread would always read the clock; and two waiters on two CPUs do call it in turn.
    pub fn look(&self, every: u32, clock: impl FnOnce() -> u64) -> Option<Reading> {
        let found = self.0.load(Relaxed);
        if (found & COUNT) + 1 < every {
            self.0.store(found + 1, Relaxed);
            return None;
        }
        let nanos = clock();
        // The high bits of a product with the golden ratio are spread evenly.
        let ahead = ((nanos as u32).wrapping_mul(0x9e37_79b9) >> 16) % (every / 2 + 1);
        self.0.store((found & !COUNT) | ahead, Relaxed);
        // Truncation is intended: the time wraps.
        let now = (nanos / 1000) as u32 & TIME;
        let since = now.wrapping_sub(found / MOST) & TIME;
        Some(Reading { now, since: if since > TIME - AHEAD { 0 } else { since } })
    }

    /// True for about one in eight calls of [`look`](Self::look), if it reads the clock for one in [`MOST`].
    pub fn is_one_in_eight(&self) -> bool {
        self.0.load(Relaxed) % 8 == 7
    }

    /// Records an event at the time of `reading`.
    pub fn happens(&self, reading: &Reading) {
        self.record(reading.now);
    }

    /// Records an event that happens `us` microseconds after the time `nanos`, [`AHEAD`] at most.
    pub fn will_happen(&self, nanos: u64, us: u32) {
        self.record(((nanos / 1000) as u32).wrapping_add(us.min(AHEAD)));
    }

    fn record(&self, time: u32) {
        self.0.store(((time & TIME) * MOST) | (self.0.load(Relaxed) & COUNT), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn tells_the_time_since_it_happened() {
        let clock = CoarseClock::of(AtomicU32::new(0));
        let reading = clock.look(1, || 5_000_000).unwrap();
        assert_eq!(reading.since, 5000);
        clock.happens(&reading);
        assert_eq!(clock.look(1, || 5_017_999).unwrap().since, 17);
        // Looking does not record an event.
        assert_eq!(clock.look(1, || 5_040_000).unwrap().since, 40);
    }

    #[test]
    fn time_wraps() {
        let clock = CoarseClock::of(AtomicU32::new(0));
        let before = u64::from(TIME) * 1000;
        let reading = clock.look(1, || before).unwrap();
        // The last part of the circle is for events ahead.
        assert_eq!(reading.since, 0);
        assert_eq!(clock.look(1, || before - u64::from(AHEAD) * 1000).unwrap().since, TIME - AHEAD);
        clock.happens(&reading);
        assert_eq!(clock.look(1, || before + 3_000).unwrap().since, 3);
    }

    #[test]
    fn an_event_ahead_counts_from_when_it_happens() {
        let clock = CoarseClock::of(AtomicU32::new(0));
        clock.will_happen(5_000_000, 100);
        for (now, since) in [(5_000_000, 0), (5_099_000, 0), (5_100_000, 0), (5_107_000, 7)] {
            assert_eq!(clock.look(1, || now).unwrap().since, since, "{now}");
        }
        // Over the end of the time.
        clock.will_happen(u64::from(TIME) * 1000, u32::MAX);
        let end = u64::from(TIME) * 1000 + u64::from(AHEAD) * 1000;
        assert_eq!(clock.look(1, || end - 1_000).unwrap().since, 0);
        assert_eq!(clock.look(1, || end + 9_000).unwrap().since, 9);
        // Over the end of 32 bits of microseconds.
        let last = u64::from(u32::MAX) * 1000;
        clock.will_happen(last, 100);
        assert_eq!(clock.look(1, || last + 99_000).unwrap().since, 0);
        assert_eq!(clock.look(1, || last + 107_000).unwrap().since, 7);
    }

    /// Two threads look in turn, at any pace: each of them reads the clock, and not much too often.
    #[test]
    fn of_two_that_take_turns_both_read_the_clock() {
        const CALLS: u64 = 10_000;
        for every in [4, 8, MOST] {
            for pace in [130, 1_000, 1_200, 4_000] {
                let clock = CoarseClock::of(AtomicU32::new(0));
                let mut readings = [0; 2];
                for call in 0..CALLS {
                    let read = clock.look(every, || call * pace).is_some();
                    readings[call as usize % 2] += u64::from(read);
                }
                let all = readings[0] + readings[1];
                assert!(readings.iter().all(|r| r * 4 > all), "{every} {pace}: {readings:?}");
                assert!(all >= CALLS / u64::from(every), "{every} {pace}: {all}");
                assert!(all <= CALLS * 2 / u64::from(every), "{every} {pace}: {all}");
            }
        }
    }
}
