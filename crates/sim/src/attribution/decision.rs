//! Why a vCPU that wanted to run was descheduled.
//!
//! Schedulers answer who runs next, not why. The reason is read off what the world knows at that moment;
//! the first that applies, in the order of [`World::why`].

use super::{Descheduled, Doing};
use crate::memory::NONE;
use crate::vcpu::Vcpu;
use crate::world::World;
use overspin_scenario::Why;
use overspin_sched::RunState;

impl World {
    /// `v` has left `pcpu`, where `next` comes.
    pub(crate) fn leaves(&self, v: &Vcpu, pcpu: u32, next: Option<u32>) {
        // Who sleeps, or was woken before it had left, has not been descheduled.
        if v.doing.get() != Doing::Runs {
            return;
        }
        let why = self.why(v, pcpu, next);
        let by = next.unwrap_or(NONE);
        v.last_decision.set(Some(Descheduled { at: self.now.get(), pcpu, by, why }));
        self.does(v, Doing::Wants);
    }

    fn why(&self, v: &Vcpu, pcpu: u32, next: Option<u32>) -> Why {
        let (offline, parked, migrates) = self.look_at(v.id, |h, local| {
            let m = h.machine();
            (h.runstate(local) == RunState::Offline, m.is_parked(local), m.is_migrating(local))
        });
        if offline {
            return match (parked, migrates) {
                (true, _) => Why::Parked,
                (false, true) => Why::Migration,
                (false, false) => Why::Paused,
            };
        }
        // The pass that a yield asks for comes at the same instant.
        let (at, why) = v.yielded.get();
        if at == self.now.get() {
            return why;
        }
        if self.pcpus[pcpu as usize].slice_over.get() {
            return Why::Slice;
        }
        match next.map(|next| self.vcpus[next as usize].doing.get()) {
            Some(Doing::Wakes) => Why::Wake,
            _ => Why::Scheduler,
        }
    }
}
