//! The kernel's own judge of its locks: `locktorture`.
//!
//! Its threads take a lock in turn, each holds it for up to 100 us, now and then for a long time, and each looks whether it is
//! alone. Nobody here wrote it.

use std::time::Duration;

use crate::machine::Machine;
use crate::program::last_lines;
use crate::{Guard, LinuxError};

/// Locks that the kernel tortures: with interrupts on and off, and one that excludes nobody, which must fail.
pub const TYPES: [&str; 3] = ["spin_lock", "spin_lock_irq", "lock_busted"];
/// Time for an emulated kernel to boot, and to end.
const BOOT: Duration = Duration::from_secs(60);

/// What it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether each thread was alone with the lock whenever it held it.
    pub success: bool,
    /// Acquisitions.
    pub acquisitions: u64,
}

/// Boots `machine` with `lock` as its spinlock, and tortures the locks of type `kind` with twice as many threads as vCPUs.
///
/// # Errors
/// If QEMU cannot be started; if the kernel does not take that lock, or does not come to an end.
pub fn torture(
    machine: &Machine,
    lock: &str,
    kind: &str,
    seconds: u32,
    guard: Guard<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Verdict, LinuxError> {
    let parameters = parameters(lock, kind, machine.vcpus, seconds);
    let machine = Machine { parameters, ..machine.clone() };
    let limit = BOOT + Duration::from_secs(u64::from(seconds) * 3);
    let mut hear = |line: &str| !line.contains("End of test");
    let console = machine.run(limit, guard, &mut hear, stop)?;
    judged(&console, lock)
}

/// What the kernel of a guest with so many vCPUs is told.
#[must_use]
pub fn parameters(lock: &str, kind: &str, vcpus: u32, seconds: u32) -> String {
    let writers = vcpus * 2;
    format!(
        "overspin_lock={lock} rcutorture.torture_type=none locktorture.torture_type={kind} \
         locktorture.nwriters_stress={writers} locktorture.stat_interval=5 locktorture.long_hold=1 \
         locktorture.shutdown_secs={seconds}"
    )
}

/// What the console of a kernel that should have taken `lock` says at its end.
///
/// # Errors
/// If it did not take that lock, or did not come to an end.
pub fn judged(console: &str, lock: &str) -> Result<Verdict, LinuxError> {
    if !console.contains(&format!("overspin: spinlocks are {lock}")) {
        let what = format!("the kernel did not take the lock `{lock}`");
        return Err(LinuxError::Console { what, console: last_lines(console) });
    }
    verdict(console).ok_or_else(|| LinuxError::Console {
        what: format!("locktorture with `{lock}` did not come to an end"),
        console: last_lines(console),
    })
}

/// What the console says at the end.
fn verdict(console: &str) -> Option<Verdict> {
    let end = console.lines().rev().find(|line| line.contains("End of test"))?;
    let totals = console.lines().rev().filter_map(|line| line.split_once("Writes:  Total: "));
    let total = totals.map(|(_, rest)| rest).next()?;
    Some(Verdict {
        success: end.contains("End of test: SUCCESS"),
        acquisitions: total.split_whitespace().next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_is_read() {
        let console = "[    1.0] spin_lock-torture: Writes:  Total: 10  Max/Min: 5/0   Fail: 0\n\
                       [   20.0] spin_lock-torture: Writes:  Total: 743210  Max/Min: 9/0   Fail: 0\n\
                       [   20.0] spin_lock-torture:--- End of test: SUCCESS [debug]: nwriters_stress=8\n";
        assert_eq!(verdict(console), Some(Verdict { success: true, acquisitions: 743_210 }));
        let failed = console.replace("SUCCESS", "FAILURE");
        assert_eq!(verdict(&failed).map(|v| v.success), Some(false));
        assert_eq!(verdict("Writes:  Total: 10"), None);
    }
}
