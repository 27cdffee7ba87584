//! What the kernel of a guest counted during a run, as figures and as text.

use std::fmt::Write;

use overspin_real::Outcome;
use overspin_real::lock_stat::contended;
use overspin_real::seconds::{self, Second, Shares};
use overspin_scenario::Metric;

use crate::benchmark::SLOW_PATHS;
use crate::talk::{Reading, Watched};

/// How often a lock was waited for.
pub static LOCK_CONTENTIONS: Metric =
    Metric::new("lock-contentions", "", "acquisitions that had to wait");
/// How long it was waited for.
pub static LOCK_WAIT: Metric = Metric::new("lock-wait", "s", "time of all waits");
/// How long it was held.
pub static LOCK_HOLD: Metric = Metric::new("lock-hold", "s", "time for which it was held");

/// Figures of a class of locks.
pub static OF_LOCK: [&Metric; 3] = [&LOCK_CONTENTIONS, &LOCK_WAIT, &LOCK_HOLD];

/// The part of a place that is the guest as a machine.
const GUEST: &str = "guest";
/// Classes of locks that a record has, by the time of waiting.
const MOST_LOCKS: usize = 20;

/// Adds what the kernel counted; `queues`: its spinlocks are its own queues, which count, too.
pub(crate) fn with_counts(mut outcome: Outcome, watched: &Watched, queues: bool) -> Outcome {
    if queues && !watched.lock_events.is_empty() {
        outcome = outcome.with(&SLOW_PATHS, slow_paths(&watched.readings) as f64);
    }
    let readings: Vec<seconds::Reading<'_>> = (watched.readings.iter())
        .map(|r| seconds::Reading { at_s: r.at_s, stat: &r.stat, vmstat: &r.vmstat })
        .collect();
    if let Some((whole, each)) = seconds::between(&readings) {
        for (metric, value) in seconds::figures(&whole) {
            if let Some(value) = value {
                outcome = outcome.with_part(GUEST.into(), metric, value);
            }
        }
        outcome.output += &text(&each, &watched.readings);
    }
    for (name, count) in &watched.lock_events {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(outcome.output, "{name} {count}");
    }
    let Some(lock_stat) = &watched.lock_stat else { return outcome };
    for class in contended(lock_stat).into_iter().take(MOST_LOCKS) {
        let part = format!("lock {}", class.name);
        let values = [class.contentions, class.wait_s, class.hold_s];
        for (metric, value) in OF_LOCK.into_iter().zip(values) {
            outcome = outcome.with_part(part.clone(), metric, value);
        }
    }
    outcome.output += lock_stat;
    outcome
}

/// Between the first reading and the last.
fn slow_paths(readings: &[Reading]) -> u64 {
    let at = |reading: Option<&Reading>| reading.map_or(0, |r| r.slow_paths);
    at(readings.last()).saturating_sub(at(readings.first()))
}

/// A line for each second.
fn text(seconds: &[Second], readings: &[Reading]) -> String {
    let mut text = String::from(
        "the guest by its clock: s, user %, system %, idle %, steal %, switches/s, faults/s, slow paths\n",
    );
    for (second, pair) in seconds.iter().zip(readings.windows(2)) {
        let share = |of: fn(&Shares) -> f64| {
            second.shares.as_ref().map_or_else(|| "-".into(), |shares| format!("{:.1}", of(shares)))
        };
        let _ = writeln!(
            text,
            "{:.2}, {}, {}, {}, {}, {:.0}, {:.0}, {}",
            second.until_s,
            share(|s| s.user),
            share(|s| s.system),
            share(|s| s.idle),
            share(|s| s.steal),
            second.switches,
            second.faults,
            slow_paths(pair),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_s: f64, stat: &str, slow_paths: u64) -> Reading {
        Reading { at_s, stat: stat.into(), vmstat: "pgfault 0\n".into(), slow_paths }
    }

    fn watched() -> Watched {
        Watched {
            readings: vec![
                reading(0.0, "cpu 0 0 0 0 0 0 0 0\nctxt 0\n", 5),
                reading(1.0, "cpu 80 0 10 10 0 0 0 0\nctxt 50\n", 7),
                reading(2.0, "cpu 80 0 60 10 0 0 0 50\nctxt 150\n", 17),
            ],
            lock_events: vec![("lock_slowpath".into(), 12)],
            lock_stat: None,
        }
    }

    fn value(outcome: &Outcome, part: &str, metric: &Metric) -> Option<f64> {
        let of = |f: &&overspin_real::Figure| f.part == part && f.metric.name == metric.name;
        outcome.figures.iter().find(of).map(|figure| figure.value)
    }

    #[test]
    fn a_guest_is_told_as_a_machine_of_its_own() {
        let outcome = with_counts(Outcome::default(), &watched(), true);
        assert_eq!(value(&outcome, "guest", &seconds::STEAL), Some(25.0));
        assert_eq!(value(&outcome, "guest", &seconds::SWITCHES), Some(75.0));
        assert_eq!(value(&outcome, "", &SLOW_PATHS), Some(12.0));
        let lines: Vec<&str> = outcome.output.lines().collect();
        assert_eq!(lines[2], "2.00, 0.0, 50.0, 0.0, 50.0, 100, 0, 10");
        assert_eq!(lines[3], "lock_slowpath 12");
        // With a lock of ours the kernel's queues only tell what little still uses them.
        let ours = with_counts(Outcome::default(), &watched(), false);
        assert_eq!(value(&ours, "", &SLOW_PATHS), None);
    }

    #[test]
    fn the_twenty_locks_that_were_waited_for_longest_are_kept() {
        let line = |i: usize| format!("lock{i}: 1 {i} 0 0 {}.0 0 1 1 0 0 7.0 0\n", i * 1_000_000);
        let lock_stat = Some((0..30).map(line).collect());
        let outcome =
            with_counts(Outcome::default(), &Watched { lock_stat, ..Watched::default() }, false);
        assert_eq!(outcome.figures.len(), 20 * OF_LOCK.len());
        assert_eq!(value(&outcome, "lock lock29", &LOCK_WAIT), Some(29.0));
        assert_eq!(value(&outcome, "lock lock10", &LOCK_CONTENTIONS), Some(10.0));
        assert_eq!(value(&outcome, "lock lock9", &LOCK_WAIT), None);
    }
}
