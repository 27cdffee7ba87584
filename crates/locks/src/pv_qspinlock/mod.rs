//! Paravirtual queued spinlock: the queue of `qspinlock`, whose waiters sleep when they have spun too
//! long; newcomers may steal the lock while the first of the queue does not spin.
//!
//! It is [`PvQspinlock`] as it is in Linux today; [`PvQspinlock42`] and [`PvQspinlock45`] are its
//! earlier forms, and [`Version`] says what they do otherwise.
//!
//! The word is that of [`qspinlock`]. Two of its fields mean more:
//!
//! | Field | Meaning |
//! |---|---|
//! | byte `LOCKED` = 1 | held |
//! | byte `LOCKED` = `SLOW` (3) | held, and the first of the queue is in the table: wake it |
//! | `PENDING` | the first of the queue spins: newcomers must queue, and only it may take the lock; not in 4.2, whose newcomers never steal |
//!
//! | `state` of a node | Its owner |
//! |---|---|
//! | `RUNNING` | spins |
//! | `HALTED` | sleeps or is about to, in the queue |
//! | `HASHED` | is in the table, or was since it became the first |
//!
//! **Who wakes whom.** Only `unlock` wakes anybody, and only the first of the queue. A holder whose
//! successor in the queue sleeps does not wake it for being first now: it sets `SLOW` and puts the
//! successor into the table on its behalf, and so tells its own `unlock` to wake it. In 4.2 the holder
//! wakes the successor, which spins while the lock is held, and may go to sleep a second time as the first.
//!
//! **No wake-up is lost.** Three pairs, each of which writes one thing and then looks at the other's:
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
//! One entry of a lock is in the table at most: by who becomes the first, or on its behalf, and once. A
//! first one that was woken and finds the lock stolen spins on and does not sleep again: the byte is 1
//! and not `SLOW`. The entry is taken out before the release, for the next first one may want to put
//! itself in right after it.
//!
//! **Nesting.** A handler that waits while its CPU sleeps, or is about to, must not clear the latch: the
//! kick may have been the outer context's. Hence a count of nested sleeps per CPU; only the outermost
//! clears. A nested one with the latch set does not sleep but spins.
//!
//! **Properties.** First come, first served among those who queue, overtaken by newcomers while their
//! first one sleeps. A descheduled holder or waiter costs the others their spin budget; a waiter whose
//! predecessor does not spin sleeps sooner. Uncontended: two read-modify-writes. After the release
//! `unlock` uses the number of a CPU, and nothing of the lock. The form of 4.2 has an order, like a
//! ticket lock: nobody passes those who queue, and a descheduled waiter stops those behind it.
//!
//! **Native mode.** With [`Tuning::nopvspin`] it is `qspinlock`. The mode is a constant of the system.
//!
//! **Interrupts** stay off from before the queue: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Waiman Long; Linux from 4.2, `kernel/locking/qspinlock_paravirt.h`, over the waiting of
//! `arch/x86/xen/spinlock.c` from 2018; the commits of each version are in `version.rs`. Deviations: a
//! newcomer steals for its spin budget at most and then queues, or it would burn for as long as the first
//! one sleeps and the holder is descheduled; the table has four entries for each CPU, and not at least a
//! page of them. All versions have what was mended later, and must: `unlock` kicks whatever the state of
//! the sleeper is (V2; 4.2 looked first), the first of the queue sleeps as `HASHED` (V1; `HALTED` until 2016).
//! A steal compares the whole word and not its byte: it also fails if somebody queues just then.

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
/// Wait-loop iterations between two looks at whether the predecessor spins: the published value.
const PREDECESSOR_CHECK: u32 = 1 << 8;

/// The lock as it is in `V`, a version of Linux: today's if not said. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct PvQspinlock<P: Platform, V: Version = Linux415> {
    lock: Qspinlock<P>,
    version: PhantomData<V>,
}

/// The lock of Linux 4.2, which nobody steals.
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

/// What it takes to sleep.
#[derive(Debug)]
struct Sleep<P: Platform> {
    table: Table<P>,
    /// Per CPU: how many of its contexts sleep or are about to. Its CPU writes it.
    nested: P::Slots<CachePadded<P::U32>>,
    /// Wait-loop iterations before going to sleep.
    spin_budget: u32,
}

impl<P: Platform> Shared<P> {
    /// For `cpus` CPUs, in paravirtual mode, with a table of `entries`. For a checker that wants few;
    /// locks in use want [`RawLock::shared`].
    ///
    /// # Errors
    /// If the lock cannot serve so many CPUs.
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
    /// Sleeps while `cell` is as `asleep` says, until kicked or for no reason.
    fn wait(&self, cell: &P::U32, asleep: impl Fn(u32) -> bool) {
        if !P::can_block() {
            return;
        }
        let nested = &self.nested[P::cpu_id()];
        // Relaxed: only this CPU writes it. A handler in between puts back what it found.
        let depth = nested.load(Relaxed);
        nested.store(depth + 1, Relaxed);
        let outermost = right!(depth == 0, P, V5PvQspinlockNestedWaitClearsLatch, true);
        if P::latch_test() && outermost {
            // From a kick that came while we did not sleep, for this wait or an earlier one: look
            // again before sleeping. The fence makes that look see what the kick was for.
            P::latch_clear();
            P::fence(SeqCst);
        } else if !P::latch_test() && asleep(cell.load(Relaxed)) {
            P::poll();
        } else {
            // The latch is for an outer context, or the byte has lost its `SLOW` to somebody who stole
            // the lock: who has no budget to spin shall not come back here at full speed.
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
            // Release: publishes the node to who grants.
            before.next.store(id, Release);
            Self::wait_for_head(sleep, node, before);
        }
        self.acquire_as_head(sleep, id, node);
        // We are the holder, with the first place of the queue to give away.
        let found = self.lock.word.load(Relaxed);
        if !self.lock.exchange_last_for_locked(id, found) {
            let next = await_link(&node.next);
            self.promote(sleep, next, nodes.get(next));
        }
    }

    /// Takes the lock past the queue, while that has no first one that spins; in 4.2, if there is none.
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

    /// Waits, spinning and sleeping, to be the first of the queue.
    fn wait_for_head(sleep: &Sleep<P>, node: &Node<P>, before: &Node<P>) {
        let mut left = sleep.spin_budget;
        loop {
            let round = if V::ADAPTIVE { left.min(PREDECESSOR_CHECK) } else { left };
            // Acquires: what others did before us is what the first of the queue continues.
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
            // Unless it is `HASHED` by now, which `acquire_as_head` must know. Acquire: pairs with the
            // fence in `promote`. Who is `HASHED` has been granted and must see that it has, or it
            // would call itself `HALTED` once more and be put into the table twice.
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
                // From here on nobody else can take it.
                word.fetch_or(PENDING, Relaxed);
            }
            // Acquires: pairs with the release in `unlock`.
            let is_released = |word: u32| word & LOCKED_BYTE == 0;
            if word.spin_until(is_released, Budget::Iterations(sleep.spin_budget)).is_ok() {
                if has_thieves {
                    self.lock.pending_to_locked();
                } else {
                    // There is a tail, so it is ours. Relaxed: acquired above.
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
            // Not `HALTED`: the one who made us the first may not have looked at our state yet, and
            // would then put us into the table once more.
            let asleep = right!(HASHED, P, V1PvQspinlockHeadHalted, HALTED);
            node.state.store(asleep, Relaxed);
            sleep.wait(word, |word| word & LOCKED_BYTE == SLOW);
        }
    }

    /// Asks to be woken by `unlock`. Returns whether it has the lock instead.
    fn announce(&self, sleep: &Sleep<P>, id: u32) -> bool {
        let word = &self.lock.word;
        // The entry first: who sees `SLOW` relies on it.
        let insert = || sleep.table.insert(self.key(), id);
        right!(insert(), P, V6PvQspinlockSlowBeforeEntry, ());
        // Release: publishes the entry. Acquire: it may find the lock free.
        let found = word.fetch_or(SLOW, AcqRel);
        right!((), P, V6PvQspinlockSlowBeforeEntry, insert());
        if found & LOCKED_BYTE != 0 {
            return false;
        }
        // Free, and now ours. Nobody has seen the entry but us.
        word.fetch_sub(SLOW - LOCKED, Relaxed);
        sleep.table.remove(self.key());
        true
    }

    /// As the holder, makes `next` the first of the queue, and announces it if it sleeps; in 4.2, wakes
    /// it.
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
            // The kick releases: a handler of the sleeper that clears the latch, and fences, sees with it that
            // the state is `RUNNING`, at which the sleeper looks last.
            P::kick(ContextNodes::<P, Node<P>>::cpu_of(next));
        } else {
            // Relaxed: nobody looks for the entry but our own `unlock`.
            self.lock.word.fetch_or(SLOW, Relaxed);
            sleep.table.insert(self.key(), next);
        }
    }

    /// The release when the first of the queue is to be woken.
    #[cold]
    fn unlock_slow(&self, shared: &Shared<P>, sleep: &Sleep<P>) {
        let key = self.key();
        let word = &self.lock.word;
        // Release: what the holder did happens before the next acquisition.
        let release = || _ = word.fetch_and(!LOCKED_BYTE, Release);
        right!((), P, V4PvQspinlockReleaseBeforeRemoval, release());
        // Before the release, after which the next first one may announce itself.
        let id = sleep.table.remove(key);
        let cpu = ContextNodes::<P, Node<P>>::cpu_of(id);
        let state = &shared.queue.nodes.get(id).state;
        let ran = || state.load(Relaxed) == RUNNING;
        let is_awake = right!(false, P, V2PvQspinlockKicksSleepersOnly, ran());
        right!(release(), P, V4PvQspinlockReleaseBeforeRemoval, ());
        // See "No wake-up is lost", the last pair.
        P::fence(SeqCst);
        // Whatever its state is: it may be about to sleep.
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
        // As it is when nobody waits.
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
