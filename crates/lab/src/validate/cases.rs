//! The cases: what runs in the simulator and on this machine. Each is a scenario file, so `overspin run` repeats
//! any of them.

use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// vCPUs that take one lock again and again.
    Locks,
    /// vCPUs that compute and sleep.
    BurnWait,
    /// How late sleepers wake.
    WakeUp,
    /// Domains with different weights.
    Weights,
    /// Domains with caps.
    Caps,
    /// Equal hogs that do not divide by the pCPUs, so that they must go round.
    Shares,
}

impl Family {
    /// The schedulers under which the micro-hypervisor runs cases of this family: those that have what it is
    /// about.
    #[must_use]
    pub fn schedulers(self) -> &'static [&'static str] {
        match self {
            // Ten locks at four ratios: more schedulers would take more than the 12 minutes of the full set.
            Self::Locks => &["credit", "credit2"],
            Self::BurnWait | Self::WakeUp => {
                &["credit", "credit2", "cfs", "eevdf", "rtds", "sedf", "bvt", "rr"]
            }
            Self::Weights => &["credit", "credit2", "cfs", "eevdf", "bvt"],
            Self::Caps => &["credit", "credit2", "cfs", "eevdf"],
            // Those that move vCPUs between queues of pCPUs as Linux does; their runs are long.
            Self::Shares => &["eevdf-6.18", "cfs"],
        }
    }
}

/// A domain of a case.
#[derive(Clone, Debug)]
struct Guest {
    name: &'static str,
    vcpus: u32,
    weight: u32,
    cap: u32,
    lock: &'static str,
    /// The lines of `[domain.workload]`.
    workload: String,
    /// Each vCPU has a workload of its own, which stays there. Otherwise the simulated guest kernel would move tasks
    /// that wake to other vCPUs, and the other worlds have no such kernel.
    is_bound: bool,
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub family: Family,
    /// What happens in it, in words.
    pub about: String,
    /// vCPUs for each pCPU, of a case of [`Family::Locks`].
    pub ratio: u32,
    /// The lock, of a case of [`Family::Locks`].
    pub lock: Option<&'static str>,
    /// Whether the short form has it.
    pub quick: bool,
    /// Length of a run.
    pub limit_ms: u64,
    guests: Vec<Guest>,
}

/// The locks of the cases: spinning and sleeping ones, fair and unfair ones, with and without a host's help.
pub const LOCKS: [&str; 10] = [
    "lock-byte",
    "ticket",
    "mcs",
    "qspinlock",
    "pv-ticket",
    "pv-qspinlock",
    "xen-pv",
    "malthusian",
    "futex",
    "mutex",
];

/// vCPUs for each pCPU.
const RATIOS: [u32; 4] = [1, 2, 3, 4];

const LOCKS_MS: u64 = 250;
/// The length of a run in which a lock may collapse, with more vCPUs than pCPUs.
const COLLAPSE_MS: u64 = 1200;
const OTHERS_MS: u64 = 600;
/// Balancing moves a hog every 60 ms or so: in this time each hog moves some fifty times.
const SHARES_MS: u64 = 10_000;

/// The sleeper of the wake-up cases: 100 us of work, then 2 ms of sleep. It reports how late each item began.
const SLEEPER: &str =
    "kind = \"schedbench\"\nworker = \"burnwait 100 2000000\"\nreport_interval = \"1ms\"";

/// A worker that computes and sleeps.
fn burn_wait(burn: &str, wait: &str, distribution: &str) -> String {
    format!(
        "kind = \"burn-wait\"\nburn = \"{burn}\"\nwait = \"{wait}\"\nburn_distribution = \"{distribution}\"\n\
         wait_distribution = \"{distribution}\""
    )
}

fn hog() -> String {
    burn_wait("1ms", "0us", "fixed")
}

impl Guest {
    fn new(name: &'static str, vcpus: u32, workload: String) -> Self {
        Self { name, vcpus, weight: 256, cap: 0, lock: "ticket", workload, is_bound: true }
    }

    /// The tables of its workload.
    fn workloads(&self) -> String {
        if !self.is_bound {
            return format!("[domain.workload]\n{}\n", self.workload);
        }
        let one =
            |v| format!("[[domain.workload]]\nname = \"w{v}\"\nvcpus = [{v}]\n{}\n", self.workload);
        (0..self.vcpus).map(one).collect::<Vec<_>>().join("\n")
    }
}

impl Case {
    fn new(family: Family, name: &str, about: String, guests: Vec<Guest>) -> Self {
        Self {
            name: name.into(),
            family,
            about,
            ratio: 0,
            lock: None,
            quick: false,
            limit_ms: OTHERS_MS,
            guests,
        }
    }

    fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    /// The names of its domains.
    pub fn domains(&self) -> impl Iterator<Item = &'static str> {
        self.guests.iter().map(|guest| guest.name)
    }

    /// The case as a scenario file, on a host with this many pCPUs under this scheduler.
    ///
    /// The guests have no ticks and switch between no tasks, because the workers of the other worlds have no
    /// kernel either. Interrupts stay on for the same reason.
    #[must_use]
    pub fn toml(&self, pcpus: u32, scheduler: &str) -> String {
        let mut text = format!(
            "name = \"{}\"\ndescription = \"{}\"\nlimit = \"{}ms\"\nto_the_limit = true\n\n[host]\ncores = {pcpus}\n\
             scheduler = \"{scheduler}\"\nstagger = \"5ms\"\n",
            self.name, self.about, self.limit_ms
        );
        for guest in &self.guests {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "\n[[domain]]\nname = \"{}\"\nvcpus = {}\nweight = {}\ncap = {}\nlock = \"{}\"\n\n\
                 [domain.kernel]\nhz = 0\ntask_switch = 0\ntick_work = 0\n\n{}",
                guest.name,
                guest.vcpus,
                guest.weight,
                guest.cap,
                guest.lock,
                guest.workloads()
            );
        }
        text
    }
}

/// All cases for a host with this many pCPUs.
#[must_use]
pub fn cases(pcpus: u32) -> Vec<Case> {
    let mut all: Vec<Case> = LOCKS
        .iter()
        .flat_map(|lock| RATIOS.iter().map(move |ratio| lock_loop(lock, *ratio, pcpus)))
        .collect();
    all.extend(burn_waits(pcpus));
    all.extend(wake_ups(pcpus));
    all.extend(weights(pcpus));
    all.extend(caps(pcpus));
    all.extend(shares(pcpus));
    all
}

fn lock_loop(lock: &'static str, ratio: u32, pcpus: u32) -> Case {
    let workload =
        "kind = \"lock-loop\"\nsection = \"5us\"\noutside = \"20us\"\nirqs_off = false".to_owned();
    // One workload, because its threads share its lock; none of them sleeps of its own accord.
    let guest = Guest { lock, is_bound: false, ..Guest::new("guest", ratio * pcpus, workload) };
    let about =
        format!("{ratio} vCPUs for each pCPU take a {lock} lock: 5 us inside, 20 us outside");
    Case {
        ratio,
        lock: Some(lock),
        limit_ms: if ratio > 1 { COLLAPSE_MS } else { LOCKS_MS },
        quick: ratio <= 2 && ["lock-byte", "ticket", "mutex"].contains(&lock),
        ..Case::new(Family::Locks, &format!("{lock}-{ratio}x"), about, vec![guest])
    }
}

/// The four kinds of workers, two on each pCPU.
fn burn_waits(pcpus: u32) -> Vec<Case> {
    let kinds = [
        ("hogs", "1ms", "0us", "fixed"),
        ("halves", "5ms", "5ms", "exponential"),
        ("short-bursts", "200us", "400us", "exponential"),
        ("sleepers", "200us", "5ms", "exponential"),
    ];
    let case = |(name, burn, wait, distribution)| {
        let workload = burn_wait(burn, wait, distribution);
        let about = format!("two workers for each pCPU burn {burn} and wait {wait} in turn");
        let guest = Guest::new("guest", 2 * pcpus, workload);
        Case::new(Family::BurnWait, name, about, vec![guest])
    };
    let mut all = kinds.map(case);
    all[0].quick = true;
    all.into()
}

/// A sleeper on each pCPU, beside none, one or three hogs for each pCPU.
fn wake_ups(pcpus: u32) -> Vec<Case> {
    let beside = |hogs: u32| {
        let mut guests = vec![Guest::new("sleeper", pcpus, SLEEPER.into())];
        if hogs > 0 {
            guests.push(Guest::new("hog", hogs * pcpus, hog()));
        }
        let about = format!(
            "a sleeper for each pCPU wakes every 2 ms for 100 us of work, beside {hogs} hogs for each pCPU"
        );
        Case::new(Family::WakeUp, &format!("wake-{hogs}-hogs"), about, guests)
    };
    vec![beside(0).quick(), beside(1), beside(3)]
}

/// Weights that are the weights of two nice levels of Linux, so that all worlds can honour them.
fn weights(pcpus: u32) -> Vec<Case> {
    // Linux: 1024 for nice 0, 335 for nice 5, 110 for nice 10.
    let of = |name: &str, weight: u32, nice: u32| {
        let heavy = Guest::new("heavy", pcpus, hog());
        let light = Guest { weight, ..Guest::new("light", pcpus, hog()) };
        let about = format!(
            "two domains of hogs, one for each pCPU, with weights 256 and {weight} (nice 0 and {nice})"
        );
        Case::new(Family::Weights, name, about, vec![heavy, light])
    };
    vec![of("weights-3", 84, 5).quick(), of("weights-9", 28, 10)]
}

/// A domain with half of its CPU time, alone and beside another one.
fn caps(pcpus: u32) -> Vec<Case> {
    let capped = || Guest { cap: 50 * pcpus, ..Guest::new("capped", pcpus, hog()) };
    let alone = "a domain of hogs, one for each pCPU, capped to half of the pCPUs".to_owned();
    let beside = format!("{alone}, beside the same without a cap");
    vec![
        Case::new(Family::Caps, "cap-alone", alone, vec![capped()]).quick(),
        Case::new(
            Family::Caps,
            "cap-beside",
            beside,
            vec![capped(), Guest::new("free", pcpus, hog())],
        ),
    ]
}

/// Hogs of which some pCPUs have one more than others: alone, with two weights, and beside sleepers.
fn shares(pcpus: u32) -> Vec<Case> {
    let times = |halves: u32| (halves * pcpus).div_ceil(2);
    let hogs = |halves| Guest::new("hog", times(halves), hog());
    let case = |name, about: &str, guests| Case {
        limit_ms: SHARES_MS,
        ..Case::new(Family::Shares, name, about.into(), guests)
    };
    let light = Guest { weight: 84, ..Guest::new("light", pcpus, hog()) };
    let sleepers = Guest::new("sleeper", pcpus, burn_wait("1ms", "9ms", "exponential"));
    vec![
        case("shares-3-to-2", "three hogs for two pCPUs", vec![hogs(3)]),
        case("shares-5-to-2", "five hogs for two pCPUs", vec![hogs(5)]),
        case(
            "shares-nice",
            "three hogs for two pCPUs, beside two with weight 84 (nice 0 and 5)",
            vec![hogs(3), light],
        ),
        case(
            "shares-sleepers",
            "three hogs for two pCPUs, beside two vCPUs that run a tenth of the time",
            vec![hogs(3), sleepers],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_runs::scenario_file::{Loaded, load_text};
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_case_is_a_scenario_under_all_its_schedulers() {
        let all = cases(2);
        let names: BTreeSet<&str> = all.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), all.len(), "two cases have one name");
        assert_eq!(all.iter().filter(|case| case.lock.is_some()).count(), 40);
        for case in &all {
            for scheduler in case.family.schedulers() {
                let text = case.toml(2, scheduler);
                let loaded = load_text(Path::new("case.toml"), &text, &[], &[]);
                let loaded = loaded.unwrap_or_else(|e| panic!("{}: {e}\n{text}", case.name));
                let Loaded::One(scenario) = loaded else { panic!("{}: one run", case.name) };
                let names: Vec<&str> = scenario.domains.iter().map(|d| d.name.as_str()).collect();
                assert_eq!(names, case.domains().collect::<Vec<_>>());
            }
        }
    }
}
