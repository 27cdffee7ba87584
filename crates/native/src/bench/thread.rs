//! The calling thread: its CPUs, its sleeps, and what it has used.

use std::io;
use std::mem::MaybeUninit;

/// Pins the calling thread to these CPUs, if there are any.
///
/// # Errors
/// If there is no such CPU, or the thread may not use it.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    // SAFETY: all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: the number is within the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the kernel reads this many bytes of `set`. 0 is the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sleeps of the calling thread end when they should, and not up to 50 us later, which is what the kernel allows
/// itself by default.
pub(crate) fn precise_sleeps() {
    // SAFETY: it changes a property of this thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Resources that the calling thread has used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    cpu_ns: u64,
    pub(crate) involuntary_switches: u64,
    voluntary_switches: u64,
}

impl Usage {
    pub(super) fn cpu_ns(self) -> u64 {
        self.cpu_ns
    }

    pub(super) fn voluntary_switches(self) -> u64 {
        self.voluntary_switches
    }

    pub(crate) fn now() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: `usage` is ours to write. The call cannot fail with these arguments; all zeros would be a
        // valid value, too.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        // None of them is negative.
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Self {
            cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
            involuntary_switches: usage.ru_nivcsw as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
        }
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns - before.cpu_ns,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
        }
    }
}
