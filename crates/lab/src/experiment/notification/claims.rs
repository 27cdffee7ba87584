//! The claims about preemption notification, as code.

use super::measure::Measured;
use super::{Help, Load};

/// `None` is undecided.
type Verdict = (Option<bool>, String);

/// "Minimal" at low rates, and "more significant" at higher ones: this part of the time.
const SMALL: f64 = 0.01;
/// A stair: one step has at least this part of all change from `low` to `high`.
const STAIR: f64 = 0.9;
/// A ramp: no step has more than this times its part of the range of rates.
const RAMP: f64 = 2.0;

/// Judges claim `id`.
pub(super) fn judge(id: u32, m: &Measured<'_>) -> Verdict {
    let verdict = match id {
        1 => overhead_grows(m),
        2 => uniprocessors_pay_nothing(m),
        3 => faults_gain_then_lose(m),
        4 => steps(m),
        _ => return (None, "there is no code for this claim".into()),
    };
    verdict.unwrap_or_else(|| (None, "undecided: a run did not finish".into()))
}

/// `value` at each rate of the sweep.
fn curve<T>(m: &Measured<'_>, value: impl Fn(u32) -> Option<T>) -> Option<Vec<(u32, T)>> {
    m.experiment.sweep.rates.iter().map(|r| Some((*r, value(*r)?))).collect()
}

fn percent(curve: &[(u32, f64)]) -> String {
    let one = |(rate, part): &(u32, f64)| format!("{:+.2} % at {rate}/s", 100.0 * part);
    curve.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn overhead_grows(m: &Measured<'_>) -> Option<Verdict> {
    let overhead = curve(m, |rate| {
        let load = Load::Pings(rate);
        Some(m.count(Help::All, load)? / m.count(Help::None, load)? - 1.0)
    })?;
    let low = m.experiment.sweep.low;
    let least_above =
        overhead.iter().filter(|(r, _)| *r > low).map(|(_, o)| *o).reduce(f64::min)?;
    let most_below =
        overhead.iter().filter(|(r, _)| *r <= low).map(|(_, o)| *o).reduce(f64::max)?;
    let holds = most_below <= SMALL && least_above > most_below && least_above > SMALL;
    Some((Some(holds), percent(&overhead)))
}

fn uniprocessors_pay_nothing(m: &Measured<'_>) -> Option<Verdict> {
    let host = m.experiment.published_host();
    let hashes = |help, rate| -> Vec<u64> {
        m.of(super::Test::Count, host, help, Load::Pings(rate)).map(|r| r.trace_hash).collect()
    };
    let equal = |rate: &&u32| hashes(Help::Smp, **rate) == hashes(Help::None, **rate);
    let rates = &m.experiment.sweep.rates;
    let same = rates.iter().filter(equal).count();
    let evidence = format!("at {same} of {} rates all events are the same", rates.len());
    Some((Some(same == rates.len()), evidence))
}

fn faults_gain_then_lose(m: &Measured<'_>) -> Option<Verdict> {
    let host = m.experiment.published_host();
    let change = curve(m, |rate| m.change_of_faults(host, Help::Smp, Load::Pings(rate)))?;
    let low = m.experiment.sweep.low;
    let holds = change.iter().all(|(rate, c)| if *rate <= low { *c > 0.0 } else { *c < 0.0 });
    Some((Some(holds), percent(&change)))
}

/// The largest part that one step has of the change from the first value to the last, and the largest
/// ratio of that part to the step's part of the range.
fn largest_step(curve: &[(u32, f64)]) -> Option<(f64, f64)> {
    let (first, last) = (curve.first()?, curve.last()?);
    let (change, range) = (last.1 - first.1, f64::from(last.0 - first.0));
    let mut largest = (0.0_f64, 0.0_f64);
    for pair in curve.windows(2) {
        let part = (pair[1].1 - pair[0].1) / change;
        let steepness = part * range / f64::from(pair[1].0 - pair[0].0);
        largest = (largest.0.max(part), largest.1.max(steepness));
    }
    Some(largest)
}

fn steps(m: &Measured<'_>) -> Option<Verdict> {
    let sweep = &m.experiment.sweep;
    let (mut holds, mut evidence) = (true, Vec::new());
    for (name, exact) in [("with ping's clock", false), ("with an exact clock", true)] {
        let load = |rate| if exact { Load::ExactPings(rate) } else { Load::Pings(rate) };
        for (test, value) in [
            ("count", &(|rate| m.count(Help::All, load(rate))) as &dyn Fn(u32) -> Option<f64>),
            ("pft", &|rate| m.faults(Help::Smp, load(rate))),
        ] {
            let between = |(rate, _): &(u32, f64)| (sweep.low..=sweep.high).contains(rate);
            let points: Vec<_> = curve(m, value)?.into_iter().filter(between).collect();
            let (part, steepness) = largest_step(&points)?;
            holds &= if exact { steepness <= RAMP } else { part >= STAIR };
            evidence.push(format!(
                "{test} {name}: one step has {:.0} % of the change, {steepness:.1} times its part of \
                 the rates",
                100.0 * part
            ));
        }
    }
    Some((Some(holds), evidence.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::largest_step;

    #[test]
    fn a_stair_and_a_ramp_differ() {
        let stair = [(1000, 1.0), (1500, 0.8), (5000, 0.8), (10_000, 0.8)];
        let (part, steepness) = largest_step(&stair).unwrap();
        assert!((part - 1.0).abs() < 1e-9 && (steepness - 18.0).abs() < 1e-9);
        let ramp = [(1000, 1.0), (2000, 0.9), (10_000, 0.1)];
        let (part, steepness) = largest_step(&ramp).unwrap();
        assert!((part - 8.0 / 9.0).abs() < 1e-9 && (steepness - 1.0).abs() < 1e-9);
    }
}
