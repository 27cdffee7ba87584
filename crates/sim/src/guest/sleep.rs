//! vCPUs that sleep on an address: what a lock with a sleeping slow path asks of its kernel.

use super::Guest;
use crate::engine::Engine;
use overspin_host::block::Block;

impl Guest {
    /// The current vCPU sleeps until `address` is woken, or until an interrupt, if `still`.
    pub(crate) fn wait_at(&self, engine: &Engine, address: usize, still: impl FnOnce() -> bool) {
        let v = engine.cpu();
        v.irqs.latch.set(false);
        // First registered, then looked: a wake between the two sets the latch.
        self.sleepers.borrow_mut().push_back((address, v.id));
        if still() {
            engine.block(Block::Poll);
        }
        // Gone already if it was woken.
        self.sleepers.borrow_mut().retain(|(_, sleeper)| *sleeper != v.id);
        engine.take_interrupts();
    }

    /// Wakes the vCPU that has slept on `address` for longest, if any.
    pub(crate) fn wake_at(&self, engine: &Engine, address: usize) {
        let first = {
            let mut sleepers = self.sleepers.borrow_mut();
            let at = sleepers.iter().position(|(key, _)| *key == address);
            at.and_then(|at| sleepers.remove(at))
        };
        match first {
            Some((_, sleeper)) => engine.kick(&engine.vcpus[sleeper as usize]),
            // The call is made, and finds nobody.
            None => engine.burn(engine.scenario.host.costs.hypercall),
        }
    }
}
