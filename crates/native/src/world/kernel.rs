//! What the kernel tells about a thread, and what it is told: CPU time, run delay, switches, CPUs, priority.

use std::fs;
use std::io;

/// The kernel's account of a thread since it began, nanoseconds and numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// CPU time.
    pub cpu_ns: u64,
    /// Time in which it could have run and had no CPU; `None` if the kernel does not count it.
    pub delay_ns: Option<u64>,
    /// How often it began to run.
    pub dispatches: u64,
    /// Switches because it slept.
    pub voluntary: u64,
    /// Switches against its will.
    pub involuntary: u64,
}

impl Account {
    /// The account of a thread of this process that has not been joined.
    pub(super) fn of(tid: i32) -> Self {
        let read = |file: &str| fs::read_to_string(format!("/proc/self/task/{tid}/{file}"));
        let schedstat = read("schedstat").unwrap_or_default();
        let mut numbers = schedstat.split_whitespace().map(|n| n.parse::<u64>().ok());
        let (_, delay, dispatches) = (numbers.next(), numbers.next(), numbers.next());
        let status = read("status").unwrap_or_default();
        let count = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
        };
        let (voluntary, involuntary) =
            (count("voluntary_ctxt_switches:"), count("nonvoluntary_ctxt_switches:"));
        Self {
            cpu_ns: cpu_time(tid),
            delay_ns: delay.flatten(),
            dispatches: dispatches.flatten().unwrap_or(voluntary + involuntary),
            voluntary,
            involuntary,
        }
    }

    /// The part of it since an earlier account.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            delay_ns: self.delay_ns.zip(earlier.delay_ns).map(|(a, b)| a.saturating_sub(b)),
            dispatches: self.dispatches.saturating_sub(earlier.dispatches),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
        }
    }
}

/// The exact CPU time of a thread of this process, up to now; 0 if it has ended.
pub(super) fn cpu_time(tid: i32) -> u64 {
    // The clock of a thread by its number, as `pthread_getcpuclockid` makes it: its complement, then the bits for
    // "of a thread" (4) and "as the scheduler counts" (2).
    read((!tid << 3) | 6)
}

/// The exact CPU time of the calling thread.
pub(super) fn own_cpu_time() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The time of a clock, in nanoseconds; 0 if there is no such clock.
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours to write; the kernel refuses a clock that does not exist.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return 0;
    }
    // Neither is negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The last nice value.
pub(super) const LAST_NICE: i32 = 19;

/// The nice value of the calling thread, which the threads that it starts inherit.
#[must_use]
pub fn own_nice() -> i32 {
    // SAFETY: a query without pointers; 0 is the calling thread, so it cannot fail.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// Gives the calling thread a nice value. Everybody may raise theirs.
pub(super) fn set_nice(nice: i32) -> io::Result<()> {
    if own_nice() == nice {
        return Ok(());
    }
    // SAFETY: a call without pointers; 0 is the calling thread.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How many nice values lie between a thread whose share shall be `weight` and one of the `heaviest`. The kernel gives
/// a thread 1.25 times less for each.
pub(super) fn steps(weight: u32, heaviest: u32) -> i32 {
    let ratio = f64::from(heaviest.max(1)) / f64::from(weight.max(1));
    // At least 0, because a weight is at most the heaviest, and at most 99.
    (ratio.ln() / 1.25_f64.ln()).round() as i32
}

/// The CPU on which the calling thread runs.
pub(super) fn this_cpu() -> u32 {
    // SAFETY: a query without pointers.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nice_values_follow_the_kernels_table() {
        // kernel/sched/core.c, sched_prio_to_weight: 1024 at 0, 335 at 5, 110 at 10, 15 at 19.
        assert_eq!(steps(1024, 1024), 0);
        assert_eq!(steps(335, 1024), 5);
        assert_eq!(steps(110, 1024), 10);
        assert_eq!(steps(15, 1024), 19);
        // By the ratio: 1.25^50 is 70,065.
        assert_eq!(steps(1, 65_535), 50);
    }

    /// A thread may raise its nice value, and those that it starts inherit it.
    #[test]
    fn a_nice_value_is_that_of_a_thread() {
        let before = own_nice();
        let raised = (before + 1).min(LAST_NICE);
        let inherited = std::thread::spawn(move || {
            set_nice(raised).unwrap();
            assert_eq!(own_nice(), raised);
            std::thread::spawn(own_nice).join().unwrap()
        });
        assert_eq!(inherited.join().unwrap(), raised);
        assert_eq!(own_nice(), before);
    }

    #[test]
    fn the_account_of_this_thread_grows_while_it_works() {
        let tid = crate::kernel_thread_id();
        let before = Account::of(tid);
        while cpu_time(tid) < before.cpu_ns + 2_000_000 {
            std::hint::spin_loop();
        }
        let spent = Account::of(tid).since(before);
        assert!(spent.cpu_ns >= 2_000_000, "{spent:?}");
        assert_eq!(cpu_time(i32::MAX >> 4), 0, "no such thread");
    }
}
