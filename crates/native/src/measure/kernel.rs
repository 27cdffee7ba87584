//! What this kernel's switches, wake-ups and timers cost: two threads that wake each other in turn, and one that
//! sleeps.
//!
//! ```text
//!   calls       futex calls that wake nobody                        h = one system call
//!   one CPU     half a round: wake (h), wait (h), the other runs
//!   two CPUs    half a round: wake (h), the idle CPU of the other wakes, the other runs
//!   sleep       the idle CPU's timer ends, the idle CPU wakes, the sleeper runs
//!   busy        a thread that computes looks whether its timer has ended
//! ```
//!
//! Each occurrence is timed by itself. The median counts; how single ones differ from it is a result, too.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::busy_timer::BusyTimer;
use crate::bench::{pin, precise_sleeps};
use crate::futex;

/// Costs of one measurement, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
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
    /// How late the timer of a busy CPU ends.
    pub host_timer_ns: f64,
    /// Single occurrences.
    pub singles: KernelSingles,
}

/// Times of single occurrences, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelSingles {
    /// System calls.
    pub calls: Vec<f64>,
    /// Rounds of two threads that wake each other on one CPU: four calls and two switches.
    pub rounds_here: Vec<f64>,
    /// The same on two CPUs: two wake-ups of an idle CPU, each with a call and a switch.
    pub rounds_there: Vec<f64>,
    /// Sleeps, by how much they are too long.
    pub sleeps: Vec<f64>,
    /// Timers of a busy CPU, by how much they are late.
    pub busy: Vec<f64>,
}

/// Calls that are timed.
const CALLS: u32 = 2000;
/// Rounds that are timed.
const ROUNDS: u32 = 200;
/// Sleeps, timers, and their length.
const SLEEPS: usize = 60;
const SLEEP: Duration = Duration::from_micros(700);

impl KernelCosts {
    /// Measures once on these CPUs, in some 0.2 s.
    ///
    /// # Errors
    /// If a thread cannot be kept to its CPU.
    pub fn measure(cpus: &[usize]) -> io::Result<Self> {
        let Some(first) = cpus.first().copied() else { return Err(io::ErrorKind::NotFound.into()) };
        let singles = thread::scope(|scope| {
            // The calling thread stays where it may run.
            let measures = scope.spawn(|| KernelSingles::measure(first, cpus.get(1).copied()));
            measures.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed")))
        })?;
        let call = median(&singles.calls);
        let context_switch_ns = (median(&singles.rounds_here) / 2.0 - 2.0 * call).max(0.0);
        let idle = (cpus.len() > 1).then(|| median(&singles.rounds_there) / 2.0 - call);
        Ok(Self {
            call_ns: call,
            context_switch_ns,
            wake_ns: idle.map(|wake| (wake - context_switch_ns).max(0.0)),
            timer_ns: idle.map(|wake| (median(&singles.sleeps) - wake).max(0.0)),
            host_timer_ns: median(&singles.busy),
            singles,
        })
    }
}

impl KernelSingles {
    fn measure(first: usize, second: Option<usize>) -> io::Result<Self> {
        let there = second.map(|second| rounds([first, second])).transpose()?;
        Ok(Self {
            calls: calls(),
            rounds_here: rounds([first, first])?,
            rounds_there: there.unwrap_or_default(),
            sleeps: lateness(first, SLEEP, SLEEPS)?,
            busy: busy_lateness(first, SLEEP, SLEEPS)?,
        })
    }
}

/// The median; 0 of nothing.
pub(crate) fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// How late sleeps of the calling thread end on `cpu`, which is idle meanwhile, in nanoseconds. The thread stays on that
/// CPU.
///
/// # Errors
/// If the thread cannot be kept to its CPU.
pub(crate) fn lateness(cpu: usize, sleep: Duration, times: usize) -> io::Result<Vec<f64>> {
    pin(&[cpu])?;
    precise_sleeps();
    Ok((0..times)
        .map(|_| {
            let began = Instant::now();
            thread::sleep(sleep);
            began.elapsed().saturating_sub(sleep).as_nanos() as f64
        })
        .collect())
}

/// How late timers end on `cpu`, which the calling thread keeps busy, in nanoseconds. The thread stays on that CPU.
///
/// # Errors
/// If the thread cannot be kept to its CPU, or the system has no timer for it.
pub(crate) fn busy_lateness(cpu: usize, after: Duration, times: usize) -> io::Result<Vec<f64>> {
    pin(&[cpu])?;
    let timer = BusyTimer::new()?;
    (0..times).map(|_| timer.lateness(after)).collect()
}

/// The times of calls, in nanoseconds, without the look at the clock.
fn calls() -> Vec<f64> {
    let word = AtomicU32::new(0);
    let timed = |call: fn(&AtomicU32)| -> Vec<f64> {
        let time = |_| {
            let began = Instant::now();
            call(&word);
            began.elapsed().as_nanos() as f64
        };
        (0..CALLS).map(time).collect()
    };
    let clock = median(&timed(|_| ()));
    let call = |word: &AtomicU32| {
        futex::wake(word, 1);
    };
    timed(call).iter().map(|ns| (ns - clock).max(0.0)).collect()
}

/// The times of rounds of two threads on these CPUs, in nanoseconds.
fn rounds(cpus: [usize; 2]) -> io::Result<Vec<f64>> {
    let word = AtomicU32::new(0);
    // A thread that could not be kept to its CPU plays all the same, so that the other one ends.
    let player = |me: u32| {
        let pinned = pin(&[cpus[me as usize]]);
        let mut times = Vec::with_capacity(ROUNDS as usize + 1);
        let mut began = Instant::now();
        for _ in 0..=ROUNDS {
            while word.load(Ordering::Acquire) != me {
                futex::wait(&word, 1 - me);
            }
            let now = Instant::now();
            times.push((now - began).as_nanos() as f64);
            began = now;
            word.store(1 - me, Ordering::Release);
            futex::wake(&raw const word, 1);
        }
        // Before the first turn, the threads came together.
        pinned.map(|()| times.split_off(1))
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
        let KernelSingles { calls, rounds_here, rounds_there, sleeps, busy } = costs.singles;
        assert_eq!((calls.len(), rounds_here.len()), (CALLS as usize, ROUNDS as usize));
        assert_eq!(rounds_there.len(), if cpus.len() > 1 { ROUNDS as usize } else { 0 });
        assert_eq!((sleeps.len(), busy.len()), (SLEEPS, SLEEPS));
        assert!(sleeps.iter().chain(&busy).all(|ns| (0.0..1e10).contains(ns)));
    }
}
