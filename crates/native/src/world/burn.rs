//! Work: a loop that uses the CPU for a given time.
//!
//! The loop counts steps, not time. A thread that is descheduled in the middle of a critical section still has the
//! rest of it to do, as a real one has. A loop that looks at a clock would find its time over.

use overspin_scenario::Picos;

use super::kernel::own_cpu_time;
use crate::bench::{Clock, Reading, work};

/// Longest piece of work without a look at the end of the run.
const PIECE_NS: u64 = 100_000;

/// Steps of a piece whose speed is measured, some 1 ms: long enough to have its share of the short interruptions that
/// every machine has.
const STEPS: u32 = 1_000_000;
/// Such pieces.
const PIECES: usize = 25;

/// The speed of the loop, and of the counter of time stamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burn {
    steps_per_ns: f64,
    began: Reading,
}

impl Burn {
    /// Measures the loop on the CPU at hand, for some 30 ms: steps in a nanosecond of CPU time. Time in which other
    /// threads had the CPU is not in it.
    pub(super) fn calibrated() -> Self {
        Self::by(PIECES / 2)
    }

    /// The same in a virtual machine. Its CPU time has in it what the host took away, so that better pieces count, but not the
    /// best one: the guest's clock may just have been set.
    pub(super) fn of_guest() -> Self {
        Self::by(PIECES / 4)
    }

    /// By the piece with this place in their order.
    fn by(place: usize) -> Self {
        let mut pieces: Vec<u64> = (0..PIECES)
            .map(|_| {
                let began = own_cpu_time();
                work(STEPS);
                own_cpu_time().saturating_sub(began).max(1)
            })
            .collect();
        pieces.sort_unstable();
        let steps_per_ns = f64::from(STEPS) / pieces[place] as f64;
        Self { steps_per_ns, began: Reading::now() }
    }

    /// Steps in a microsecond.
    pub(super) fn steps_per_us(self) -> f64 {
        self.steps_per_ns * 1e3
    }

    /// The clock, from all the time since the calibration.
    pub(super) fn clock(self) -> Clock {
        Clock::between(self.began, Reading::now())
    }

    /// Works for `time`, until `over`.
    pub(super) fn work(self, time: Picos, over: impl Fn() -> bool) {
        let mut left = time.nanos();
        while left > 0.0 && !over() {
            let piece = left.min(PIECE_NS as f64);
            // A piece has far fewer steps than fit.
            work((piece * self.steps_per_ns) as u32);
            left -= piece;
        }
    }
}
