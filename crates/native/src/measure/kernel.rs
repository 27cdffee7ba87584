//! What this kernel's switches, wake-ups and timers cost: two threads that wake each other in turn, and one that
//! sleeps.
//!
//! ```text
//!   calls       futex calls that wake nobody                        h = one system call
//!   one CPU     half a round: wake (h), wait (h), the other runs
//!   two CPUs    half a round: wake (h), the idle CPU of the other wakes, the other runs
//!   sleep       the idle CPU's timer ends, the idle CPU wakes, the sleeper runs
//! ```

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::bench::{pin, precise_sleeps};
use crate::futex;

/// Costs of one measurement, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelCosts {
    /// A thread enters the kernel and returns.
    pub call_ns: f64,
    /// The kernel switches from one thread to another on one CPU.
    pub context_switch_ns: f64,
    /// From the wake-up of a thread to the moment in which its idle CPU begins to switch to it; `None` with a single
    /// CPU.
    pub wake_ns: Option<f64>,
    /// What the end of a sleep on an idle CPU takes beyond such a wake-up; `None` with a single CPU.
    pub timer_ns: Option<f64>,
}

/// Calls that are timed together.
const CALLS: u32 = 2000;
/// Rounds that are timed together.
const ROUNDS: u32 = 200;
/// Sleeps, of which the median counts, and their length.
const SLEEPS: usize = 21;
const SLEEP: Duration = Duration::from_micros(700);

impl KernelCosts {
    /// Measures once on these CPUs, in some 10 to 50 ms.
    ///
    /// # Errors
    /// If a thread cannot be kept to its CPU.
    pub fn measure(cpus: &[usize]) -> io::Result<Self> {
        let call = calls();
        let Some(first) = cpus.first() else { return Err(io::ErrorKind::NotFound.into()) };
        let here = half_round([*first, *first])?;
        let there = cpus.get(1).map(|second| half_round([*first, *second])).transpose()?;
        let context_switch_ns = (here - 2.0 * call).max(0.0);
        let late = thread::scope(|scope| {
            let sleeper = scope.spawn(|| lateness(*first, SLEEP, SLEEPS));
            sleeper.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed")))
        })?;
        Ok(Self {
            call_ns: call,
            context_switch_ns,
            wake_ns: there.map(|there| (there - call - context_switch_ns).max(0.0)),
            timer_ns: there.map(|there| (late - (there - call)).max(0.0)),
        })
    }
}

/// How late sleeps of the calling thread end on `cpu`, which is idle meanwhile: the median of `times` of them, in
/// nanoseconds. The thread stays on that CPU.
///
/// # Errors
/// If the thread cannot be kept to its CPU.
pub(crate) fn lateness(cpu: usize, sleep: Duration, times: usize) -> io::Result<f64> {
    pin(&[cpu])?;
    precise_sleeps();
    let mut late: Vec<f64> = (0..times)
        .map(|_| {
            let began = Instant::now();
            thread::sleep(sleep);
            began.elapsed().saturating_sub(sleep).as_nanos() as f64
        })
        .collect();
    late.sort_by(f64::total_cmp);
    late.get(times / 2).copied().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// The time of a call, in nanoseconds.
fn calls() -> f64 {
    let word = AtomicU32::new(0);
    let began = Instant::now();
    for _ in 0..CALLS {
        futex::wake(&raw const word, 1);
    }
    began.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// Half of the time of a round of two threads on these CPUs, in nanoseconds.
fn half_round(cpus: [usize; 2]) -> io::Result<f64> {
    let word = AtomicU32::new(0);
    // A thread that could not be kept to its CPU plays all the same, so that the other one ends.
    let player = |me: u32| {
        let pinned = pin(&[cpus[me as usize]]);
        let mut began = Instant::now();
        for round in 0..=ROUNDS {
            if round == 1 {
                // The first round is for the threads to come together.
                began = Instant::now();
            }
            while word.load(Ordering::Acquire) != me {
                futex::wait(&word, 1 - me);
            }
            word.store(1 - me, Ordering::Release);
            futex::wake(&raw const word, 1);
        }
        pinned.map(|()| began.elapsed().as_nanos() as f64 / f64::from(2 * ROUNDS))
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| player(1));
        let first = scope.spawn(|| player(0));
        let lost = |_| io::Error::other("a thread failed");
        other.join().map_err(lost)??;
        first.join().map_err(lost)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_plausible() {
        let cpus = crate::measure::allowed_cpus().unwrap();
        let costs = KernelCosts::measure(&cpus).unwrap();
        // No kernel is entered in 5 ns, and none takes 10 ms.
        assert!((5.0..1e7).contains(&costs.call_ns), "{costs:?}");
        assert!(costs.context_switch_ns < 1e7, "{costs:?}");
        assert_eq!(costs.wake_ns.is_some(), cpus.len() > 1, "{costs:?}");
        assert_eq!(costs.timer_ns.is_some(), cpus.len() > 1, "{costs:?}");
        assert!(KernelCosts::measure(&[]).is_err());
    }
}
