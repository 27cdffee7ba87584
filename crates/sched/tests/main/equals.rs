//! Equal vCPUs get equal shares over any long window, whatever the ties, so far as their scheduler promises it: vCPUs of
//! equal parameters, each in a domain of its own, that come up at one instant and always want to run. Costs and noise,
//! which would break ties, are 0.

use overspin_sched::conformance::{Equals, Shares};
use overspin_sched::*;

/// What a scheduler promises to equal hogs.
#[derive(Clone, Copy, Debug)]
enum Promise {
    /// An equal share of any window, within so much.
    Equal(Nanos),
    /// The same on one pCPU only.
    EqualOnOne(Nanos),
    /// A vCPU stays where it came up: an equal share of its pCPU, within so much. No pCPU has more than one vCPU more than
    /// another.
    PerPcpu(Nanos),
    /// A pCPU for itself, or none.
    OneOrNone,
    /// Its whole budget, if all budgets fit into their periods one after the other; else nothing.
    Budgets,
}
use Promise::*;

/// The length of the windows, and the promise, with its reason.
fn promise(name: &str, pcpus: u32, n: u32) -> (Nanos, Promise) {
    // 40 accountings of credit, 120 periods of rtds, 24 quanta of cosched.
    let window = Nanos::ms(1_200);
    let ms = Nanos::ms;
    let promise = match name {
        // Two slices of 30 ms. Stealing evens out what several pCPUs have.
        "credit" | "credit-2016" | "credit-2013" | "credit-2008" => Equal(ms(60)),
        // Three epochs: a vCPU needs half a millisecond more credit to change its pCPU, so two of three
        // vCPUs may share one for some epochs.
        "credit2" | "credit2-2013" => Equal(ms(30)),
        // A runqueue for each core, balanced only if a move makes loads more alike: three on two pCPUs are
        // always two and one.
        "credit2-2016" => EqualOnOne(ms(30)),
        // A quantum.
        "rr" => Equal(ms(10)),
        // Ties alternate between two periods, in which five budgets fit. They even out over five vCPUs, not
        // over three; nobody is off by more than a fifth.
        "rtds" => Equal(window * i64::from(pcpus) / i64::from(n) / 5),
        // Ties go to the last queued, so some starve where budgets do not fit.
        "rtds-4.5" => Budgets,
        // Xen's sched_bvt.c and sched_sedf.c of 2005 have no balancing: a vCPU's CPU is set when its domain is built
        // (least populated first), or by the administrator.
        "sedf" | "bvt" => PerPcpu(ms(10)),
        // Xen's sched_null.c: a unit has a pCPU, or waits for one.
        "null" => OneOrNone,
        // Turns of a tick on one pCPU.
        "cfs" | "eevdf" | "eevdf-6.18" if pcpus == 1 => Equal(ms(4)),
        // Between pCPUs hogs go round, but the tick keeps turns and moves in step: a hog that never moves has half of
        // its pCPU half of the time and all of it otherwise, three quarters where two thirds are fair: 333 ms in 4 s. It
        // may have a pCPU for itself for 29 ticks more than not in a window: another 58 ms. See `hogs_go_round`.
        "cfs" | "eevdf" | "eevdf-6.18" => return (ms(4_000), Equal(ms(333 + 59))),
        // Two quanta of 50 ms.
        "cosched" | "cosched-vm" | "cosched-strict" => Equal(ms(100)),
        _ => panic!("{name}: say what equal vCPUs get"),
    };
    (window, promise)
}

/// The run times of `vcpus` equal hogs on `pcpus` in all windows in five seconds, or in two windows if that is longer.
fn shares(name: &str, pcpus: u32, vcpus: u32, start: Nanos, window: Nanos) -> Shares {
    let time = Nanos::sec(5).max(2 * window);
    let equals = Equals { vcpus, start, window, time, ..Equals::on(Topology::flat(pcpus)) };
    let shares = equals.run(make(name, &Params::default()).unwrap());
    shares.unwrap_or_else(|failure| panic!("{name}: {failure}"))
}

/// Whether so many vCPUs have, in all windows, this share within a tolerance.
fn have(shares: &Shares, n: u32, share: Nanos, tolerance: Nanos) -> bool {
    let near =
        |(least, most): &&(Nanos, Nanos)| share - *least <= tolerance && *most - share <= tolerance;
    shares.ran.iter().filter(near).count() as u32 == n
}

#[test]
fn equal_vcpus_get_equal_shares_over_any_window() {
    for info in schedulers() {
        for (pcpus, n) in [(1, 2), (1, 3), (1, 5), (2, 3), (2, 5), (4, 6)] {
            let (window, promise) = promise(info.name, pcpus, n);
            // In phase with timers that begin at 0, and not.
            for start in [Nanos::ZERO, Nanos::us(3_700)] {
                let shares = shares(info.name, pcpus, n, start, window);
                let kept = match promise {
                    Equal(tolerance) => have(&shares, n, shares.fair, tolerance),
                    EqualOnOne(tolerance) => pcpus > 1 || have(&shares, n, shares.fair, tolerance),
                    PerPcpu(tolerance) => {
                        let (few, full) = (n / pcpus, n % pcpus);
                        let (with_few, with_more) = ((pcpus - full) * few, full * (few + 1));
                        let share = |vcpus: u32| window / i64::from(vcpus);
                        have(&shares, with_few, share(few), tolerance)
                            && have(&shares, with_more, share(few + 1), tolerance)
                    }
                    OneOrNone => {
                        have(&shares, pcpus, window, Nanos::ZERO)
                            && have(&shares, n - pcpus, Nanos::ZERO, Nanos::ZERO)
                    }
                    // 4 ms of 10 ms fit twice.
                    Budgets => n > 2 * pcpus || have(&shares, n, window / 10 * 4, Nanos::ms(4)),
                };
                assert!(kept, "{}, {n} on {pcpus}: {promise:?}, {shares:?}", info.name);
            }
        }
    }
}

/// Five equal budgets fit into two periods, so in any 20 ms from a common deadline on each of five vCPUs
/// has exactly one: 20 % each.
#[test]
fn five_equal_servers_have_a_fifth_each() {
    let shares = shares("rtds", 1, 5, Nanos::ZERO, Nanos::ms(1_200));
    assert_eq!(shares.ran, [(Nanos::ms(240), Nanos::ms(240)); 5]);
}
