//! The claims about aligned locks, as code.

use super::Dbench;
use super::measure::{Measured, Sample, of_trace};

/// `None` is undecided.
type Verdict = (Option<bool>, String);

/// "In proportion" is within this part of the published ratio.
const NEAR: f64 = 0.10;
/// A cause explains a change if at least this part of it goes away with the cause.
const EXPLAINS: f64 = 0.5;

/// Judges claim `id`.
pub(super) fn judge(id: u32, experiment: &Dbench, m: &Measured<'_>) -> Verdict {
    let verdict = match id {
        1 => total_time(experiment, m),
        2 => less_idle_and_faster_writing(m),
        3 => shares(m),
        4 => data_stay(m),
        _ => return (None, "there is no code for this claim".into()),
    };
    verdict.unwrap_or_else(|| (None, "undecided: a run is missing or did not finish".into()))
}

/// A figure before and after.
fn pair(m: &Measured<'_>, metric: &str) -> Option<(f64, f64)> {
    let one = |kernel| m.figure(kernel, metric).map(|s| s.mean);
    Some((one(m.before)?, one(m.after)?))
}

fn total_time(experiment: &Dbench, m: &Measured<'_>) -> Option<Verdict> {
    let (before, after) = pair(m, "elapsed_s")?;
    let published = |i: usize| of_trace(&experiment.kernels[i].rows(), 1.0, "elapsed_s");
    let (ratio, expected) = (after / before, published(1)? / published(0)?);
    let holds = (ratio / expected - 1.0).abs() <= NEAR;
    let evidence = format!(
        "{before:.2} to {after:.2} s: {ratio:.3} of it (published {expected:.3}, near is within {:.0} %)",
        100.0 * NEAR
    );
    Some((Some(holds), evidence))
}

fn less_idle_and_faster_writing(m: &Measured<'_>) -> Option<Verdict> {
    let (idle_before, idle_after) = pair(m, "idle_s")?;
    let (kib_before, kib_after) = pair(m, "written_kib")?;
    // Intervals of the simulation, which are finer than the published second.
    let writing =
        |r: &Sample| Some(r.rows.iter().filter(|row| row.bo > 0.0).count() as f64 * r.interval_s);
    let time = |kernel| m.over_runs(kernel, writing).map(|s| s.mean);
    let (before, after) = (time(m.before)?, time(m.after)?);
    let rate = |kib: f64, s: f64| kib / s.max(f64::MIN_POSITIVE);
    let (rate_before, rate_after) = (rate(kib_before, before), rate(kib_after, after));
    let holds = idle_after < idle_before && after < before && rate_after > rate_before;
    let evidence = format!(
        "idle {idle_before:.2} to {idle_after:.2} s; writing for {before:.1} s at {rate_before:.0} KiB/s \
         to {after:.1} s at {rate_after:.0} KiB/s"
    );
    Some((Some(holds), evidence))
}

fn shares(m: &Measured<'_>) -> Option<Verdict> {
    let (before, after) = pair(m, "user_share_percent")?;
    let evidence = format!(
        "user {before:.1} to {after:.1} % of the time that is not idle, system {:.1} to {:.1} %",
        100.0 - before,
        100.0 - after
    );
    Some((Some(after > before), evidence))
}

fn data_stay(m: &Measured<'_>) -> Option<Verdict> {
    let mean =
        |kernel, of: fn(&Sample) -> f64| m.over_runs(kernel, |r| Some(of(r))).map(|s| s.mean);
    let both = |of| Some((mean(m.before, of)?, mean(m.after, of)?));
    let (hold_before, hold_after) = both(|r| r.hold_us)?;
    let (data_before, data_after) = both(|r| r.hold_data_us)?;
    let (away_before, away_after) = both(|r| {
        let of = |count: fn(&overspin_scenario::LineOutcome) -> u64| {
            r.domain.lines.iter().map(count).sum::<u64>() as f64
        };
        100.0 * of(|l| l.lost) / of(|l| l.accesses).max(1.0)
    })?;
    let fall = hold_before - hold_after;
    let explained = (data_before - data_after) / fall;
    let holds = fall > 0.0 && away_after < away_before && explained >= EXPLAINS;
    let evidence = format!(
        "mean hold {hold_before:.2} to {hold_after:.2} us; at the data {data_before:.2} to \
         {data_after:.2} us of it, {:.0} % of the fall (at least {:.0} %); {away_before:.1} to \
         {away_after:.1} % of the holders' accesses were to a line that they had had and lost",
        100.0 * explained,
        100.0 * EXPLAINS
    );
    Some((Some(holds), evidence))
}
