//! `overspin bench locks --world NAME`: the same locks and lengths in a world that runs scenarios.

use super::locks::LocksArgs;
use crate::args::Global;
use crate::built::above_figures;
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress::RunsMeter;
use crate::show::{self, Outputs};
use crate::world;
use overspin_native::bench::Case;
use overspin_runs::catalog::names;
use overspin_runs::scenario_file::{self, Loaded, Sweep};
use overspin_runs::sweep;
use std::fmt::Write;
use std::num::NonZero;
use std::path::Path;
use std::time::Duration;

/// Measures the locks in `world`: as many vCPUs as there would be threads, on as many pCPUs as there are CPUs.
pub(super) fn locks(args: &LocksArgs, world: &str, global: &Global) -> Result<Verdict, Failure> {
    if args.cases.iter().any(|case| *case != Case::Plain) {
        let remedy = "leave --case out, or --world; scenarios can have many workloads (`overspin list workloads`)";
        return Err(Failure::usage("only threads have other cases than plain".to_owned(), remedy));
    }
    let outputs = Outputs::new(global, &[args.record.json.as_ref(), args.record.csv.as_ref()])?;
    let files = RecordFiles::open(&outputs, &args.record)?;
    let runner = world::runner(Some(world), None)?;
    let sweep = scenarios(args, global)?;
    let made = world::in_world(&runner, sweep.points.iter().map(|p| &p.scenario), global);
    let settings = sweep::Settings {
        seed: Some(args.seed),
        seeds: Some(args.runs),
        until: None,
        shard: None,
        threads: 0,
        runner,
        results: None,
    };
    let words =
        format!("{} runs of {}", sweep.points.len() * args.runs as usize, seconds(args.time));
    let meter = RunsMeter::new(global, &words, 0);
    let result = sweep::run(&sweep, settings, &|done, all| meter.at(done, all));
    meter.end();
    let outcome = result.map_err(|error| {
        let remedy = "see `overspin list locks`, and docs/worlds.md for what each world can do";
        Failure::usage(error.to_string(), remedy)
    })?;
    files.write(|| {
        show::made(
            overspin_runs::sweep::record(&sweep, &outcome, &[], Some(args.seed)).in_world(&made),
        )
    })?;
    outputs
        .report(&[vec![above_figures(global)], overspin_runs::sweep::report(&outcome)].concat())?;
    Ok(Verdict::Fine)
}

fn seconds(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

/// A scenario for each combination of lock, threads and lengths.
fn scenarios(args: &LocksArgs, global: &Global) -> Result<Sweep, Failure> {
    let (locks, others): (Vec<_>, Vec<_>) =
        args.locks.iter().partition(|name| names().lock(name).is_some());
    if !others.is_empty() && !global.quiet {
        let others: Vec<&str> = others.iter().map(|name| name.as_str()).collect();
        eprintln!("left out, for threads only: {}", others.join(", "));
    }
    if locks.is_empty() {
        let remedy = "give --locks names that `overspin list locks` shows";
        return Err(Failure::usage("none of these locks exists in that world".to_owned(), remedy));
    }
    let cpus = match args.cpus.is_empty() {
        true => std::thread::available_parallelism().map_or(1, NonZero::get),
        false => args.cpus.iter().cloned().flatten().count(),
    };
    let list = |values: Vec<String>| {
        format!("[{}]", values.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(", "))
    };
    let times =
        |all: &[Duration]| list(all.iter().map(|t| format!("{}ns", t.as_nanos())).collect());
    let mut text = format!(
        "name = \"bench-locks\"\nlimit = \"{}ns\"\n[host]\ncores = {cpus}\nstagger = \"0\"\n[[domain]]\nname = \"guest\"\n\
         vcpus = 1\nlock = \"ticket\"\n[domain.workload]\nkind = \"lock-loop\"\nirqs_off = false\n",
        args.time.as_nanos()
    );
    let axes = [
        (
            "threads",
            "domain.guest.vcpus",
            list(args.threads.iter().map(usize::to_string).collect()),
        ),
        ("section", "domain.guest.workload.section", times(&args.section)),
        ("outside", "domain.guest.workload.outside", times(&args.outside)),
        ("lock", "domain.guest.lock", list(locks.into_iter().cloned().collect())),
    ];
    for (name, key, values) in axes {
        // Writing to a string cannot fail.
        let _ = write!(text, "[[vary]]\nname = \"{name}\"\nset = \"{key}\"\nto = {values}\n");
    }
    match scenario_file::load_text(Path::new("bench-locks"), &text, &[], &[]) {
        Ok(Loaded::Sweep(sweep)) => Ok(sweep),
        Ok(Loaded::One(_) | Loaded::Seeds(..)) => unreachable!("it has axes"),
        Err(error) => {
            Err(Failure::usage(error.to_string(), "change --threads, --section or --outside"))
        }
    }
}
