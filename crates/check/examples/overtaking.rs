//! How often each other CPU takes a lock while one CPU wants it: prints the table of `docs/model-checking.md`.
//!
//!     cargo run --release -p overspin-check --example overtaking [SCHEDULES]

use std::env;

use overspin_check::schedules::{self, Plan, SchedulePlatform, Strategy};
use overspin_check::{Mutation, Profile, quietly};
use overspin_locks::{RawLock, for_each_lock};

/// The bounds that are tried, from the least on; the last is no bound.
const BOUNDS: [usize; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 100, 200, 400, 1_000];

/// The first bound that so many schedules keep.
fn first_that_holds(strategy: Strategy, schedules: usize, plan: impl Fn(usize) -> Plan) -> String {
    let holds = |most: usize| {
        let report = plan(most).explore(strategy, schedules, 1, Mutation::None);
        report.complete && report.fault.is_none()
    };
    BOUNDS.into_iter().find(|most| holds(*most)).map_or("never".into(), |most| most.to_string())
}

fn row<L>(schedules: usize)
where
    L: RawLock<SchedulePlatform> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    let random = |cpus| {
        let plan = |most| schedules::rivals::<L>(cpus, 2, most);
        first_that_holds(Strategy::Random, schedules / 4, plan)
    };
    let lasso = |cpus| {
        let plan = |most| schedules::rivals_that_wait::<L>(cpus, 3, most);
        first_that_holds(Strategy::Lasso, schedules, plan)
    };
    let Profile { overtaken, .. } = Profile::of(&L::INFO);
    let name = L::INFO.name;
    println!(
        "| {name} | {} | {} | {overtaken} | {} | {} |",
        random(4),
        random(8),
        lasso(2),
        lasso(3)
    );
}

macro_rules! rows {
    ($($lock:ident)+) => {
        fn rows(schedules: usize) {
            $(row::<overspin_locks::$lock<SchedulePlatform>>(schedules);)+
        }
    };
}
for_each_lock!(rows);

fn main() {
    let schedules =
        env::args().nth(1).map_or(10_000, |it| it.parse().expect("a number of schedules"));
    println!("| Lock | 4 CPUs at random | 8 at random | bound | 2 CPUs, lassos | 3, lassos |");
    println!("|---|---:|---:|---:|---:|---:|");
    quietly(|| rows(schedules));
}
