//! The kernel's data about the machine, a CPU and a thread.

use std::fs;
use std::io;
use std::mem::MaybeUninit;

use overspin_locks::Platform;

use super::gaps::{Counters, Cpu};
use crate::Threads;
use crate::bench::{Usage, work};

/// The machine of a measurement.
#[derive(Clone, Debug)]
pub struct System {
    /// Model of its CPUs, if known.
    pub cpu_model: Option<String>,
    /// Release of its kernel.
    pub kernel: Option<String>,
    /// Whether it runs on a hypervisor, as far as the CPU tells.
    pub virtualised: bool,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// CPUs that are online.
    pub cpus: usize,
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

impl System {
    /// Describes this machine.
    #[must_use]
    pub fn here() -> Self {
        let info = read("/proc/cpuinfo").unwrap_or_default();
        let value = |key: &str| {
            let line =
                info.lines().find(|l| l.split(':').next().is_some_and(|k| k.trim() == key))?;
            line.split_once(':').map(|(_, v)| v.trim().to_owned())
        };
        // SAFETY: a query without side effects.
        let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        Self {
            cpu_model: value("model name"),
            kernel: read("/proc/sys/kernel/osrelease"),
            virtualised: value("flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            cpus: usize::try_from(online).unwrap_or(0),
        }
    }
}

/// Returns the CPUs that this process may use.
///
/// # Errors
/// If the kernel does not tell.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the kernel writes at most this many bytes of `set`, for which all zeros is a valid value. 0 is
    // the calling thread.
    let set = unsafe {
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        set.assume_init()
    };
    // SAFETY: the numbers are within the set.
    Ok((0..libc::CPU_SETSIZE as usize)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect())
}

/// The CPU to which the calling thread is pinned.
#[derive(Debug)]
pub(super) struct ThisCpu {
    pub(super) number: usize,
}

impl Cpu for ThisCpu {
    fn now(&mut self) -> u64 {
        Threads::now()
    }

    fn work(&mut self, steps: u32) {
        work(steps);
    }

    fn switches(&mut self) -> u64 {
        Usage::now().involuntary_switches
    }

    fn counters(&mut self) -> Counters {
        Counters {
            steal_ns: read("/proc/stat")
                .and_then(|text| steal_ticks(&text, self.number))
                .map(|ticks| ticks * ns_per_tick()),
            run_delay_ns: read("/proc/thread-self/schedstat").and_then(|text| run_delay(&text)),
        }
    }
}

/// Length of a clock tick in `/proc/stat`, nanoseconds.
pub(super) fn ns_per_tick() -> u64 {
    // SAFETY: a query without side effects.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / u64::try_from(per_second).unwrap_or(0).max(1)
}

/// Stolen time of a CPU in `/proc/stat`: the eighth number after its name.
fn steal_ticks(stat: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let mut lines = stat.lines().map(str::split_whitespace);
    let mut numbers = lines.find_map(|mut words| (words.next()? == name).then_some(words))?;
    numbers.nth(7)?.parse().ok()
}

/// Time that a thread waited to run: the second number of its `schedstat`, nanoseconds.
fn run_delay(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_where_the_kernel_writes_them() {
        // proc_stat(5): user nice system idle iowait irq softirq steal guest guest_nice.
        let stat = "cpu  10 20 30 40 50 60 70 8 90 100\ncpu0 1 2 3 4 5 6 7 3 9 10\n\
                    cpu1 1 2 3 4 5 6 7 5 9 10\ncpu10 1 2 3 4 5 6 7 11 9 10\nintr 1 2 3\n";
        assert_eq!(steal_ticks(stat, 0), Some(3));
        assert_eq!(steal_ticks(stat, 1), Some(5));
        assert_eq!(steal_ticks(stat, 10), Some(11));
        assert_eq!(steal_ticks(stat, 2), None);
        // Kernels before 2.6.11 have no such column.
        assert_eq!(steal_ticks("cpu0 1 2 3 4", 0), None);
        assert_eq!(run_delay("123 456 7\n"), Some(456));
        assert_eq!(run_delay(""), None);
    }

    #[test]
    fn this_process_has_a_cpu() {
        assert!(!allowed_cpus().unwrap().is_empty());
        assert!(System::here().cpus > 0);
        assert!(ns_per_tick() > 0);
    }
}
