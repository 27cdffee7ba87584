//! Which runs answer a question.

use super::Question;
use overspin_runs::scenario_file::cost_keys;
use overspin_scenario::Picos;
use overspin_scenario_file::machine::machine;
use serde::Serialize;

/// Overcommit ratios of the curves, in tenths. The operator's own is added.
const RATIOS: [u32; 5] = [10, 15, 20, 30, 40];
/// Locks of guest kernels, old and new, to try in place of the guests' own.
const LOCKS: [&str; 4] = ["ticket", "pv-ticket", "pv-qspinlock", "xen-pv"];

/// What a point is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// A point of a curve: one scheduler at one ratio.
    Curve,
    /// Another lock at the operator's ratio.
    Lock,
    /// Another setting of the host or of the guests at the operator's ratio.
    Knob,
    /// All assumed costs at one end of their ranges, at the operator's ratio.
    Costs,
}

/// A point: the scenario with these settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// What it is compared with.
    pub group: Group,
    /// What is special about it, in words.
    pub name: String,
    /// The scheduler.
    pub scheduler: String,
    /// pCPUs of the host.
    pub pcpus: u32,
    /// The `--set` arguments that make it from the scenario.
    pub sets: Vec<String>,
}

/// All points, those of the curves first.
pub(super) fn points(question: &Question) -> Vec<Point> {
    let mut points = curves(question);
    let Some(first) = question.schedulers.first() else { return points };
    let here = |group, name: String, sets: Vec<String>| Point {
        group,
        name,
        scheduler: first.clone(),
        pcpus: question.pcpus,
        sets,
    };
    let everywhere = |key: &str, value: &str| -> Vec<String> {
        question.guests.iter().map(|g| format!("domain.{}.{key}={value}", g.name)).collect()
    };
    for lock in LOCKS.iter().filter(|lock| **lock != question.lock) {
        points.push(here(Group::Lock, format!("lock {lock}"), everywhere("lock", lock)));
    }
    let knob = |name: &str, sets: Vec<String>| here(Group::Knob, name.into(), sets);
    let host = |set: &str| vec![format!("host.{set}")];
    points.push(knob("pause-loop exits", host("pause_loop_exiting.window=2048ns")));
    let both = ["pause_loop_exiting.window=2048ns", "directed_yield=true"];
    points.push(knob(
        "pause-loop exits with directed yields",
        both.map(|set| format!("host.{set}")).into(),
    ));
    points.push(knob("spin budget of 256 looks", everywhere("spin_budget", "256")));
    points.push(knob("halt polling", host("halt_polling.max=200us")));
    points.push(knob("no paravirtual locks (nopvspin)", everywhere("nopvspin", "true")));
    for (name, end) in [("lowest", 0), ("highest", 1)] {
        let sets = assumed(&question.machine, end);
        if !sets.is_empty() {
            let name = format!("{} assumed costs at their {name}", sets.len());
            points.push(here(Group::Costs, name, sets));
        }
    }
    points
}

/// Every scheduler at every ratio: the same guests on a host of more or fewer pCPUs.
fn curves(question: &Question) -> Vec<Point> {
    let vcpus = question.all_vcpus();
    let mut hosts: Vec<u32> =
        RATIOS.iter().map(|tenths| (vcpus * 10).div_ceil(*tenths).max(1)).collect();
    hosts.push(question.pcpus);
    hosts.sort_unstable_by_key(|pcpus| std::cmp::Reverse(*pcpus));
    hosts.dedup();
    let point = |scheduler: &String, pcpus: u32| Point {
        group: Group::Curve,
        name: format!("{scheduler} at {:.1}:1", question.ratio(pcpus)),
        scheduler: scheduler.clone(),
        pcpus,
        sets: vec![format!("host.scheduler={scheduler}"), format!("host.cores={pcpus}")],
    };
    let of = |scheduler| hosts.iter().map(move |pcpus| point(scheduler, *pcpus));
    question.schedulers.iter().flat_map(of).collect()
}

/// Settings of all costs that are assumed for this machine: the low end (0) or the high end (1) of their ranges.
fn assumed(name: &str, end: usize) -> Vec<String> {
    let Some(machine) = machine(name) else { return Vec::new() };
    let set = |key: &str| {
        let range: [Picos; 2] = machine.assumed(key)?;
        Some(format!("host.costs.{key}={}ps", range[end].0))
    };
    cost_keys().filter_map(set).collect()
}
