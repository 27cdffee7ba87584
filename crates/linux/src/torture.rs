//! The kernel's own judges of its locks. Nobody here wrote them.
//!
//! The threads of `locktorture` take a lock in turn, each holds it for up to 100 us, now and then for a long time, and each looks
//! whether it is alone. Those of `rcutorture` read what others free, and look whether it was freed too soon: RCU itself takes
//! spinlocks, in interrupts too. At each boot the kernel tests its locks once; without `PROVE_LOCKING` most of these tests fail "as
//! expected", so they only tell whether a lock changes anything.

use std::time::Duration;

use crate::machine::Machine;
use crate::program::last_lines;
use crate::{Guard, LinuxError};

/// Time for an emulated kernel to boot, and to end.
const BOOT: Duration = Duration::from_secs(60);

/// A judge that the kernel has, and what it tortures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// `locktorture`, with the spinlock that it takes so.
    Lock(&'static str),
    /// `rcutorture`, with this kind of RCU.
    Rcu(&'static str),
}

impl Judge {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lock(_) => "locktorture",
            Self::Rcu(_) => "rcutorture",
        }
    }

    /// What it tortures, as the kernel names it.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Lock(kind) | Self::Rcu(kind) => kind,
        }
    }
}

/// Judges of a lock: it is taken with interrupts on, with interrupts off, and by RCU.
pub const JUDGES: [Judge; 3] =
    [Judge::Lock("spin_lock"), Judge::Lock("spin_lock_irq"), Judge::Rcu("rcu")];
/// The controls: a lock that excludes nobody, and an RCU that waits for nobody. They must fail.
pub const CONTROLS: [Judge; 2] = [Judge::Lock("lock_busted"), Judge::Rcu("busted")];

/// What it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether each thread was alone with the lock whenever it held it, or nothing was freed while it was read.
    pub success: bool,
    /// Acquisitions, or what readers read.
    pub count: u64,
    /// What the tests at boot say.
    pub at_boot: Option<String>,
}

/// Boots `machine` with `lock` as its spinlock, and lets `judge` torture it; `locktorture` with twice as many threads as vCPUs.
///
/// # Errors
/// If QEMU cannot be started; if the kernel does not take that lock, or does not come to an end.
pub fn torture(
    machine: &Machine,
    lock: &str,
    judge: Judge,
    seconds: u32,
    guard: Guard<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Verdict, LinuxError> {
    let parameters = parameters(lock, judge, machine.vcpus, seconds);
    let machine = Machine { parameters, ..machine.clone() };
    let limit = BOOT + Duration::from_secs(u64::from(seconds) * 3);
    let mut hear = |line: &str| !line.contains("End of test");
    let console = machine.run(limit, guard, &mut hear, stop)?;
    judged(&console, lock, judge)
}

/// What the kernel of a guest with so many vCPUs is told.
#[must_use]
pub fn parameters(lock: &str, judge: Judge, vcpus: u32, seconds: u32) -> String {
    let judging = match judge {
        Judge::Lock(kind) => format!(
            "rcutorture.torture_type=none locktorture.torture_type={kind} locktorture.nwriters_stress={} \
             locktorture.long_hold=1",
            vcpus * 2
        ),
        Judge::Rcu(kind) => {
            format!("locktorture.torture_type=none rcutorture.torture_type={kind}")
        }
    };
    let name = judge.name();
    format!("overspin_lock={lock} {judging} {name}.stat_interval=5 {name}.shutdown_secs={seconds}")
}

/// What the console of a kernel that should have taken `lock` says at its end.
///
/// # Errors
/// If it did not take that lock, or did not come to an end.
pub fn judged(console: &str, lock: &str, judge: Judge) -> Result<Verdict, LinuxError> {
    if !console.contains(&format!("overspin: spinlocks are {lock}")) {
        let what = format!("the kernel did not take the lock `{lock}`");
        return Err(LinuxError::Console { what, console: last_lines(console) });
    }
    verdict(console, judge).ok_or_else(|| LinuxError::Console {
        what: format!("{} with `{lock}` did not come to an end", judge.name()),
        console: last_lines(console),
    })
}

/// What the console says at the end.
fn verdict(console: &str, judge: Judge) -> Option<Verdict> {
    let end = console.lines().rev().find(|line| line.contains("End of test"))?;
    let last = |what: &str| console.lines().rev().find_map(|line| Some(line.split_once(what)?.1));
    let numbers = |text: &str| -> Vec<u64> {
        text.split_whitespace().map_while(|word| word.parse().ok()).collect()
    };
    let count = match judge {
        Judge::Lock(_) => *numbers(last("Writes:  Total: ")?).first()?,
        // What was read, by the number of grace periods that it had been out of date for.
        Judge::Rcu(_) => numbers(last("Reader Pipe: ")?).iter().sum(),
    };
    let at_boot = console.lines().find(|line| line.contains("testcases "));
    Some(Verdict {
        success: end.contains("End of test: SUCCESS"),
        count,
        at_boot: at_boot.map(|line| line.trim_end_matches('|').trim().to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: &str = "239 out of 358 testcases failed, as expected. |\n";

    fn of(success: bool, count: u64) -> Option<Verdict> {
        let at_boot = Some("239 out of 358 testcases failed, as expected.".into());
        Some(Verdict { success, count, at_boot })
    }

    #[test]
    fn the_console_of_locktorture_is_read() {
        let console = format!(
            "{BOOT}[    1.0] spin_lock-torture: Writes:  Total: 10  Max/Min: 5/0   Fail: 0\n\
             [   20.0] spin_lock-torture: Writes:  Total: 743210  Max/Min: 9/0   Fail: 0\n\
             [   20.0] spin_lock-torture:--- End of test: SUCCESS [debug]: nwriters_stress=8\n"
        );
        let [judge, ..] = JUDGES;
        assert_eq!(verdict(&console, judge), of(true, 743_210));
        assert_eq!(verdict(&console.replace("SUCCESS", "FAILURE"), judge), of(false, 743_210));
        assert_eq!(verdict("Writes:  Total: 10", judge), None);
    }

    #[test]
    fn the_console_of_rcutorture_is_read() {
        let console = format!(
            "{BOOT}rcu-torture: Reader Pipe:  5 1 0 0 0 0 0 0 0 0 0\n\
             rcu-torture: Reader Pipe:  3705 13 0 0 0 0 0 0 0 0 0\n\
             rcu-torture: Reader Batch:  3650 68 0 0 0 0 0 0 0 0 0\n\
             rcu-torture:--- End of test: SUCCESS: nreaders=3 nfakewriters=4\n"
        );
        let judge = Judge::Rcu("rcu");
        assert_eq!(verdict(&console, judge), of(true, 3718));
        assert_eq!(verdict(&console.replace("SUCCESS", "FAILURE"), judge), of(false, 3718));
    }
}
