//! Quantiles of a cost from its single occurrences.

use overspin_native::calibrate::Cost;
use overspin_native::measure::{deviations, halves, without};
use overspin_scenario::{Picos, Quantiles, Varying};

/// With fewer occurrences, none of them shows where the longest hundredth begins.
pub(crate) const FEWEST: usize = 100;
/// With so many, one shows where the longest thousandth begins.
pub(crate) const MANY: usize = 1_000;

/// A cost with this median, in nanoseconds, as far as its `singles` say how it varies: by how much single occurrences are
/// longer.
#[must_use]
pub fn varying(median_ns: f64, singles: &[f64]) -> Varying {
    let longer = deviations(singles);
    let all: Vec<f64> = longer.iter().map(|more| (median_ns + more).max(0.0)).collect();
    let always = Varying::Always(rounded(median_ns));
    match quantiles(all) {
        Some(quantiles) if quantiles.p99 > quantiles.p50 => {
            Quantiles { p50: rounded(median_ns), ..quantiles }.into()
        }
        _ => always,
    }
}

/// Quantiles of times in nanoseconds; `None` if they are too few.
fn quantiles(mut times: Vec<f64>) -> Option<Quantiles> {
    times.sort_by(f64::total_cmp);
    if times.len() < FEWEST {
        return None;
    }
    let at = |part: f64| rounded(times[(part * times.len() as f64) as usize]);
    let if_many = |part: f64| (times.len() >= MANY).then(|| at(part));
    Some(Quantiles {
        // A single one that is much shorter than all others says nothing about them.
        min: Some(at(0.05)),
        p50: at(0.5),
        p90: Some(at(0.9)),
        p95: Some(at(0.95)),
        p99: at(0.99),
        p995: if_many(0.995),
        p999: if_many(0.999),
        max: times.last().copied().map(rounded),
    })
}

/// A time with three significant digits.
pub(crate) fn rounded(ns: f64) -> Picos {
    let ps = (ns * 1e3).round().max(0.0) as u64;
    let step = 10_u64.pow(ps.max(1).ilog10().saturating_sub(2));
    Picos((ps + step / 2) / step * step)
}

/// The cost as files and `--set` have it.
#[must_use]
pub fn text(cost: Varying) -> String {
    let Varying::Drawn(quantiles) = cost else { return format!("\"{}\"", cost.median()) };
    let given = quantiles.given().map(|(key, time)| format!("{key} = \"{time}\""));
    format!("{{ {} }}", given.collect::<Vec<_>>().join(", "))
}

/// Single times, as the measurements of a hypervisor and of a kernel have them, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Singles<'a> {
    /// Calls.
    pub calls: &'a [f64],
    /// Rounds of two wake-ups on one CPU.
    pub rounds_here: &'a [f64],
    /// Rounds of two wake-ups on two CPUs.
    pub rounds_there: &'a [f64],
    /// Sleeps on an idle CPU.
    pub sleeps: &'a [f64],
    /// Timers of a busy CPU.
    pub busy: &'a [f64],
}

/// The costs with these medians, in nanoseconds. What is measured together is divided up: a round on two CPUs contains
/// switches, and a sleep ends with a wake-up.
#[must_use]
pub fn costs(
    [hypercall, context_switch, host_timer]: [f64; 3],
    [ipi, timer]: [Option<f64>; 2],
    of: Singles<'_>,
) -> Vec<Cost> {
    let call = deviations(of.calls);
    let switch = without(halves(of.rounds_here), call.clone());
    let wake = without(without(halves(of.rounds_there), call.clone()), switch.clone());
    let late = without(without(deviations(of.sleeps), switch.clone()), wake.clone());
    let all = [
        ("hypercall", Some(hypercall), call),
        ("context_switch", Some(context_switch), switch),
        ("ipi", ipi, wake),
        ("timer", timer, late),
        ("host_timer", Some(host_timer), deviations(of.busy)),
    ];
    all.into_iter().filter_map(|(key, ns, singles)| Some(Cost { key, ns: ns?, singles })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 to 2000 ns: quantiles are the numbers themselves.
    #[test]
    fn quantiles_are_those_of_the_samples() {
        let times: Vec<f64> = (1..=2000).rev().map(f64::from).collect();
        let found = quantiles(times).unwrap();
        let ns = |n: u64| Picos(n * 1000);
        assert_eq!((found.min, found.p50, found.p90), (Some(ns(101)), ns(1000), Some(ns(1800))));
        assert_eq!((found.p99, found.p999, found.max), (ns(1980), Some(ns(2000)), Some(ns(2000))));
        assert_eq!(Varying::from(found).agrees(), Ok(()));
        assert_eq!(quantiles(vec![1.0; 99]), None);
        assert_eq!(quantiles(vec![1.0; 999]).unwrap().p999, None);
    }

    #[test]
    fn times_have_three_digits() {
        let shown = [0.5, 12.345, 999.6, 1_500.0, 45_678.0, 162_600_000.0].map(rounded);
        let shown = shown.map(|time| time.to_string());
        assert_eq!(shown, ["500ps", "12300ps", "1us", "1500ns", "45700ns", "163ms"]);
    }

    #[test]
    fn the_median_is_that_of_the_rounds_and_nothing_is_negative() {
        let singles: Vec<f64> =
            (0..200).map(|i| if i % 50 == 0 { 9e5 } else { f64::from(i % 7) - 3.0 }).collect();
        let Varying::Drawn(found) = varying(2.0, &singles) else { panic!("it varies") };
        assert_eq!((found.min, found.p50), (Some(Picos::ZERO), Picos(2000)));
        assert!(found.p99 > Picos(800_000_000), "{found:?}");
        assert_eq!(Varying::from(found).agrees(), Ok(()));
        assert_eq!(varying(2.0, &[]), Picos(2000).into());
        assert_eq!(varying(2.0, &[0.0; 500]), Picos(2000).into());
    }

    #[test]
    fn texts_are_read_back() {
        let singles: Vec<f64> = (0..1000).map(|i| f64::from(i * i)).collect();
        for cost in [varying(1234.5, &singles), Picos(1500).into()] {
            let set = format!("host.costs.ipi={}", text(cost));
            let scenario = "[host]\ncores = 1\n[[domain]]\nvcpus = 1\nlock = \"ticket\"\nworkload = { kind = \"count\" }";
            let names = overspin_runs::catalog::names();
            let read = overspin_scenario_file::parse(names, "x", "x", scenario, &[set]).unwrap();
            assert_eq!(read.host.costs.ipi, cost);
        }
    }
}
