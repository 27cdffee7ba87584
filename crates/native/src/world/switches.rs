//! When a thread gets a CPU and loses it, from the kernel's performance events.
//!
//! Linux writes a record of each switch of a thread into memory that it shares with the process
//! (`perf_event_open`, `context_switch`; see its manual page for the layout). This needs no privilege for the user's own
//! processes where `kernel.perf_event_paranoid` is at most 2. Containers often forbid the call; then the world does without.

use super::events::{Event, Records};
use super::kernel::this_cpu;
use crate::Threads;
use overspin_locks::Platform as _;

/// Pages of records of one thread: some 2,000 switches between two looks. What every user may have, for some tens
/// of threads (`kernel.perf_event_mlock_kb`).
const PAGES: usize = 16;
/// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_DUMMY`: the event counts nothing; only its records are wanted.
const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;
/// Each record ends with the thread, the time and the CPU (`PERF_SAMPLE_TID`, `_TIME`, `_CPU`).
const SAMPLE: u64 = 0x2 | 0x4 | 0x80;
const TIME: u64 = 16;
const CPU: u64 = 24;
/// `exclude_kernel`, `exclude_hv`, `context_switch`.
const FLAGS: u64 = 1 << 5 | 1 << 6 | 1 << 26;
/// The type of records, and bits of `misc`.
const SWITCH: u32 = 14;
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

/// What a switch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchKind {
    /// The thread began to run.
    In,
    /// It lost its CPU although it could run.
    Preempted,
    /// It went to sleep.
    Slept,
}

/// A switch of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// By the monotonic clock of this machine, that of [`Threads`].
    pub at_ns: u64,
    /// The CPU on which it happened.
    pub cpu: u32,
    /// What happened.
    pub what: SwitchKind,
}

/// Whether a thread with these switches had a CPU at this time; nothing if it is before all of them.
#[must_use]
pub fn has_cpu(switches: &[Switch], at_ns: u64) -> Option<bool> {
    let i = switches.partition_point(|s| s.at_ns <= at_ns).checked_sub(1)?;
    Some(switches[i].what == SwitchKind::In)
}

/// How often a thread with these switches began to run on another CPU than before.
#[must_use]
pub fn migrations(switches: &[Switch]) -> u64 {
    let ins: Vec<u32> =
        switches.iter().filter(|s| s.what == SwitchKind::In).map(|s| s.cpu).collect();
    ins.windows(2).filter(|w| w[0] != w[1]).count() as u64
}

/// The switches of one thread.
#[derive(Debug)]
pub struct Switches {
    records: Records,
    /// When it began.
    since_ns: u64,
    /// What has been read so far.
    pub seen: Vec<Switch>,
}

impl Switches {
    /// Begins to record the calling thread; `None` if the kernel does not let it.
    pub(super) fn of_this_thread() -> Option<Self> {
        let mut switches = Self::of(0)?;
        // It runs now.
        let (at_ns, cpu) = (switches.since_ns, this_cpu());
        switches.seen.push(Switch { at_ns, cpu, what: SwitchKind::In });
        Some(switches)
    }

    /// Begins to record a thread, by its number; `None` if there is none, or the kernel does not let this process do it.
    #[must_use]
    pub fn of_thread(tid: u32) -> Option<Self> {
        Self::of(libc::pid_t::try_from(tid).ok()?)
    }

    /// 0: the calling thread.
    fn of(thread: libc::pid_t) -> Option<Self> {
        let (kind, config, sample, flags) = (SOFTWARE, DUMMY, SAMPLE, FLAGS);
        let event = Event { kind, config, sample, flags, thread, cpu: -1, pages: PAGES };
        let records = Records::of(event)?;
        Some(Self { records, since_ns: Threads::now(), seen: Vec::new() })
    }

    /// Whether records were lost, because nobody read them in time.
    #[must_use]
    pub fn lost(&self) -> bool {
        self.records.lost
    }

    /// Reads the records that have come since the last call.
    pub fn read(&mut self) {
        let Self { records, since_ns, seen } = self;
        records.read(|record| {
            if record.kind != SWITCH {
                return;
            }
            let what = match (record.misc & OUT != 0, record.misc & PREEMPTED != 0) {
                (false, _) => SwitchKind::In,
                (true, true) => SwitchKind::Preempted,
                (true, false) => SwitchKind::Slept,
            };
            let (at_ns, cpu) = (record.word(TIME), record.word(CPU) as u32);
            if seen.is_empty() && what != SwitchKind::In {
                // It ran from the begin.
                seen.push(Switch { at_ns: at_ns.min(*since_ns), cpu, what: SwitchKind::In });
            }
            seen.push(Switch { at_ns, cpu, what });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_a_switch_out_and_a_switch_in() {
        let Some(mut switches) = Switches::of_this_thread() else {
            overspin_testing::skip("this kernel does not let a thread record its switches");
            return;
        };
        let before = Threads::now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        switches.read();
        let all = &switches.seen;
        let slept = all.iter().position(|s| s.what == SwitchKind::Slept).unwrap();
        assert!(all[slept].at_ns >= before, "{all:?}");
        assert_eq!(all[slept + 1].what, SwitchKind::In);
        assert!(all[slept + 1].at_ns - all[slept].at_ns >= 1_900_000, "{all:?}");
    }
}
