//! The report of one run: where the time of the host, its vCPUs, locks and tasks went.

use super::{causes, mean, steady, vmstat};
use overspin_report::{Block, Grid, MOST_LINES, micros, percent, seconds, share, short};
use overspin_scenario::{
    DomainOutcome, Ending, Measurement, Outcome, Picos, Scenario, TaskOutcome,
};
use std::collections::BTreeMap;

/// The report of `outcome`, the result of `scenario`.
#[must_use]
pub fn report(scenario: &Scenario, outcome: &Outcome) -> Vec<Block> {
    let mut blocks = vec![Block::Title(scenario.name.clone())];
    if !scenario.description.is_empty() {
        blocks.push(Block::Text(scenario.description.clone()));
    }
    let ending = format!(
        "{} after {}",
        match &outcome.ending {
            Ending::Finished => String::from("All tasks ended"),
            Ending::Limit => "The limit came".into(),
            Ending::Deadlock { .. } if outcome.measurement.is_some() => "A DOMAIN FAILED".into(),
            Ending::Deadlock { .. } => "DEADLOCK".into(),
            Ending::Stopped { by } => format!("STOPPED BEFORE THE END ({}),", by.words()),
        },
        seconds(outcome.elapsed),
    );
    let counts = steady::counts(scenario, outcome);
    blocks.push(Block::Text(match &outcome.measurement {
        None => format!(
            "{ending} simulated seconds. Seed {}, scheduler {}, {} pCPUs.{counts} {} events, trace hash {:016x}. {}.",
            outcome.seed,
            scenario.host.scheduler,
            scenario.host.pcpus(),
            outcome.events,
            outcome.trace_hash,
            overspin_record::environment::program(),
        ),
        Some(measured) => format!("{ending} seconds. {}{counts} {}.", how(measured), overspin_record::environment::program()),
    }));
    if let Some(measured) = &outcome.measurement {
        blocks.extend(doubts(measured).map(Block::Text));
    }
    if let Ending::Deadlock { waits } = &outcome.ending {
        let heading = if outcome.measurement.is_some() { "Failures" } else { "Waits at the end" };
        blocks.push(Block::Heading(heading.into()));
        blocks.push(Block::Lines(waits.join("\n")));
    }
    if !outcome.pcpus.is_empty() {
        blocks.push(Block::Heading("Host".into()));
        blocks.push(Block::Grid(host(outcome)));
    }
    if let Some(noise) = &outcome.noise {
        let capacity: Picos = outcome.pcpus.iter().map(|p| p.busy + p.switching + p.idle).sum();
        blocks.push(Block::Text(format!(
            "Noise: the host's own threads woke up {} times, ran for {} s, {} % of the pCPUs' time, and waited \
             {} s for a pCPU.",
            noise.wakes,
            seconds(noise.running),
            share(noise.running, capacity),
            seconds(noise.runnable),
        )));
    }
    if !outcome.changes.is_empty() {
        blocks.push(Block::Heading("Actions of the administrator".into()));
        blocks.push(Block::Grid(changes(scenario, outcome)));
    }
    for (i, domain) in outcome.domains.iter().enumerate() {
        let lock = scenario.domains.get(i).map_or("", |d| d.lock.as_str());
        blocks.push(Block::Heading(format!("Domain {} ({lock})", domain.name)));
        let end = match domain.finished {
            Some(at) => format!("Finished after {} s", seconds(at - domain.started)),
            None => "Did not finish".into(),
        };
        blocks.push(Block::Text(match domain.started {
            Picos::ZERO => format!("{end}."),
            at => format!("{end}; started at {} s.", seconds(at)),
        }));
        blocks.extend(domain.throttling.map(|told| {
            Block::Text(format!(
                "It used its quota up in {} of {} periods, and stood still for {} s, summed over the CPUs.",
                told.throttled,
                told.periods,
                seconds(told.time)
            ))
        }));
        blocks.extend(steady::warning(outcome, domain).map(Block::Text));
        blocks.extend(steady::curve(outcome, domain).into_iter().flatten());
        blocks.push(Block::Grid(vcpus(domain)));
        blocks.extend(waiting_is(domain));
        if let Some(interval) = scenario.domains.get(i).and_then(|d| d.kernel.vmstat) {
            blocks.push(Block::Grid(vmstat::vmstat(&vmstat::vmstat_rows(domain, interval))));
        }
        if !domain.lines.is_empty() {
            blocks.push(Block::Grid(vmstat::lockmeter(domain, outcome.counted())));
            blocks.push(Block::Grid(vmstat::lines(domain)));
        } else if !domain.locks.is_empty() {
            blocks.push(Block::Grid(locks(domain)));
            blocks.push(Block::Text(FEW_WAITS.into()));
        }
        blocks.extend(causes::locks(domain).map(Block::Grid));
        if !domain.tasks.is_empty() {
            blocks.push(Block::Grid(tasks(domain)));
        }
    }
    blocks
}

/// What to know about percentiles of waits.
pub(crate) const FEW_WAITS: &str = "A lock that collapses makes few acquisitions, and so few long waits: compare how \
                                    much it does before its percentiles.";

/// Where a run was measured.
fn how(measured: &Measurement) -> String {
    let cpus: Vec<String> = measured.cpus.iter().map(ToString::to_string).collect();
    let (s, cpus) = (if cpus.len() == 1 { "" } else { "s" }, cpus.join(", "));
    format!(
        "Measured in the world `{}` on CPU{s} {cpus} of this machine. A microsecond of work is {} steps of a loop.",
        measured.world,
        short(measured.steps_per_us)
    )
}

/// What was not measured, and reasons for doubt, the worst first.
pub(super) fn doubts(measured: &Measurement) -> impl Iterator<Item = String> {
    let impossible = measured.impossible.iter().map(|why| format!("IMPOSSIBLE: {why}."));
    let disturbed = measured.disturbance.map(|by| {
        let word = if by.is_loud() { "DISTURBED: " } else { "" };
        let (others, steal) = (short(by.others), short(by.steal));
        format!("{word}During the run, other programs had {others} % of all CPUs and the hypervisor below {steal} %.")
    });
    let first = impossible.chain(disturbed);
    let missing = (!measured.missing.is_empty())
        .then(|| format!("Not measured, and 0 or absent: {}.", measured.missing.join("; ")));
    first.chain(missing).chain(measured.doubts.iter().map(|d| format!("Doubtful: {d}.")))
}

fn changes(scenario: &Scenario, outcome: &Outcome) -> Grid {
    let mut grid = Grid::new(0, &["at (s)", "change", ""]);
    grid.notes = 2;
    for done in &outcome.changes {
        let refused =
            done.refused.as_ref().map_or_else(String::new, |why| format!("refused: {why}"));
        grid.row([seconds(done.at), done.change.describe(scenario), refused]);
    }
    grid
}

fn host(outcome: &Outcome) -> Grid {
    let mut grid = Grid::new(1, &["pCPU", "busy s", "switching s", "idle s", "busy %", "switches"]);
    let sum = |f: fn(&overspin_scenario::PcpuOutcome) -> Picos| {
        outcome.pcpus.iter().map(f).sum::<Picos>()
    };
    let mut line = |name: String, busy: Picos, switching: Picos, idle: Picos, switches: u64| {
        grid.row([
            name,
            seconds(busy),
            seconds(switching),
            seconds(idle),
            share(busy, busy + switching + idle),
            switches.to_string(),
        ]);
    };
    if outcome.pcpus.len() <= MOST_LINES {
        for (i, p) in outcome.pcpus.iter().enumerate() {
            line(i.to_string(), p.busy, p.switching, p.idle, p.switches);
        }
    }
    let switches = outcome.pcpus.iter().map(|p| p.switches).sum();
    line("all".into(), sum(|p| p.busy), sum(|p| p.switching), sum(|p| p.idle), switches);
    grid
}

/// Explains the two columns if they differ by more than one percent.
fn waiting_is(domain: &DomainOutcome) -> Option<Block> {
    let sum = |of: fn(&overspin_scenario::VcpuOutcome) -> Picos| domain.vcpus.iter().map(of).sum();
    let (spinning, waiting): (Picos, Picos) = (sum(|v| v.spinning), sum(|v| v.waiting));
    (waiting > spinning + spinning / 100).then(|| {
        Block::Text(
            "Spinning is looking at a lock again and again. Waiting is CPU time from the first look at a lock \
             that was not free until it was taken, as lockmeter and lock_stat measure it. It includes the time \
             stalled on the lock's own cache lines, and interrupts in between."
                .into(),
        )
    })
}

fn vcpus(domain: &DomainOutcome) -> Grid {
    let header = [
        "vCPU",
        "running s",
        "runnable s",
        "blocked s",
        "offline s",
        "spinning s",
        "waiting s",
        "steal %",
        "dispatches",
        "migrations",
        "ticks",
    ];
    let mut grid = Grid::new(1, &header);
    let mut line = |name: String, v: &overspin_scenario::VcpuOutcome| {
        grid.row([
            name,
            seconds(v.running),
            seconds(v.runnable),
            seconds(v.blocked),
            seconds(v.offline),
            seconds(v.spinning),
            seconds(v.waiting),
            share(v.runnable, v.running + v.runnable),
            v.dispatches.to_string(),
            v.migrations.to_string(),
            v.ticks.to_string(),
        ]);
    };
    let mut all = overspin_scenario::VcpuOutcome::default();
    for (i, v) in domain.vcpus.iter().enumerate() {
        if domain.vcpus.len() <= MOST_LINES {
            line(i.to_string(), v);
        }
        all.running += v.running;
        all.runnable += v.runnable;
        all.blocked += v.blocked;
        all.offline += v.offline;
        all.spinning += v.spinning;
        all.waiting += v.waiting;
        all.dispatches += v.dispatches;
        all.migrations += v.migrations;
        all.ticks += v.ticks;
    }
    line("all".into(), &all);
    grid
}

/// Columns of Linux' lock_stat, where the quantities are the same.
fn locks(domain: &DomainOutcome) -> Grid {
    let header = [
        "lock",
        "acquisitions",
        "contentions",
        "cont. %",
        "waittime\navg us",
        "waittime\np99.9 us",
        "waittime\nmax us",
        "waittime\ntotal s",
        "holdtime\navg us",
        "holdtime\nmax us",
        "slow\npaths",
        "kicks",
        "holder\npreempted",
    ];
    let mut grid = Grid::new(1, &header);
    for l in &domain.locks {
        grid.row([
            l.name.clone(),
            l.acquisitions.to_string(),
            l.contended.to_string(),
            percent(l.contended, l.acquisitions),
            micros(mean(l.wait_total, l.contended)),
            micros(l.wait_p999),
            micros(l.wait_max),
            seconds(l.wait_total),
            micros(mean(l.hold_total, l.acquisitions)),
            micros(l.hold_max),
            l.slow_paths.to_string(),
            l.kicks.to_string(),
            l.holder_preempted.to_string(),
        ]);
    }
    grid
}

#[derive(Default)]
struct Family {
    tasks: u64,
    ended: u64,
    sum: TaskOutcome,
}

/// Tasks whose names differ only in a number at the end share a row.
fn tasks(domain: &DomainOutcome) -> Grid {
    let mut families: BTreeMap<&str, Family> = BTreeMap::new();
    for t in &domain.tasks {
        let stem = t.name.trim_end_matches(|c: char| c.is_ascii_digit());
        let stem = stem.trim_end_matches(['-', '_', '/', ' ', '.']);
        let family = families.entry(if stem.is_empty() { &t.name } else { stem }).or_default();
        family.tasks += 1;
        family.ended += u64::from(t.ended.is_some());
        family.sum.cpu += t.cpu;
        family.sum.user_ticks += t.user_ticks;
        family.sum.system_ticks += t.system_ticks;
        family.sum.sleeps += t.sleeps;
        family.sum.preemptions += t.preemptions;
        family.sum.items += t.items;
    }
    let header = [
        "tasks",
        "count",
        "ended",
        "cpu s",
        "user s (ticks)",
        "system s (ticks)",
        "sleeps",
        "preemptions",
        "items",
    ];
    let mut grid = Grid::new(1, &header);
    for (name, f) in families {
        grid.row([
            name.to_owned(),
            f.tasks.to_string(),
            f.ended.to_string(),
            seconds(f.sum.cpu),
            seconds(f.sum.user_ticks),
            seconds(f.sum.system_ticks),
            f.sum.sleeps.to_string(),
            f.sum.preemptions.to_string(),
            f.sum.items.to_string(),
        ]);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::{LockOutcome, SEC, VcpuOutcome};

    #[test]
    fn tasks_of_one_name_share_a_line_and_nothing_divides_by_zero() {
        let task = |name: &str| TaskOutcome {
            name: name.into(),
            cpu: SEC,
            items: 1,
            ..TaskOutcome::default()
        };
        let domain = DomainOutcome {
            name: "guest".into(),
            finished: None,
            vcpus: vec![VcpuOutcome::default(); 100],
            locks: vec![LockOutcome::default()],
            tasks: vec![task("cc1-0"), task("cc1-17"), task("make"), task("7")],
            ..DomainOutcome::default()
        };
        let grid = tasks(&domain);
        let names: Vec<&str> = grid.rows.iter().map(|r| r[0].as_str()).collect();
        assert_eq!(names, ["7", "cc1", "make"]);
        assert_eq!((grid.rows[1][1].as_str(), grid.rows[1][3].as_str()), ("2", "2.000"));
        assert_eq!(vcpus(&domain).rows.len(), 1, "a hundred vCPUs are summed up");
        assert_eq!(locks(&domain).rows.len(), 1);
    }
}
