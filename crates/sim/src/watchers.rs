//! Memory operations, and spinning on what they change.
//!
//! A vCPU that spins is in the list of watchers of its line, and its coroutine is suspended. A
//! write evaluates the conditions of the watchers at once, and arms a look for those whose condition
//! now holds, at the time when the line has reached them. So a long spin costs as many events as the
//! line has changes that matter, not as many as the processor would have done iterations.

use crate::events::Event;
use crate::memory::{Access, NONE};
use crate::vcpu::{Reason, Vcpu, Watch};
use crate::world::{Suspend, World};
use overspin_scenario::{Picos, TraceEvent};

impl World {
    /// Performs a memory operation on `cell`: charges it, applies `apply` at the moment when it
    /// completes, and lets those who spin on the line know.
    #[inline(always)]
    pub(crate) fn access<C, R>(&self, cell: &C, access: Access, apply: impl FnOnce(&C) -> R) -> R {
        let line = self.memory.line_of(cell);
        let end = self.memory.access(line, self.cpu().pcpu.get(), access, self.now.get());
        let suspended = self.step_until(end);
        let result = apply(cell);
        if access != Access::Load
            && let Some(line) = line
            && self.memory.first_watcher(line) != NONE
        {
            self.notify(line);
        }
        if suspended {
            self.take_interrupts();
        }
        result
    }

    /// A line was written: those who spin on it and now find their condition true will see that
    /// after the line has reached them, one after another. The others read it again too, and go on
    /// spinning.
    fn notify(&self, line: usize) {
        let writer = self.cpu().id;
        let mut position = 0;
        let mut id = self.memory.first_watcher(line);
        while id != NONE {
            let v = &self.vcpus[id as usize];
            id = v.next.get();
            if v.id == writer || !v.running.get() {
                continue;
            }
            if !v.hit_armed.get() && self.holds(v) {
                v.hit_armed.set(true);
                let sees = self.memory.served(line, v.pcpu.get(), position, self.now.get());
                self.push(sees, Event::Operation { vcpu: v.id, epoch: v.epoch.get() });
            }
            position += 1;
        }
        if position > 0 {
            self.memory.refetch(line, position, self.now.get());
        }
    }

    /// Whether what `v` spins on satisfies its condition now.
    pub(crate) fn holds(&self, v: &Vcpu) -> bool {
        let watch = v.watch.get().expect("a spinning vCPU watches something");
        // SAFETY: `data` points into the frame of `spin` on the suspended coroutine's stack, which
        // stays until the watch is removed.
        unsafe { (watch.holds)(watch.data) }
    }

    /// Spins on `line` until the watch's condition holds or `left` of CPU time is gone, and takes
    /// the time used off `left`. Returns whether the condition was seen to hold.
    #[inline(always)]
    pub(crate) fn spin(&self, line: Option<usize>, watch: Watch, left: &mut Picos) -> bool {
        self.begin_wait();
        loop {
            let v = self.cpu();
            v.watch.set(Some(watch));
            self.watch(v, line);
            let spun_since = v.run_clock(self.now.get());
            self.arm_spin(v, *left);
            self.suspend(Suspend::Operation);
            // Interrupted or not, the wait was on the vCPU that is current now.
            let v = self.cpu();
            self.unwatch(v);
            v.pauses.end(self.now.get());
            v.watch.set(None);
            v.spinning.set(v.spinning.get() + v.run_clock(self.now.get()) - spun_since);
            match v.reason.get() {
                Reason::Hit => {
                    if v.op_end.get() != Picos::MAX {
                        *left = v.shrink(v.op_end.get().saturating_sub(self.now.get()));
                    }
                    self.take_interrupts();
                    return true;
                }
                Reason::Done => {
                    *left = 0;
                    self.take_interrupts();
                    return false;
                }
                reason @ (Reason::Interrupted | Reason::PauseLoop) => {
                    *left = v.op_left.get();
                    if reason == Reason::PauseLoop {
                        self.pause_loop_exit();
                    }
                    self.take_interrupts();
                    // SAFETY: the watch is the caller's own, alive in its frame.
                    if unsafe { (watch.holds)(watch.data) } {
                        return true;
                    }
                }
            }
        }
    }

    /// The lock operation on the current vCPU has to wait, from now if it did not before.
    #[inline(always)]
    pub(crate) fn begin_wait(&self) {
        let v = self.cpu();
        if v.wait_since.get().is_none() {
            v.wait_since.set(Some(self.now.get()));
            let lock = v.lock_wanted.get();
            if lock != NONE {
                v.starts_to_wait(lock, self.now.get());
                self.wait_begins(v, lock);
                self.trace(|| TraceEvent::LockWait { vcpu: v.id, lock });
            }
        }
    }

    fn watch(&self, v: &Vcpu, line: Option<usize>) {
        let Some(line) = line else { return };
        let (first, last) = self.memory.watchers(line);
        v.line.set(line as u32);
        v.prev.set(last.get());
        v.next.set(NONE);
        if last.get() == NONE {
            first.set(v.id);
        } else {
            self.vcpus[last.get() as usize].next.set(v.id);
        }
        last.set(v.id);
    }

    fn unwatch(&self, v: &Vcpu) {
        let line = v.line.get();
        v.hit_armed.set(false);
        if line == NONE {
            return;
        }
        let (first, last) = self.memory.watchers(line as usize);
        match v.prev.get() {
            NONE => first.set(v.next.get()),
            p => self.vcpus[p as usize].next.set(v.next.get()),
        }
        match v.next.get() {
            NONE => last.set(v.prev.get()),
            n => self.vcpus[n as usize].prev.set(v.prev.get()),
        }
        v.line.set(NONE);
    }
}
