//! Condition variables beside each other: `overspin_native::Condvar`, parking_lot's and that of `std`.
//!
//! `cargo run --release -p overspin-native --features bench --example condvars [ROUNDS]`
//!
//! In a ring each thread waits for its turn with a condition variable of its own, and notifies the next. Or one thread
//! announces something to 16, and waits until all have answered. In each round the kinds run in a different order. It prints
//! medians of the rounds, and their first and third quartiles, in microseconds per turn and per announcement.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use overspin_native::bench::pin;

const TURNS: usize = 20_000;
const ANNOUNCEMENTS: usize = 500;

trait Kind: Sync {
    const NAME: &'static str;
    fn new() -> Self;
    /// Waits until `ready`, makes the change, and returns what `then` says; notifies `target` under the mutex or after it.
    fn pass(
        &self,
        number: &Self::Number,
        ready: impl FnMut(&mut usize) -> bool,
        change: impl FnOnce(&mut usize) -> Notify,
        target: &Self,
        under: bool,
    );
    /// A number behind a mutex.
    type Number: Sync;
    fn number() -> Self::Number;
}

enum Notify {
    Nobody,
    One,
    All,
}

macro_rules! kind {
    ($name:ident, $words:literal, $($path:ident)::+, |$condvar:ident, $guard:ident, $ready:ident| $wait:expr $(, $unwrap:ident)?) => {
        struct $name($($path)::+::Condvar);
        impl Kind for $name {
            const NAME: &'static str = $words;
            type Number = $($path)::+::Mutex<usize>;
            fn new() -> Self {
                Self($($path)::+::Condvar::new())
            }
            fn number() -> Self::Number {
                $($path)::+::Mutex::new(0)
            }
            fn pass(
                &self,
                number: &Self::Number,
                mut $ready: impl FnMut(&mut usize) -> bool,
                change: impl FnOnce(&mut usize) -> Notify,
                target: &Self,
                under: bool,
            ) {
                let $condvar = &self.0;
                #[allow(unused_mut)]
                let mut $guard = number.lock()$(.$unwrap())?;
                let mut $guard = $wait;
                let whom = change(&mut $guard);
                let mut held = Some($guard);
                if !under {
                    held = None;
                }
                match whom {
                    Notify::Nobody => {}
                    Notify::One => _ = target.0.notify_one(),
                    Notify::All => _ = target.0.notify_all(),
                }
                drop(held);
            }
        }
    };
}

kind!(Ours, "overspin", overspin_native, |condvar, guard, ready| {
    condvar.wait_while(&mut guard, |number| !ready(number));
    guard
});
kind!(ParkingLot, "parking_lot", parking_lot, |condvar, guard, ready| {
    condvar.wait_while(&mut guard, |number| !ready(number));
    guard
});
kind!(
    Std,
    "std",
    std::sync,
    |condvar, guard, ready| condvar.wait_while(guard, |number| !ready(number)).unwrap(),
    unwrap
);

/// Microseconds per turn of a ring. With `cpus`, thread n stays on CPU n modulo that.
fn ring<K: Kind>(threads: usize, cpus: Option<usize>, under: bool) -> f64 {
    let number = K::number();
    let conditions: Vec<K> = (0..threads).map(|_| K::new()).collect();
    let begin = Barrier::new(threads + 1);
    let one = |mine: usize| {
        if let Some(cpus) = cpus {
            // On failure the thread stays where it may run.
            let _ = pin(&[mine % cpus]);
        }
        begin.wait();
        for turn in (mine..TURNS).step_by(threads) {
            let advance = |number: &mut usize| {
                *number += 1;
                Notify::One
            };
            let next = &conditions[(mine + 1) % threads];
            conditions[mine].pass(&number, |&mut number| number == turn, advance, next, under);
        }
    };
    thread::scope(|scope| {
        let one = &one;
        let all: Vec<_> = (0..threads).map(|mine| scope.spawn(move || one(mine))).collect();
        begin.wait();
        let since = Instant::now();
        all.into_iter().for_each(|one| one.join().expect("no thread panics"));
        since.elapsed().as_secs_f64() * 1e6 / TURNS as f64
    })
}

/// Microseconds per announcement to so many threads. The number counts announcements and answers.
fn announce<K: Kind>(threads: usize, _cpus: Option<usize>, under: bool) -> f64 {
    let (number, announced, answered) = (K::number(), K::new(), K::new());
    let round = threads + 1;
    let one = || {
        for n in 0..ANNOUNCEMENTS {
            let answer = |number: &mut usize| {
                *number += 1;
                if number.is_multiple_of(round) { Notify::One } else { Notify::Nobody }
            };
            announced.pass(&number, |&mut number| number > n * round, answer, &answered, under);
        }
    };
    thread::scope(|scope| {
        (0..threads).for_each(|_| _ = scope.spawn(one));
        let since = Instant::now();
        for n in 0..ANNOUNCEMENTS {
            let announcement = |number: &mut usize| {
                *number += 1;
                Notify::All
            };
            answered.pass(
                &number,
                |&mut number| number == n * round,
                announcement,
                &announced,
                under,
            );
        }
        let last = |&mut number: &mut usize| number == ANNOUNCEMENTS * round;
        answered.pass(&number, last, |_| Notify::Nobody, &announced, under);
        since.elapsed().as_secs_f64() * 1e6 / ANNOUNCEMENTS as f64
    })
}

type Run = fn(usize, Option<usize>, bool) -> f64;

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(21_usize);
    let names = [Ours::NAME, ParkingLot::NAME, Std::NAME];
    let rings: [Run; 3] = [ring::<Ours>, ring::<ParkingLot>, ring::<Std>];
    let announcements: [Run; 3] = [announce::<Ours>, announce::<ParkingLot>, announce::<Std>];
    println!("{rounds} rounds; median, first and third quartile, us");
    println!("{:48} {:>22} {:>22} {:>22}", "", names[0], names[1], names[2]);
    for (case, runs, threads, cpus) in [
        ("ring of 2, one CPU", rings, 2, Some(1)),
        ("ring of 2, a CPU each", rings, 2, Some(2)),
        ("ring of 8", rings, 8, None),
        ("one to 16", announcements, 16, None),
    ] {
        for under in [false, true] {
            let mut measured = [const { Vec::new() }; 3];
            for round in 0..rounds.max(1) {
                for place in 0..3 {
                    let kind = (place + round) % 3;
                    measured[kind].push(runs[kind](threads, cpus, under));
                }
            }
            let how = if under { "notified under the mutex" } else { "notified after it" };
            print!("{:48}", format!("{case}, {how}"));
            for figures in &mut measured {
                figures.sort_by(f64::total_cmp);
                let at = |quarter: usize| figures[figures.len() * quarter / 4];
                print!(" {:8.2} ({:5.2} {:5.2})", at(2), at(1), at(3));
            }
            println!();
        }
    }
}
