//! A line that two CPUs write in turn.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use overspin_locks::CachePadded;

use super::middle;
use crate::bench::pin;

/// Turns of a piece, and pieces of a sample.
const TURNS: u64 = 50;
const PIECES: u64 = 80;
/// The longest sample.
const LONGEST: Duration = Duration::from_millis(50);

/// The time in which a line moves from CPU `a` to CPU `b`, nanoseconds: half of a turn there and back. Not a number
/// if the threads hardly ran together.
pub(super) fn transfer(a: usize, b: usize) -> io::Result<f64> {
    let line = CachePadded::new(AtomicU64::new(0));
    let over = AtomicBool::new(false);
    pin(&[a])?;
    thread::scope(|scope| {
        let (line, over) = (&line, &over);
        let other = scope.spawn(move || {
            let pinned = pin(&[b]);
            let mut turn = 1;
            while pinned.is_ok() && !over.load(Ordering::Relaxed) {
                // It answers odd numbers with the next even one.
                if line.load(Ordering::Acquire) == turn {
                    line.store(turn + 1, Ordering::Release);
                    turn += 2;
                }
            }
            pinned
        });
        let began = Instant::now();
        let ask = |turn: u64| {
            line.store(2 * turn + 1, Ordering::Release);
            let mut looks = 0_u32;
            while line.load(Ordering::Acquire) != 2 * turn + 2 {
                looks = looks.wrapping_add(1);
                // A look at the clock now and then: the other thread may never come.
                if looks.is_multiple_of(4096) && (other.is_finished() || began.elapsed() > LONGEST)
                {
                    return false;
                }
            }
            true
        };
        // The first turns wait for the other thread to begin.
        let mut turn = 0;
        while turn < 100 && ask(turn) {
            turn += 1;
        }
        let mut pieces = Vec::new();
        'sample: for _ in 0..PIECES {
            let piece = Instant::now();
            for _ in 0..TURNS {
                if !ask(turn) {
                    break 'sample;
                }
                turn += 1;
            }
            pieces.push(piece.elapsed().as_nanos() as f64 / 2.0 / TURNS as f64);
        }
        over.store(true, Ordering::Relaxed);
        other.join().unwrap_or(Ok(()))?;
        Ok(middle(pieces))
    })
}
