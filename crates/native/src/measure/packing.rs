//! Whether this kernel packs threads: runs a woken one on the CPU of its waker although another CPU idles.
//!
//! Linux does not: a woken thread goes to an idle CPU near its last one. Kernels of some virtual machines do, since waking an
//! idle CPU costs an exit there. Locks whose waiters sleep then use fewer CPUs than they could.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::futex;

/// Wake-ups of a measurement.
const WAKES: u32 = 200;
/// The waker computes for so long before each, so that the other thread sleeps and its CPU idles.
const BEFORE: Duration = Duration::from_micros(300);
/// A wake-up that takes longer says nothing: another program had the CPU.
const LONGEST: Duration = Duration::from_millis(20);

/// The part of 200 wake-ups after which the woken thread ran on its waker's CPU, while the process may use other CPUs, in some
/// 0.1 s. On a machine that does nothing else, Linux has next to none.
#[must_use]
pub fn packed_wakes() -> f64 {
    // Even: the sleeper waits; odd: it has to answer with its CPU.
    let (turn, answer) = (AtomicU32::new(0), AtomicU32::new(u32::MAX));
    let end = 2 * WAKES;
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..WAKES {
                while turn.load(Ordering::Acquire) < 2 * round + 1 {
                    futex::wait(&turn, 2 * round);
                }
                answer.store(cpu(), Ordering::Release);
                // The waker may have given up.
                let _ = turn.compare_exchange(
                    2 * round + 1,
                    2 * round + 2,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
            }
        });
        let mut here = 0;
        for round in 0..WAKES {
            let began = Instant::now();
            while began.elapsed() < BEFORE {}
            let own = cpu();
            turn.store(2 * round + 1, Ordering::Release);
            futex::wake(&raw const turn, 1);
            let woke = Instant::now();
            while turn.load(Ordering::Acquire) == 2 * round + 1 && woke.elapsed() < LONGEST {}
            if turn.load(Ordering::Acquire) == 2 * round + 1 {
                // Nobody answers soon: let it come to its end.
                turn.store(end, Ordering::Release);
                return f64::NAN;
            }
            here += u32::from(answer.load(Ordering::Acquire) == own);
        }
        f64::from(here) / f64::from(WAKES)
    })
}

/// The CPU on which the calling thread runs.
fn cpu() -> u32 {
    // SAFETY: a query without side effects.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_ends_and_is_a_part() {
        let part = super::packed_wakes();
        assert!(part.is_nan() || (0.0..=1.0).contains(&part), "{part}");
    }
}
