//! Resilient queued spinlock: a [queued spinlock](crate::qspinlock) whose acquisition ends with an error when it waits too
//! long, or when it can never end.
//!
//! The word has the states of the queued spinlock. There are two more transitions, both of a waiter that fails:
//!
//! | The waiter | leaves |
//! |---|---|
//! | pending | by clearing `PENDING`; nobody else may clear it |
//! | first of the queue, in a deadlock | by clearing `tail` if it is the last, else by making its successor the first |
//! | first of the queue, timed out | by clearing `tail` if it is the last, else by failing its successor, which does the same |
//!
//! So a time-out destroys the queue: the first has waited for the whole time, and those behind it depend on the same
//! holder. A newcomer that queues behind a failing waiter fails too, after a short wait.
//!
//! **What a CPU has.** `held` of [`Shared`] is a stack for each CPU: the locks that its contexts hold or want, the
//! latest on top. A CPU notes a lock before it tries to take it, and removes the note after it has released it. So a
//! handler that interrupts it at any point finds every lock that its CPU holds. (Linux 6.17 noted the lock after it had
//! taken it. A non-maskable interrupt in between wanted the same lock, found no note, and waited for 250 ms.) A note
//! may be there without the lock; then the worst is an error for a lock that was about to become free.
//!
//! **Deadlocks.** A waiter looks for two, one at the begin of its wait, the other every [`CHECK_NS`]:
//!
//! - *AA*: its own CPU has the lock below the waiter's own note.
//! - *ABBA*: another CPU has the lock, and on top of its stack is a lock that this CPU has. The waiter reads the top
//!   first. As long as this CPU has that lock, the other CPU waits, and what is below its top does not change, unless
//!   it gives up. Then both have failed.
//!
//! Longer circles end by a time-out.
//!
//! **[`RawLock::lock`]** cannot fail: a panic, or a token without the lock, would break callers that did nothing wrong.
//! Where [`Rqspinlock::lock_or_fail`] fails, it waits and begins again. So it waits for ever in a deadlock, as other
//! locks do, and a guest whose host descheduled the holder for 250 ms goes on, without the order of the queue. After a
//! time-out it waits until the failed queue is gone: a waiter that queues again at once fails again behind one that is
//! failing, and if all do so, none gets the free lock. (Random schedules of 16 CPUs showed that.)
//! So it may run wherever a lock may, and nothing is refused. Worlds, `overspin exec` and the C interface call `lock`: they
//! see no error.
//!
//! **Non-maskable interrupts.** The highest of the four contexts does not queue, because it may have interrupted the
//! first of the same queue, on which the queue depends. It tries again and again, for [`TRYING_NS`] at most.
//!
//! **Time.** Where the clock stands still there are no time-outs and no look for ABBA.
//!
//! **Properties.** As the queued spinlock, while no wait lasts [`WAITING_NS`]; after that, no order. A descheduled
//! holder makes all waiters burn; each time-out makes them burn on in disorder. Uncontended: two read-modify-writes,
//! and four stores to the CPU's own line. A CPU's notes have room for [`HELD`] locks; more are held without a note, and
//! a deadlock with them ends by a time-out.
//!
//! **Interrupts** stay off from before the queue: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Kumar Kartikeya Dwivedi and Alexei Starovoitov, Linux 6.15, for BPF programs; written from the
//! descriptions of its patches and of the stalls of 6.17. Deviations: seven notes for each CPU, published 31: they fill
//! a cache line. A lock may be released in any order. Published locks are taken with interrupts off.

mod held;

use core::fmt;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use crate::bug::right;
use crate::nodes::{ContextNodes, MAX_CONTEXT_CPUS, NIL, await_link};
use crate::qspinlock::{
    DEFAULT_PENDING_LOOPS, FREE, GRANTED, LOCKED, LOCKED_BYTE, Node, PENDING, Qspinlock, TAIL,
    TAIL_SHIFT, WAIT,
};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

pub use held::HELD;
use held::Held;

/// How long the pending waiter and the first of the queue wait, in nanoseconds: the published value.
pub const WAITING_NS: u64 = 250_000_000;
/// How long a waiter that does not queue waits, in nanoseconds: the published value of the form without a queue.
pub const TRYING_NS: u64 = 1_000_000_000;
/// A waiter looks for a deadlock with another CPU so often, in nanoseconds: the published value.
pub const CHECK_NS: u64 = 1_000_000;

/// What a waiter reads in its node: the queue was destroyed.
const FAILED: u32 = 2;
/// The context of non-maskable interrupts.
const NMI: usize = 3;
/// Looks at the word between two readings of the clock: some microseconds.
const LOOKS: u32 = 1 << 7;

/// Properties of [`Rqspinlock`].
pub const INFO: LockInfo = LockInfo {
    name: "rqspinlock",
    brief: "Queued spinlock that can fail: it finds deadlocks, and a wait of 250 ms ends the queue.",
    source: "Dwivedi and Starovoitov; Linux 6.15 (kernel/bpf/rqspinlock.c)",
    // In order until a wait times out.
    fair: false,
    local_spin: true,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Burn,
    // Only the first of the queue looks at the clock.
    abortable: false,
    blocks: false,
    max_cpus: MAX_CONTEXT_CPUS,
    size: 4,
};

/// Why an acquisition failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// This CPU has the lock already: it would wait for itself (AA).
    Itself,
    /// Another CPU has the lock, and waits for one that this CPU has (ABBA).
    EachOther,
    /// The holder, or a waiter before, did not make progress for [`WAITING_NS`].
    TimedOut,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Itself => "deadlock: this CPU has the lock already (AA)",
            Self::EachOther => {
                "deadlock: another CPU has the lock, and waits for a lock of this CPU (ABBA)"
            }
            Self::TimedOut => "timed out: the lock did not become free",
        })
    }
}

impl core::error::Error for Stuck {}

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct Rqspinlock<P: Platform> {
    lock: Qspinlock<P>,
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    nodes: ContextNodes<P, Node<P>>,
    held: Held<P>,
    pending_loops: u32,
    waiting_ns: u64,
    check_ns: u64,
}

/// Proof of an acquisition: the place of its note.
#[derive(Debug)]
pub struct Token(usize);

impl<P: Platform> Shared<P> {
    /// For `cpus` CPUs, with so many nanoseconds for a wait, and between two looks for a deadlock with another CPU.
    ///
    /// # Errors
    /// If the lock cannot serve that many CPUs.
    pub fn new(
        cpus: usize,
        tuning: Tuning,
        waiting_ns: u64,
        check_ns: u64,
    ) -> Result<Self, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Self {
            nodes: ContextNodes::new(cpus, Node::new),
            held: Held::new(cpus),
            pending_loops: tuning.spin_budget.unwrap_or(DEFAULT_PENDING_LOOPS),
            waiting_ns,
            check_ns,
        })
    }
}

impl<P: Platform> Rqspinlock<P> {
    /// The value that names this lock in notes. It is only ever compared.
    fn key(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Acquires the lock, or fails.
    ///
    /// # Errors
    /// If the wait can never end, or has lasted too long.
    pub fn lock_or_fail(&self, shared: &Shared<P>) -> Result<Token, Stuck> {
        let note = right!(shared.held.note(self.key()), P, R2RqspinlockNotesWhatItHas, {
            // As in Linux 6.17: where the lock is free, the note comes after it is taken.
            if self.lock.acquire_at_once() {
                return Ok(Token(shared.held.note(self.key())));
            }
            shared.held.note(self.key())
        });
        let result = match self.lock.acquire_at_once() {
            true => Ok(()),
            false => self.lock_slow(shared, note),
        };
        if result.is_err() {
            right!(shared.held.remove(note), P, R5RqspinlockKeepsItsNote, ());
        }
        result.map(|()| Token(note))
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared<P>, note: usize) -> Result<(), Stuck> {
        if shared.held.has_below(note, self.key()) {
            return Err(Stuck::Itself);
        }
        if P::ctx_level() >= NMI {
            return self.lock_trying(shared, note);
        }
        match self.lock_pending(shared, note) {
            Some(result) => result,
            None => self.lock_queued(shared, note),
        }
    }

    /// Looks at the word until `until`, for a limited time.
    fn wait(
        &self,
        shared: &Shared<P>,
        note: usize,
        limit_ns: u64,
        until: impl Fn(u32) -> bool + Copy,
    ) -> Result<u32, Stuck> {
        let word = &self.lock.word;
        let mut budget = Budget::Iterations(LOOKS);
        let start = P::now();
        let mut checked = start;
        loop {
            // Acquires: pairs with the release in `unlock`.
            if let Ok(found) = word.spin_until(until, budget) {
                return Ok(found);
            }
            let now = P::now();
            if now == start {
                // The clock stands still.
                budget = Budget::Forever;
            }
            if now.wrapping_sub(checked) >= shared.check_ns {
                checked = now;
                if shared.held.waits_for_us(note, self.key()) {
                    return Err(Stuck::EachOther);
                }
            }
            if now.wrapping_sub(start) >= limit_ns {
                return Err(Stuck::TimedOut);
            }
        }
    }

    /// Tries until the word is free when it tries.
    fn lock_trying(&self, shared: &Shared<P>, note: usize) -> Result<(), Stuck> {
        let (start, limit) = (P::now(), shared.waiting_ns.max(TRYING_NS));
        while !self.lock.acquire_at_once() {
            self.wait(shared, note, limit, |word| word == FREE)?;
            if P::now().wrapping_sub(start) >= limit {
                return Err(Stuck::TimedOut);
            }
        }
        Ok(())
    }

    /// Waits in the pending place, if that is free. `None` if it is not.
    fn lock_pending(&self, shared: &Shared<P>, note: usize) -> Option<Result<(), Stuck>> {
        self.lock.take_pending_place(shared.pending_loops)?;
        let word = &self.lock.word;
        let is_free = |word: u32| word & LOCKED_BYTE == 0;
        if let Err(stuck) = self.wait(shared, note, shared.waiting_ns, is_free) {
            // The bit is ours, and only its owner clears it.
            right!(word.fetch_and(!PENDING, Relaxed), P, R3RqspinlockFailsAndStaysPending, 0);
            return Some(Err(stuck));
        }
        self.lock.pending_to_locked();
        Some(Ok(()))
    }

    fn lock_queued(&self, shared: &Shared<P>, note: usize) -> Result<(), Stuck> {
        let id = shared.nodes.mine();
        let node = shared.nodes.get(id);
        node.reset();
        // The lock may be free by now.
        if self.lock.acquire_at_once() {
            return Ok(());
        }
        let before = self.lock.exchange_tail(id);
        if before != NIL {
            // Release: publishes the node to the CPU that grants.
            shared.nodes.get(before).next.store(id, Release);
            // Acquires: the next head continues what others did before us.
            let told = node.granted.spin_until(|granted| granted != WAIT, Budget::Forever);
            if told == Ok(FAILED) {
                self.leave(shared, id, FAILED);
                return Err(Stuck::TimedOut);
            }
        }
        // First of the queue.
        let gone = |word: u32| word & (LOCKED_BYTE | PENDING) == 0;
        let found = match self.wait(shared, note, shared.waiting_ns, gone) {
            Ok(found) => found,
            Err(stuck) => {
                // See the table: what the successor becomes.
                self.leave(shared, id, if stuck == Stuck::TimedOut { FAILED } else { GRANTED });
                return Err(stuck);
            }
        };
        if self.lock.exchange_last_for_locked(id, found) {
            return Ok(());
        }
        // Relaxed: acquired above. See "Who may set `LOCKED`" of the queued spinlock.
        self.lock.word.fetch_or(LOCKED, Relaxed);
        // Release: our acquisition comes before what the next head does with the word.
        shared.nodes.get(await_link(&node.next)).granted.store(GRANTED, Release);
        Ok(())
    }

    /// Waits before another attempt: see "`RawLock::lock`".
    #[cold]
    fn wait_out(&self, stuck: Stuck) {
        let word = &self.lock.word;
        let (is_held, is_queue) =
            (|word: u32| word & LOCKED_BYTE != 0, |word: u32| word & TAIL != 0);
        if stuck != Stuck::TimedOut {
            let _ = word.spin_until(|word| !is_held(word), Budget::Forever);
        } else if word.spin_until(|word| !is_queue(word), Budget::Iterations(LOOKS)).is_err() {
            // No longer: while a new queue goes on, it may never be seen to end.
            let _ = word.spin_until(|word| !is_queue(word) || is_held(word), Budget::Forever);
        }
    }

    /// Takes the first of the queue, `id`, out of it without the lock. Tells its successor what it is now.
    fn leave(&self, shared: &Shared<P>, id: u32, successor: u32) {
        let word = &self.lock.word;
        let mut found = word.load(Relaxed);
        while found >> TAIL_SHIFT == id {
            // Release: what we did as the first comes before the next first of the queue, which no CPU grants its place.
            match word.compare_exchange_weak(found, found & !TAIL, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => found = now,
            }
        }
        let next = await_link(&shared.nodes.get(id).next);
        // Release: as above.
        let tell = || shared.nodes.get(next).granted.store(successor, Release);
        right!(tell(), P, R4RqspinlockLeavesItsSuccessor, ());
    }
}

impl<P: Platform> RawLock<P> for Rqspinlock<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = Token;

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        Shared::new(cpus, tuning, WAITING_NS, CHECK_NS)
    }

    fn new() -> Self {
        Self { lock: Qspinlock::new() }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Token {
        loop {
            match self.lock_or_fail(shared) {
                Ok(token) => return token,
                Err(stuck) => self.wait_out(stuck),
            }
        }
    }

    #[inline]
    fn try_lock(&self, shared: &Shared<P>) -> Option<Token> {
        // Relaxed: a guess, which the exchange checks. If the lock is held, it leaves the line alone.
        if self.lock.word.load(Relaxed) != FREE {
            return None;
        }
        let note = shared.held.note(self.key());
        if self.lock.acquire_at_once() {
            return Some(Token(note));
        }
        shared.held.remove(note);
        None
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(note): Token) {
        // Release: what the holder did happens before the next acquisition.
        self.lock.word.fetch_sub(LOCKED, Release);
        // After the release: see "What a CPU has".
        shared.held.remove(note);
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.lock.word.load(Relaxed) != FREE
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        self.lock.word.load(Relaxed) & !LOCKED_BYTE != 0
    }
}
