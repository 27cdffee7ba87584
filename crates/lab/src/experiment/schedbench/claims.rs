//! The claims about credit and credit2, as code.

use super::Statistic;
use super::measure::{Measured, OVERCOMMITTED, lateness, mops};
use crate::stats::Summary;

/// `None` is undecided.
type Verdict = (Option<bool>, String);

/// "Near" a published value is within this part of it.
const NEAR: f64 = 0.10;
/// A placement that hardly changes: nine tenths of the samples lie within this part of the middle.
const STEADY: f64 = 0.10;
/// A placement that flips: so many times the spread of the steady one.
const FLIPS: f64 = 2.0;
/// "A few ms", and "tens to hundreds".
const FEW_MS: f64 = 10.0;
const TENS_MS: f64 = 20.0;
/// The runs of which lateness was published.
const OVERLOADED: [&str; 2] = ["8a+8b", "16a+16b"];

/// Judges claim `id`.
pub(super) fn judge(id: u32, m: &Measured<'_>) -> Verdict {
    let verdict = match id {
        1 => faster_together(m),
        2 => more_throughput_for_less_time(m),
        3 => placement(m),
        4 => overcommitted(m),
        5 => a_few_against_tens(m),
        6 => consistent(m),
        _ => return (None, "there is no code for this claim".into()),
    };
    verdict.unwrap_or_else(|| (None, "undecided: a run is missing".into()))
}

fn mean(summary: Option<Summary>) -> Option<f64> {
    summary.map(|s| s.mean)
}

fn faster_together(m: &Measured<'_>) -> Option<Verdict> {
    let alone = mean(m.total("baseline-a", "any", "A"))?;
    let (mut holds, mut evidence) = (true, format!("alone {alone:.1} Mops/s"));
    for scheduler in ["credit", "credit2"] {
        let together = mean(m.total("1a+1b", scheduler, "A"))?;
        holds &= together > alone;
        evidence += &format!("; with one B under {scheduler} {together:.1}");
    }
    Some((Some(holds), evidence))
}

fn more_throughput_for_less_time(m: &Measured<'_>) -> Option<Verdict> {
    let run = "2a+2b";
    let (mut signs, mut evidence) = (Vec::new(), Vec::new());
    for worker in ["A", "B"] {
        let total = |s| mean(m.total(run, s, worker));
        let used = |s| mean(m.utilization(run, s, worker));
        let (t1, t2) = (total("credit")?, total("credit2")?);
        let (u1, u2) = (used("credit")?, used("credit2")?);
        signs.push((t1 > t2, u1 > u2));
        evidence.push(format!(
            "{worker}: credit {t1:.1} Mops/s for {u1:.1} % of a CPU each, credit2 {t2:.1} for {u2:.1} %"
        ));
    }
    Some((Some(signs == [(true, false), (false, true)]), evidence.join("; ")))
}

/// Median and half the distance between the fifth and the ninety-fifth percentile of the reports of a
/// run, the latter in parts of the median; both as means over the runs.
fn half_width(runs: &[Vec<f64>]) -> Option<(f64, f64)> {
    let each = |sorted: &Vec<f64>| {
        let at = |part: f64| {
            let last = sorted.len().checked_sub(1)?;
            sorted.get((part * last as f64).round() as usize).copied()
        };
        let (low, middle, high) = (at(0.05)?, at(0.5)?, at(0.95)?);
        Some((middle, (high - low) / 2.0 / middle))
    };
    let all: Vec<(f64, f64)> = runs.iter().map(each).collect::<Option<_>>()?;
    let n = all.len() as f64;
    let (middles, widths) = all.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (!all.is_empty()).then(|| (middles / n, widths / n))
}

fn placement(m: &Measured<'_>) -> Option<Verdict> {
    let spread = |scheduler, worker| half_width(&m.reports("2a+2b", scheduler, worker, mops));
    let (a2, steady) = spread("credit2", "A")?;
    let (a1, jumps) = spread("credit", "A")?;
    let (_, dips) = spread("credit", "B")?;
    let holds = steady <= STEADY && jumps >= FLIPS * steady && jumps > STEADY / 2.0 && dips > 0.0;
    let evidence = format!(
        "reports of A: credit2 {a2:.0} Mops/s +-{:.1} %, credit {a1:.0} +-{:.1} %; of B under credit \
         +-{:.1} % (five to ninety-five percent of the reports of a run)",
        100.0 * steady,
        100.0 * jumps,
        100.0 * dips
    );
    Some((Some(holds), evidence))
}

fn overcommitted(m: &Measured<'_>) -> Option<Verdict> {
    const PUBLISHED: f64 = 300.0;
    let (mut holds, mut evidence) = (true, Vec::new());
    for run in OVERCOMMITTED {
        let mut spreads = Vec::new();
        for scheduler in ["credit", "credit2"] {
            for worker in ["A", "B"] {
                let total = mean(m.total(run, scheduler, worker))?;
                holds &= (total / PUBLISHED - 1.0).abs() <= NEAR;
                evidence.push(format!("{run} {scheduler} {worker} {total:.0}"));
            }
            let of = |worker| {
                mean(m.over_runs(run, scheduler, worker, |s| Some(s.throughput.stddev / 1000.0)))
            };
            spreads.push(of("A")? + of("B")?);
        }
        // "Ten times smaller": an order of magnitude.
        let ratio = spreads[0] / spreads[1].max(f64::MIN_POSITIVE);
        holds &= ratio >= 5.0;
        evidence.push(format!("{run} spread credit/credit2 {ratio:.1}"));
    }
    Some((Some(holds), evidence.join(", ")))
}

fn a_few_against_tens(m: &Measured<'_>) -> Option<Verdict> {
    let (mut holds, mut evidence) = (true, Vec::new());
    for run in OVERLOADED {
        for worker in ["A", "B"] {
            let of = |scheduler, statistic| {
                mean(m.statistic(run, scheduler, worker, lateness, statistic))
            };
            let credit2 = of("credit2", Statistic::Middle)?;
            let low = of("credit", Statistic::Lowest)?;
            let high = of("credit", Statistic::Highest)?;
            holds &= credit2 <= FEW_MS && low >= TENS_MS && high <= 1000.0;
            evidence.push(format!(
                "{run} {worker}: middle report of credit2 {credit2:.1} ms, credit's {low:.0} to {high:.0} ms"
            ));
        }
    }
    Some((Some(holds), evidence.join("; ")))
}

/// "Highly consistent" is [`STEADY`], as for the throughput of every single sample.
fn consistent(m: &Measured<'_>) -> Option<Verdict> {
    let (mut holds, mut evidence) = (true, Vec::new());
    for run in OVERLOADED {
        for worker in ["A", "B"] {
            let spread = |scheduler| half_width(&m.reports(run, scheduler, worker, lateness));
            let ((middle2, steady), (middle, varies)) = (spread("credit2")?, spread("credit")?);
            holds &= steady <= STEADY && varies * middle > FLIPS * steady * middle2;
            evidence.push(format!(
                "{run} {worker}: credit2 {middle2:.1} ms +-{:.1} %, credit {middle:.0} ms +-{:.0} %",
                100.0 * steady,
                100.0 * varies
            ));
        }
    }
    evidence.push("(five to ninety-five percent of the reports of a run)".into());
    Some((Some(holds), evidence.join("; ")))
}
