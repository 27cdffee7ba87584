//! Runs all checks of one lock of the registry, up to the first that fails, and prints a line for each. This is
//! `overspin check LOCK` for programs. `faults` runs it in workspaces that have a fault.
//!
//! `cargo run -p overspin-check --example check_one -- LOCK`. Tabs separate the fields of a line: verdict, world,
//! check, CPUs, bound, executions, seconds, fault.

use std::process::ExitCode;

use overspin_check::{Limits, Verdict, checks_by_name, quietly};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(checks) = checks_by_name(&name, &Limits::default()) else {
        eprintln!("there is no lock `{name}`");
        return ExitCode::from(2);
    };
    let fails = quietly(|| {
        checks.iter().any(|check| {
            let report = check.run();
            let verdict = check.verdict(&report);
            let unseen = || "a known flaw was not found".repeat((verdict == Verdict::Fails).into());
            let fault = report.fault.unwrap_or_else(unseen);
            println!(
                "{}\t{}\t{}\t{}\t{}\t{}\t{:.1}\t{}",
                verdict.name(),
                check.world.name(),
                check.name,
                check.cpus,
                check.bound,
                report.runs,
                report.time.as_secs_f64(),
                fault.trim().lines().next().unwrap_or_default(),
            );
            verdict == Verdict::Fails
        })
    });
    if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
