//! Reader-writer locks beside each other: `overspin_native::RwLock`, `parking_lot::RwLock` and `std::sync::RwLock`.
//!
//! `cargo run --release -p overspin-native --features bench --example rwlocks [ROUNDS]`
//!
//! Each thread reads or writes a pair of numbers and then pauses outside; in the second part it pauses for a microsecond
//! inside, too. A row is a lock and a share of writes. In each round the locks run in a different order. It prints
//! medians of the rounds, and the longest waits of all rounds.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Length of a run.
const RUN: Duration = Duration::from_millis(100);
/// Pauses inside and outside the lock, and threads.
const CASES: [(u32, u32, usize); 5] = [(0, 2, 1), (0, 2, 2), (0, 2, 8), (50, 50, 2), (50, 50, 8)];

trait Shared: Sync {
    const NAME: &'static str;
    fn new() -> Self;
    fn read(&self, pauses: u32) -> u64;
    fn write(&self, pauses: u32);
}

fn pause(pauses: u32) {
    (0..pauses).for_each(|_| spin_loop());
}

macro_rules! shared {
    ($name:ident, $lock:ty, $words:literal $(, $unwrap:ident)?) => {
        struct $name($lock);
        impl Shared for $name {
            const NAME: &'static str = $words;
            fn new() -> Self {
                Self(<$lock>::new((0, 0)))
            }
            fn read(&self, pauses: u32) -> u64 {
                let pair = self.0.read()$(.$unwrap())?;
                pause(pauses);
                pair.0 + pair.1
            }
            fn write(&self, pauses: u32) {
                let mut pair = self.0.write()$(.$unwrap())?;
                pause(pauses);
                pair.0 += 1;
                pair.1 += 1;
            }
        }
    };
}

shared!(Ours, overspin_native::RwLock<(u64, u64)>, "overspin");
shared!(ParkingLot, parking_lot::RwLock<(u64, u64)>, "parking_lot");
shared!(Std, std::sync::RwLock<(u64, u64)>, "std", unwrap);

/// What a run gave.
struct Measured {
    /// Million operations a second.
    rate: f64,
    longest_read: Duration,
    longest_write: Duration,
}

/// The first number of a thread's sequence: not 0, of which xorshift makes nothing else.
fn seed(thread: usize) -> u32 {
    (thread as u32).wrapping_mul(2_654_435_761).wrapping_add(1)
}

fn run<L: Shared>(threads: usize, writes_in_100: u32, inside: u32, outside: u32) -> Measured {
    let (lock, over, begin) = (L::new(), AtomicBool::new(false), Barrier::new(threads + 1));
    let one = |number: usize| {
        let (mut seed, mut done) = (seed(number), 0_u64);
        let mut longest = [Duration::ZERO; 2];
        begin.wait();
        while !over.load(Relaxed) {
            // xorshift, by Marsaglia.
            seed ^= seed << 13;
            seed ^= seed >> 17;
            seed ^= seed << 5;
            let writes = seed % 100 < writes_in_100;
            // A clock for one in 16, so that it costs little.
            let since = (done % 16 == 0).then(Instant::now);
            if writes {
                lock.write(inside);
            } else {
                black_box(lock.read(inside));
            }
            if let Some(since) = since {
                let longest = &mut longest[usize::from(writes)];
                *longest = since.elapsed().max(*longest);
            }
            done += 1;
            pause(outside);
        }
        (done, longest)
    };
    thread::scope(|scope| {
        let one = &one;
        let all: Vec<_> = (0..threads).map(|number| scope.spawn(move || one(number))).collect();
        begin.wait();
        let since = Instant::now();
        thread::sleep(RUN);
        over.store(true, Relaxed);
        let time = since.elapsed().as_secs_f64();
        let all: Vec<_> =
            all.into_iter().map(|one| one.join().expect("no thread panics")).collect();
        let longest = |kind: usize| all.iter().map(|(_, l)| l[kind]).max().unwrap_or_default();
        Measured {
            rate: all.iter().map(|(done, _)| done).sum::<u64>() as f64 / time / 1e6,
            longest_read: longest(0),
            longest_write: longest(1),
        }
    })
}

type Run = fn(usize, u32, u32, u32) -> Measured;

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(9_usize);
    let locks: [(&str, Run); 3] =
        [(Ours::NAME, run::<Ours>), (ParkingLot::NAME, run::<ParkingLot>), (Std::NAME, run::<Std>)];
    println!("{rounds} runs of {} ms; medians, and the longest wait of all", RUN.as_millis());
    for (inside, outside, threads) in CASES {
        println!("\n{threads} threads, {inside} pauses inside, {outside} outside");
        println!("writes  lock          Mops/s   of the best   longest read   longest write");
        for writes in [0, 1, 10, 50, 100] {
            let mut measured: Vec<Vec<Measured>> = locks.iter().map(|_| Vec::new()).collect();
            for round in 0..rounds {
                for place in 0..locks.len() {
                    let lock = (place + round) % locks.len();
                    measured[lock].push(locks[lock].1(threads, writes, inside, outside));
                }
            }
            let median = |of: &[Measured]| {
                let mut rates: Vec<f64> = of.iter().map(|m| m.rate).collect();
                rates.sort_by(f64::total_cmp);
                rates[rates.len() / 2]
            };
            let best = measured.iter().map(|m| median(m)).fold(0.0, f64::max);
            for ((name, _), of) in locks.iter().zip(&measured) {
                let rate = median(of);
                let longest = |kind: fn(&Measured) -> Duration| {
                    of.iter().map(kind).max().unwrap_or_default().as_secs_f64() * 1e3
                };
                println!(
                    "{writes:4} %  {name:11} {rate:8.2}   {:11.2}   {:9.2} ms   {:10.2} ms",
                    rate / best,
                    longest(|m| m.longest_read),
                    longest(|m| m.longest_write),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_of_a_run_has_a_seed_of_its_own() {
        let most = CASES.iter().map(|case| case.2).max().unwrap_or_default();
        let mut seeds: Vec<u32> = (0..most).map(seed).collect();
        assert!(!seeds.contains(&0), "{seeds:?}");
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), most);
    }

    #[test]
    fn a_run_of_many_threads_ends() {
        assert!(run::<Ours>(8, 50, 0, 2).rate > 0.0);
    }
}
