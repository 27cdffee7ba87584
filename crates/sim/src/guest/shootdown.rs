//! TLB shootdown: a vCPU whose task has unmapped memory interrupts the others of its guest, and waits until each has forgotten
//! the mapping. A vCPU that has no pCPU answers when it gets one, and so keeps the sender waiting, as a preempted holder of a
//! lock would.
//!
//! As in Linux (`smp_call_function_many`, `flush_tlb_mm_range`): the sender waits with interrupts on, and so answers others
//! meanwhile; it is not preempted. A vCPU that idles is not asked, because it forgets all before it runs a task again (lazy TLB).
//! With `pv_tlb_flush` neither is one that has no pCPU: the host makes it forget when it runs again (KVM since Linux 4.16,
//! commit 858a43aae236). Senders send one interrupt after the other, each at the price of a hypercall.

use super::Guest;
use crate::engine::Engine;
use crate::platform::SimCell;
use crate::vcpu::Vcpu;
use overspin_host::{irq, picos};
use overspin_locks::{AtomicCell, Budget};
use overspin_scenario::{Picos, ShootdownOutcome};
use overspin_sched::RunState;
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering::{Relaxed, Release};

/// The shootdowns of a guest whose tasks unmap memory.
#[derive(Debug)]
pub(crate) struct Shootdowns {
    senders: Vec<Sender>,
    /// For each vCPU, those that wait for its answer.
    asked: Vec<RefCell<Vec<Question>>>,
    sum: RefCell<ShootdownOutcome>,
}

/// A vCPU as a sender.
#[derive(Debug)]
struct Sender {
    /// How many have not answered yet.
    left: &'static SimCell<u32>,
    /// For how long the last one that answered was without a pCPU meanwhile.
    preempted: Cell<Picos>,
}

#[derive(Clone, Copy, Debug)]
struct Question {
    sender: u32,
    /// For how long the vCPU that is asked was without a pCPU before.
    preempted: Picos,
}

impl Shootdowns {
    pub(super) fn new(engine: &Engine, vcpus: u32) -> Self {
        let sender = |_| Sender {
            left: engine.machine.memory.place(SimCell::new(0)),
            preempted: Cell::default(),
        };
        Self {
            senders: (0..vcpus).map(sender).collect(),
            asked: (0..vcpus).map(|_| RefCell::default()).collect(),
            sum: RefCell::default(),
        }
    }

    pub(crate) fn outcome(&self) -> ShootdownOutcome {
        self.sum.borrow().clone()
    }
}

/// For how long a vCPU has wanted a pCPU in vain so far.
fn preempted(engine: &Engine, v: &Vcpu) -> Picos {
    picos(engine.look_at(v.id, |h, local| h.run_times(local, engine.nanos())).runnable)
}

impl Guest {
    /// For a task in its kernel that has unmapped memory: the other vCPUs forget the mapping.
    pub(super) fn shoot_down(&self, engine: &Engine) {
        let shootdowns = self.shootdowns.as_ref().expect("a workload that unmaps says so");
        let me = engine.cpu();
        let began = engine.now();
        let mut skipped = 0;
        let others = &engine.vcpus[self.first as usize..(self.first + self.vcpus) as usize];
        let others: Vec<&Vcpu> = others
            .iter()
            .filter(|v| v.id != me.id && !self.is_idle(v))
            .filter(|v| {
                let told =
                    self.domain.kernel.pv_tlb_flush && engine.runstate(v.id) == RunState::Runnable;
                skipped += u64::from(told);
                !told
            })
            .collect();
        let asked = others.len() as u32;
        let sender = &shootdowns.senders[me.index as usize];
        if asked > 0 {
            sender.left.store(asked, Relaxed);
            for to in others {
                let question = Question { sender: me.index, preempted: preempted(engine, to) };
                shootdowns.asked[to.index as usize].borrow_mut().push(question);
                engine.send(to, irq::CALL);
            }
            // It is no lock that this vCPU waits for.
            let outer = engine.cpu().lock.waits_since.get();
            // It acquires, which pairs with the answers. Without a budget it ends with the value.
            let _ = sender.left.spin_until(|left| left == 0, Budget::Forever);
            engine.cpu().lock.waits_since.set(outer);
        }
        let mut sum = shootdowns.sum.borrow_mut();
        sum.shootdowns += 1;
        sum.interrupts += u64::from(asked);
        sum.skipped += skipped;
        if asked > 0 {
            let waited = engine.now() - began;
            sum.waited += waited;
            // The scheduler counts in whole nanoseconds, which can be more than the wait by one.
            sum.preempted += sender.preempted.get().min(waited);
        }
    }

    /// Handles the interrupt of senders on the current vCPU, with interrupts off: the interrupt itself is all that it costs.
    pub(super) fn answer(&self, engine: &Engine) {
        let shootdowns = self.shootdowns.as_ref().expect("only those who unmap ask");
        let me = engine.cpu();
        loop {
            let Some(question) = shootdowns.asked[me.index as usize].borrow_mut().pop() else {
                break;
            };
            let meanwhile = preempted(engine, me) - question.preempted;
            let sender = &shootdowns.senders[question.sender as usize];
            // Release: pairs with the sender's look.
            let before = sender.left.fetch_sub(1, Release);
            if before == 1 {
                // The sender has not looked yet: its line takes time to arrive.
                sender.preempted.set(meanwhile);
            }
        }
    }
}
