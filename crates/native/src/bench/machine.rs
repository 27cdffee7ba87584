//! Conditions that make a figure doubtful.

use std::fs;

use serde::Serialize;

/// A condition of the machine that may influence the figures more than the locks do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// The machine is virtual.
    Virtualised,
    /// CPUs share cores.
    Smt,
    /// The frequency follows the load.
    Governor {
        /// The governor of CPU 0.
        name: String,
    },
    /// Other programs run, too.
    Load {
        /// Runnable threads, on average over the last minute.
        load: f64,
    },
    /// The hypervisor gave our time to others, or other processes took it.
    Taken {
        /// Share of all CPU time during the measurement, in percent.
        percent: f64,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Virtualised => f.write_str(
                "this is a virtual machine: the host may take a CPU away at any time, and \
                 waking an idle CPU costs an exit",
            ),
            Self::Smt => f.write_str(
                "CPUs share cores: the speed of a CPU depends on its sibling; choose one CPU of each core \
                 with --cpus",
            ),
            Self::Governor { name } => write!(
                f,
                "the frequency governor is `{name}`: CPUs are slower after sleeping; choose \
                 `performance` if you may"
            ),
            Self::Load { load } => write!(
                f,
                "the load was {load:.1} before the start: others compete for the CPUs; {}",
                remedy(autogroup())
            ),
            Self::Taken { percent } => write!(
                f,
                "others had {percent:.0} % of the CPU time while this ran; {}",
                remedy(autogroup())
            ),
        }
    }
}

/// Whether the kernel shares the CPUs out between terminals first, and then between the processes of each.
fn autogroup() -> bool {
    read("/proc/sys/kernel/sched_autogroup_enabled").as_deref() == Some("1")
}

/// What helps where other work runs.
fn remedy(autogroup: bool) -> &'static str {
    if autogroup {
        "stop them, or raise the priority of this terminal with `echo -10 > /proc/self/autogroup` as root (`nice` has \
         no effect between terminals), and repeat"
    } else {
        "stop them, or raise the priority of this program with `nice -n -10` as root, and repeat"
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Lists the warnings that are known before the start.
#[must_use]
pub fn warnings() -> Vec<Warning> {
    let mut warnings = Vec::new();
    let flags = read("/proc/cpuinfo").unwrap_or_default();
    if flags.split_whitespace().any(|flag| flag == "hypervisor") {
        warnings.push(Warning::Virtualised);
    }
    if read("/sys/devices/system/cpu/smt/active").as_deref() == Some("1") {
        warnings.push(Warning::Smt);
    }
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if let Some(name) = governor.filter(|name| name != "performance") {
        warnings.push(Warning::Governor { name });
    }
    let load = read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok());
    // Half a CPU: an idle desktop has less.
    if let Some(load) = load.filter(|&load: &f64| load > 0.5) {
        warnings.push(Warning::Load { load });
    }
    warnings
}

/// CPU time of the whole machine, in clock ticks: used by any process, and stolen by the
/// hypervisor.
#[derive(Clone, Copy, Debug)]
pub(super) struct MachineTime {
    busy: u64,
    stolen: u64,
}

impl MachineTime {
    pub(super) fn now() -> Option<Self> {
        let text = read("/proc/stat")?;
        let mut fields = text.lines().next()?.split_whitespace().skip(1).map(str::parse::<u64>);
        let mut next = || fields.next()?.ok();
        let (user, nice, system) = (next()?, next()?, next()?);
        let (_idle, _iowait, irq, softirq, stolen) = (next()?, next()?, next()?, next()?, next()?);
        Some(Self { busy: user + nice + system + irq + softirq, stolen })
    }

    /// The time of others since `before`, in percent of `cpus` CPUs for `wall_s` seconds, of which
    /// we used `ours_s`.
    pub(super) fn taken_since(self, before: Self, wall_s: f64, cpus: usize, ours_s: f64) -> f64 {
        // The unit of /proc/stat on every architecture: 10 ms.
        let seconds = |ticks: u64| ticks as f64 / 100.0;
        let others = seconds(self.busy.saturating_sub(before.busy)) - ours_s;
        let stolen = seconds(self.stolen.saturating_sub(before.stolen));
        (others.max(0.0) + stolen) / (wall_s * cpus as f64) * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// sched(7): with autogrouping, a nice value counts only among the processes of one session.
    #[test]
    fn the_remedy_is_one_that_helps() {
        assert!(remedy(true).contains("/proc/self/autogroup"));
        assert!(!remedy(false).contains("autogroup") && remedy(false).contains("nice -n -10"));
    }
}
