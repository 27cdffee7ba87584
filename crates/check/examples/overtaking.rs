//! How often each other CPU takes a lock while one CPU wants it: prints the table of `docs/model-checking.md`.
//!
//!     cargo run --release -p overspin-check --example overtaking [SCHEDULES [LOCK...]]

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use overspin_check::schedules::{
    self, Plan, Rivalry, SchedulePlatform, ScheduleU32, Strategy, on_cpus, world,
};
use overspin_check::{Mutation, Profile, quietly};
use overspin_locks::rwlock::{RwLock, Shared};
use overspin_locks::{AtomicCell, Mutex, Pace, RawLock, Tuning, for_each_lock};

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

/// One CPU of a reader-writer lock writes or reads, while the others write or read, with the patience of threads.
fn among(cpus: usize, writes: bool, rivals_write: bool, most: usize) -> Plan {
    type Queue = Mutex<SchedulePlatform>;
    Plan::new(cpus, move || {
        let zero = || ScheduleU32::new(0);
        let tuning = Tuning { spin_budget: Some(0), ..Tuning::DEFAULT };
        let writers = Queue::shared(cpus, tuning).expect("few CPUs");
        let shared = Shared { writers, spin_budget: 0, patience: 8, pace: Pace::ALWAYS };
        let lock = RwLock::of(zero(), zero(), zero(), zero(), Queue::new());
        let it = Arc::new((lock, shared, AtomicUsize::new(0)));
        let rivalry = Rivalry::new(most);
        on_cpus(cpus, move |cpu| {
            let (lock, shared, sections) = &*it;
            let section = |writes| {
                let inside = || {
                    world().acquired();
                    world().turn();
                    sections.fetch_add(1, Relaxed) + 1
                };
                if writes {
                    let token = lock.lock_exclusive(shared);
                    let sections = inside();
                    lock.unlock_exclusive(shared, token);
                    return sections;
                }
                lock.lock_shared(shared).expect("there are few readers");
                let sections = inside();
                lock.unlock_shared();
                sections
            };
            if cpu == 0 {
                (0..2).for_each(|_| rivalry.comes(section(writes)));
                return rivalry.ends();
            }
            while !rivalry.is_over() {
                rivalry.was_inside(section(rivals_write), cpus - 1);
            }
        });
    })
}

fn rows_of_the_reader_writer_lock(schedules: usize) {
    for (what, writes, rivals_write) in [
        ("a writer among readers", true, false),
        ("a reader among writers", false, true),
        ("a writer among writers", true, true),
    ] {
        let bound = |cpus, strategy, schedules| {
            first_that_holds(strategy, schedules, |most| among(cpus, writes, rivals_write, most))
        };
        println!(
            "| `RwLock`, {what} | {} | {} | {} | {} | {} |",
            bound(4, Strategy::Random, schedules / 4),
            bound(8, Strategy::Random, schedules / 4),
            Profile::default().overtaken,
            bound(2, Strategy::Lasso, schedules),
            bound(3, Strategy::Lasso, schedules)
        );
    }
}

macro_rules! rows {
    ($($lock:ident)+) => {
        fn rows(schedules: usize, names: &[String]) {
            $({
                type Lock = overspin_locks::$lock<SchedulePlatform>;
                if names.is_empty() || names.iter().any(|name| name == Lock::INFO.name) {
                    row::<Lock>(schedules);
                }
            })+
        }
    };
}
for_each_lock!(rows);

fn main() {
    let schedules =
        env::args().nth(1).map_or(10_000, |it| it.parse().expect("a number of schedules"));
    println!("| Lock | 4 CPUs at random | 8 at random | bound | 2 CPUs, lassos | 3, lassos |");
    println!("|---|---:|---:|---:|---:|---:|");
    quietly(|| {
        let names: Vec<String> = env::args().skip(2).collect();
        rows(schedules, &names);
        if names.is_empty() {
            rows_of_the_reader_writer_lock(schedules);
        }
    });
}
