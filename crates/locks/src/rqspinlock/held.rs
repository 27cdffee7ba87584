//! What each CPU holds or wants, as a stack of notes that other CPUs read.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::compiler_fence;

use crate::{AtomicCell, CachePadded, Platform};

/// Notes of a CPU, in all its contexts. With the height they fill a cache line.
pub const HELD: usize = 7;

/// A place that is not written yet, above the height or just below it.
const NONE: usize = 0;
/// The lock of this place was released before those above it.
const GAP: usize = 1;

/// The notes of all CPUs.
#[derive(Debug)]
pub(super) struct Held<P: Platform> {
    stacks: P::Slots<CachePadded<Stack<P>>>,
}

/// Only its CPU writes it. Contexts nest: an interrupt handler leaves the stack as it has found it. So a context may
/// be interrupted between any two steps, if it reserves its place first and writes it then.
///
/// Invariant: places from the height on are `NONE`, and the top is not `GAP`.
#[derive(Debug)]
struct Stack<P: Platform> {
    height: P::U32,
    locks: [P::Usize; HELD],
}

impl<P: Platform> Held<P> {
    pub(super) fn new(cpus: usize) -> Self {
        let none = |_| P::Usize::new(NONE);
        let stack = || Stack { height: P::U32::new(0), locks: core::array::from_fn(none) };
        Self { stacks: P::slots(cpus, |_| CachePadded::new(stack())) }
    }

    fn own(&self) -> &Stack<P> {
        &self.stacks[P::cpu_id()]
    }

    /// Notes `lock` on this CPU; returns the place of the note, [`HELD`] if there is none.
    #[inline]
    pub(super) fn note(&self, lock: usize) -> usize {
        let own = self.own();
        // Relaxed: only this CPU writes it.
        let place = own.height.load(Relaxed) as usize;
        if place >= HELD {
            return HELD;
        }
        own.height.store(place as u32 + 1, Relaxed);
        compiler_fence(SeqCst);
        // Release: a CPU that finds this on top finds what is below. The fences are for handlers on this CPU: the lock is taken
        // after it is noted.
        own.locks[place].store(lock, Release);
        compiler_fence(SeqCst);
        place
    }

    /// Removes the note at `place`.
    #[inline]
    pub(super) fn remove(&self, place: usize) {
        if place == HELD {
            return;
        }
        compiler_fence(SeqCst);
        let own = self.own();
        let mut height = own.height.load(Relaxed) as usize;
        if place + 1 != height {
            own.locks[place].store(GAP, Relaxed);
            return;
        }
        loop {
            height -= 1;
            own.locks[height].store(NONE, Relaxed);
            compiler_fence(SeqCst);
            own.height.store(height as u32, Relaxed);
            if height == 0 || own.locks[height - 1].load(Relaxed) != GAP {
                return;
            }
        }
    }

    /// Whether this CPU has noted `lock` below `place`.
    pub(super) fn has_below(&self, place: usize, lock: usize) -> bool {
        // Relaxed: only this CPU writes it.
        self.own().locks[..place].iter().any(|it| it.load(Relaxed) == lock)
    }

    /// Whether another CPU has `lock`, and wants one that this CPU has noted below `place`.
    pub(super) fn waits_for_us(&self, place: usize, lock: usize) -> bool {
        let me = P::cpu_id();
        place > 0
            && self.stacks.iter().enumerate().any(|(cpu, stack)| {
                // Relaxed: a guess, which decides what to look at.
                let height = stack.height.load(Relaxed) as usize;
                if cpu == me || height < 2 {
                    return false;
                }
                let (top, below) = (height - 1, &stack.locks[..height - 1]);
                // Acquire: pairs with the release in `note`.
                let wanted = stack.locks[top].load(Acquire);
                wanted > GAP
                    && self.has_below(place, wanted)
                    && below.iter().any(|it| it.load(Relaxed) == lock)
            })
    }
}
