//! The costs that may vary, and the random numbers from which they are drawn.
//!
//! Each cost has a stream of its own, which depends on the run's seed only. So a distribution for one cost takes no random
//! number from another cost, or from a task. A cost that is always the same takes none.

use overspin_scenario::{Costs as Table, Picos, Quantiles, Varying};
use overspin_workload::Random;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::cell::RefCell;

/// One cost.
#[derive(Debug)]
pub(crate) struct Cost {
    of: Varying,
    random: RefCell<Random>,
}

impl Cost {
    /// The cost of the next occurrence.
    #[inline(always)]
    pub(crate) fn next(&self) -> Picos {
        match &self.of {
            Varying::Always(time) => *time,
            Varying::Drawn(quantiles) => self.draw(quantiles),
        }
    }

    /// Out of line, so that costs which do not vary stay cheap.
    #[inline(never)]
    fn draw(&self, quantiles: &Quantiles) -> Picos {
        self.random.borrow_mut().from_quantiles(quantiles)
    }
}

/// All costs that may vary.
#[derive(Debug)]
pub(crate) struct Costs {
    pub context_switch: Cost,
    pub preemption: Cost,
    pub hypercall: Cost,
    pub ipi: Cost,
    pub timer: Cost,
    pub host_timer: Cost,
}

impl Costs {
    pub(crate) fn new(of: &Table, seed: u64) -> Self {
        let cost = |of: Varying, number: u64| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            // Tasks have the streams whose upper bits are the number of their guest.
            rng.set_stream(u64::MAX - number);
            Cost { of, random: RefCell::new(Random::new(rng.next_u64())) }
        };
        Self {
            context_switch: cost(of.context_switch, 0),
            preemption: cost(of.preemption, 1),
            hypercall: cost(of.hypercall, 2),
            ipi: cost(of.ipi, 3),
            timer: cost(of.timer, 4),
            host_timer: cost(of.host_timer, 5),
        }
    }
}
