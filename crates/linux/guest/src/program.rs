//! Programs, and what they use.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Host;
use crate::root::text;
use crate::talk::{Ran, Say};

/// The kernel's counts of events of its own queued locks.
const LOCK_EVENTS: &str = "/sys/kernel/debug/lock_event_counts";

/// Runs a program to its end, and hands each line that it prints to the host.
pub(crate) fn run(command: &[String], folder: &str, host: &mut Host) -> Result<Ran, String> {
    let [name, arguments @ ..] = command else { return Err("no program is named".into()) };
    let (output, input) = io::pipe().map_err(|e| e.to_string())?;
    let before = Counts::now();
    let began = Instant::now();
    let child = {
        let errors = input.try_clone().map_err(|e| e.to_string())?;
        Command::new(name)
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .env("LANG", "C")
            .stdin(Stdio::null())
            .stdout(input)
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("`{name}` in {folder}: {e}"))?
    };
    for line in BufReader::new(output).split(b'\n') {
        let line = line.map_err(|e| e.to_string())?;
        host.say(&Say::Line(String::from_utf8_lossy(&line).into_owned()))?;
    }
    let (status, usage) = wait(child.id())?;
    let elapsed_s = began.elapsed().as_secs_f64();
    let after = Counts::now();
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Ran {
        status,
        elapsed_s,
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
        preempted: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
        slept: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
        steal_s: after.steal_s - before.steal_s,
        lock_events: after.lock_events_since(&before),
    })
}

/// Waits for the end of the child `id`: its exit status, and what it and its children used.
fn wait(id: u32) -> Result<(i32, libc::rusage), String> {
    let mut status = 0;
    // SAFETY: `rusage` is numbers, for which zeros are values.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to variables of ours.
    let ended = unsafe { libc::wait4(id.cast_signed(), &raw mut status, 0, &raw mut usage) };
    if ended < 0 {
        return Err(io::Error::last_os_error().to_string());
    }
    let code = if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    };
    Ok((code, usage))
}

/// What the guest's kernel has counted so far.
struct Counts {
    steal_s: f64,
    lock_events: Vec<(String, u64)>,
}

impl Counts {
    fn now() -> Self {
        /// Ticks of a second in `/proc/stat`.
        const TICKS: f64 = 100.0;
        let stat = text("/proc/stat");
        let steal = stat.lines().next().and_then(|line| line.split_whitespace().nth(8));
        let steal: f64 = steal.and_then(|word| word.parse().ok()).unwrap_or(0.0);
        let mut lock_events = Vec::new();
        for entry in fs::read_dir(LOCK_EVENTS).into_iter().flatten().flatten() {
            // `.reset_counts` is not to be read.
            if let Ok(count) = text(entry.path()).trim().parse() {
                lock_events.push((entry.file_name().to_string_lossy().into_owned(), count));
            }
        }
        lock_events.sort();
        Self { steal_s: steal / TICKS, lock_events }
    }

    fn lock_events_since(self, before: &Self) -> Vec<(String, u64)> {
        let earlier = |name: &str| {
            before.lock_events.iter().find(|(known, _)| known == name).map_or(0, |(_, n)| *n)
        };
        let since = self.lock_events.into_iter().map(|(name, count)| {
            let grown = count.saturating_sub(earlier(&name));
            (name, grown)
        });
        since.filter(|(_, grown)| *grown > 0).collect()
    }
}
