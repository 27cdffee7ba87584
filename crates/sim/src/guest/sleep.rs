//! Sleep and wake-up of vCPUs on an address, for locks with a sleeping slow path.

use super::Guest;
use crate::engine::Engine;
use overspin_host::block::Block;

impl Guest {
    /// Puts the current vCPU to sleep until a wake-up at `address` or an interrupt. Returns at once if
    /// `still` returns false.
    pub(crate) fn wait_at(&self, engine: &Engine, address: usize, still: impl FnOnce() -> bool) {
        let v = engine.cpu();
        v.irqs.latch.set(false);
        // Register first, then look: a wake-up between the two sets the latch.
        self.sleepers.borrow_mut().push_back((address, v.id));
        if still() {
            engine.block(Block::Poll);
        }
        // A wake-up has removed the entry already.
        self.sleepers.borrow_mut().retain(|(_, sleeper)| *sleeper != v.id);
        engine.take_interrupts();
    }

    /// Wakes the vCPU that has slept on `address` for the longest time, if any.
    pub(crate) fn wake_at(&self, engine: &Engine, address: usize) {
        let first = {
            let mut sleepers = self.sleepers.borrow_mut();
            let at = sleepers.iter().position(|(key, _)| *key == address);
            at.and_then(|at| sleepers.remove(at))
        };
        match first {
            Some((_, sleeper)) => engine.kick(&engine.vcpus[sleeper as usize]),
            // The hypercall finds no sleeper, and takes its time all the same.
            None => engine.burn(engine.scenario.host.costs.hypercall),
        }
    }
}
