//! The clock of a run: the time stamp counter, which guests read too.

use overspin_sched::Nanos;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long the counter is compared with the kernel's clock, if the kernel does not tell its frequency.
const COMPARED: Duration = Duration::from_millis(50);

/// Nanoseconds since a moment. Guests compute the same: `(counter - base) * scale >> 32`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The counter at time 0.
    pub base: u64,
    /// Nanoseconds of 2^32 counts.
    pub scale: u64,
}

/// The counter of this CPU.
pub(crate) fn counter() -> u64 {
    // SAFETY: every x86-64 CPU has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

impl Clock {
    /// A clock that starts now. `khz` is the frequency of the counter, if the kernel tells.
    pub(crate) fn start(khz: Option<u32>) -> Self {
        let khz = khz.filter(|khz| *khz > 0).map_or_else(measured_khz, u64::from);
        Self { base: counter(), scale: (1_000_000 << 32) / khz }
    }

    /// The time.
    pub(crate) fn now(&self) -> Nanos {
        self.at(counter())
    }

    /// The time at which the counter was `counter`.
    pub(crate) fn at(&self, counter: u64) -> Nanos {
        let since = u128::from(counter.saturating_sub(self.base));
        // 63 bits of nanoseconds last for 292 years.
        Nanos(((since * u128::from(self.scale)) >> 32) as i64)
    }
}

/// Compares the counter with the kernel's clock, once in a process.
fn measured_khz() -> u64 {
    static KHZ: OnceLock<u64> = OnceLock::new();
    *KHZ.get_or_init(|| {
        let (from, begin) = (counter(), Instant::now());
        std::thread::sleep(COMPARED);
        let (to, time) = (counter(), begin.elapsed());
        ((to - from) as f64 / (time.as_nanos() as f64 / 1e6)) as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_kernel() {
        let clock = Clock::start(None);
        let begin = Instant::now();
        std::thread::sleep(Duration::from_millis(100));
        let (told, real) = (clock.now().0 as f64, begin.elapsed().as_nanos() as f64);
        assert!(
            (told / real - 1.0).abs() < 0.01,
            "{told} ns by the counter, {real} ns by the kernel"
        );
    }
}
