//! Paravirtual ticket locks: who has spun too long sleeps; the releaser wakes the next ticket's CPU.
//!
//! Ticket locks with a flag, *somebody may sleep*, beside the tickets. Two published forms differ in
//! where the flag is: [`PvTicket`] has it in `head` (2015, Linux 4.0), [`PvTicket2012`] in `tail`
//! (2012, merged in 3.12), in two sizes. This file is what they share: how to sleep and whom to wake; the
//! [word](FlaggedWord) is in a file of its own.
//!
//! Per CPU, shared by all locks of a system: a record, the lock that the CPU sleeps for and
//! the ticket that it wants there; its bit in `waiting`; and its latch, from the platform. Only its
//! own CPU writes the record.
//!
//! **No wake-up is lost.** Flag and `head` are in one word, and both change by read-modify-write, so
//! one is first:
//!
//! ```text
//! waiter                                   releaser
//! record := (lock, ticket); set my bit     head += 1 and look at the flag
//! clear my latch                           if it is set, kick every CPU in `waiting`
//! set the flag and look at head                whose record says (lock, the new head)
//! unless head is my ticket: poll
//! ```
//!
//! If the flag is first, the releaser sees it, and with it the record; the latch keeps the kick for a
//! waiter that does not sleep yet. If not, the waiter finds its ticket served. The waiter clears its
//! latch before it looks, and the fences next to latch and kick order the two: who wipes out a kick
//! sees the head that the kick was for.
//!
//! **Records.** `lock` is non-null only while `want` is right for it, hence: null, want, lock. That
//! does not make two loads of a scan one: it may read a lock before the record is rewritten and the
//! new `want` after it, and take the record for one that it is not. Hence it kicks *every* match: a
//! kick too many does no harm, and a scan that stopped at the first match, as the published ones do,
//! may have kicked the wrong CPU only.
//!
//! **Nesting.** With interrupts on, a handler may wait for another lock while its CPU sleeps, or is
//! about to. It saves the outer record and puts it back. A release of the outer lock in between finds
//! no record and kicks nobody. Hence a nested wait always leaves the latch set; the outer poll then
//! returns at once and the outer context looks again. The published code left it clear when it found
//! its ticket served before sleeping, and relied on the next timer interrupt.
//!
//! **Native mode.** With [`Tuning::nopvspin`] nobody sleeps and nobody looks at the flag: they are
//! ticket locks. The mode is a constant of the system: a release in native mode that overlaps with a
//! waiter in the other would not wake it. Where the platform cannot block *yet*, waiters spin, and
//! releases look at a flag that is never set.
//!
//! **Source.** Jeremy Fitzhardinge and Raghavendra K T; Linux 3.12 to 4.1,
//! `arch/x86/include/asm/spinlock.h` and `arch/x86/xen/spinlock.c`. Deviations: the whole word is
//! accessed at one size; every match is kicked; nested waits restore the record and set the latch.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::{AtomicCell, Bug, CachePadded, CapacityError, LockInfo, Platform, Tuning};

mod flag_in_head;
mod flag_in_tail;
mod word;

pub use flag_in_head::{INFO, PvTicket};
pub use flag_in_tail::{
    INFO as INFO_2012, PvTicket2012, PvTicket2012Lock, PvTicket2012Small,
    SMALL_INFO as SMALL_INFO_2012,
};
pub use word::FlaggedWord;

/// Wait-loop iterations before going to sleep: the value of the merged code.
pub const DEFAULT_SPIN_BUDGET: u32 = 1 << 15;

/// `lock` of a record that says nothing.
const NO_LOCK: usize = 0;
/// CPUs in a word of `waiting`.
const BITS: usize = u32::BITS as usize;

/// Proof of an acquisition: its ticket.
#[derive(Debug)]
pub struct Token<T>(T);

/// What a CPU sleeps for.
#[derive(Debug)]
struct Record<P: Platform> {
    /// Address of the lock, only ever compared.
    lock: P::Usize,
    /// The ticket.
    want: P::U32,
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    /// Per CPU, on a line of its own, for scans read it.
    records: P::Slots<CachePadded<Record<P>>>,
    /// A bit per CPU: it sleeps or is about to.
    waiting: P::Slots<P::U32>,
    /// Wait-loop iterations before going to sleep.
    spin_budget: u32,
    /// Waiters may sleep.
    pv: bool,
}

impl<P: Platform> Shared<P> {
    fn new(info: &LockInfo, cpus: usize, tuning: Tuning) -> Result<Self, CapacityError> {
        info.check_capacity(cpus)?;
        let record =
            |_| CachePadded::new(Record { lock: P::Usize::new(NO_LOCK), want: P::U32::new(0) });
        Ok(Self {
            records: P::slots(cpus, record),
            waiting: P::slots(cpus.div_ceil(BITS), |_| P::U32::new(0)),
            spin_budget: tuning.spin_budget.unwrap_or(DEFAULT_SPIN_BUDGET),
            pv: !tuning.nopvspin,
        })
    }

    /// Sleeps until kicked, or for no reason, unless ticket `want` of `lock` is served already.
    /// `raise_flag` raises the lock's flag and tells, in one step, whether it is.
    fn sleep<L>(&self, lock: &L, want: u32, raise_flag: impl FnOnce() -> bool) {
        if !P::can_block() {
            return;
        }
        // Off while the record and the latch are ours: a handler comes while we poll, or not.
        let irqs = P::irq_save();
        let cpu = P::cpu_id();
        let record = &self.records[cpu];
        let (waiting, bit) = (&self.waiting[cpu / BITS], 1 << (cpu % BITS));
        // Relaxed: only this CPU writes it. What an outer context waits for, if there is one.
        let outer = (record.lock.load(Relaxed), record.want.load(Relaxed));
        record.write(ptr::from_ref(lock).addr(), want);
        // Release: who sees the bit sees the record. The flag below is what the wake-up rests on.
        waiting.fetch_or(bit, Release);
        P::latch_clear();
        // See "No wake-up is lost": a clear that wipes out a kick sees the head it was for.
        P::fence(Acquire);
        // The flag first and then the head: looking first, we could sleep through a release that
        // comes in between and sees no flag.
        if !raise_flag() {
            P::irq_restore(irqs);
            P::poll();
            P::irq_save();
        }
        if outer.0 == NO_LOCK {
            // Relaxed, both: a releaser that still finds us kicks a CPU that is awake, harmlessly.
            waiting.fetch_and(!bit, Relaxed);
            record.lock.store(NO_LOCK, Relaxed);
        } else {
            record.write(outer.0, outer.1);
            // See "Nesting".
            P::latch_set();
        }
        P::irq_restore(irqs);
    }

    /// Wakes whoever sleeps for ticket `next` of the lock at `address`, which may be gone by now.
    #[cold]
    fn kick(&self, address: usize, next: u32) {
        // See "No wake-up is lost".
        P::fence(Release);
        for (index, waiting) in self.waiting.iter().enumerate() {
            // Acquire: pairs with the bit, and so shows its record.
            let mut bits = waiting.load(Acquire);
            while bits != 0 {
                let cpu = index * BITS + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let record = &self.records[cpu];
                // Acquire: pairs with the last write of `Record::write`, and so shows its `want`.
                if record.lock.load(Acquire) == address && record.want.load(Relaxed) == next {
                    P::kick(cpu);
                    // See "Records".
                    if P::seeded(Bug::P6bPvTicketKicksFirstMatchOnly)
                        || P::seeded(Bug::P6PvTicketRecordWithoutNull)
                    {
                        return;
                    }
                }
            }
        }
    }
}

impl<P: Platform> Record<P> {
    fn write(&self, lock: usize, want: u32) {
        if !P::seeded(Bug::P6PvTicketRecordWithoutNull) {
            self.lock.store(NO_LOCK, Relaxed);
        }
        // Release, both: see "Records".
        self.want.store(want, Release);
        self.lock.store(lock, Release);
    }
}
