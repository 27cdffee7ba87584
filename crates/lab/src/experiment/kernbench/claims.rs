//! The claims of each experiment, as code. A claim that cannot be decided, because runs are
//! missing that it needs, is neither true nor false.

use super::Measured;
use crate::stats::Summary;

/// `None` is undecided.
type Verdict = (Option<bool>, String);

/// A ratio "near" a published one is within this part of it.
const NEAR: f64 = 0.10;
/// "Some N percent" is within this part of N.
const SOME: f64 = 0.25;
/// "Spends its time on" is at least this part of it.
const MOST: f64 = 0.90;
/// "Hardly differ": user time, and system time, which is smaller and noisier.
const SAME_USER: f64 = 0.02;
const SAME_SYSTEM: f64 = 0.05;

/// Judges claim `id` of `experiment`.
pub(super) fn judge(experiment: &str, id: u32, m: &Measured<'_>) -> Verdict {
    match (experiment, id) {
        ("2008-spinlocks", 1) => ticket_never_finishes(m),
        ("2008-spinlocks", 2) => half_load_order(m),
        ("2008-spinlocks", 3) => same_user_and_system(m),
        ("2008-spinlocks", 4) => less_vcpu_time(m),
        ("2008-spinlocks", 5) => same_at_optimal_load(m),
        ("2008-spinlocks", 6) => host_fully_used(m),
        _ => (None, "there is no code for this claim".into()),
    }
}

fn undecided(what: &str) -> Verdict {
    (None, format!("undecided: {what}"))
}

fn ticket_never_finishes(m: &Measured<'_>) -> Verdict {
    let runs = m.runs("ticket", "optimal");
    if runs.is_empty() {
        return undecided("no run of ticket at the optimal load");
    }
    let unfinished = runs.iter().filter(|r| r.ending != "finished").count();
    let spinning: Vec<f64> = runs.iter().map(|r| r.spinning).collect();
    let least = spinning.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = Summary::of(&spinning).map_or(0.0, |s| s.mean);
    let byte = m.mean("lock-byte", "optimal", "elapsed_s");
    let evidence = format!(
        "ticket: {unfinished} of {} runs did not finish, {:.1} % of vCPU time spent waiting for locks; byte: {}",
        runs.len(),
        100.0 * mean,
        byte.map_or_else(|| "did not finish either".into(), |s| format!("finished in {s:.0} s")),
    );
    (Some(unfinished == runs.len() && least >= MOST && byte.is_some()), evidence)
}

fn half_load_order(m: &Measured<'_>) -> Verdict {
    let elapsed = |lock| m.mean(lock, "half", "elapsed_s");
    let (Some(pv), Some(byte), Some(ticket)) =
        (elapsed("xen-pv"), elapsed("lock-byte"), elapsed("ticket"))
    else {
        return undecided("not all runs at half load finished");
    };
    let near = |ratio: f64, published: f64| (ratio / published - 1.0).abs() <= NEAR;
    let (low, high) = (byte / pv, ticket / byte);
    let (low_published, high_published) = (410.686 / 338.98, 503.002 / 410.686);
    let holds =
        pv < byte && byte < ticket && near(low, low_published) && near(high, high_published);
    let evidence = format!(
        "{pv:.0} : {byte:.0} : {ticket:.0} s; byte/xen-pv {low:.3} (published {low_published:.3}), \
         ticket/byte {high:.3} (published {high_published:.3}), near is within 10 %"
    );
    (Some(holds), evidence)
}

fn same_user_and_system(m: &Measured<'_>) -> Verdict {
    let ratio = |metric| {
        let byte = m.mean("lock-byte", "half", metric)?;
        Some(m.mean("xen-pv", "half", metric)? / byte - 1.0)
    };
    let (Some(user), Some(system), Some(elapsed)) =
        (ratio("user_s"), ratio("system_s"), ratio("elapsed_s"))
    else {
        return undecided("not all runs at half load finished");
    };
    let holds = user.abs() <= SAME_USER && system.abs() <= SAME_SYSTEM && elapsed <= -NEAR;
    let evidence = format!(
        "xen-pv against byte at half load: user {:+.1} % (at most 2 %), system {:+.1} % (at most 5 %), \
         elapsed {:+.1} % (at least 10 % less)",
        100.0 * user,
        100.0 * system,
        100.0 * elapsed
    );
    (Some(holds), evidence)
}

fn less_vcpu_time(m: &Measured<'_>) -> Verdict {
    let (Some(byte), Some(pv)) = (m.total_vcpu_time("lock-byte"), m.total_vcpu_time("xen-pv"))
    else {
        return undecided("not all runs of byte and xen-pv finished");
    };
    let less = 100.0 * (1.0 - pv / byte);
    let evidence = format!(
        "byte {byte:.0} s, xen-pv {pv:.0} s: {less:.1} % less (published 10.6 %, near is 8.0 to 13.3 %)"
    );
    (Some((less / 10.6 - 1.0).abs() <= SOME), evidence)
}

fn same_at_optimal_load(m: &Measured<'_>) -> Verdict {
    let elapsed = |lock| m.mean(lock, "optimal", "elapsed_s");
    let (Some(byte), Some(pv)) = (elapsed("lock-byte"), elapsed("xen-pv")) else {
        return undecided("not all runs of byte and xen-pv at the optimal load finished");
    };
    let difference = pv / byte - 1.0;
    let evidence = format!("byte {byte:.1} s, xen-pv {pv:.1} s: {:+.2} %", 100.0 * difference);
    (Some(difference.abs() <= 0.02), evidence)
}

fn host_fully_used(m: &Measured<'_>) -> Verdict {
    let Some(percent) = m.mean("xen-pv", "half", "percent_cpu") else {
        return undecided("not all runs of xen-pv at half load finished");
    };
    let busy: Vec<f64> = m.runs("xen-pv", "half").iter().map(|r| r.host_busy).collect();
    let busy = Summary::of(&busy).map_or(0.0, |s| s.mean);
    let evidence = format!(
        "the guest charged {percent:.0} % of 200 (at least 195 is full), the pCPUs were busy {:.1} % of the time",
        100.0 * busy
    );
    (Some(percent >= 195.0), evidence)
}
