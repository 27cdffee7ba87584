//! What a CPU does by itself: hits, atomics, fences, PAUSE, and its speed beside a busy sibling.

use std::hint::{black_box, spin_loop};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use super::{Quantity, middle};
use crate::bench::{pin, work};
use crate::futex;

/// Operations of a piece, some 1 to 30 us, and pieces of a sample.
const TIMES: u32 = 1_000;
const PIECES: u32 = 40;
/// Steps of work of a sample, and how long a sibling is busy before one.
const STEPS: u32 = 1_000_000;
const BEFORE: Duration = Duration::from_millis(1);

/// The nanoseconds of one of many operations.
fn each(operation: impl Fn()) -> f64 {
    let piece = |_| {
        let began = Instant::now();
        for _ in 0..TIMES {
            operation();
        }
        began.elapsed().as_nanos() as f64 / f64::from(TIMES)
    };
    middle((0..PIECES).map(piece).collect())
}

/// What a CPU does with a line that it owns, and an empty system call.
pub(super) fn local(cpu: usize) -> io::Result<Vec<(Quantity, f64)>> {
    pin(&[cpu])?;
    let word = AtomicU64::new(0);
    let hit = each(|| {
        black_box(&word).load(Ordering::Relaxed);
    });
    let atomic = each(|| {
        black_box(&word).fetch_add(1, Ordering::AcqRel);
    });
    let fenced = each(|| {
        black_box(&word).load(Ordering::Relaxed);
        fence(Ordering::SeqCst);
    });
    let spin = each(|| {
        if black_box(&word).load(Ordering::Acquire) < u64::MAX {
            spin_loop();
        }
    });
    let nobody = AtomicU32::new(0);
    let call = each(|| {
        futex::wake(&raw const nobody, 1);
    });
    Ok(vec![
        (Quantity::SystemCall, call),
        (Quantity::CacheHit, hit),
        (Quantity::Atomic, (atomic - hit).max(0.0)),
        (Quantity::Fence, (fenced - hit).max(0.0)),
        (Quantity::SpinIteration, spin),
    ])
}

fn speed() -> f64 {
    let began = Instant::now();
    work(STEPS);
    f64::from(STEPS) / began.elapsed().as_nanos().max(1) as f64
}

/// The speed of CPU `a` while `b` works too, in thousandths of its speed alone.
pub(super) fn beside(a: usize, b: usize) -> io::Result<f64> {
    pin(&[a])?;
    let alone = speed();
    let (stop, works) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let busy = scope.spawn(|| -> io::Result<()> {
            pin(&[b])?;
            works.store(true, Ordering::Release);
            while !stop.load(Ordering::Relaxed) {
                work(1_000);
            }
            Ok(())
        });
        while !works.load(Ordering::Acquire) && !busy.is_finished() {
            thread::sleep(BEFORE);
        }
        let both = speed();
        stop.store(true, Ordering::Relaxed);
        busy.join().unwrap_or(Ok(()))?;
        Ok(1000.0 * (both / alone).min(1.0))
    })
}
