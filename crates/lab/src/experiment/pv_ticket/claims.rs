//! The claims, as code. A claim that cannot be decided is neither true nor false.

use super::capacity;
use super::measure::Measured;
use super::threads::{CONFIDENCE, Cost};
use super::{Load, Variant};

/// `None` is undecided.
type Verdict = (Option<bool>, String);

/// "Collapses" is less than this part of the best lock.
const COLLAPSED: f64 = 0.5;
/// "Within 25 % of the best lock".
const NEAR_BEST: f64 = 0.75;
/// The lock that collapses, the one that must not, and how long the waiters of that one spin as published.
const TICKET: &str = "ticket";
const PV_TICKET: (&str, u32) = ("pv-ticket-2012", 1 << 11);
/// With a confidence interval that goes farther than this to a side nothing was measured.
const RESOLUTION: f64 = 0.10;
/// The locks with small and with large tickets, and the CPUs that the announcement says each serves at most.
const ANNOUNCED: [(&str, usize); 2] = [("pv-ticket-2012-small", 128), ("pv-ticket-2012", 32_768)];

/// Judges claim `id`.
pub(super) fn judge(id: u32, measured: &Measured<'_>, cost: &[Cost]) -> Verdict {
    match id {
        1 => costs_nothing(cost),
        2 => holds_up(measured),
        3 => capacities(),
        _ => (None, "there is no code for this claim".into()),
    }
}

fn costs_nothing(cost: &[Cost]) -> Verdict {
    let one = |c: &Cost| -> Option<(bool, String)> {
        let (ratio, p) = c.ratio.zip(c.p)?;
        let text = format!(
            "{} threads at {}/{} ns: {:.4} ({:.4} to {:.4}), p = {p:.3}",
            c.threads, c.section_ns, c.outside_ns, ratio.middle, ratio.low, ratio.high
        );
        Some((p >= 1.0 - CONFIDENCE, text))
    };
    let all: Vec<Option<(bool, String)>> = cost.iter().map(one).collect();
    let differs: Vec<&str> =
        all.iter().flatten().filter(|(same, _)| !same).map(|(_, text)| text.as_str()).collect();
    let undecided = all.iter().filter(|one| one.is_none()).count();
    if !differs.is_empty() {
        return (
            Some(false),
            format!("throughput of PV ticket over ticket: {}", differs.join("; ")),
        );
    }
    if undecided > 0 || all.is_empty() {
        let situations = all.len();
        return (
            None,
            format!("undecided: {undecided} of {situations} situations gave too few pairs"),
        );
    }
    let widest = cost.iter().filter_map(|c| c.ratio).map(|r| (r.high / r.low).sqrt() - 1.0);
    let widest = widest.fold(0.0, f64::max);
    if widest > RESOLUTION {
        let widest = 100.0 * widest;
        return (
            None,
            format!("undecided: the machine was disturbed, intervals go up to +/- {widest:.0} %"),
        );
    }
    let texts: Vec<String> = all.into_iter().flatten().map(|(_, text)| text).collect();
    let evidence = format!(
        "throughput of PV ticket over ticket: {}; intervals go up to +/- {:.1} %",
        texts.join("; "),
        100.0 * widest
    );
    (Some(true), evidence)
}

fn holds_up(m: &Measured<'_>) -> Verdict {
    let experiment = m.experiment;
    let find = |wanted: &dyn Fn(&Variant) -> bool| experiment.locks.iter().find(|v| wanted(v));
    let ticket = find(&|v| v.lock == TICKET);
    let paravirtual =
        find(&|v| (v.lock.as_str(), v.spin_budget) == (PV_TICKET.0, Some(PV_TICKET.1)));
    let (Some(ticket), Some(paravirtual)) = (ticket, paravirtual) else {
        return (None, "undecided: ticket or the published PV ticket is not compared".into());
    };
    let loads = experiment.loads.iter();
    let cells: Vec<(&Load, u32)> = loads
        .flat_map(|load| experiment.pcpus.iter().map(move |pcpus| (load, *pcpus)))
        .filter(|(load, pcpus)| m.overcommit(load, *pcpus) > 1.0)
        .collect();
    let (mut holds, mut evidence) = (!cells.is_empty(), Vec::new());
    for (load, pcpus) in cells {
        let of_best = |lock| m.of_best(lock, load, pcpus);
        let Some((collapsing, lasting)) = of_best(ticket).zip(of_best(paravirtual)) else {
            return (None, format!("undecided: {} on {pcpus} pCPUs has no rate", load.name));
        };
        holds &= collapsing < COLLAPSED && lasting >= NEAR_BEST;
        evidence.push(format!(
            "{} at {:.0}x: {:.0} %, {:.0} %",
            load.name,
            m.overcommit(load, pcpus),
            100.0 * collapsing,
            100.0 * lasting
        ));
    }
    let evidence = format!(
        "ticket (collapsed is below 50 % of the best lock) and PV ticket: {}",
        evidence.join("; ")
    );
    (Some(holds), evidence)
}

fn capacities() -> Verdict {
    let mut evidence = Vec::new();
    for (lock, announced) in ANNOUNCED {
        // One less: with all tickets drawn a held lock would look free.
        match capacity::is(lock, announced - 1) {
            None => return (None, format!("undecided: there is no lock `{lock}`")),
            Some(false) => {
                return (Some(false), format!("{lock} does not serve just {} CPUs", announced - 1));
            }
            Some(true) => evidence
                .push(format!("{lock} serves {} CPUs, and {announced} are refused", announced - 1)),
        }
    }
    let evidence = format!(
        "{}: one less than announced, for a lock that is held and that all others wait for would look \
         free; the published code asks for fewer than 128 CPUs at compile time too",
        evidence.join("; ")
    );
    (Some(true), evidence)
}
