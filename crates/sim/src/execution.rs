//! How guest code uses time on its vCPU: run-ahead, suspension, preemption, interruption.
//!
//! # Run-ahead
//! Guest code runs in stackful coroutines. It uses time by calling into the engine. If the
//! operation ends before the next pending event, nothing can interact with it: the clock moves
//! and the code goes on, without a switch. Otherwise the operation is armed as an event and the
//! coroutine suspends to the engine loop.
//!
//! # Cancellation by epoch
//! Each vCPU has an epoch that counts the operations it armed. A preempted vCPU's pending event is
//! invalidated by bumping the epoch; what remained of the operation is kept and armed again at the
//! next dispatch. So preemption can hit between any two memory operations, as on hardware.
//!
//! # Postponed operations
//! A vCPU that yields or exits asks for a scheduling pass at the same instant, and the pass will most
//! likely take back what the vCPU begins until then. So an operation that begins while something
//! else is due at the same instant is put into the queue when nothing is due at that instant any more,
//! if nobody has taken it back by then. It has the turn that it would have had at once (see
//! `EventQueue::turn`), and nobody runs ahead meanwhile, so that the order of events is the same.
//!
//! # Inlining
//! A switch between coroutines leaves the processor's return predictor with the other coroutine's
//! callers, so every `ret` that follows is mispredicted, one for each frame between the suspension
//! and the workload's loop. Measured, that was a third of the time of a contended lock operation.
//! Everything from a lock's memory operation down to the suspension is therefore `inline(always)`.

use crate::engine::{Engine, Suspend};
use crate::events::Event;
use crate::vcpu::{Op, Reason, Vcpu};
use overspin_scenario::Picos;

/// An operation's event that is not in the queue yet.
#[derive(Debug)]
pub(crate) struct Postponed {
    at: Picos,
    turn: u64,
    event: Event,
}

impl Engine {
    /// Arms the operation of `vcpu` to end after `work` (at full speed) from now.
    #[inline]
    pub(crate) fn arm(&self, v: &Vcpu, op: Op, work: Picos) {
        self.arm_until(v, op, self.now.get().saturating_add(v.stretch(work)));
    }

    /// Arms the operation of `v` to end at `end`.
    #[inline(always)]
    fn arm_until(&self, v: &Vcpu, op: Op, end: Picos) {
        v.op.set(op);
        v.op_end.set(end);
        if end != Picos::MAX {
            self.push_operation(v, end);
        }
    }

    /// The operation that `v` is in ends at `at`, or has it look up then.
    #[inline(always)]
    pub(crate) fn push_operation(&self, v: &Vcpu, at: Picos) {
        let event = Event::Operation { vcpu: v.id, epoch: v.epoch.get() };
        if self.now.get() < self.horizon.get() || at == self.now.get() {
            self.push(at, event);
        } else {
            self.postpone(at, event);
        }
    }

    #[inline(never)]
    fn postpone(&self, at: Picos, event: Event) {
        let turn = self.events.borrow_mut().turn(event);
        self.postponed.borrow_mut().push(Postponed { at, turn, event });
        self.any_postponed.set(true);
    }

    /// Puts what was postponed into the queue if nothing more is due now, but for what was taken
    /// back meanwhile.
    #[inline(never)]
    pub(crate) fn push_postponed(&self) {
        let mut events = self.events.borrow_mut();
        if events.next_time() <= self.now.get() {
            return;
        }
        self.any_postponed.set(false);
        for Postponed { at, turn, event } in self.postponed.borrow_mut().drain(..) {
            let Event::Operation { vcpu, epoch } = event else { unreachable!("no other kinds") };
            if self.vcpus[vcpu as usize].epoch.get() == epoch {
                events.push_in_turn(at, turn, event);
            }
        }
    }

    /// Takes an armed operation back; what remains of it is kept.
    pub(crate) fn disarm(&self, v: &Vcpu) {
        v.epoch.set(v.epoch.get().wrapping_add(1));
        let left = v.op_end.get().saturating_sub(self.now.get());
        v.op_left.set(if v.op_end.get() == Picos::MAX { Picos::MAX } else { v.shrink(left) });
    }

    /// Suspends the running coroutine. Comes back when its vCPU may go on; that vCPU may be
    /// another one than before if the task was moved meanwhile.
    #[inline(always)]
    pub(crate) fn suspend(&self, why: Suspend) {
        let top = 0_u8;
        self.cpu().task.get().stack.set(&raw const top);
        // SAFETY: the pointer was set by `resume` to the yielder of the coroutine that runs now,
        // which is alive on that coroutine's stack.
        unsafe { (*self.yielder.get()).suspend(why) };
    }

    /// Uses `work` of CPU time; interrupts may be taken on the way.
    #[inline(always)]
    pub(crate) fn burn(&self, work: Picos) {
        let end = self.now.get().saturating_add(self.cpu().stretch(work));
        if end < self.horizon.get() {
            self.now.set(end);
            self.run_ahead.set(self.run_ahead.get() + 1);
        } else {
            self.burn_slow(work);
        }
    }

    #[inline(never)]
    fn burn_slow(&self, work: Picos) {
        let end = self.now.get().saturating_add(self.cpu().stretch(work));
        if self.lengthen_leash(end) {
            self.now.set(end);
            self.run_ahead.set(self.run_ahead.get() + 1);
            return;
        }
        let mut left = work;
        loop {
            let v = self.cpu();
            if left == 0 && self.nothing_comes_before(v) {
                break;
            }
            self.arm(v, Op::Burn, left);
            self.suspend(Suspend::Operation);
            let v = self.cpu();
            if v.reason.get() == Reason::Done {
                break;
            }
            left = v.op_left.get();
            self.take_interrupts();
        }
        let v = self.cpu();
        if self.guest(v.guest).works_for_a_task(v) {
            self.advanced();
        }
        self.take_interrupts();
    }

    /// Whether an operation of `v` that takes no time would end before anything else happens.
    fn nothing_comes_before(&self, v: &Vcpu) -> bool {
        let end = Event::Operation { vcpu: v.id, epoch: v.epoch.get() };
        self.events.borrow().would_be_next(self.now.get(), end)
    }

    /// Uses time that interrupts cannot split, until `end`.
    #[inline(always)]
    pub(crate) fn step_until(&self, end: Picos) -> bool {
        if end < self.horizon.get() || self.lengthen_leash(end) {
            self.now.set(end);
            self.run_ahead.set(self.run_ahead.get() + 1);
            return false;
        }
        // A slow thread does not wait longer for a line.
        self.arm_until(self.cpu(), Op::Step, end);
        self.suspend(Suspend::Operation);
        true
    }

    /// An armed operation's event has come: decide whether the coroutine goes on, and why.
    #[inline(always)]
    pub(crate) fn operation_event(&self, v: &Vcpu) {
        if let Op::HaltPoll(how) = v.op.get() {
            self.poll_fails(v, how);
            return;
        }
        if v.op.get() != Op::Spin {
            v.reason.set(Reason::Done);
        } else if self.holds(v) {
            v.reason.set(Reason::Hit);
        } else if self.now.get() >= v.op_end.get() {
            v.reason.set(Reason::Done);
        } else if v.pauses.exit_due(self.now.get()) {
            self.disarm(v);
            v.reason.set(Reason::PauseLoop);
        } else {
            // What it saw change has changed back (somebody else took the lock): spin on.
            v.hit_armed.set(false);
            return;
        }
        v.epoch.set(v.epoch.get().wrapping_add(1));
        self.resume(v);
    }

    /// Interrupts what `v` does, if that can be interrupted and an interrupt is pending and on.
    pub(crate) fn interrupt(&self, v: &Vcpu) {
        if !v.running.get() || !v.interruptible() {
            return;
        }
        if let Op::Burn | Op::Spin = v.op.get() {
            self.disarm(v);
            v.reason.set(Reason::Interrupted);
            self.resume(v);
        }
    }

    /// `v` has just been put on a pCPU: it goes on with what it was doing.
    pub(crate) fn continue_on(&self, v: &Vcpu) {
        match v.op.get() {
            Op::None | Op::Blocked(_) | Op::HaltPoll(_) => {
                v.reason.set(Reason::Done);
                self.resume(v);
            }
            Op::Burn | Op::Spin if v.interruptible() => {
                v.reason.set(Reason::Interrupted);
                self.resume(v);
            }
            Op::Burn | Op::Step => self.arm(v, v.op.get(), v.op_left.get()),
            Op::Spin => {
                self.arm_spin(v, v.op_left.get());
                self.look_again(v);
            }
        }
    }

    /// `v` leaves its pCPU: its operation is kept for later.
    pub(crate) fn stop(&self, v: &Vcpu) {
        if let Op::Burn | Op::Step | Op::Spin = v.op.get() {
            self.disarm(v);
            v.hit_armed.set(false);
            v.look.set((0, 0));
        }
        v.ran.set(v.run_clock(self.now.get()));
        v.running.set(false);
        self.discount_spinner(v);
    }

    /// Runs the code on `v` until it suspends in an operation.
    #[inline(always)]
    fn resume(&self, v: &Vcpu) {
        v.op.set(Op::None);
        self.set_cpu(v.id);
        loop {
            if v.task.get().run(self) == Suspend::Operation {
                return;
            }
        }
    }

    /// Takes pending interrupts of the current vCPU, if they are on.
    #[inline]
    pub(crate) fn take_interrupts(&self) {
        let v = self.cpu();
        if v.interruptible() {
            self.guest(v.guest).interrupts(self);
        }
    }

    /// Switches interrupts on (taking what is pending) or off.
    #[inline]
    pub(crate) fn set_irqs(&self, on: bool) {
        self.cpu().irqs_on.set(on);
        if on {
            self.take_interrupts();
        }
    }
}
