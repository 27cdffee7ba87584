//! Boots, again and again: a lock under which one boot of fifty hangs does so here.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use overspin_real::scratch::Scratch;

use crate::machine::{Machine, NO_DISK, Running};
use crate::program::last_lines;
use crate::{LinuxError, guard_of, monitor};

/// How often to look whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// What became of a boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boot {
    /// The kernel came up after this time.
    Up(Duration),
    /// It did not.
    Failed {
        /// Where its vCPUs were when its time was over, or how it ended.
        how: String,
        /// The end of its console.
        console: String,
    },
    /// The caller was asked to stop.
    Stopped,
}

/// Boots `machine` until its kernel waits for a disk, which it does not have: then all drivers and all CPUs are there. After
/// `limit` it counts as hanging.
///
/// # Errors
/// If QEMU cannot be started.
pub fn boot(
    machine: &Machine,
    limit: Duration,
    scratch: &Scratch,
    stop: &dyn Fn() -> bool,
) -> Result<Boot, LinuxError> {
    let machine = Machine { monitor: Some(scratch.path().join("monitor")), ..machine.clone() };
    let running = machine.start(None, &guard_of(scratch))?;
    let boot = watched(&machine, &running, limit, stop);
    let qemu = running.id();
    drop(running);
    // Its number may soon be that of another process, which the guardian must not end.
    scratch.ended(qemu);
    Ok(boot)
}

fn watched(machine: &Machine, running: &Running, limit: Duration, stop: &dyn Fn() -> bool) -> Boot {
    let begun = Instant::now();
    let how = loop {
        if stop() {
            return Boot::Stopped;
        }
        if begun.elapsed() > limit {
            break format!("not up after {} s: {}", limit.as_secs(), monitor::places(machine));
        }
        match running.lines().recv_timeout(LOOK) {
            Ok(line) if line.contains(NO_DISK) => return Boot::Up(begun.elapsed()),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break ended(running),
        }
    };
    Boot::Failed { how, console: last_lines(&running.console()) }
}

fn ended(running: &Running) -> String {
    running.panic().unwrap_or_else(|| "the machine ended".into())
}
