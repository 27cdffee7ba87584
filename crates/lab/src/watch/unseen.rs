//! What cannot be read here, and how to let this command read it.

use super::mutexes::Mutexes;
use super::threads::{MOST, Threads};
use super::{Guests, Unseen};
use overspin_scenario::Second;
use std::io::ErrorKind;
use std::path::Path;

pub(super) fn of_machine(
    root: &Path,
    machine: &Second,
    guests: Result<Guests, ErrorKind>,
) -> Vec<Unseen> {
    let mut all = Vec::new();
    let mut lacks = |what: &str, remedy: &str| all.push(unseen(what, remedy));
    if machine.shares.is_none() {
        lacks(
            "steal and idle time",
            "/proc/stat has no ticks: mount /proc, or watch for a longer --interval",
        );
    }
    if machine.cpu_pressure.is_none() {
        lacks(
            "pressure on CPUs",
            "/proc/pressure/cpu is not readable: start the kernel with psi=1 (Linux 4.20, CONFIG_PSI)",
        );
    }
    if machine.run_delay.is_none() {
        lacks(
            "run delay of all threads",
            "/proc/schedstat is not there: it needs a kernel with CONFIG_SCHEDSTATS; --pid reads a program's own",
        );
    }
    if !root.join("sys/fs/cgroup").is_dir() {
        lacks("quotas of control groups", "mount them on /sys/fs/cgroup");
    }
    match guests {
        Ok(_) => {}
        Err(ErrorKind::PermissionDenied) => {
            lacks(
                "pause-loop exits",
                "KVM shows its counters in debugfs to root, and to nobody while the kernel is locked down: run this as root",
            );
        }
        Err(_) if root.join("sys/module/kvm").exists() || root.join("dev/kvm").exists() => lacks(
            "pause-loop exits",
            "/sys/kernel/debug/kvm is not there: `mount -t debugfs none /sys/kernel/debug` as root; it needs CONFIG_DEBUG_FS",
        ),
        // Without KVM there are no guests.
        Err(_) => {}
    }
    all
}

pub(super) fn of_program(threads: &Threads, mutexes: &Mutexes) -> Vec<Unseen> {
    let mut all = Vec::new();
    if threads.untold > 0 {
        all.push(unseen(
            "run delay of the program",
            "its threads have no /proc/PID/schedstat: it needs a kernel with CONFIG_SCHED_INFO",
        ));
    }
    if threads.left_out > 0 {
        let what = format!("{} threads of the program", threads.left_out);
        all.push(unseen(&what, &format!("{MOST} are read, so that watching costs little")));
    }
    match mutexes {
        Mutexes::Counted(_) => {}
        Mutexes::Uncounted => {
            all.push(unseen("waits for mutexes", "start the program with `overspin exec --stats`"));
        }
        Mutexes::Own => all.push(unseen(
            "waits for mutexes",
            "the program keeps no count: start it with `overspin exec --lock NAME --stats`",
        )),
        Mutexes::Denied => all.push(unseen(
            "waits for mutexes",
            "the program belongs to another user: run this as that user, or as root",
        )),
    }
    all
}

fn unseen(what: &str, remedy: &str) -> Unseen {
    Unseen { what: what.into(), remedy: remedy.into() }
}
