//! Whether a measured run can be believed: what else the CPUs of this machine did during it, and whether it did more than
//! they can.

use crate::catalog;
use overspin_host::Refused;
use overspin_scenario::{Disturbance, Outcome, Scenario};
use std::fs;

/// Clock ticks since the start of the machine and of this process, as `/proc` counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    all: u64,
    busy: u64,
    stolen: u64,
    own: u64,
}

impl Ticks {
    /// `None` if the kernel does not tell.
    fn now() -> Option<Self> {
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
        // The name of a program may contain anything, so the fields begin after its last parenthesis. Children that have been
        // waited for count: a domain may be a process.
        let fields: Vec<&str> = process.rsplit_once(')')?.1.split_whitespace().collect();
        let time = |field: usize| fields.get(field)?.parse::<u64>().ok();
        let own = time(11)? + time(12)? + time(13)? + time(14)?;
        Some(Self { all: busy + idle + iowait + stolen, busy, stolen, own })
    }

    /// What others had since `before`.
    fn since(self, before: Self) -> Disturbance {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        let part = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let others = part(self.busy, before.busy) - part(self.own, before.own);
        Disturbance {
            steal: 100.0 * part(self.stolen, before.stolen) / all,
            others: 100.0 * others.max(0.0) / all,
        }
    }
}

/// What the calibrated work may be wrong by.
const CALIBRATION: f64 = 0.05;
/// Standard deviations by which the random work of all items may be less than its mean.
const CHANCE: f64 = 4.0;

/// Makes a measured run. Its outcome says what others had of the CPUs meanwhile, and whether it can be right.
///
/// # Errors
/// Those of `make`.
pub fn watched(
    scenario: &Scenario,
    make: impl FnOnce() -> Result<Outcome, Refused>,
) -> Result<Outcome, Refused> {
    let before = Ticks::now();
    let mut outcome = make()?;
    let disturbance = before.zip(Ticks::now()).map(|(before, now)| now.since(before));
    let impossible = impossible(scenario, &outcome);
    if let Some(measurement) = &mut outcome.measurement {
        (measurement.disturbance, measurement.impossible) = (disturbance, impossible);
    }
    Ok(outcome)
}

/// Why a measured outcome cannot be right: its items are more work than its CPUs can do in the time that counts. `None` if
/// they are not, or if nobody knows the work of an item.
fn impossible(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    let (mut work, mut all) = (0.0, 0.0);
    for (asked, domain) in scenario.domains.iter().zip(&outcome.domains) {
        let Some(one) = catalog::names().work_per_item(asked) else { continue };
        // Each task may have begun an item before the time that counts.
        let items =
            domain.tasks.iter().map(|task| task.items.saturating_sub(1)).sum::<u64>() as f64;
        work += items * one.seconds();
        all += items;
    }
    let possible = outcome.counted().seconds() * f64::from(scenario.host.pcpus());
    let tolerated = 1.0 + CALIBRATION + CHANCE / f64::max(all, 1.0).sqrt();
    (work > possible * tolerated).then(|| {
        format!(
            "{all:.0} items are {work:.3} s of work, and its CPUs had {possible:.3} s: the loop that stands for work was \
             calibrated while the machine was slower"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_others_by_hand() {
        let of = |machine, process| Ticks::parse(machine, process).unwrap();
        let before = of(
            "cpu  100 0 50 1000 10 0 0 5 0 0\ncpu0 1 1 1 1 1 1 1 1\n",
            "7 (a) b) S 1 1 1 0 -1 0 1 2 3 4 40 10 5 5",
        );
        // Of 200 ticks, 110 were busy, of which 100 were ours; 20 were stolen.
        let after = of(
            "cpu  180 0 80 1070 10 0 0 25 0 0\n",
            "7 (a) b) S 1 1 1 0 -1 0 1 2 3 4 100 20 20 20",
        );
        assert_eq!(after.since(before), Disturbance { steal: 10.0, others: 5.0 });
        assert_eq!(before.since(before), Disturbance::default());
        assert_eq!(Ticks::parse("cpu  1 2 3", "7 (a) S"), None);
    }
}
