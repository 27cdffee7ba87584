//! Calls between guest and hypervisor: interrupts, kicks, blocking, yielding, timers, and their costs.

use crate::engine::{Engine, Suspend};
use crate::events::Event;
use crate::memory::NONE;
use crate::vcpu::{Op, Vcpu};
use overspin_host::block::{self, Block, Reaction};
use overspin_host::{Doing, Moment, irq};
use overspin_scenario::{Picos, Why};
use overspin_sched::{PcpuId, TimerId};

impl Engine {
    /// Delivers a virtual interrupt to `v`. `from` is the pCPU that sent it, or `NONE`. The delay of an
    /// interprocessor interrupt is over when this is called.
    pub(crate) fn deliver(&self, v: &Vcpu, interrupt: u32, from: u32) {
        v.irqs.pending.set(v.irqs.pending.get() | interrupt);
        self.react(v, block::on_interrupt(v.place(), v.irqs.on.get()), from);
    }

    /// Applies `reaction` to `v`, for which a kick or an interrupt came from pCPU `from`.
    fn react(&self, v: &Vcpu, reaction: Reaction, from: u32) {
        match reaction {
            Reaction::None => {}
            Reaction::Interrupt => self.interrupt(v),
            Reaction::Unblock => self.unblock(v, from),
            Reaction::EndPolling => self.poll_succeeds(v),
        }
    }

    /// Wakes a vCPU that is blocked in a halt or a poll.
    fn unblock(&self, v: &Vcpu, from: u32) {
        let woken = self.on_vcpu(from, v.id, |h, now, v, out| h.unblock(now, v, out));
        if self.locks_run_queues() {
            self.uses_run_queue(self.look_at(v.id, |h, local| h.machine().home(local).0));
        }
        if v.lock.doing.get() == Doing::Sleeps {
            v.lock.doing.set(Doing::Wakes);
        }
        let pcpu = (from != NONE).then_some(from);
        self.tell(Moment::Wake { vcpu: v.id, pcpu, runnable: woken });
        if woken {
            self.end_poll_for(v);
        }
        if v.run.is_on() {
            // It has not left its pCPU yet: the blocking call returns at once.
            self.arm(v, Op::Step, Picos::ZERO);
        }
    }

    /// Sends a rescheduling interrupt from the current vCPU to another vCPU of its guest.
    pub(crate) fn send_resched(&self, to: &Vcpu) {
        self.send(to, irq::RESCHED);
    }

    /// Sends an interprocessor interrupt from the current vCPU to another vCPU of its guest.
    pub(crate) fn send(&self, to: &Vcpu, interrupt: u32) {
        self.burn(self.costs.hypercall.next());
        self.notes_ipi(to);
        if to.run.is_on() {
            let event = Event::Interrupt { vcpu: to.id, interrupt };
            self.push(self.now() + self.costs.ipi.next(), event);
        } else {
            self.deliver(to, interrupt, self.cpu().run.pcpu.get());
        }
    }

    /// Kicks `to`: sets its latch, and wakes it if it is in a poll.
    pub(crate) fn kick(&self, to: &Vcpu) {
        self.burn(self.costs.hypercall.next());
        to.irqs.latch.set(true);
        let from = self.cpu();
        self.tell(Moment::Kick { from: from.id, to: to.id });
        self.react(to, block::on_kick(to.place()), from.run.pcpu.get());
    }

    /// Blocks the current vCPU in the hypervisor; returns after a wake-up, which may be spurious.
    pub(crate) fn block(&self, how: Block) {
        if self.begin_block(how) {
            let v = self.cpu();
            self.suspend(Suspend::Operation);
            self.unblocked(v);
        }
    }

    /// Begins to block the current vCPU in the hypervisor. Returns whether it blocks; if so, its coroutine
    /// must suspend or end at once.
    pub(crate) fn begin_block(&self, how: Block) -> bool {
        self.burn(self.costs.hypercall.next());
        let v = self.cpu();
        // From this check to the block no time passes, so no wake-up comes in between.
        let pending = v.irqs.pending.get();
        if block::must_return(how, v.irqs.latch.get(), pending, v.irqs.on.get()) {
            return false;
        }
        v.halt.since.set(self.now());
        v.lock.doing.set(Doing::Sleeps);
        self.tell(Moment::Sleeps { vcpu: v.id });
        if !self.begin_poll(v, how) {
            v.op.kind.set(Op::Blocked(how));
            self.on_vcpu(v.run.pcpu.get(), v.id, |h, now, v, out| h.block(now, v, out));
        }
        true
    }

    /// Yields: the current vCPU gives its pCPU up and stays runnable.
    pub(crate) fn yield_now(&self) {
        self.burn(self.costs.hypercall.next());
        let v = self.cpu();
        v.leave.yielded.set((self.now(), Why::Yield));
        self.tell(Moment::Yield { vcpu: v.id });
        self.give_way(v);
        self.let_the_pass_come();
        self.take_interrupts();
    }

    /// Lets the scheduling pass of the current vCPU's pCPU, which is due now, come before the next
    /// instruction. A pass comes after all operations of its instant. So this operation ends 1 ps later.
    pub(crate) fn let_the_pass_come(&self) {
        self.host_until(self.now() + Picos(1));
    }

    /// Tells the hypervisor that `v`, which runs, yields.
    pub(crate) fn give_way(&self, v: &Vcpu) {
        v.leave.by_itself.set(true);
        self.on_vcpu(v.run.pcpu.get(), v.id, |h, now, v, out| h.yield_now(now, v, out));
    }

    /// When the slice of the vCPU on `pcpu` ends; `Picos::MAX` if it has no end.
    pub(crate) fn slice_end(&self, pcpu: u32) -> Picos {
        self.hypervisor.timers[self.timer_slot(TimerId::Slice(PcpuId(pcpu)))].due()
    }

    /// Sets the one-shot timer of a vCPU; `Picos::MAX` cancels it.
    pub(crate) fn set_guest_timer(&self, v: &Vcpu, at: Picos) {
        let at = if at == Picos::MAX { at } else { at.max(self.now()) };
        v.irqs.timer_is_late.set(false);
        if let Some(at) = v.irqs.timer.set(at) {
            self.push(at, Event::GuestTimer { vcpu: v.id });
        }
    }

    /// The one-shot timer of `v` has ended. The pCPU that has to notice notices later, most of all if it sleeps.
    pub(crate) fn guest_timer_ends(&self, v: &Vcpu) {
        if !v.irqs.timer_is_late.replace(false) {
            // A vCPU that has never run has no pCPU, and sets no timer.
            let on = self.machine.pcpus[v.run.pcpu.get() as usize].current.get();
            let cost = if on.is_none() { &self.costs.timer } else { &self.costs.host_timer };
            let late = cost.next();
            if late > Picos::ZERO {
                self.set_guest_timer(v, self.now() + late);
                v.irqs.timer_is_late.set(true);
                return;
            }
        }
        self.deliver(v, irq::TIMER, NONE);
    }
}
