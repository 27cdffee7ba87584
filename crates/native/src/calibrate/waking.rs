//! Threads that sleep and wake each other: context switches and wake-ups.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::thread;
use std::time::Instant;

use super::middle;
use crate::bench::pin;

/// Turns of a sample.
const TURNS: u32 = 200;

fn pass(from: &mut PipeReader, to: &mut PipeWriter) -> io::Result<()> {
    from.read_exact(&mut [0])?;
    to.write_all(&[0])
}

/// The nanoseconds of a turn.
fn timed(turn: &mut impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let began = Instant::now();
    turn()?;
    Ok(began.elapsed().as_nanos() as f64)
}

/// Nanoseconds of turns between two threads, each kept to its CPU: one writes to a pipe and sleeps on another.
pub(super) fn turns(a: usize, b: usize) -> io::Result<Vec<f64>> {
    let ((mut here_from, there_to), (there_from, mut here_to)) = (pipe()?, pipe()?);
    pin(&[a])?;
    thread::scope(|scope| {
        let (mut from, mut to) = (there_from, there_to);
        let other = scope.spawn(move || {
            pin(&[b])?;
            // The first is for the beginning.
            (0..=TURNS).try_for_each(|_| pass(&mut from, &mut to))
        });
        let mut turn = || {
            here_to.write_all(&[0])?;
            here_from.read_exact(&mut [0])
        };
        let result = turn().and_then(|()| {
            let one = |_| timed(&mut turn);
            (0..TURNS).map(one).collect()
        });
        // If this side failed, its ends close, and the other side ends too.
        drop((here_to, here_from));
        other.join().unwrap_or(Ok(()))?;
        result
    })
}

/// Nanoseconds of writing to a pipe and reading from it, without a sleep.
fn calls(cpu: usize) -> io::Result<f64> {
    let (mut from, mut to) = pipe()?;
    pin(&[cpu])?;
    let mut call = || {
        to.write_all(&[0])?;
        from.read_exact(&mut [0])
    };
    Ok(middle((0..TURNS).map(|_| timed(&mut call)).collect::<io::Result<_>>()?))
}

/// A switch between two threads of one CPU, nanoseconds: half of a turn, less the system calls of that half.
pub(super) fn switch(turns: &[f64], cpu: usize) -> io::Result<f64> {
    let (turn, calls) = (middle(turns.to_vec()), calls(cpu)?);
    Ok((turn / 2.0 - calls).max(0.0))
}

/// From a wake-up to the first instruction of the woken thread on another CPU, nanoseconds: half of a turn, less the
/// read that follows it.
pub(super) fn wake(turns: &[f64], cpu: usize) -> io::Result<f64> {
    let (turn, calls) = (middle(turns.to_vec()), calls(cpu)?);
    Ok((turn / 2.0 - calls / 2.0).max(0.0))
}
