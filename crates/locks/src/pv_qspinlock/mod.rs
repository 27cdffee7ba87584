//! Paravirtual queued spinlock: the queue of `qspinlock`, whose waiters sleep after they have spun too long.
//! Newcomers may steal the lock while the first of the queue does not spin.
//!
//! [`PvQspinlock`] is the lock of Linux today; [`PvQspinlock42`] and [`PvQspinlock45`] are its earlier forms.
//! [`Version`] lists their differences.
//!
//! The word is that of [`qspinlock`]. Two of its fields mean more:
//!
//! | Field | Meaning |
//! |---|---|
//! | byte `LOCKED` = 1 | held |
//! | byte `LOCKED` = `SLOW` (3) | held, and the first of the queue is in the table: wake it |
//! | `PENDING` | the first of the queue spins: newcomers must queue, and only the first may take the lock; not in 4.2, whose newcomers never steal |
//!
//! | `state` of a node | Its owner |
//! |---|---|
//! | `RUNNING` | spins |
//! | `HALTED` | sleeps or is about to, in the queue |
//! | `HASHED` | is in the table, or has been since it became the first |
//!
//! **Who wakes whom.** Only `unlock` wakes a waiter, and only the first of the queue. A holder that makes a
//! sleeping successor the first does not wake it. It sets `SLOW` and puts the successor into the table on its
//! behalf, and so tells its own `unlock` to wake it. In 4.2 the holder wakes the successor, which spins while
//! the lock is held, and may go to sleep a second time as the first.
//!
//! **No wake-up is lost.** There are three pairs. Each side writes one thing and then looks at what the other
//! side writes:
//!
//! ```text
//! waiter in the queue             who makes it the first
//! state = HALTED                  granted = 1
//! fence          (SeqCst)         fence          (SeqCst)
//! unless granted: sleep           if state is HALTED: state = HASHED, SLOW, into the table
//!                                     (4.2: state = RUNNING, kick)
//!
//! first of the queue              unlock
//! into the table                  exchange 1 for 0
//! exchange the byte for SLOW      if it finds SLOW: out of the table, byte = 0, kick
//! if it was 0: have the lock
//!
//! sleeper                         unlock
//! latch set: clear it, fence,     byte = 0
//!     look again instead          fence
//! sleep                           kick, whatever the sleeper's state is
//! ```
//!
//! A lock has at most one entry in the table. The waiter that becomes the first inserts it, or the holder does
//! so on its behalf, once. A first waiter that was woken and finds the lock stolen spins on and does not sleep
//! again, because the byte is 1 and not `SLOW`. `unlock` removes the entry before the release, because the
//! next first waiter may insert itself right after it.
//!
//! **Nesting.** A handler that waits while its CPU sleeps, or is about to, must not clear the latch: the kick
//! may have been for the outer context. Hence a count of nested sleeps per CPU; only the outermost clears the
//! latch. A nested wait that finds the latch set does not sleep but spins.
//!
//! **Properties.** First come, first served among queued waiters; newcomers overtake them while the first one
//! sleeps. A descheduled holder or waiter costs the others their spin budget; a waiter whose predecessor does
//! not spin sleeps sooner. Uncontended: two read-modify-writes. After the release `unlock` uses the number of
//! a CPU, and nothing of the lock. The form of 4.2 has an order, like a ticket lock: no newcomer passes queued
//! waiters, and a descheduled waiter stops the waiters behind it.
//!
//! **Native mode.** With [`Tuning::nopvspin`] it is `qspinlock`. The mode is constant for a system.
//!
//! **Interrupts** stay off from before the queue: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Waiman Long; Linux from 4.2, `kernel/locking/qspinlock_paravirt.h`, over the waiting of
//! `arch/x86/xen/spinlock.c` from 2018; the commits of each version are in `version.rs`. Deviations: a
//! newcomer steals for at most its spin budget and then queues, because it would otherwise burn for as long as
//! the first waiter sleeps and the holder is descheduled; the table has four entries for each CPU, and not at
//! least a page of them. All versions include two later fixes, which they need: `unlock` kicks whatever the
//! state of the sleeper (V2; 4.2 looked first), and the first of the queue sleeps as `HASHED` (V1; `HALTED`
//! until 2016). A steal compares the whole word and not its byte, so it also fails if a CPU queues just then.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::bug::right;
use crate::nodes::{ContextNodes, NIL, await_link};
use crate::qspinlock::{GRANTED, LOCKED, LOCKED_BYTE, Node, PENDING, Qspinlock, TAIL};
use crate::{AtomicCell, Budget, CachePadded, CapacityError, LockInfo, Platform};
use crate::{RawLock, Tuning, qspinlock};

mod table;
mod version;

use table::Table;
pub use version::{INFO, INFO_4_2, INFO_4_5, Linux42, Linux45, Linux415, Stealing, Version};

/// The byte of a held lock whose first waiter is in the table.
const SLOW: u32 = 3;
const RUNNING: u32 = 0;
const HALTED: u32 = 1;
const HASHED: u32 = 2;

/// Wait-loop iterations before going to sleep: the published value.
pub const DEFAULT_SPIN_BUDGET: u32 = 1 << 15;
/// Wait-loop iterations between two looks whether the predecessor spins: the published value.
const PREDECESSOR_CHECK: u32 = 1 << 8;

/// The lock as in `V`, a version of Linux; today's by default. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct PvQspinlock<P: Platform, V: Version = Linux415> {
    lock: Qspinlock<P>,
    version: PhantomData<V>,
}

/// The lock of Linux 4.2, which newcomers never steal.
pub type PvQspinlock42<P> = PvQspinlock<P, Linux42>;
/// The lock of Linux 4.5: a newcomer tries once to steal it.
pub type PvQspinlock45<P> = PvQspinlock<P, Linux45>;

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    queue: qspinlock::Shared<P>,
    /// None in native mode.
    sleep: Option<Sleep<P>>,
}

/// The state that sleeping needs.
#[derive(Debug)]
struct Sleep<P: Platform> {
    table: Table<P>,
    /// Per CPU: how many of its contexts sleep or are about to. Only that CPU writes it.
    nested: P::Slots<CachePadded<P::U32>>,
    /// Wait-loop iterations before going to sleep.
    spin_budget: u32,
}

impl<P: Platform> Shared<P> {
    /// For `cpus` CPUs, in paravirtual mode, with a table of `entries`. It is for a checker that wants few
    /// entries; locks in use want [`RawLock::shared`].
    ///
    /// # Errors
    /// If the lock cannot serve that many CPUs.
    ///
    /// # Panics
    /// If `entries` is not a power of two, or less than four.
    pub fn with_entries(
        cpus: usize,
        tuning: Tuning,
        entries: usize,
    ) -> Result<Self, CapacityError> {
        let sleep = Sleep {
            table: Table::new(entries),
            nested: P::slots(cpus, |_| CachePadded::new(P::U32::new(0))),
            spin_budget: tuning.spin_budget.unwrap_or(DEFAULT_SPIN_BUDGET),
        };
        Ok(Self { queue: Qspinlock::<P>::shared(cpus, tuning)?, sleep: Some(sleep) })
    }
}

impl<P: Platform> Sleep<P> {
    /// Sleeps while `asleep` holds for `cell`, until a kick or a spurious wake-up.
    fn wait(&self, cell: &P::U32, asleep: impl Fn(u32) -> bool) {
        if !P::can_block() {
            return;
        }
        let nested = &self.nested[P::cpu_id()];
        // Relaxed: only this CPU writes it. A handler in between restores what it found.
        let depth = nested.load(Relaxed);
        nested.store(depth + 1, Relaxed);
        let outermost = right!(depth == 0, P, V5PvQspinlockNestedWaitClearsLatch, true);
        if P::latch_test() && outermost {
            // The kick came while we did not sleep, for this wait or an earlier one: look again before
            // sleeping. The fence makes that look see what the kick was for.
            P::latch_clear();
            P::fence(SeqCst);
        } else if !P::latch_test() && asleep(cell.load(Relaxed)) {
            P::poll();
        } else {
            // The latch is for an outer context, or a thief has taken the lock and the byte is no longer
            // `SLOW`. Without a budget to spin, this CPU must not come back here at full speed.
            P::relax();
        }
        nested.store(depth, Relaxed);
    }
}

impl<P: Platform, V: Version> PvQspinlock<P, V> {
    /// The key of this lock in the table. Only ever compared.
    fn key(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared<P>, sleep: &Sleep<P>) {
        let nodes = &shared.queue.nodes;
        let id = nodes.mine();
        let node = nodes.get(id);
        node.reset();
        node.state.store(RUNNING, Relaxed);
        if self.steal(sleep) {
            return;
        }
        let before = self.lock.exchange_tail(id);
        if before != NIL {
            let before = nodes.get(before);
            // Release: publishes the node to the CPU that grants.
            before.next.store(id, Release);
            Self::wait_for_head(sleep, node, before);
        }
        self.acquire_as_head(sleep, id, node);
        // We are the holder, and must give the first place of the queue away.
        let found = self.lock.word.load(Relaxed);
        if !self.lock.exchange_last_for_locked(id, found) {
            let next = await_link(&node.next);
            self.promote(sleep, next, nodes.get(next));
        }
    }

    /// Takes the lock past the queue while no first waiter spins; in 4.2, only if there is no queue.
    fn steal(&self, sleep: &Sleep<P>) -> bool {
        let word = &self.lock.word;
        let others = match V::STEALING {
            Stealing::Never => !0,
            Stealing::Once | Stealing::WhileTheFirstSleeps => LOCKED_BYTE | PENDING,
        };
        let others = right!(others, P, V8PvQspinlockStealsFromTheFirst, LOCKED_BYTE);
        let is_free = |word: u32| word & others == 0;
        let must_queue = |word: u32| {
            V::STEALING != Stealing::WhileTheFirstSleeps || word & TAIL == 0 || word & PENDING != 0
        };
        let mut left = sleep.spin_budget;
        while let Ok(found) =
            word.spin_until_within(|word| is_free(word) || must_queue(word), &mut left)
        {
            // Acquire: pairs with the release in `unlock`.
            if is_free(found)
                && word.compare_exchange(found, found | LOCKED, Acquire, Relaxed).is_ok()
            {
                return true;
            }
            if must_queue(found) {
                break;
            }
        }
        false
    }

    /// Waits, spinning and sleeping, until it is the first of the queue.
    fn wait_for_head(sleep: &Sleep<P>, node: &Node<P>, before: &Node<P>) {
        let mut left = sleep.spin_budget;
        loop {
            let round = if V::ADAPTIVE { left.min(PREDECESSOR_CHECK) } else { left };
            // Acquires: the first of the queue continues what others did before us.
            let granted = |granted| granted == GRANTED;
            if node.granted.spin_until(granted, Budget::Iterations(round)).is_ok() {
                return;
            }
            left -= round;
            // Relaxed: a hint. If the predecessor does not spin, our turn is far away.
            if left != 0 && before.state.load(Relaxed) == RUNNING {
                continue;
            }
            node.state.store(HALTED, Relaxed);
            // See "No wake-up is lost", the first pair.
            P::fence(SeqCst);
            if node.granted.load(Relaxed) != GRANTED {
                sleep.wait(&node.state, |state| state == HALTED);
            }
            // Unless it is `HASHED` by now, which `acquire_as_head` must know. Acquire: pairs with the fence
            // in `promote`. A `HASHED` waiter has been granted and must see the grant. Otherwise it would call
            // itself `HALTED` once more and be put into the table twice.
            let seen = right!(Acquire, P, V7PvQspinlockHashedSeenBeforeGrant, Relaxed);
            let _ = node.state.compare_exchange(HALTED, RUNNING, Relaxed, seen);
            left = sleep.spin_budget;
        }
    }

    /// Takes the lock as the first of the queue, spinning and sleeping.
    fn acquire_as_head(&self, sleep: &Sleep<P>, id: u32, node: &Node<P>) {
        let word = &self.lock.word;
        let mut hashed = node.state.load(Relaxed) == HASHED;
        let has_thieves = V::STEALING != Stealing::Never;
        loop {
            node.state.store(RUNNING, Relaxed);
            if has_thieves {
                // From here on no other CPU can take it.
                word.fetch_or(PENDING, Relaxed);
            }
            // Acquires: pairs with the release in `unlock`.
            let is_released = |word: u32| word & LOCKED_BYTE == 0;
            if word.spin_until(is_released, Budget::Iterations(sleep.spin_budget)).is_ok() {
                if has_thieves {
                    self.lock.pending_to_locked();
                } else {
                    // There is a tail, so the lock is ours. Relaxed: acquired above.
                    word.fetch_or(LOCKED, Relaxed);
                }
                return;
            }
            if has_thieves {
                word.fetch_and(!PENDING, Relaxed);
            }
            if !hashed {
                if self.announce(sleep, id) {
                    return;
                }
                hashed = true;
            }
            // Not `HALTED`: the CPU that made us the first may not have looked at our state yet, and would
            // then put us into the table once more.
            let asleep = right!(HASHED, P, V1PvQspinlockHeadHalted, HALTED);
            node.state.store(asleep, Relaxed);
            sleep.wait(word, |word| word & LOCKED_BYTE == SLOW);
        }
    }

    /// Asks to be woken by `unlock`. Returns whether it has the lock instead.
    fn announce(&self, sleep: &Sleep<P>, id: u32) -> bool {
        let word = &self.lock.word;
        // The entry first: a CPU that sees `SLOW` relies on it.
        let insert = || sleep.table.insert(self.key(), id);
        right!(insert(), P, V6PvQspinlockSlowBeforeEntry, ());
        // Release: publishes the entry. Acquire: it may find the lock free.
        let found = word.fetch_or(SLOW, AcqRel);
        right!((), P, V6PvQspinlockSlowBeforeEntry, insert());
        if found & LOCKED_BYTE != 0 {
            return false;
        }
        // The lock was free, and is now ours. Only we have seen the entry.
        word.fetch_sub(SLOW - LOCKED, Relaxed);
        sleep.table.remove(self.key());
        true
    }

    /// As the holder, makes `next` the first of the queue, and announces it if it sleeps; 4.2 wakes it
    /// instead.
    fn promote(&self, sleep: &Sleep<P>, next: u32, node: &Node<P>) {
        let new = if V::WAKES_NEXT { RUNNING } else { HASHED };
        let slept = || node.state.compare_exchange(HALTED, new, Relaxed, Relaxed).is_ok();
        let halted = right!(None, P, V3PvQspinlockLooksBeforePromoting, Some(slept()));
        // Release: our acquisition comes before what the first of the queue does with the word.
        node.granted.store(GRANTED, Release);
        // See "No wake-up is lost", the first pair. The exchange below orders nothing if it fails.
        P::fence(SeqCst);
        if !halted.unwrap_or_else(slept) {
            return;
        }
        if V::WAKES_NEXT {
            // The kick releases: a handler of the sleeper that clears the latch, and fences, also sees that
            // the state is `RUNNING`. The sleeper looks at the state last.
            P::kick(ContextNodes::<P, Node<P>>::cpu_of(next));
        } else {
            // Relaxed: only our own `unlock` looks for the entry.
            self.lock.word.fetch_or(SLOW, Relaxed);
            sleep.table.insert(self.key(), next);
        }
    }

    /// The release when the first of the queue must be woken.
    #[cold]
    fn unlock_slow(&self, shared: &Shared<P>, sleep: &Sleep<P>) {
        let key = self.key();
        let word = &self.lock.word;
        // Release: what the holder did happens before the next acquisition.
        let release = || _ = word.fetch_and(!LOCKED_BYTE, Release);
        right!((), P, V4PvQspinlockReleaseBeforeRemoval, release());
        // Before the release: after it the next first waiter may announce itself.
        let id = sleep.table.remove(key);
        let cpu = ContextNodes::<P, Node<P>>::cpu_of(id);
        let state = &shared.queue.nodes.get(id).state;
        let ran = || state.load(Relaxed) == RUNNING;
        let is_awake = right!(false, P, V2PvQspinlockKicksSleepersOnly, ran());
        right!(release(), P, V4PvQspinlockReleaseBeforeRemoval, ());
        // See "No wake-up is lost", the last pair.
        P::fence(SeqCst);
        // Whatever its state: it may be about to sleep.
        if !is_awake {
            P::kick(cpu);
        }
    }
}

impl<P: Platform, V: Version> RawLock<P> for PvQspinlock<P, V> {
    const INFO: LockInfo = V::INFO;
    type Shared = Shared<P>;
    type Token = ();

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        V::INFO.check_capacity(cpus)?;
        if tuning.nopvspin {
            return Ok(Shared { queue: Qspinlock::<P>::shared(cpus, tuning)?, sleep: None });
        }
        Shared::with_entries(cpus, tuning, table::entries(cpus))
    }

    fn new() -> Self {
        Self { lock: Qspinlock::new(), version: PhantomData }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) {
        match &shared.sleep {
            None => self.lock.lock(&shared.queue),
            Some(sleep) => {
                if !self.lock.acquire_at_once() {
                    self.lock_slow(shared, sleep);
                }
            }
        }
    }

    #[inline]
    fn try_lock(&self, shared: &Shared<P>) -> Option<()> {
        self.lock.try_lock(&shared.queue)
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, (): ()) {
        let Some(sleep) = &shared.sleep else { return self.lock.unlock(&shared.queue, ()) };
        // The word without waiters.
        let mut found = LOCKED;
        while found & LOCKED_BYTE == LOCKED {
            // Release: what the holder did happens before the next acquisition. Acquire: pairs with
            // the announcement, so that the entry is seen.
            match self.lock.word.compare_exchange_weak(found, found - LOCKED, Release, Acquire) {
                Ok(_) => return,
                Err(now) => found = now,
            }
        }
        self.unlock_slow(shared, sleep);
    }

    fn is_locked(&self, shared: &Shared<P>) -> bool {
        self.lock.is_locked(&shared.queue)
    }

    fn is_contended(&self, shared: &Shared<P>) -> bool {
        self.lock.is_contended(&shared.queue)
    }
}
