//! Memory operations, and spinning on lines that they change.
//!
//! A vCPU that spins is in the list of watchers of its line, and its coroutine is suspended. A write
//! evaluates the conditions of the watchers at once. For each watcher whose condition now holds, it arms a
//! look at the time when the line has reached that watcher. So a long spin costs one event for each change
//! that matters, not one for each iteration of the loop.

use crate::engine::{Engine, Suspend};
use crate::events::Event;
use crate::memory::{Access, NONE};
use crate::vcpu::{Reason, Vcpu};
use overspin_scenario::Picos;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{fn_addr_eq, from_ref};
use std::{iter, slice};

impl Engine {
    /// Performs a memory operation on `cell`: charges it, calls `apply` when it completes, and after a write
    /// notifies the vCPUs that spin on the line.
    #[inline(always)]
    pub(crate) fn access<C, R>(&self, cell: &C, access: Access, apply: impl FnOnce(&C) -> R) -> R {
        let line = self.machine.memory.line_of(cell);
        let end = self.machine.memory.access(line, self.cpu().run.pcpu.get(), access, self.now());
        let suspended = self.step_until(end);
        let result = apply(cell);
        if access != Access::Load
            && let Some(line) = line
            && self.machine.memory.spinning(line).get() > 0
        {
            self.notify(line, suspended);
        }
        if suspended {
            self.take_interrupts();
        }
        result
    }

    /// Notifies the watchers of a line that was written. A running watcher whose condition now holds sees
    /// that when the line has reached it; the line reaches one after another. The other watchers read the
    /// line again too, and go on spinning.
    fn notify(&self, line: usize, suspended: bool) {
        let watchers = &*self.machine.memory.watchers(line);
        // `position`: number of running vCPUs among the first `counted` in the list.
        let (mut position, mut counted) = (0, 0);
        for at in held(watchers) {
            let v = &self.vcpus[watchers[at].vcpu as usize];
            if !v.run.is_on() || v.spin.armed.replace(true) {
                continue;
            }
            let (look, turn) = v.spin.look.get();
            if look > self.now() || look == self.now() && suspended && turn > self.time.turn() {
                self.arm_look(v);
                continue;
            }
            position += self.running(&watchers[counted..at]);
            counted = at;
            let sees = self.machine.memory.served(line, v.run.pcpu.get(), position, self.now());
            self.push(sees, Event::Operation { vcpu: v.id, epoch: v.op.epoch.get() });
        }
        let spinning = self.machine.memory.spinning(line).get();
        self.machine.memory.refetch(line, spinning.into(), self.now());
    }

    /// Continues a spin of `v` after it was off its pCPU: `v` reads the line again, and looks at it when the
    /// line has arrived.
    ///
    /// Most such looks find nothing, and then their only effect is the read of the line. So the look becomes
    /// an event only if the condition holds already, or later, when a write makes it hold (see `notify`).
    /// Either way it comes in the turn that is taken here. Two other looks are events at once: one by whose
    /// time the spin ends or exits, and one at a cell outside the arena, whose writes notify no watcher.
    pub(crate) fn look_again(&self, v: &Vcpu) {
        let line = (v.spin.line.get() != NONE).then_some(v.spin.line.get() as usize);
        let sees = self.machine.memory.access(line, v.run.pcpu.get(), Access::Load, self.now());
        let event = Event::Operation { vcpu: v.id, epoch: v.op.epoch.get() };
        v.spin.look.set((sees, self.time.take_turn(event)));
        let ends = sees >= v.op.end.get() || v.spin.pauses.exit_due(sees);
        let is_event = ends || line.is_none() || self.holds(v);
        v.spin.armed.set(is_event);
        if is_event {
            self.arm_look(v);
        }
    }

    fn arm_look(&self, v: &Vcpu) {
        let (at, turn) = v.spin.look.get();
        let event = Event::Operation { vcpu: v.id, epoch: v.op.epoch.get() };
        self.time.push_in_turn(at, turn, event);
    }

    /// The number of these watchers that are on a pCPU.
    fn running(&self, watchers: &[Watch]) -> u64 {
        watchers.iter().filter(|w| self.vcpus[w.vcpu as usize].run.is_on()).count() as u64
    }

    /// Whether the cell that `v` spins on satisfies its condition now.
    pub(crate) fn holds(&self, v: &Vcpu) -> bool {
        v.spin.watch.get().expect("a spinning vCPU watches something").holds()
    }

    /// Spins on `line` until the condition of `watch` holds or `left` of CPU time is used up. Subtracts the
    /// time used from `left`. Returns whether the condition was seen to hold.
    #[inline(always)]
    pub(crate) fn spin(&self, line: Option<usize>, watch: Watch, left: &mut Picos) -> bool {
        self.begin_wait();
        loop {
            let v = self.cpu();
            self.watch(v, watch, line);
            v.spin.since.set(v.run.clock(self.now()));
            self.arm_spin(v, *left);
            self.suspend(Suspend::Operation);
            // Interrupted or not, the vCPU that spun is the current one.
            let v = self.cpu();
            self.unwatch(v);
            v.spin.pauses.end(self.now());
            v.spin.time.set(v.spin.time_at(v.run.clock(self.now())));
            v.spin.since.set(Picos::MAX);
            match v.op.reason.get() {
                Reason::Hit => {
                    if v.op.end.get() != Picos::MAX {
                        *left = v.run.shrink(v.op.end.get().saturating_sub(self.now()));
                    }
                    self.take_interrupts();
                    return true;
                }
                Reason::Done => {
                    *left = Picos::ZERO;
                    self.take_interrupts();
                    return false;
                }
                reason @ (Reason::Interrupted | Reason::PauseLoop) => {
                    *left = v.op.left.get();
                    if reason == Reason::PauseLoop {
                        self.pause_loop_exit();
                    }
                    self.take_interrupts();
                    if watch.holds() {
                        return true;
                    }
                }
            }
        }
    }

    /// Records that the lock operation of the current vCPU must wait, from now on if it did not wait before.
    #[inline(always)]
    pub(crate) fn begin_wait(&self) {
        let v = self.cpu();
        if v.lock.waits_since.get().is_none() {
            v.lock.waits_since.set(Some(self.now()));
            let lock = v.lock.wants.get();
            if lock != NONE {
                self.guest(v.guest).waits_for(self, v, lock);
            }
        }
    }

    fn watch(&self, v: &Vcpu, watch: Watch, line: Option<usize>) {
        let watch = Watch { vcpu: v.id, ..watch };
        v.spin.watch.set(Some(watch));
        let Some(line) = line else { return };
        v.spin.line.set(line as u32);
        self.machine.memory.watchers(line).push(watch);
        self.count_spinner(v);
    }

    fn unwatch(&self, v: &Vcpu) {
        v.spin.forget_look();
        v.spin.watch.set(None);
        let line = v.spin.line.get();
        if line == NONE {
            return;
        }
        self.discount_spinner(v);
        v.spin.line.set(NONE);
        let mut watchers = self.machine.memory.watchers(line as usize);
        let at = watchers.iter().position(|w| w.vcpu == v.id).expect("it is in the list");
        watchers.remove(at);
    }

    /// Counts `v` as a spinner of its line, if it has one: it begins or continues to spin.
    pub(crate) fn count_spinner(&self, v: &Vcpu) {
        if v.spin.line.get() != NONE {
            let spinning = self.machine.memory.spinning(v.spin.line.get() as usize);
            spinning.set(spinning.get() + 1);
        }
    }

    /// Removes `v` from the count of its line's spinners, if it has one: it ends its spin or leaves its pCPU.
    pub(crate) fn discount_spinner(&self, v: &Vcpu) {
        if v.spin.line.get() != NONE {
            let spinning = self.machine.memory.spinning(v.spin.line.get() as usize);
            spinning.set(spinning.get() - 1);
        }
    }
}

/// What a vCPU spins on: a cell and a condition on its value.
///
/// A small condition is stored here, not on the stack of the coroutine. Stacks begin at the same offset in
/// their pages, so the stacks of more than a few spinners never fit the processor's first-level cache at
/// one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    cell: *const (),
    /// The condition itself if it [`fits`], else a pointer to it.
    until: MaybeUninit<*const ()>,
    /// [`first_held`] for the types of its cell and its condition.
    first_held: unsafe fn(&[Watch]) -> usize,
    /// The vCPU that watches; `NONE` before it does.
    vcpu: u32,
}

/// Whether a condition of type `F` is stored in its watch.
const fn fits<F>() -> bool {
    size_of::<F>() <= size_of::<*const ()>() && align_of::<F>() <= align_of::<*const ()>()
}

/// The index of the first watch whose condition holds, or whose types may differ from those of
/// `watches[0]`; the number of watches if there is none. It takes all watches at once, because a call for
/// each would take several times as long as the conditions.
///
/// # Safety
/// `watches[0]`, and all watches with its `first_held`, must be made from a `Cell<T>` and an `F` that are
/// alive.
unsafe fn first_held<T: Copy, F: Fn(T) -> bool + Copy>(watches: &[Watch]) -> usize {
    let Some(Watch { first_held: this, .. }) = watches.first() else { return 0 };
    for (at, watch) in watches.iter().enumerate() {
        // Equal addresses mean equal code. One function may have several addresses, which does no harm.
        if !fn_addr_eq(watch.first_held, *this) {
            return at;
        }
        let until = if fits::<F>() {
            watch.until.as_ptr().cast::<F>()
        } else {
            // SAFETY: `Watch::new` wrote a pointer.
            unsafe { watch.until.assume_init() }.cast::<F>()
        };
        // SAFETY: the caller promises that both are alive and have these types.
        let (cell, until) = unsafe { (&*watch.cell.cast::<Cell<T>>(), &*until) };
        if until(cell.get()) {
            return at;
        }
    }
    watches.len()
}

impl Watch {
    /// Makes a watch. It must not be used after `cell` or `until` is gone.
    pub(crate) fn new<T: Copy, F: Fn(T) -> bool + Copy>(cell: &Cell<T>, until: &F) -> Self {
        let mut kept = MaybeUninit::new(from_ref(until).cast::<()>());
        if fits::<F>() {
            // SAFETY: `kept` has the room and the alignment for an `F`, as `fits` says.
            unsafe { kept.as_mut_ptr().cast::<F>().write(*until) };
        }
        let first_held = first_held::<T, F>;
        Self { cell: from_ref(cell).cast(), until: kept, first_held, vcpu: NONE }
    }

    fn holds(&self) -> bool {
        // SAFETY: the cell and the condition are those of a call of `spin_for` on a coroutine's stack. This
        // coroutine is the caller, or it is suspended and stays so until the watch is removed.
        unsafe { (self.first_held)(slice::from_ref(self)) == 0 }
    }
}

/// The indices of the watches whose condition holds, in order.
fn held(watches: &[Watch]) -> impl Iterator<Item = usize> {
    let mut next = 0;
    iter::from_fn(move || {
        while let rest @ [Watch { first_held, .. }, ..] = &watches[next..] {
            // SAFETY: as in `Watch::holds`.
            next += unsafe { first_held(rest) };
            // Otherwise the watch there has another `first_held`, with which the loop goes on.
            if watches.get(next).is_some_and(|w| fn_addr_eq(w.first_held, *first_held)) {
                next += 1;
                return Some(next - 1);
            }
        }
        None
    })
}
