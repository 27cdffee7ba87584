//! Re-warming: what a thread loses to the caches when it returns to its CPU after another thread ran there.
//!
//! Two threads of one CPU hand over by futex. Each has a working set of the same size, a cycle through cache lines:
//!
//! ```text
//! measured | pass (warm) | sleeps                                | pass (first) | pass (warm) | ...
//! other      sleeps      | walks its set for a while, or spins   | sleeps
//! ```
//!
//! The loss is the first pass less the warm one. Other things displace lines too: the switches, which the simulator
//! charges in `context_switch`, and the neighbours of a virtual machine. So turns in which the other thread only spins
//! are taken in between: the control, whose loss is subtracted.
//!
//! Each load needs the one before, and no work is done between loads. In random order nothing hides a miss: an upper
//! bound. In the order of addresses the prefetcher fetches ahead.

use std::fs;
use std::hint::{black_box, spin_loop};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Quantity, middle};
use crate::bench::{Lots, pin};
use crate::futex;

/// How long the other thread runs, in microseconds, and how many such turns of each kind a sample has.
const AWAY: [(u32, usize); 4] = [(10, 15), (100, 11), (1_000, 5), (10_000, 3)];
/// Loads between two looks at the clock.
const LOADS: usize = 32;

/// Values of the word that says whose turn it is. Others are microseconds for the other thread, doubled, and 1 more
/// if it walks.
const MEASURED: u32 = 0;
const OVER: u32 = u32::MAX;

#[repr(align(64))]
struct Line(u32);

/// A cycle through all lines of a working set.
struct WorkingSet {
    lines: Vec<Line>,
    at: usize,
}

impl WorkingSet {
    fn new(bytes: u32, in_order: bool, lots: &mut Lots) -> Self {
        let number = bytes / size_of::<Line>() as u32;
        let mut order: Vec<u32> = (0..number).collect();
        if !in_order {
            lots.shuffle(&mut order);
        }
        let mut lines: Vec<Line> = order.iter().map(|_| Line(0)).collect();
        for (i, line) in order.iter().enumerate() {
            lines[*line as usize].0 = order[(i + 1) % order.len()];
        }
        Self { lines, at: 0 }
    }

    fn walk(&mut self, loads: usize) {
        let mut at = self.at;
        for _ in 0..loads {
            at = self.lines[at].0 as usize;
        }
        self.at = black_box(at);
    }

    /// The nanoseconds of a pass over all lines.
    fn pass(&mut self) -> f64 {
        let began = Instant::now();
        self.walk(self.lines.len());
        began.elapsed().as_nanos() as f64
    }
}

fn give(turn: &AtomicU32, to: u32) {
    turn.store(to, Ordering::Release);
    futex::wake(turn, 1);
}

/// Sleeps until the turn is this side's; returns its value.
fn await_turn(turn: &AtomicU32, is_mine: impl Fn(u32) -> bool) -> u32 {
    loop {
        let now = turn.load(Ordering::Acquire);
        if is_mine(now) {
            return now;
        }
        futex::wait(turn, now);
    }
}

/// The other thread.
fn other(turn: &AtomicU32, mut set: WorkingSet) {
    let mut order = await_turn(turn, |now| now != MEASURED);
    while order != OVER {
        let (away, walks) = (Duration::from_micros((order / 2).into()), order % 2 == 1);
        let began = Instant::now();
        while began.elapsed() < away {
            if walks {
                set.walk(LOADS);
            } else {
                spin_loop();
            }
        }
        give(turn, MEASURED);
        order = await_turn(turn, |now| now != MEASURED);
    }
}

/// What threads on `cpu` with working sets of so many bytes lose, and the control, for each time that the other ran.
pub(super) fn losses(cpu: usize, bytes: u32, in_order: bool) -> io::Result<Vec<(Quantity, f64)>> {
    // The other thread inherits this.
    pin(&[cpu])?;
    let mut lots = Lots::new(1);
    let mut mine = WorkingSet::new(bytes, in_order, &mut lots);
    let others = WorkingSet::new(bytes, in_order, &mut lots);
    let turn = &AtomicU32::new(MEASURED);
    thread::scope(|scope| {
        scope.spawn(move || other(turn, others));
        mine.pass();
        let mut lost = |away: u32, walks: bool| {
            mine.pass();
            give(turn, 2 * away + u32::from(walks));
            await_turn(turn, |now| now == MEASURED);
            let first = mine.pass();
            first - mine.pass()
        };
        let mut found = Vec::new();
        for (away, times) in AWAY {
            let pairs = (0..times).map(|_| (lost(away, true), lost(away, false)));
            let (walked, spun): (Vec<f64>, Vec<f64>) = pairs.unzip();
            let control = middle(spun);
            found.push((Quantity::Rewarm { bytes, in_order, away }, middle(walked) - control));
            found.push((Quantity::RewarmControl { bytes, in_order, away }, control));
        }
        give(turn, OVER);
        Ok(found)
    })
}

/// Sizes of working sets in bytes: the first level of the caches, half of the second, all of it, and twice that.
pub(super) fn sizes(cpu: usize) -> [u32; 4] {
    // Common sizes, where the kernel does not tell.
    let (first, second) =
        (level(cpu, "1").unwrap_or(32 << 10), level(cpu, "2").unwrap_or(512 << 10));
    [first, second / 2, second, 2 * second]
}

/// Bytes of the data cache of `cpu` at this level, as the kernel tells: `32K`.
fn level(cpu: usize, level: &str) -> Option<u32> {
    let read = |index: u32, file: &str| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{file}"))
            .ok()
    };
    let is_it = |index: &u32| {
        read(*index, "level").is_some_and(|l| l.trim() == level)
            && read(*index, "type").is_some_and(|t| t.trim() != "Instruction")
    };
    let index = (0..8).find(is_it)?;
    read(index, "size")?.trim().strip_suffix('K')?.parse::<u32>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_set_is_one_cycle_through_all_its_lines() {
        for in_order in [true, false] {
            let mut set = WorkingSet::new(64 * 100, in_order, &mut Lots::new(1));
            let mut seen = [false; 100];
            for _ in 0..100 {
                set.walk(1);
                assert!(!std::mem::replace(&mut seen[set.at], true));
            }
            assert_eq!(set.at, 0, "back where it began");
        }
    }
}
