//! Runs the checks of locks, and prints a row for each.

use super::CheckArgs;
use crate::args::Global;
use crate::catalog::{Parts, unknown_lock};
use crate::failure::{Failure, Verdict};
use crate::progress;
use crate::show::{self, Outputs};
use indicatif::ProgressBar;
use overspin_check::seeded::{self, Caught};
use overspin_check::{
    Check, Limits, NOT_COVERED, Report, Verdict as Found, World, quietly, seeded_by_name,
};
use overspin_runs::catalog;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn run(args: &CheckArgs, global: &Global, parts: &Parts) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[args.json.as_ref()])?;
    let limits = Limits {
        cpus: args.cpus.map(usize::from),
        pairs: args.pairs.map(usize::from),
        preemptions: args.preemptions.map(usize::from),
        schedules: args.schedules as usize,
        seed: args.seed,
        time_limit: Duration::from_secs(args.time_limit.into()),
    };
    let wanted: Vec<&str> = match &args.lock {
        Some(name) => vec![name],
        None => catalog::names().locks().map(|(lock, _)| lock.name).collect(),
    };
    let mut work = Vec::new();
    for name in wanted {
        let name = parts.checked.lock(name).ok_or_else(|| unknown_lock(name))?;
        work.push((name, parts.checked.checks(name, &limits).ok_or_else(|| unknown_lock(name))?));
    }
    let file = outputs.open(args.json.as_ref())?;
    let bar = progress::progress(global, 0, "{spinner} {msg}");
    bar.enable_steady_tick(Duration::from_millis(200));
    let tell = Tell { bar, outputs };

    let mut verdict = Verdict::Fine;
    let mut records = Vec::new();
    for (name, checks) in work {
        let (of_lock, record) = quietly(|| one_lock(name, &checks, parts, &tell))?;
        verdict = worse(verdict, of_lock);
        records.push(record);
    }
    tell.line("Not covered")?;
    for line in NOT_COVERED {
        tell.line(&format!("  - {line}"))?;
    }
    tell.bar.finish_and_clear();
    if let Some(file) = file {
        let record = json!({
            "seed": args.seed, "locks": records, "not_covered": NOT_COVERED,
        });
        show::made_here(file, "overspin-check/1", record)?;
    }
    Ok(verdict)
}

/// Lines for people, with the current activity below them on terminals.
struct Tell {
    bar: ProgressBar,
    outputs: Outputs,
}

impl Tell {
    fn line(&self, text: &str) -> Result<(), Failure> {
        self.bar.suspend(|| self.outputs.print(&format!("{text}\n")))
    }
}

fn worse(one: Verdict, other: Verdict) -> Verdict {
    match (one, other) {
        (Verdict::Finding, _) | (_, Verdict::Finding) => Verdict::Finding,
        (Verdict::Fine, Verdict::Fine) => Verdict::Fine,
        _ => Verdict::Undecided,
    }
}

fn one_lock(
    name: &str,
    checks: &[Check],
    parts: &Parts,
    tell: &Tell,
) -> Result<(Verdict, Value), Failure> {
    tell.line(&format!("{name}\n"))?;
    let mut verdict = Verdict::Fine;
    let mut records = Vec::new();
    for check in checks {
        if verdict == Verdict::Finding && check.world == World::Threads {
            tell.line("  threads: not run: they show less, and each may take 10 s to notice that it is stuck")?;
            break;
        }
        tell.bar.set_message(format!("{name}: {}, {}", check.name, check.bound));
        let report = check.run();
        let found = check.verdict(&report);
        tell.line(&row(check, &report, found))?;
        records.push(record(check, &report, found));
        let meaning = match found {
            Found::Fails => Verdict::Finding,
            Found::Unfinished => Verdict::Undecided,
            Found::Passes | Found::KnownFlaw => Verdict::Fine,
        };
        verdict = worse(verdict, meaning);
    }
    tell.line("")?;
    // Catching a bug in a lock that fails anyway proves nothing.
    let none = verdict == Verdict::Finding || parts.checked.is_own(name);
    let bugs = if none { Vec::new() } else { seeded::bugs(name) };
    let mut seeded = Vec::new();
    if !bugs.is_empty() {
        tell.line("  Bugs inserted on purpose")?;
    }
    for bug in bugs {
        let bug_name = seeded::name(bug);
        tell.bar.set_message(format!("{name}: {bug_name}"));
        let caught = seeded_by_name(name, bug).flatten();
        tell.line(&seeded_row(&bug_name, caught.as_ref()))?;
        verdict = worse(verdict, if caught.is_some() { Verdict::Fine } else { Verdict::Finding });
        seeded.push(seeded_record(&bug_name, caught.as_ref()));
    }
    if !seeded.is_empty() {
        tell.line("")?;
    }
    Ok((verdict, json!({ "name": name, "checks": records, "seeded": seeded })))
}

fn row(check: &Check, report: &Report, found: Found) -> String {
    let mut row = format!(
        "  {:10} {:9} {:37} {:2} CPUs, {:37} {:>7} run, {:>7}",
        found.name(),
        check.world.name(),
        check.name,
        check.cpus,
        check.bound,
        report.runs,
        time(report.time),
    );
    if let (Found::Fails | Found::KnownFlaw, Some(fault)) = (found, &report.fault) {
        row += &format!("\n             {}", first_line(fault));
    } else if found == Found::Fails {
        row += "\n             a known flaw was not found: the checks no longer detect it";
    }
    row
}

fn seeded_row(bug: &str, caught: Option<&Caught>) -> String {
    match caught {
        Some(caught) => format!(
            "  caught     {bug:42} by {:36} {:>7} run, {:>7}\n             {}",
            caught.by,
            caught.runs,
            time(caught.time),
            first_line(&caught.fault),
        ),
        None => format!("  SURVIVED   {bug}"),
    }
}

/// The first line of a fault; some faults continue with the place where they were seen.
fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

fn time(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

fn record(check: &Check, report: &Report, found: Found) -> Value {
    json!({
        "world": check.world.name(), "name": check.name, "cpus": check.cpus, "bound": check.bound,
        "runs": report.runs, "time_s": report.time.as_secs_f64(), "complete": report.complete,
        "verdict": found.name().to_lowercase(), "fault": report.fault,
    })
}

fn seeded_record(bug: &str, caught: Option<&Caught>) -> Value {
    json!({
        "bug": bug, "caught": caught.is_some(), "by": caught.map(|it| &it.by),
        "runs": caught.map(|it| it.runs), "time_s": caught.map(|it| it.time.as_secs_f64()),
        "fault": caught.map(|it| &it.fault),
    })
}
