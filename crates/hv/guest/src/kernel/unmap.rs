//! TLB shootdown: a vCPU whose task unmaps memory has the others flush, and waits for them. As the simulator's
//! `guest/shootdown.rs`; this guest has no mappings to forget, and so an answer is all that the others do.

use super::World;
use crate::cpu;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use overspin_guest_abi::{VcpuPage, event, port};

/// The event that says that a vCPU is asked.
pub const CALL: u32 = event::FIRST_FREE << 1;
/// States of a vCPU, as the host tells them.
const RUNNING: u32 = 0;
const RUNNABLE: u32 = 1;

/// The calls between vCPUs, for each of them.
pub(super) struct Calls {
    /// How many have not answered it yet, and one more while it asks.
    left: AtomicU32,
    /// For how long the one that answered it last was without a pCPU meanwhile, in nanoseconds.
    preempted: AtomicU64,
    /// For each vCPU that waits for its answer: for how long it was without a pCPU before it was asked, plus one; 0: nobody
    /// waits.
    asked: Box<[AtomicU64]>,
}

impl Calls {
    pub(super) fn new(vcpus: u32) -> Self {
        let asked = (0..vcpus).map(|_| AtomicU64::new(0)).collect();
        Self { left: AtomicU32::new(0), preempted: AtomicU64::new(0), asked }
    }
}

/// For how long the vCPU of this page has wanted a pCPU in vain so far.
fn preempted(page: &VcpuPage) -> u64 {
    let now = match page.state.load(Ordering::Relaxed) {
        RUNNABLE => cpu::now().saturating_sub(page.state_since.load(Ordering::Relaxed)),
        _ => 0,
    };
    page.times[RUNNABLE as usize].load(Ordering::Relaxed).saturating_add(now)
}

impl World {
    /// For a task in kernel mode that has unmapped memory: the other vCPUs forget the mapping. Upcalls are not masked, so this vCPU
    /// answers others meanwhile. It keeps its task.
    pub fn unmap(&self) {
        let (me, began) = (cpu::id(), cpu::now());
        let own = &self.calls[me];
        let (mut asked, mut skipped) = (0_u64, 0);
        own.left.store(1, Ordering::Relaxed);
        for id in (0..self.cpus.len()).filter(|id| *id != me) {
            let page = cpu::page_of(id);
            match page.state.load(Ordering::Relaxed) {
                RUNNABLE if self.job.domain.kernel.pv_tlb_flush => {
                    skipped += 1;
                    continue;
                }
                RUNNING | RUNNABLE => {}
                // It has no task.
                _ => continue,
            }
            asked += 1;
            own.left.fetch_add(1, Ordering::Relaxed);
            // Release: it comes after the count.
            self.calls[id].asked[me].store(preempted(page).saturating_add(1), Ordering::Release);
            cpu::hypercall(port::SEND, id as u32 | CALL.trailing_zeros() << 24);
        }
        own.left.fetch_sub(1, Ordering::Relaxed);
        // Acquire: pairs with the answers.
        while own.left.load(Ordering::Acquire) != 0 {
            core::hint::spin_loop();
        }
        let unmaps = &cpu::page().unmaps;
        let add = |counter: &AtomicU64, n| counter.fetch_add(n, Ordering::Relaxed);
        add(&unmaps.shootdowns, 1);
        add(&unmaps.interrupts, asked);
        add(&unmaps.skipped, skipped);
        if asked > 0 {
            let waited = cpu::now().saturating_sub(began);
            add(&unmaps.waited, waited);
            add(&unmaps.preempted, own.preempted.load(Ordering::Relaxed).min(waited));
        }
    }

    /// Answers those that wait for this vCPU. Upcalls are masked.
    pub(super) fn answer(&self, id: usize) {
        for (sender, word) in self.calls.iter().zip(&self.calls[id].asked) {
            // Acquire: pairs with the question.
            let before = word.swap(0, Ordering::Acquire);
            if before != 0 {
                let meanwhile = preempted(cpu::page()).saturating_sub(before - 1);
                sender.preempted.store(meanwhile, Ordering::Relaxed);
                // Release: what this vCPU did comes before the sender goes on.
                sender.left.fetch_sub(1, Ordering::Release);
            }
        }
    }
}
