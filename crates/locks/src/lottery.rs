//! Random draws for policies that need them: a small generator per CPU.
//!
//! The seeds are fixed: the same calls give the same draws, in each run of a simulation.

use core::sync::atomic::Ordering::Relaxed;

use crate::{AtomicCell, CachePadded, Platform};

/// A generator of numbers for each CPU.
#[derive(Debug)]
pub(crate) struct Generator<P: Platform> {
    /// State of the generator of each CPU, never 0. Only its CPU writes it.
    states: P::Slots<CachePadded<P::U32>>,
}

impl<P: Platform> Generator<P> {
    /// Generators for `cpus` CPUs.
    pub(crate) fn new(cpus: usize) -> Self {
        // Knuth's multiplicative hash: neighbours start far apart. The factor is odd, so no two
        // numbers below 2^32 share a seed, and only 0 gets 0.
        let seed = |cpu: usize| (cpu as u32).wrapping_add(1).wrapping_mul(2_654_435_769);
        Self { states: P::slots(cpus, |cpu| CachePadded::new(P::U32::new(seed(cpu)))) }
    }

    /// The state of this CPU's generator: a cell that no other CPU touches.
    pub(crate) fn own(&self) -> &P::U32 {
        &self.states[P::cpu_id()]
    }

    /// Draws a number of 32 bits other than 0. An interrupt handler that draws in between gets the
    /// same number, which does no harm.
    pub(crate) fn draw(&self) -> u32 {
        let state = self.own();
        let x = after(state.load(Relaxed));
        state.store(x, Relaxed);
        x
    }
}

/// The draw after `x`, which is not 0.
pub(crate) const fn after(mut x: u32) -> u32 {
    // Marsaglia's xorshift with 32 bits of state, "Xorshift RNGs", 2003.
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    x
}

/// A draw that wins once in `one_in`.
#[derive(Debug)]
pub(crate) struct Lottery<P: Platform> {
    generator: Generator<P>,
    one_in: u32,
}

impl<P: Platform> Lottery<P> {
    /// A lottery for `cpus` CPUs. With `one_in` = 0 no draw wins, with 1 every draw wins.
    pub(crate) fn new(cpus: usize, one_in: u32) -> Self {
        Self { generator: Generator::new(cpus), one_in }
    }

    /// Draws; returns whether the draw wins.
    pub(crate) fn wins(&self) -> bool {
        let x = self.generator.draw();
        // The high half of the product is uniform below `one_in`.
        self.one_in != 0 && (u64::from(x) * u64::from(self.one_in)) >> 32 == 0
    }
}
