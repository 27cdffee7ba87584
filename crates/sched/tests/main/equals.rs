//! Equal vCPUs that start at one instant get equal shares over any window, so far as their scheduler promises it.

use overspin_sched::conformance::{Equals, Shares};
use overspin_sched::*;

/// All windows of 1.2 s in 5 s: 40 accountings of credit, 120 periods of rtds, 24 quanta of cosched.
fn shares(name: &str, pcpus: u32, vcpus: u32, start: Nanos) -> Shares {
    let equals = Equals {
        vcpus,
        start,
        window: Nanos::ms(1_200),
        time: Nanos::sec(5),
        ..Equals::on(Topology::flat(pcpus))
    };
    let shares = equals.run(make(name, &Params::default()).unwrap());
    shares.unwrap_or_else(|failure| panic!("{name}: {failure}"))
}

/// How far from an equal share of `fair` a vCPU may be in a window of any length, and whether that
/// holds on several pCPUs. None: the scheduler promises nothing.
fn promise(name: &str, fair: Nanos) -> Option<(Nanos, bool)> {
    Some(match name {
        // A pCPU for each vCPU, for good.
        "null" => return None,
        // Two slices. Stealing evens out what several pCPUs have.
        "credit" | "credit-2016" | "credit-2013" => (Nanos::ms(60), true),
        // vCPUs that started at one home stay there, and the other pCPUs idle: a difference from Xen
        // 3.3, where an idle pCPU looks for work every 30 ms.
        "credit-2008" => (Nanos::ms(60), false),
        // Three epochs: a vCPU needs half a millisecond more credit to change its pCPU, so two of three
        // vCPUs may share one for some epochs.
        "credit2" | "credit2-2013" => (Nanos::ms(30), true),
        // A runqueue for each core, balanced only if a move makes loads more alike: three on two
        // pCPUs stay two and one.
        "credit2-2016" => (Nanos::ms(30), false),
        // A quantum.
        "rr" => (Nanos::ms(10), true),
        // Ties alternate between two periods, in which five budgets fit. They even out over five
        // vCPUs, not over three; nobody is far off.
        "rtds" | "rtds-4.5" => (fair / 5, true),
        // A queue for each pCPU; no balancing, or one of loads.
        "sedf" | "bvt" | "cfs" | "eevdf" | "eevdf-6.18" => (Nanos::ms(10), false),
        // Two quanta.
        _ => (Nanos::ms(100), true),
    })
}

#[test]
fn equal_vcpus_get_equal_shares_over_any_window() {
    for info in schedulers() {
        for (pcpus, vcpus) in [(1, 2), (1, 3), (1, 5), (2, 3), (2, 5), (4, 6)] {
            for start in [Nanos::ZERO, Nanos::us(3_700)] {
                let mut shares = shares(info.name, pcpus, vcpus, start);
                if info.name == "rtds-4.5" {
                    // No vCPU has more than its budget, 4 ms of 10 ms.
                    shares.fair = shares.fair.min(Nanos::ms(480));
                }
                let Some((tolerance, on_several)) = promise(info.name, shares.fair) else {
                    continue;
                };
                if pcpus == 1 || on_several {
                    let name = info.name;
                    let error = shares.error();
                    assert!(error <= tolerance, "{name}, {vcpus} on {pcpus}: {error}, {shares:?}");
                }
            }
        }
    }
}

/// Five equal budgets fit into two periods, so in any 20 ms from a common deadline on each of five vCPUs
/// has exactly one: 20 % each.
#[test]
fn five_equal_servers_have_a_fifth_each() {
    let fifth = Nanos::ms(240);
    let shares = shares("rtds", 1, 5, Nanos::ZERO);
    assert_eq!((shares.least, shares.most), (fifth, fifth));
}
