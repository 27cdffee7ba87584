//! What else the CPUs of this machine did during a run: other programs, and the hypervisor below.

use overspin_record::validation::Disturbance;
use std::fs;

/// Clock ticks since the start of the machine and of this process, as `/proc` counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    all: u64,
    busy: u64,
    stolen: u64,
    own: u64,
}

impl Ticks {
    /// `None` if the kernel does not tell.
    pub(super) fn now() -> Option<Self> {
        let read = |path| fs::read_to_string(path).ok();
        Self::parse(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    fn parse(machine: &str, process: &str) -> Option<Self> {
        // proc_stat(5): user nice system idle iowait irq softirq steal.
        let line = machine.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<u64> =
            line.split_whitespace().take(8).filter_map(|t| t.parse().ok()).collect();
        let [user, nice, system, idle, iowait, irq, softirq, stolen] = times[..] else {
            return None;
        };
        let busy = user + nice + system + irq + softirq;
        // The name of a program may contain anything, so the fields begin after its last parenthesis.
        let fields: Vec<&str> = process.rsplit_once(')')?.1.split_whitespace().collect();
        let time = |field: usize| fields.get(field)?.parse::<u64>().ok();
        let own = time(11)? + time(12)?;
        Some(Self { all: busy + idle + iowait + stolen, busy, stolen, own })
    }

    /// What others had since `before`.
    pub(super) fn since(self, before: Self) -> Disturbance {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        let part = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let others = part(self.busy, before.busy) - part(self.own, before.own);
        Disturbance {
            steal: 100.0 * part(self.stolen, before.stolen) / all,
            others: 100.0 * others.max(0.0) / all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_others_by_hand() {
        let of = |machine, process| Ticks::parse(machine, process).unwrap();
        let before = of(
            "cpu  100 0 50 1000 10 0 0 5 0 0\ncpu0 1 1 1 1 1 1 1 1\n",
            "7 (a) b) S 1 1 1 0 -1 0 1 2 3 4 40 10 0 0",
        );
        // Of 200 ticks, 110 were busy, of which 100 were ours; 20 were stolen.
        let after =
            of("cpu  180 0 80 1070 10 0 0 25 0 0\n", "7 (a) b) S 1 1 1 0 -1 0 1 2 3 4 130 20 0 0");
        assert_eq!(after.since(before), Disturbance { steal: 10.0, others: 5.0 });
        assert_eq!(before.since(before), Disturbance::default());
        assert_eq!(Ticks::parse("cpu  1 2 3", "7 (a) S"), None);
    }
}
