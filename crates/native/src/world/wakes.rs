//! When sleeping threads are woken, from the kernel's performance events. Only root may know it.
//!
//! The event is that of the whole machine, `sched_waking`; its number stands in tracefs, which is not mounted everywhere. Then
//! there is a mount that no path leads to, and that goes with its descriptor (`fsopen` and `fsmount`, since Linux 5.2).

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::events::{Event, Records};
use super::switches::{Switch, SwitchKind};

/// `PERF_TYPE_TRACEPOINT`: an event by its number in tracefs.
const TRACEPOINT: u32 = 2;
/// `PERF_SAMPLE_TIME`, `_CPU`, `_RAW`. After the header come the time, the CPU, the size of the event's own fields (4 bytes) and
/// those: 8 bytes that all events have, 16 of the thread's name, and 4 of its number.
const SAMPLE: u64 = 0x4 | 0x80 | 0x400;
const TIME: u64 = 8;
const CPU: u64 = 16;
const THREAD: u64 = 24 + 4 + 8 + 16 - 4;
/// `PERF_RECORD_SAMPLE`.
const SAMPLED: u32 = 9;
/// Pages of records of a CPU: some 4,000 between two looks.
const PAGES: usize = 64;
/// `FSCONFIG_CMD_CREATE`.
const CREATE: libc::c_uint = 6;

/// Wake-ups of the threads that are watched.
#[derive(Debug)]
pub struct Wakes {
    of_cpu: Vec<Records>,
    seen: BTreeMap<u32, Vec<Switch>>,
}

impl Wakes {
    /// Begins to record; `None` if this process may not.
    #[must_use]
    pub fn begin() -> Option<Self> {
        let config = number()?;
        // SAFETY: a query without pointers.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let of = |cpu| {
            let (kind, sample, flags) = (TRACEPOINT, SAMPLE, 0);
            Records::of(Event { kind, config, sample, flags, thread: -1, cpu, pages: PAGES })
        };
        // CPUs that are offline have none.
        let of_cpu: Vec<Records> = (0..cpus as libc::c_int).filter_map(of).collect();
        (!of_cpu.is_empty()).then_some(Self { of_cpu, seen: BTreeMap::new() })
    }

    /// From now on, wake-ups of this thread are kept.
    pub fn watch(&mut self, tid: u32) {
        self.seen.entry(tid).or_default();
    }

    /// Reads the records that have come since the last call.
    pub fn read(&mut self) {
        let Self { of_cpu, seen } = self;
        for records in of_cpu {
            records.read(|record| {
                // The number is the upper half of its word.
                let tid = (record.word(THREAD) >> 32) as u32;
                if record.kind == SAMPLED
                    && let Some(of_thread) = seen.get_mut(&tid)
                {
                    let (at_ns, cpu) = (record.word(TIME), record.word(CPU) as u32);
                    of_thread.push(Switch { at_ns, cpu, what: SwitchKind::Woken });
                }
            });
        }
    }

    /// Adds the wake-ups of a thread to its switches.
    pub fn add(&mut self, tid: u32, switches: &mut Vec<Switch>) {
        switches.extend(self.seen.remove(&tid).unwrap_or_default());
        switches.sort_by_key(|switch| switch.at_ns);
        let mut slept = false;
        switches.retain(|switch| {
            // A thread that is woken before it has left its CPU is told to be woken when it runs, and one is woken once.
            let keep = slept || switch.what != SwitchKind::Woken;
            slept = switch.what == SwitchKind::Slept;
            keep
        });
    }
}

/// The kernel's number of the event.
fn number() -> Option<u64> {
    let of = |root: &str| {
        let text = fs::read_to_string(format!("{root}/events/sched/sched_waking/id"));
        text.ok()?.trim().parse().ok()
    };
    of("/sys/kernel/tracing").or_else(|| {
        let mount = mount()?;
        of(&format!("/proc/self/fd/{}", mount.as_raw_fd()))
    })
}

/// A mount of tracefs.
fn mount() -> Option<OwnedFd> {
    let nothing = std::ptr::null::<libc::c_char>();
    // SAFETY: the name ends with 0. 1: close-on-exec.
    let opened = owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), 1) })?;
    // SAFETY: this command takes no name and no value.
    let created = unsafe {
        libc::syscall(libc::SYS_fsconfig, opened.as_raw_fd(), CREATE, nothing, nothing, 0)
    };
    if created != 0 {
        return None;
    }
    // SAFETY: numbers only. 1: close-on-exec; 0: with the attributes that every mount has.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, opened.as_raw_fd(), 1, 0) })
}

fn owned(fd: libc::c_long) -> Option<OwnedFd> {
    let fd = libc::c_int::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel has just opened it for us.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_thread_id;
    use crate::world::switches::Switches;
    use std::time::Duration;

    #[test]
    fn a_sleeper_is_woken_before_it_runs() {
        let both = Wakes::begin().zip(Switches::of_this_thread());
        let Some((mut wakes, mut switches)) = both else {
            overspin_testing::skip("this process may not learn when threads are woken");
            return;
        };
        let tid = kernel_thread_id().cast_unsigned();
        wakes.watch(tid);
        std::thread::sleep(Duration::from_millis(2));
        wakes.read();
        switches.read();
        let mut all = switches.seen.clone();
        wakes.add(tid, &mut all);
        // It may have slept for other reasons, too, and was woken before it had left its CPU.
        let is_long = |three: &&[Switch]| three[1].at_ns - three[0].at_ns >= 1_900_000;
        let slept = all.windows(3).filter(|three| three[0].what == SwitchKind::Slept);
        let long: Vec<_> =
            slept.filter(is_long).map(|three| [three[1].what, three[2].what]).collect();
        assert_eq!(long, [[SwitchKind::Woken, SwitchKind::In]], "{all:?}");
    }
}
