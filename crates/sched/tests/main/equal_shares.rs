//! Equal vCPUs get equal shares over long windows, whatever the ties: vCPUs of equal weights that come up at one
//! instant and always want to run. Costs and noise, which would break ties, are 0.
//!
//! The credit schedulers and rtds have tests of their own.

use crate::common::Driver;
use overspin_sched::*;

/// What equal hogs get, each in a domain of its own.
#[derive(Clone, Copy, Debug)]
enum Shares {
    /// Equal shares in each window, within so many points.
    Equal(f64),
    /// A vCPU stays on the pCPU where it came up, by design of the original: equal shares on each pCPU, within so many
    /// points. No pCPU has more than one vCPU more than another.
    PerPcpu(f64),
    /// A pCPU for itself, or none.
    OneOrNone,
}

/// The shares that a scheduler promises, and why.
fn promise(name: &str) -> Shares {
    match name {
        // A tick of 4 ms keeps turns and moves in step: a hog that never moves has half of its pCPU half of the time
        // and all of it otherwise, 75 % of it where fair are 67. See `hogs_go_round`.
        "cfs" | "eevdf" | "eevdf-6.18" => Shares::Equal(11.),
        // One queue for all: equal within a quantum of 10 ms.
        "rr" => Shares::Equal(1.),
        // Xen's sched_bvt.c and sched_sedf.c of 2005 have no balancing: a vCPU's CPU is set when its domain is built
        // (least populated first), or by the administrator.
        "bvt" | "sedf" => Shares::PerPcpu(1.),
        // Xen's sched_null.c: a unit has a pCPU, or waits for one.
        "null" => Shares::OneOrNone,
        // One queue by virtual time, within a quantum of 50 ms (strict: all VMs at common boundaries, by virtual time).
        "cosched" | "cosched-vm" | "cosched-strict" => Shares::Equal(4.),
        _ => panic!("{name}: say what equal vCPUs get"),
    }
}

const MACHINES: [(u32, u32); 4] = [(1, 3), (2, 3), (2, 5), (4, 6)];
const WINDOW: Nanos = Nanos::ms(4_000);

/// The shares of `n` hogs, in percent of a pCPU, in each of three windows after the first second, with their homes.
fn windows(name: &str, pcpus: u32, n: u32, one_domain: bool) -> Vec<Vec<(u32, f64)>> {
    let mut d = Driver::flat(name, pcpus);
    let v: Vec<_> = match one_domain {
        true => d.domain(256, 0, n),
        false => (0..n).map(|_| d.domain(256, 0, 1)[0]).collect(),
    };
    v.iter().for_each(|v| d.up(*v));
    let mut end = Nanos::ms(1_000);
    d.run_to(end);
    d.settle();
    let mut all = Vec::new();
    for _ in 0..3 {
        let before: Vec<_> = v.iter().map(|v| d.running(*v)).collect();
        end += WINDOW;
        d.run_to(end);
        d.settle();
        let share = |(v, before): (&VcpuId, &Nanos)| {
            let ran = d.running(*v) - *before;
            (d.h.machine().home(*v).0, 100. * ran.0 as f64 / WINDOW.0 as f64)
        };
        all.push(v.iter().zip(&before).map(share).collect());
    }
    all
}

#[test]
fn equal_vcpus_get_equal_shares_in_any_long_window() {
    let others =
        |info: &&SchedulerInfo| !["credit", "rtds"].iter().any(|x| info.name.starts_with(x));
    for info in schedulers().iter().filter(others) {
        for (pcpus, n) in MACHINES {
            for shares in windows(info.name, pcpus, n, false) {
                let near = |share: f64, fair: f64, bound: f64| {
                    let what = format!("{}: {n} on {pcpus}: {shares:?}", info.name);
                    assert!((share - fair).abs() <= bound, "{what}");
                };
                match promise(info.name) {
                    Shares::Equal(bound) => {
                        let fair = 100. * f64::from(pcpus) / f64::from(n);
                        shares.iter().for_each(|(_, share)| near(*share, fair, bound));
                    }
                    Shares::PerPcpu(bound) => {
                        let there = |p| shares.iter().filter(|(home, _)| *home == p).count() as u32;
                        for (home, share) in &shares {
                            assert!((n / pcpus..=n.div_ceil(pcpus)).contains(&there(*home)));
                            near(*share, 100. / f64::from(there(*home)), bound);
                        }
                    }
                    Shares::OneOrNone => {
                        let full = shares.iter().filter(|(_, share)| *share == 100.).count();
                        assert_eq!(full, pcpus as usize, "{shares:?}");
                    }
                }
            }
        }
    }
}

/// A VM with more vCPUs than there are pCPUs is placed with those that ran least, so they take turns.
#[test]
fn a_vm_that_is_too_large_for_strict_coscheduling_runs_in_turns() {
    for (pcpus, n) in MACHINES {
        let fair = 100. * f64::from(pcpus) / f64::from(n);
        for shares in windows("cosched-strict", pcpus, n, true) {
            let even = shares.iter().all(|(_, share)| (share - fair).abs() <= 4.);
            assert!(even, "{n} on {pcpus}: {shares:?}");
        }
    }
}
