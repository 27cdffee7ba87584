//! Memory operations, and spinning on what they change.
//!
//! A vCPU that spins is in the list of watchers of its line, and its coroutine is suspended. A
//! write evaluates the conditions of the watchers at once, and arms a look for those whose condition
//! now holds, at the time when the line has reached them. So a long spin costs as many events as the
//! line has changes that matter, not as many as the processor would have done iterations.

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
    /// Performs a memory operation on `cell`: charges it, applies `apply` at the moment when it
    /// completes, and lets those who spin on the line know.
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

    /// A line was written: those who spin on it and now find their condition true will see that
    /// after the line has reached them, one after another. The others read it again too, and go on
    /// spinning.
    fn notify(&self, line: usize, suspended: bool) {
        let watchers = &*self.machine.memory.watchers(line);
        // Those that run of the first `counted` in the list.
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

    /// `v` goes on with a spin after it was off its pCPU: it reads the line again, and looks when it
    /// has it.
    ///
    /// Most such looks find nothing. So the look is an event only if the condition holds already, or
    /// from when a write makes it hold (see `notify`); then it comes in the turn that it takes here.
    /// One that is no event has no effect but its read of the line. One that would have another
    /// effect, since the spin ends or exits by then, is an event at once, and so is one at a cell of
    /// which no write is told.
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

    /// How many of these spin on a pCPU.
    fn running(&self, watchers: &[Watch]) -> u64 {
        watchers.iter().filter(|w| self.vcpus[w.vcpu as usize].run.is_on()).count() as u64
    }

    /// Whether what `v` spins on satisfies its condition now.
    pub(crate) fn holds(&self, v: &Vcpu) -> bool {
        v.spin.watch.get().expect("a spinning vCPU watches something").holds()
    }

    /// Spins on `line` until the watch's condition holds or `left` of CPU time is gone, and takes
    /// the time used off `left`. Returns whether the condition was seen to hold.
    #[inline(always)]
    pub(crate) fn spin(&self, line: Option<usize>, watch: Watch, left: &mut Picos) -> bool {
        self.begin_wait();
        loop {
            let v = self.cpu();
            self.watch(v, watch, line);
            let spun_since = v.run.clock(self.now());
            self.arm_spin(v, *left);
            self.suspend(Suspend::Operation);
            // Interrupted or not, the wait was on the vCPU that is current now.
            let v = self.cpu();
            self.unwatch(v);
            v.spin.pauses.end(self.now());
            v.spin.time.set(v.spin.time.get() + v.run.clock(self.now()) - spun_since);
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

    /// The lock operation on the current vCPU has to wait, from now if it did not before.
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

    /// `v` spins on a line from now on, or goes on with that.
    pub(crate) fn count_spinner(&self, v: &Vcpu) {
        if v.spin.line.get() != NONE {
            let spinning = self.machine.memory.spinning(v.spin.line.get() as usize);
            spinning.set(spinning.get() + 1);
        }
    }

    /// `v`, if it spins on a line, does so no more, or leaves its pCPU.
    pub(crate) fn discount_spinner(&self, v: &Vcpu) {
        if v.spin.line.get() != NONE {
            let spinning = self.machine.memory.spinning(v.spin.line.get() as usize);
            spinning.set(spinning.get() - 1);
        }
    }
}

/// What a vCPU spins on: a cell and a condition of its value.
///
/// The condition is here and not on the stack of the coroutine, if it is small: stacks begin at the
/// same place of their pages, so that those of more than a few spinners are never in the processor's
/// first-level cache at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    cell: *const (),
    /// The condition itself if it [`fits`], else a pointer to it.
    until: MaybeUninit<*const ()>,
    /// [`first_held`] for its types.
    first_held: unsafe fn(&[Watch]) -> usize,
    /// Which vCPU, once it watches.
    vcpu: u32,
}

/// Whether a condition is kept in its watch.
const fn fits<F>() -> bool {
    size_of::<F>() <= size_of::<*const ()>() && align_of::<F>() <= align_of::<*const ()>()
}

/// The first of some watches whose condition holds, or whose types may be others than those of the
/// first; their number if there is none. All at once, because a call for each takes several times as
/// long as the conditions do.
///
/// # Safety
/// The first must be made from a `Cell<T>` and an `F` that are alive, and so all that have its
/// `first_held`.
unsafe fn first_held<T: Copy, F: Fn(T) -> bool + Copy>(watches: &[Watch]) -> usize {
    let Some(Watch { first_held: this, .. }) = watches.first() else { return 0 };
    let found = watches.iter().position(|watch| {
        // Equal addresses mean equal code. One function may have several, which does no harm.
        if !fn_addr_eq(watch.first_held, *this) {
            return true;
        }
        let until = if fits::<F>() {
            watch.until.as_ptr().cast::<F>()
        } else {
            // SAFETY: `Watch::new` wrote a pointer.
            unsafe { watch.until.assume_init() }.cast::<F>()
        };
        // SAFETY: promised by the caller.
        let (cell, until) = unsafe { (&*watch.cell.cast::<Cell<T>>(), &*until) };
        until(cell.get())
    });
    found.unwrap_or(watches.len())
}

impl Watch {
    /// Must not be used after `cell` or `until` is gone.
    pub(crate) fn new<T: Copy, F: Fn(T) -> bool + Copy>(cell: &Cell<T>, until: &F) -> Self {
        let mut kept = MaybeUninit::new(from_ref(until).cast::<()>());
        if fits::<F>() {
            // SAFETY: it has room for it, as `fits` says.
            unsafe { kept.as_mut_ptr().cast::<F>().write(*until) };
        }
        let first_held = first_held::<T, F>;
        Self { cell: from_ref(cell).cast(), until: kept, first_held, vcpu: NONE }
    }

    fn holds(&self) -> bool {
        // SAFETY: cell and condition are those of `spin_for` on a coroutine's stack: that of the
        // caller, or a suspended one, which stays until the watch is removed.
        unsafe { (self.first_held)(slice::from_ref(self)) == 0 }
    }
}

/// Places of those whose condition holds, in order.
fn held(watches: &[Watch]) -> impl Iterator<Item = usize> {
    let mut next = 0;
    iter::from_fn(move || {
        while let rest @ [Watch { first_held, .. }, ..] = &watches[next..] {
            // SAFETY: as in `Watch::holds`.
            next += unsafe { first_held(rest) };
            // Otherwise another `first_held` goes on from there.
            if watches.get(next).is_some_and(|w| fn_addr_eq(w.first_held, *first_held)) {
                next += 1;
                return Some(next - 1);
            }
        }
        None
    })
}
