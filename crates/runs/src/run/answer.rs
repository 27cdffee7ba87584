//! The answer of a run: what it did, what it could have done, what it waited for, and what to try next.

use super::{Beside, mean, report, steady};
use crate::catalog::names;
use overspin_report::{Block, Grid, share, tenths, three_digits, time};
use overspin_scenario::{Cause, DomainOutcome, Outcome, Picos, Scenario, WaitCauses};

/// Domains in the table; a report with `--verbose` has all.
const MOST_DOMAINS: usize = 8;
/// Another lock is worth a sentence if it does this many times as much.
const BETTER: f64 = 1.1;
/// A cause is worth mentioning from this share of the waiting on.
const WORTH: f64 = 0.1;
/// A domain that waits for locks for less than this share of its time has other worries.
const HARDLY: f64 = 0.005;

/// The domain that the answer is about: the one that waits longest for locks, or else the first.
#[must_use]
pub fn subject(outcome: &Outcome) -> usize {
    let waits = |d: &DomainOutcome| d.locks.iter().map(|l| l.wait_total).sum::<Picos>();
    let all = outcome.domains.iter().enumerate();
    all.rev().max_by_key(|(_, d)| waits(d)).map_or(0, |(i, _)| i)
}

/// What a run of `scenario` answers, with the runs `beside` it. `command` repeats the run, if one does. A run that did not come to its end
/// answers nothing: its report says why.
#[must_use]
pub fn answer(
    scenario: &Scenario,
    outcome: &Outcome,
    beside: &Beside,
    command: Option<&str>,
) -> Vec<Block> {
    let number = subject(outcome);
    let (Some(domain), true) = (outcome.domains.get(number), outcome.ending.is_sound()) else {
        return report(scenario, outcome);
    };
    let mut blocks = vec![Block::Title(scenario.name.clone())];
    if !scenario.description.is_empty() {
        blocks.push(Block::Text(scenario.description.clone()));
    }
    blocks.extend(outcome.measurement.iter().flat_map(report::doubts).map(Block::Text));
    blocks.push(Block::Text(did(scenario, outcome, number, beside)));
    blocks.extend(steady::warning(outcome, domain).map(Block::Text));
    blocks.push(Block::Text(waited(scenario, outcome, number)));
    blocks.extend(other_lock(scenario, outcome, number, beside, command));
    blocks.push(Block::Grid(table(scenario, outcome)));
    blocks.push(Block::Text(circumstances(scenario, outcome, command.is_some())));
    blocks
}

/// How much a domain did.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    /// Acquisitions of its lock a second: its items are nothing else.
    Acquisitions(f64),
    /// Items a second.
    Items(f64),
    /// The time in which it did all that it had to do.
    Time(Picos),
}

impl Work {
    fn of(outcome: &Outcome, domain: &DomainOutcome) -> Self {
        if let Some(time) = domain.time_to_finish() {
            return Self::Time(time);
        }
        let seconds = outcome.lifetime(domain).seconds().max(f64::MIN_POSITIVE);
        let items = domain.tasks.iter().map(|t| t.items).sum::<u64>() as f64;
        let acquisitions = domain.locks.first().map_or(0, |l| l.acquisitions) as f64;
        // A run may end between an acquisition and its item.
        if acquisitions > 0.0 && (acquisitions - items).abs() <= acquisitions / 100.0 + 64.0 {
            Self::Acquisitions(acquisitions / seconds)
        } else {
            Self::Items(items / seconds)
        }
    }

    /// How many times as much as `other`: by rates, or by the inverse of times.
    fn over(self, other: Self) -> Option<f64> {
        let alike = matches!(self, Self::Time(_)) == matches!(other, Self::Time(_));
        let ratio = self.rate() / other.rate();
        (alike && ratio.is_finite()).then_some(ratio)
    }

    /// What it is in a second; of a time, how often that passes.
    fn rate(self) -> f64 {
        match self {
            Self::Acquisitions(rate) | Self::Items(rate) => rate,
            Self::Time(time) => 1.0 / time.seconds(),
        }
    }

    /// As a figure: `37.3 a second`, `1.20 s`.
    fn words(self) -> String {
        match self {
            Self::Acquisitions(rate) | Self::Items(rate) => {
                format!("{} a second", three_digits(rate))
            }
            Self::Time(picos) => time(picos),
        }
    }
}

/// What the domain did, and what it would do with a pCPU for each vCPU.
fn did(scenario: &Scenario, outcome: &Outcome, number: usize, beside: &Beside) -> String {
    let domain = &outcome.domains[number];
    let (name, lock) = (&domain.name, &scenario.domains[number].lock);
    let work = Work::of(outcome, domain);
    let mut text = match work {
        Work::Acquisitions(rate) => {
            format!("The {lock} lock of `{name}` was taken {} times a second", three_digits(rate))
        }
        Work::Items(rate) => {
            format!("`{name}`, with {lock} locks, did {} items a second", three_digits(rate))
        }
        Work::Time(spent) => {
            format!("`{name}`, with {lock} locks, did its work in {}", time(spent))
        }
    };
    let vcpus = scenario.vcpus();
    let pcpus = scenario.host.pcpus();
    let best = beside.enough.as_ref().and_then(|(_, run)| {
        let best = Work::of(run, run.domains.get(number)?);
        Some((best, 100.0 * work.over(best)?))
    });
    if let Some((best, part)) = best {
        text += &format!(
            ". With a pCPU for each vCPU, {vcpus} instead of {pcpus}, it would be {}: this is {} % of that.",
            best.words(),
            tenths(part)
        );
    } else if vcpus > pcpus {
        text += &format!(", with {vcpus} vCPUs on {pcpus} pCPUs.");
    } else {
        text += &format!(", with a pCPU for each of {vcpus} vCPUs.");
    }
    text
}

/// What the domain's waiting for locks was spent on.
fn waited(scenario: &Scenario, outcome: &Outcome, number: usize) -> String {
    let domain = &outcome.domains[number];
    let mut causes = WaitCauses::default();
    domain.locks.iter().for_each(|l| causes += l.wait_causes);
    let waited: Picos = domain.locks.iter().map(|l| l.wait_total).sum();
    if waited == Picos::ZERO {
        return match waits(domain) {
            true => "How long it waited for locks was not measured.".into(),
            false => format!("It waited for no lock{}", for_pcpus(domain)),
        };
    }
    let tasks = names().locks_in_user_mode(&scenario.domains[number]);
    let (waiters, word) =
        if tasks { (domain.tasks.len(), "tasks") } else { (domain.vcpus.len(), "vCPUs") };
    let all = outcome.lifetime(domain).saturating_mul(waiters as u64).max(Picos(1));
    if (waited.0 as f64) < HARDLY * all.0 as f64 {
        return format!(
            "Its {word} hardly waited for locks: {} % of their time.",
            share(waited, all)
        );
    }
    // A wait that began in the warm-up counts whole.
    let waits = share(waited.min(all), all);
    let mut text = format!("Its {word} spent {waits} % of their time waiting for locks");
    let total = causes.total().0 as f64;
    let mut shares: Vec<(f64, Cause)> =
        Cause::ALL.iter().map(|c| (causes.of(*c).0 as f64 / total, *c)).collect();
    shares.retain(|(part, _)| *part >= WORTH);
    shares.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    for (i, (part, cause)) in shares.iter().enumerate() {
        let joint = if i == 0 { ": " } else { ", " };
        text += &format!("{joint}{:.0} % of it {}", 100.0 * part, because(*cause));
    }
    text + "."
}

/// A cause, after "50 % of it".
fn because(cause: Cause) -> &'static str {
    match cause {
        Cause::HolderRunning => "for a holder that ran",
        Cause::HolderPreempted => "for a holder that had no pCPU",
        Cause::HolderThrottled => "for a holder that its cap kept from running",
        Cause::NextThrottled => "for the next in line, which its cap kept from running",
        Cause::NextPreempted => "for the next in line, which had no pCPU",
        Cause::KickWake => "for sleepers to wake",
        Cause::OwnPreemption => "without a CPU for the waiter itself",
        Cause::LineTransfer => "for the lock's cache line",
        Cause::HolderPreemptedByGuest => "for a holder in whose place its guest ran another task",
        Cause::NextPreemptedByGuest => {
            "for the next in line, in whose place its guest ran another task"
        }
    }
}

/// Whether it waited for locks.
fn waits(domain: &DomainOutcome) -> bool {
    domain.locks.iter().any(|l| l.contended > 0)
}

/// How long a vCPU waited for a pCPU each time that it got one: what delays a vCPU that mostly sleeps.
fn for_pcpus(domain: &DomainOutcome) -> String {
    let waited: Picos = domain.vcpus.iter().map(|v| v.runnable).sum();
    let dispatches: u64 = domain.vcpus.iter().map(|v| v.dispatches).sum();
    match dispatches {
        0 => ".".into(),
        n => format!(", and {} for a pCPU each time before it ran, on average.", time(waited / n)),
    }
}

/// What the best other lock would do, and the command that shows it.
fn other_lock(
    scenario: &Scenario,
    outcome: &Outcome,
    number: usize,
    beside: &Beside,
    command: Option<&str>,
) -> Vec<Block> {
    let work = Work::of(outcome, &outcome.domains[number]);
    let tried = beside.locks.iter().filter_map(|(lock, run)| {
        let other = Work::of(run, run.domains.get(number)?);
        Some((*lock, other, other.over(work)?))
    });
    let tried: Vec<(&str, Work, f64)> = tried.collect();
    let Some((lock, other, times)) = tried.iter().max_by(|a, b| a.2.total_cmp(&b.2)).copied()
    else {
        return Vec::new();
    };
    let names: Vec<&str> = tried.iter().map(|(lock, ..)| *lock).collect();
    // Without waits for locks no other lock can help.
    if times < BETTER && !waits(&outcome.domains[number]) {
        return Vec::new();
    }
    if times < BETTER {
        return vec![Block::Text(format!(
            "No other lock does much better; tried: {}.",
            names.join(", ")
        ))];
    }
    let of_best = beside.enough.as_ref().and_then(|(_, run)| {
        let part = other.over(Work::of(run, run.domains.get(number)?))?;
        // Enough pCPUs do not mend a lock that its guest preempts.
        (part <= 1.0).then(|| format!(", {} % of what enough pCPUs give", tenths(100.0 * part)))
    });
    let domain = &scenario.domains[number].name;
    let (end, show) = match command {
        Some(command) => {
            (":", Some(Block::Lines(format!("  {command} --set domain.{domain}.lock={lock}"))))
        }
        None => (".", None),
    };
    let text = format!(
        "With {lock} it would be {}{}; the best of {} other locks{end}",
        other.words(),
        of_best.unwrap_or_default(),
        tried.len(),
    );
    std::iter::once(Block::Text(text)).chain(show).collect()
}
/// A line for each domain.
fn table(scenario: &Scenario, outcome: &Outcome) -> Grid {
    let header = ["domain", "lock", "work", "no pCPU", "spinning", "mean wait", "longest"];
    let mut grid = Grid::new(2, &header);
    for (i, d) in outcome.domains.iter().enumerate().take(MOST_DOMAINS) {
        let sum = |of: fn(&overspin_scenario::VcpuOutcome) -> Picos| {
            d.vcpus.iter().map(of).sum::<Picos>()
        };
        let (running, runnable) = (sum(|v| v.running), sum(|v| v.runnable));
        let waits: Picos = d.locks.iter().map(|l| l.wait_total).sum();
        let contended = d.locks.iter().map(|l| l.contended).sum();
        let longest = d.locks.iter().map(|l| l.wait_max).max().unwrap_or_default();
        let work = match Work::of(outcome, d) {
            Work::Time(picos) => time(picos),
            rate => format!("{}/s", three_digits(rate.rate())),
        };
        let percent = |part, whole| format!("{} %", share(part, whole));
        grid.row([
            d.name.clone(),
            scenario.domains.get(i).map_or_else(String::new, |d| d.lock.clone()),
            work,
            percent(runnable, running + runnable),
            percent(sum(|v| v.spinning), running),
            time(mean(waits, contended)),
            time(longest),
        ]);
    }
    grid
}

/// Under which circumstances, and for a reader at a terminal, where to find more.
fn circumstances(scenario: &Scenario, outcome: &Outcome, at_terminal: bool) -> String {
    let more = match outcome.domains.len().saturating_sub(MOST_DOMAINS) {
        0 => String::new(),
        more => format!("{more} more domains are left out. "),
    };
    let place = match &outcome.measurement {
        Some(measured) => format!("Measured in the world `{}`", measured.world),
        None => format!("Simulated: scheduler {}, seed {}", scenario.host.scheduler, outcome.seed),
    };
    let counted = match outcome.warmup {
        Picos::ZERO => String::new(),
        from => format!(", counted from {} on", time(from)),
    };
    let hints = match at_terminal {
        true => " --verbose prints all tables, --seeds 10 says how sure this is.",
        false => "",
    };
    format!("{more}{place}, {}{counted}.{hints}", time(outcome.elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Runner;
    use crate::scenario_file::parse;
    use overspin_scenario::Ending;
    use overspin_testing::TWO_ON_ONE;
    use std::time::Duration;

    fn answered(text: &str, set: &[&str]) -> (Scenario, Outcome, String) {
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        let scenario = parse("t", "t", text, &set).unwrap();
        let outcome = Runner::default().run(&scenario, 1, &mut (), &|_| {}).unwrap();
        let number = subject(&outcome);
        let beside = Beside::of(Runner::default(), &scenario, 1, number, Duration::ZERO);
        let blocks = answer(&scenario, &outcome, &beside, Some("overspin run t.toml"));
        let text = overspin_report::text(&blocks).split_whitespace().collect::<Vec<_>>().join(" ");
        (scenario, outcome, text)
    }

    #[test]
    fn figures_of_the_answer_are_those_of_runs_that_are_made_apart() {
        let (_, outcome, text) = answered(TWO_ON_ONE, &["limit=1s"]);
        let rate = |outcome: &Outcome| {
            let seconds = outcome.lifetime(&outcome.domains[0]).seconds();
            outcome.domains[0].locks[0].acquisitions as f64 / seconds
        };
        let (_, enough, _) = answered(TWO_ON_ONE, &["limit=1s", "host.cores=2"]);
        let taken = format!(
            "The ticket lock of `guest` was taken {} times a second",
            three_digits(rate(&outcome))
        );
        assert!(text.contains(&taken), "{taken}: {text}");
        let part = tenths(100.0 * rate(&outcome) / rate(&enough));
        let words = format!(
            "With a pCPU for each vCPU, 2 instead of 1, it would be {} a second: this is {part} % of that.",
            three_digits(rate(&enough))
        );
        assert!(text.contains(&words), "{words}: {text}");
        let best = OTHERS.iter().map(|lock| {
            let (_, other, _) =
                answered(TWO_ON_ONE, &["limit=1s", &format!("domain.guest.lock={lock}")]);
            (rate(&other), *lock)
        });
        let (most, lock) = best.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        let better = format!("With {lock} it would be {} a second", three_digits(most));
        let command = format!("overspin run t.toml --set domain.guest.lock={lock}");
        match most / rate(&outcome) >= BETTER {
            true => assert!(text.contains(&better) && text.contains(&command), "{better}: {text}"),
            false => assert!(text.contains("No other lock does much better"), "{text}"),
        }
    }

    const OTHERS: [&str; 4] = ["pv-qspinlock", "pv-ticket", "xen-pv", "lock-byte"];

    #[test]
    fn with_enough_pcpus_nothing_is_compared() {
        let (_, _, text) = answered(TWO_ON_ONE, &["host.cores=2"]);
        assert!(text.contains("with a pCPU for each of 2 vCPUs."), "{text}");
        assert!(!text.contains("it would be"), "{text}");
    }

    #[test]
    fn who_takes_no_lock_is_told_how_late_it_runs() {
        let one = "\nvcpus = 1\nlock = \"ticket\"\n\
                   workload = {kind = \"burn-wait\", burn = \"1ms\", wait = \"1ms\"}\n";
        let host = "limit = \"1s\"\n[host]\ncores = 1\n";
        let text = format!("{host}[[domain]]\nname = \"a\"{one}[[domain]]\nname = \"b\"{one}");
        let (_, outcome, text) = answered(&text, &[]);
        let vcpus = &outcome.domains[0].vcpus;
        let waited: Picos = vcpus.iter().map(|v| v.runnable).sum();
        let each = waited / vcpus.iter().map(|v| v.dispatches).sum::<u64>();
        // A vCPU that wakes is boosted: it waits for the switch at least, 2 us, and for less than a time slice, 30 ms.
        assert!((Picos::us(2)..Picos::ms(30)).contains(&each), "{each:?}");
        let words = format!("It waited for no lock, and {} for a pCPU each time", time(each));
        assert!(text.contains(&words) && !text.contains("other lock"), "{words}: {text}");
    }

    #[test]
    fn a_deadlock_is_told_by_the_whole_report() {
        let (scenario, mut outcome, _) = answered(TWO_ON_ONE, &[]);
        outcome.ending = Ending::Deadlock { waits: vec!["guest/v0 waits".into()] };
        let blocks = answer(&scenario, &outcome, &Beside::default(), None);
        assert_eq!(blocks, report(&scenario, &outcome));
    }
}
