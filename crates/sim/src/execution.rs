//! How guest code uses time on its vCPU: run-ahead, suspension, preemption, interruption.
//!
//! # Run-ahead
//! Guest code runs in stackful coroutines. It uses time by calling into the engine. If the
//! operation ends before the next pending event, nothing can interact with it: the engine advances
//! the clock and the code goes on, without a switch. Otherwise the engine arms the operation as an
//! event, and the coroutine suspends to the engine loop.
//!
//! # Cancellation by epoch
//! Each vCPU has an epoch, which increments when an operation ends or is taken back. A preemption thus
//! makes the vCPU's pending event void. The engine keeps the remaining work of the operation and arms it
//! again at the next dispatch. So preemption can hit between any two memory operations, as on hardware.
//!
//! # Inlining
//! After a switch between coroutines, the processor's return predictor still holds the other
//! coroutine's callers. It therefore mispredicts each `ret` that follows, one for each frame between the
//! suspension and the workload's loop. Measured, that was a third of the time of a contended lock
//! operation. Everything from a lock's memory operation down to the suspension is therefore
//! `inline(always)`.

use crate::engine::{Engine, Suspend};
use crate::events::Event;
use crate::vcpu::{Op, Reason, Vcpu};
use overspin_scenario::Picos;

impl Engine {
    /// Arms operation `op` of `v` to end after `work` from now. `work` is the time it takes at full speed.
    #[inline]
    pub(crate) fn arm(&self, v: &Vcpu, op: Op, work: Picos) {
        self.arm_until(v, op, self.now().saturating_add(v.run.stretch(work)));
    }

    /// Arms operation `op` of `v` to end at `end`; at `Picos::MAX` it has no end.
    #[inline(always)]
    fn arm_until(&self, v: &Vcpu, op: Op, end: Picos) {
        v.op.kind.set(op);
        v.op.end.set(end);
        if end != Picos::MAX {
            self.push_operation(v, end);
        }
    }

    /// Pushes an event at `at` for the current operation of `v`, which ends or checks its state then.
    #[inline(always)]
    pub(crate) fn push_operation(&self, v: &Vcpu, at: Picos) {
        let event = Event::Operation { vcpu: v.id, epoch: v.op.epoch.get() };
        self.time.push_operation(at, event);
    }

    /// Takes an armed operation back, and keeps its remaining work.
    pub(crate) fn disarm(&self, v: &Vcpu) {
        v.op.cancel();
        let left = v.op.end.get().saturating_sub(self.now());
        v.op.left.set(if v.op.end.get() == Picos::MAX { Picos::MAX } else { v.run.shrink(left) });
    }

    /// Suspends the running coroutine. Returns when its vCPU may go on. If the task has moved meanwhile,
    /// this vCPU is not the one from before.
    #[inline(always)]
    pub(crate) fn suspend(&self, why: Suspend) {
        let top = 0_u8;
        self.cpu().task.get().stack.set(&raw const top);
        // SAFETY: the pointer is to the yielder of the coroutine that runs now; it was set when that
        // coroutine was resumed, and the yielder is alive on that coroutine's stack.
        unsafe { (*self.code.yielder.get()).suspend(why) };
    }

    /// Uses `work` of CPU time; the vCPU may take interrupts meanwhile.
    #[inline(always)]
    pub(crate) fn burn(&self, work: Picos) {
        let end = self.now().saturating_add(self.cpu().run.stretch(work));
        if self.time.is_free_until(end) {
            self.time.run_ahead_to(end);
        } else {
            self.burn_slow(work);
        }
    }

    #[inline(never)]
    fn burn_slow(&self, work: Picos) {
        let end = self.now().saturating_add(self.cpu().run.stretch(work));
        if self.lengthen_leash(end) {
            self.time.run_ahead_to(end);
            return;
        }
        let mut left = work;
        loop {
            let v = self.cpu();
            if left == Picos::ZERO && self.nothing_comes_before(v) {
                break;
            }
            self.arm(v, Op::Burn, left);
            self.suspend(Suspend::Operation);
            let v = self.cpu();
            if v.op.reason.get() == Reason::Done {
                break;
            }
            left = v.op.left.get();
            self.take_interrupts();
        }
        let v = self.cpu();
        if self.guest(v.guest).works_for_a_task(v) {
            self.advanced();
        }
        self.take_interrupts();
    }

    /// Whether an operation of `v` that takes no time would end before any other event comes.
    fn nothing_comes_before(&self, v: &Vcpu) -> bool {
        let end = Event::Operation { vcpu: v.id, epoch: v.op.epoch.get() };
        self.time.would_be_next(end)
    }

    /// Uses time until `end` that interrupts cannot split. Returns whether the coroutine was suspended.
    #[inline(always)]
    pub(crate) fn step_until(&self, end: Picos) -> bool {
        if self.time.is_free_until(end) || self.lengthen_leash(end) {
            self.time.run_ahead_to(end);
            return false;
        }
        // The speed does not matter here: a slow thread does not wait longer for a line.
        self.arm_until(self.cpu(), Op::Step, end);
        self.suspend(Suspend::Operation);
        true
    }

    /// Handles the event of an armed operation: decides whether the coroutine goes on, and why.
    #[inline(always)]
    pub(crate) fn operation_event(&self, v: &Vcpu) {
        if let Op::HaltPoll(how) = v.op.kind.get() {
            self.poll_fails(v, how);
            return;
        }
        if v.op.kind.get() != Op::Spin {
            v.op.reason.set(Reason::Done);
        } else if self.holds(v) {
            v.op.reason.set(Reason::Hit);
        } else if self.now() >= v.op.end.get() {
            v.op.reason.set(Reason::Done);
        } else if v.spin.pauses.exit_due(self.now()) {
            self.disarm(v);
            v.op.reason.set(Reason::PauseLoop);
        } else {
            // The value has changed back, because another vCPU took the lock: spin on.
            v.spin.armed.set(false);
            return;
        }
        v.op.cancel();
        self.resume(v);
    }

    /// Interrupts the operation of `v`, if that can be interrupted and an interrupt is pending and on.
    pub(crate) fn interrupt(&self, v: &Vcpu) {
        if !v.run.is_on() || !v.irqs.can_be_taken() {
            return;
        }
        if let Op::Burn | Op::Spin = v.op.kind.get() {
            self.disarm(v);
            v.op.reason.set(Reason::Interrupted);
            self.resume(v);
        }
    }

    /// Continues the operation of `v`, which has just been dispatched to a pCPU.
    pub(crate) fn continue_on(&self, v: &Vcpu) {
        match v.op.kind.get() {
            Op::None | Op::Blocked(_) | Op::HaltPoll(_) => {
                v.op.reason.set(Reason::Done);
                self.resume(v);
            }
            Op::Burn | Op::Spin if v.irqs.can_be_taken() => {
                v.op.reason.set(Reason::Interrupted);
                self.resume(v);
            }
            Op::Burn | Op::Step => self.arm(v, v.op.kind.get(), v.op.left.get()),
            Op::Spin => {
                self.arm_spin(v, v.op.left.get());
                self.look_again(v);
            }
        }
    }

    /// Stops `v`, which leaves its pCPU, and keeps its operation for later.
    pub(crate) fn stop(&self, v: &Vcpu) {
        if v.run.is_interrupted() {
            // It has left its guest already.
            self.end_interrupt(v);
        } else {
            self.take_operation_back(v);
        }
        v.run.end(self.now());
    }

    /// Takes the operation of `v` back, which leaves its guest, and keeps it for later.
    pub(crate) fn take_operation_back(&self, v: &Vcpu) {
        if let Op::Burn | Op::Step | Op::Spin = v.op.kind.get() {
            self.disarm(v);
            v.spin.forget_look();
        }
        self.spinner_runs(v, false);
    }

    /// Runs the code on `v` until it suspends in an operation.
    #[inline(always)]
    fn resume(&self, v: &Vcpu) {
        v.op.kind.set(Op::None);
        self.set_cpu(v);
        loop {
            if v.task.get().run(self) == Suspend::Operation {
                return;
            }
        }
    }

    /// Takes the pending interrupts of the current vCPU, if interrupts are on.
    #[inline]
    pub(crate) fn take_interrupts(&self) {
        let v = self.cpu();
        if v.irqs.can_be_taken() {
            self.guest(v.guest).interrupts(self);
        }
    }

    /// Switches interrupts off, or on; when on, takes the pending ones.
    #[inline]
    pub(crate) fn set_irqs(&self, on: bool) {
        self.cpu().irqs.on.set(on);
        if on {
            self.take_interrupts();
        }
    }
}
