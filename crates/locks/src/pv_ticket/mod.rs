//! Paravirtual ticket locks: a waiter that spins too long sleeps; the releaser wakes the next ticket's CPU.
//!
//! These are ticket locks with a flag, *there may be sleepers*, beside the tickets. Two published forms
//! differ in where the flag is: [`PvTicket`] has it in `head` (2015, Linux 4.0), [`PvTicket2012`] in `tail`
//! (2012, merged in 3.12), in two sizes. This file is what they share: how to sleep and which CPU to wake.
//! The [word](FlaggedWord) has a file of its own.
//!
//! All locks of a system share, for each CPU: a record, which names the lock that the CPU sleeps for and the
//! ticket that it wants there; its bit in `waiting`; and its latch, from the platform. Only the CPU itself
//! writes its record.
//!
//! **No wake-up is lost.** Flag and `head` are in one word, and both change by read-modify-write, so one
//! change comes first:
//!
//! ```text
//! waiter                                   releaser
//! record := (lock, ticket); set my bit     head += 1 and look at the flag
//! clear my latch                           if it is set, kick every CPU in `waiting`
//! set the flag and look at head                whose record says (lock, the new head)
//! unless head is my ticket: poll
//! ```
//!
//! If the flag is first, the releaser sees it, and with it the record; the latch keeps the kick for a waiter
//! that does not sleep yet. If the release is first, the waiter finds its ticket served. The waiter clears
//! its latch before it looks, and the fences next to latch and kick order the two: a waiter that wipes out a
//! kick sees the head that the kick was for.
//!
//! **Records.** `lock` is non-null only while `want` is right for it; hence the order null, want, lock. But
//! the two loads of a scan are not one step. The scan may read a lock before the record is rewritten and the
//! new `want` after it, and so mistake the record for another. Hence it kicks *every* match. An extra kick
//! does no harm. A scan that stopped at the first match, like the published ones, may have kicked only the
//! wrong CPU.
//!
//! **Nesting.** With interrupts on, a handler may wait for another lock while its CPU sleeps, or is about to.
//! It saves the outer record and restores it. A release of the outer lock in between finds no record and
//! kicks no CPU. Hence a nested wait always leaves the latch set; the outer poll then returns at once and the
//! outer context looks again. The published code left the latch clear when it found its ticket served before
//! sleeping, and relied on the next timer interrupt.
//!
//! **Native mode.** With [`Tuning::nopvspin`] no waiter sleeps and no releaser looks at the flag: they are
//! ticket locks. The mode is constant for a system: a release in native mode would not wake a waiter in the
//! other mode. Where the platform cannot block *yet*, waiters spin, and releases look at a flag that is never
//! set.
//!
//! **Giving way.** With [`Tuning::yields`] a waiter yields instead of spinning. Only the next in line spins,
//! for a moment, and then yields too. So the waiter whose turn it is gets a CPU after the other threads on
//! that CPU have looked once. With the published budget it gets one only when they have spun, and each sleep
//! and wake-up costs more than a switch. A yield may give the CPU to threads that compute, for a scheduler's
//! slice. For a while after that, the thread that yielded spins as long as published whenever it is the next
//! in line. None of this is published: it is for threads, see `docs/native-design.md`.
//!
//! **Source.** Jeremy Fitzhardinge and Raghavendra K T; Linux 3.12 to 4.1,
//! `arch/x86/include/asm/spinlock.h` and `arch/x86/xen/spinlock.c`. Deviations: the whole word is
//! accessed at one size; every match is kicked; nested waits restore the record and set the latch.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bug::right;
use crate::{AtomicCell, Budget, CachePadded, CapacityError, LockInfo, Platform, Tuning};

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

/// Looks of the next in line, before it gives way: some microseconds. With more, it keeps a holder that
/// was switched out there off the CPU; with fewer, it is not on a CPU when its turn comes.
const LOOKS_OF_NEXT: u32 = 256;
/// A yield that takes longer has given the CPU to a thread that computes: other waiters keep it for less
/// time.
const TAKEN_NS: u64 = 2_000_000;
/// How long a thread that has lost a CPU spins as published when it is the next in line.
const PATIENT_MS: u32 = 100;

/// `lock` of an empty record.
const NO_LOCK: usize = 0;
/// CPUs in a word of `waiting`.
const BITS: usize = u32::BITS as usize;

/// A half of the word in the cell `C`.
type Half<C> = <<C as AtomicCell>::Value as FlaggedWord>::Half;

/// Proof of an acquisition: its ticket.
#[derive(Debug)]
pub struct Token<T>(T);

/// What a CPU sleeps for.
#[derive(Debug)]
struct Record<P: Platform> {
    /// Address of the lock. It is only ever compared.
    lock: P::Usize,
    /// The ticket.
    want: P::U32,
    /// When another thread kept this CPU after a yield, in milliseconds that wrap. Only its own CPU uses it.
    taken_at: P::U32,
}

/// Nanoseconds as milliseconds that wrap, after 49 days.
fn millis(nanoseconds: u64) -> u32 {
    (nanoseconds / 1_000_000) as u32
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    /// Per CPU, on a line of its own, because scans read it.
    records: P::Slots<CachePadded<Record<P>>>,
    /// A bit per CPU: it sleeps or is about to.
    waiting: P::Slots<P::U32>,
    /// Wait-loop iterations before going to sleep.
    spin_budget: u32,
    /// Whether waiters may sleep.
    pv: bool,
    /// How often a waiter yields before it sleeps, instead of spinning.
    yields: u32,
}

impl<P: Platform> Shared<P> {
    fn new(info: &LockInfo, cpus: usize, tuning: Tuning) -> Result<Self, CapacityError> {
        info.check_capacity(cpus)?;
        let record = |_| {
            CachePadded::new(Record {
                lock: P::Usize::new(NO_LOCK),
                want: P::U32::new(0),
                taken_at: P::U32::new(0),
            })
        };
        Ok(Self {
            records: P::slots(cpus, record),
            waiting: P::slots(cpus.div_ceil(BITS), |_| P::U32::new(0)),
            spin_budget: tuning.spin_budget.unwrap_or(DEFAULT_SPIN_BUDGET),
            pv: !tuning.nopvspin,
            yields: tuning.yields,
        })
    }

    /// Waits until `mine` is served, at most until a sleep is worth its cost. If it is served, the load that
    /// sees it is an acquire, and pairs with the release that serves it.
    fn spin<C>(&self, word: &C, mine: Half<C>) -> Result<C::Value, C::Value>
    where
        C: AtomicCell<Value: FlaggedWord>,
    {
        let served = |word: C::Value| C::Value::ticket(word.head());
        if !P::paravirtual(self.pv) {
            return word.spin_until_eq(served, mine, Budget::Forever);
        }
        if self.yields == 0 {
            return word.spin_until_eq(served, mine, Budget::Iterations(self.spin_budget));
        }
        // See "Giving way". Relaxed, everywhere here: only this CPU uses the cell.
        let taken_at = &self.records[P::cpu_id()].taken_at;
        let mut before = P::now();
        for _ in 0..self.yields {
            // Relaxed: a guess at the distance.
            let serving = C::Value::ticket(word.load(Relaxed).head());
            let looks = if C::Value::after(serving) != mine {
                0
            } else if millis(before).wrapping_sub(taken_at.load(Relaxed)) < PATIENT_MS {
                self.spin_budget
            } else {
                self.spin_budget.min(LOOKS_OF_NEXT)
            };
            let result = word.spin_until_eq(served, mine, Budget::Iterations(looks));
            if result.is_ok() {
                return result;
            }
            P::yield_now();
            let now = P::now();
            if now - before > TAKEN_NS {
                taken_at.store(millis(now), Relaxed);
            }
            before = now;
        }
        word.spin_until_eq(served, mine, Budget::Iterations(0))
    }

    /// Sleeps until a kick or a spurious wake-up, unless ticket `want` of `lock` is served already.
    /// `raise_flag` sets the lock's flag and tells, in one step, whether the ticket is served.
    fn sleep<L>(&self, lock: &L, want: u32, raise_flag: impl FnOnce() -> bool) {
        if !P::can_block() {
            return;
        }
        // Off while the record and the latch are ours: a handler comes only while we poll.
        let irqs = P::irq_save();
        let cpu = P::cpu_id();
        let record = &self.records[cpu];
        let (waiting, bit) = (&self.waiting[cpu / BITS], 1 << (cpu % BITS));
        // Relaxed: only this CPU writes it. `outer` is what an outer context waits for, if there is one.
        let outer = (record.lock.load(Relaxed), record.want.load(Relaxed));
        record.write(ptr::from_ref(lock).addr(), want);
        // Release: a CPU that sees the bit sees the record. The wake-up rests on the flag below.
        waiting.fetch_or(bit, Release);
        P::latch_clear();
        // See "No wake-up is lost": a clear that wipes out a kick sees the head that the kick was for.
        P::fence(Acquire);
        // The flag first and then the head: in the other order we could sleep through a release that comes in
        // between and sees no flag.
        if !raise_flag() {
            P::irq_restore(irqs);
            P::poll();
            P::irq_save();
        }
        let is_nested = outer.0 != NO_LOCK;
        if !right!(is_nested, P, P7PvTicketNestedPickUpLeavesLatchClear, false) {
            // Relaxed, both: a releaser that still finds us kicks a CPU that is awake, which does no harm.
            waiting.fetch_and(!bit, Relaxed);
            record.lock.store(NO_LOCK, Relaxed);
        } else {
            record.write(outer.0, outer.1);
            // See "Nesting".
            P::latch_set();
        }
        P::irq_restore(irqs);
    }

    /// Wakes the CPUs that sleep for ticket `next` of the lock at `address`, which may no longer exist.
    #[cold]
    fn kick(&self, address: usize, next: u32) {
        // See "No wake-up is lost".
        P::fence(Release);
        for (index, waiting) in self.waiting.iter().enumerate() {
            // Acquire: pairs with setting the bit, and so shows the record.
            let mut bits = waiting.load(Acquire);
            while bits != 0 {
                let cpu = index * BITS + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let record = &self.records[cpu];
                // Acquire: pairs with the last write of `Record::write`, and so shows its `want`.
                if record.lock.load(Acquire) == address && record.want.load(Relaxed) == next {
                    P::kick(cpu);
                    // See "Records".
                    right!((), P, P6bPvTicketKicksFirstMatchOnly, return);
                    right!((), P, P6PvTicketRecordWithoutNull, return);
                }
            }
        }
    }
}

impl<P: Platform> Record<P> {
    fn write(&self, lock: usize, want: u32) {
        right!(self.lock.store(NO_LOCK, Relaxed), P, P6PvTicketRecordWithoutNull, ());
        // Release, both: see "Records".
        self.want.store(want, Release);
        self.lock.store(lock, Release);
    }
}
