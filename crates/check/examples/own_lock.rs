//! A lock from outside, checked in all worlds, and a broken variant that the checks catch.
//!
//! `cargo run -p overspin-check --example own_lock`; docs/locks.md walks through it.

#[path = "../../../examples/own-parts/src/deli.rs"]
mod deli;

use deli::Deli;
use std::process::ExitCode;

use overspin_check::model::LoomPlatform;
use overspin_check::schedules::SchedulePlatform;
use overspin_check::threads::StdPlatform;
use overspin_check::{Limits, Profile, Verdict, checks, quietly};

/// Prints a line for each check, up to the first that fails. Returns the fault of that check.
fn check<const BROKEN: bool>(limits: &Limits) -> Option<String> {
    let checks = checks::<
        Deli<LoomPlatform, BROKEN>,
        Deli<SchedulePlatform, BROKEN>,
        Deli<StdPlatform, BROKEN>,
    >(Profile::default(), limits);
    for check in checks {
        let report = check.run();
        let (verdict, runs) = (check.verdict(&report), report.runs);
        let (world, name, cpus) = (check.world.name(), check.name, check.cpus);
        println!(
            "{:10} {world}, {name}, {cpus} CPUs, {}: {runs} runs",
            verdict.name(),
            check.bound
        );
        if verdict != Verdict::Passes {
            return Some(report.fault.unwrap_or_else(|| "out of time".into()));
        }
    }
    None
}

fn main() -> ExitCode {
    quietly(|| {
        println!("The lock:");
        let right = check::<false>(&Limits::default());
        println!("\nThe same with a relaxed release:");
        let broken = check::<true>(&Limits::default());
        println!("  {}", broken.as_deref().unwrap_or("not found").trim());
        if right.is_none() && broken.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    })
}

#[test]
fn the_lock_passes_and_the_broken_one_is_caught() {
    let limits = Limits { schedules: 200, ..Limits::default() };
    assert_eq!(check::<false>(&limits), None);
    let fault = check::<true>(&limits).expect("a relaxed release orders nothing");
    assert!(fault.contains(overspin_check::model::EXCLUSION_MESSAGE), "{fault}");
}
