//! Assertions of the checkers at each call of a lock, and at the end of an execution.

use std::cell::Cell;
use std::rc::Rc;

use overspin_locks::{CpuId, LockUntil, Platform, RawLock};

use crate::Profile;

/// The text that every message about a waiting `try_lock` contains.
pub const TRY_WAITS_MESSAGE: &str = "try_lock waits";

/// The contexts of a CPU that are in `try_lock`, one bit each. A handler that interrupts such a context may
/// wait.
#[derive(Debug, Default)]
pub(crate) struct Tries(Cell<u32>);

impl Tries {
    /// Runs `try_lock` in the context `level`.
    pub(crate) fn during<R>(&self, level: usize, try_lock: impl FnOnce() -> R) -> R {
        self.0.set(self.0.get() | 1 << level);
        let result = try_lock();
        self.0.set(self.0.get() & !(1 << level));
        result
    }

    /// Called when an unbounded wait begins in the context `level`.
    pub(crate) fn assert_may_wait(&self, level: usize) {
        assert!(self.0.get() >> level & 1 == 0, "{TRY_WAITS_MESSAGE}");
    }
}

/// The state that a world keeps of an execution for the checkers.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Accesses to cells, by all CPUs, so far.
    accesses: Cell<u64>,
    /// While true, weak exchanges do not fail spuriously.
    calm: Cell<bool>,
}

impl Watch {
    /// Counts an access of a CPU to a cell.
    pub(crate) fn count(&self) {
        self.accesses.set(self.accesses.get() + 1);
    }

    /// Whether weak exchanges are kept from failing spuriously now.
    pub(crate) fn is_calm(&self) -> bool {
        self.calm.get()
    }

    /// Runs `work` without spurious failures of weak exchanges. Returns its result and its number of accesses.
    fn cost<R>(&self, work: impl FnOnce() -> R) -> (R, u64) {
        let before = self.accesses.get();
        self.calm.set(true);
        let result = work();
        self.calm.set(false);
        (result, self.accesses.get() - before)
    }
}

/// A world that observes the effects of a lock on its CPU.
pub(crate) trait Watches: Platform {
    /// Whether interrupts are on, on this CPU.
    fn irqs_on() -> bool;
    /// Runs `try_lock`, during which this CPU must not wait.
    fn tries<R>(try_lock: impl FnOnce() -> R) -> R;
    /// Returns the record of this execution.
    fn watch() -> Rc<Watch>;
    /// Runs `work` as another CPU, while no CPU runs.
    fn on_behalf_of<R>(cpu: CpuId, work: impl FnOnce() -> R) -> R;
}

fn keeps_interrupts<P: Watches, R>(what: &str, call: impl FnOnce() -> R) -> R {
    let before = P::irqs_on();
    let result = call();
    assert_kept(what, before, P::irqs_on());
    result
}

fn assert_kept(what: &str, before: bool, now: bool) {
    assert_eq!(now, before, "{what} found interrupts {} and leaves them {}", on(before), on(now));
}

fn on(irqs: bool) -> &'static str {
    if irqs { "on" } else { "off" }
}

/// Calls `lock` and asserts that it leaves interrupts alone.
pub(crate) fn lock<P: Watches, L: RawLock<P>>(lock: &L, shared: &L::Shared) -> L::Token {
    keeps_interrupts::<P, _>("lock", || lock.lock(shared))
}

/// Calls `try_lock` and asserts that it leaves interrupts alone and does not wait.
pub(crate) fn try_lock<P: Watches, L: RawLock<P>>(
    lock: &L,
    shared: &L::Shared,
) -> Option<L::Token> {
    keeps_interrupts::<P, _>("try_lock", || P::tries(|| lock.try_lock(shared)))
}

/// Attempts an acquisition with a deadline and asserts that it leaves interrupts alone.
pub(crate) fn lock_until<P: Watches, L: RawLock<P>>(
    lock: &L,
    shared: &L::Shared,
    lock_until: LockUntil<P, L>,
    deadline: u64,
) -> Option<L::Token> {
    keeps_interrupts::<P, _>("lock_until", || lock_until(lock, shared, deadline))
}

/// Calls `unlock` and asserts that it leaves interrupts alone.
pub(crate) fn unlock<P: Watches, L: RawLock<P>>(lock: &L, shared: &L::Shared, token: L::Token) {
    keeps_interrupts::<P, _>("unlock", || lock.unlock(shared, token));
}

/// Calls `lock_irqsave` and asserts that it switches interrupts off and reports their state before.
pub(crate) fn lock_irqsave<P: Watches, L: RawLock<P>>(
    lock: &L,
    shared: &L::Shared,
) -> (L::Token, P::IrqState) {
    let before = P::irqs_on();
    let (token, state) = lock.lock_irqsave(shared);
    assert!(!P::irqs_on(), "lock_irqsave leaves interrupts on");
    assert_eq!(P::irqs_were_on(state), before, "lock_irqsave tells the wrong state");
    (token, state)
}

/// Counts the accesses of an acquisition and its release on this CPU.
fn cost<P: Watches, L: RawLock<P>>(lock: &L, shared: &L::Shared) -> u64 {
    let watch = P::watch();
    let (token, taken) = watch.cost(|| self::lock(lock, shared));
    assert!(lock.is_locked(shared), "a CPU has just taken it, but it is not locked");
    assert!(!lock.is_contended(shared), "only the holder is there, but the lock is contended");
    let ((), released) = watch.cost(|| unlock(lock, shared, token));
    taken + released
}

/// Counts the accesses of an uncontended acquisition and its release: the second one of a new lock.
pub(crate) fn cost_alone<P: Watches, L: RawLock<P>>(shared: &L::Shared) -> u64 {
    let lock = L::new();
    cost(&lock, shared);
    cost(&lock, shared)
}

/// Asserts that no CPU holds `lock` or waits for it, as seen by each of `cpus` CPUs. `try_lock` takes it at
/// once, and fails while it is held. An acquisition takes at most as many accesses as [alone](cost_alone); the
/// first may take fewer. A queue node that is still in use, or a flag that no CPU has cleared, costs extra
/// accesses.
pub(crate) fn assert_idle<P: Watches, L: RawLock<P>>(
    lock: &L,
    shared: &L::Shared,
    cpus: usize,
    cost_alone: u64,
) {
    assert_looks_idle(lock, shared);
    let Profile { asks_for_time, leaves_hints, .. } = Profile::of(&L::INFO);
    if leaves_hints {
        cost(lock, shared);
    }
    for cpu in (0..cpus).filter(|_| !asks_for_time) {
        let found = P::on_behalf_of(cpu, || cost(lock, shared));
        assert!(
            found <= cost_alone,
            "after the end, CPU {cpu} needs {found} accesses for a lock and an unlock, but {cost_alone} when alone: \
             a node is out, or a flag is set"
        );
    }
    assert_free(lock, shared);
}

/// Asserts that no CPU holds `lock` or waits for it, without a count of accesses.
pub(crate) fn assert_free<P: Watches, L: RawLock<P>>(lock: &L, shared: &L::Shared) {
    let tried = || try_lock(lock, shared);
    let asks_for_time = Profile::of(&L::INFO).asks_for_time;
    let take = || tried().or_else(|| asks_for_time.then(|| self::lock(lock, shared)));
    assert_had_once(lock, shared, take, tried, |token| unlock(lock, shared, token));
}

/// Asserts that no CPU holds `lock` or waits for it, and that `take` succeeds at once, and `again` fails until
/// `release`.
pub(crate) fn assert_had_once<P: Platform, L: RawLock<P>>(
    lock: &L,
    shared: &L::Shared,
    take: impl FnOnce() -> Option<L::Token>,
    again: impl FnOnce() -> Option<L::Token>,
    release: impl FnOnce(L::Token),
) {
    assert_looks_idle(lock, shared);
    let token = take().expect("nobody holds it, but try_lock fails");
    // A `try_lock` that waits for the holder, in whatever way, waits for ever here.
    assert!(again().is_none(), "try_lock takes a lock that is held");
    release(token);
    assert_looks_idle(lock, shared);
}

/// Asserts that `lock` appears free and uncontended.
pub(crate) fn assert_looks_idle<P: Platform, L: RawLock<P>>(lock: &L, shared: &L::Shared) {
    assert!(!lock.is_locked(shared), "nobody holds it, but it is locked");
    assert!(!lock.is_contended(shared), "nobody waits, but it is contended");
}

/// The number of queue nodes of a CPU, and so of locks to hold.
const NODES: usize = 8;

/// Held locks that use up all queue nodes of some CPUs.
pub(crate) struct OutOfNodes<P: Platform, L: RawLock<P>> {
    held: Vec<(CpuId, L)>,
    tokens: Vec<L::Token>,
}

impl<P: Watches, L: RawLock<P>> OutOfNodes<P, L> {
    /// Takes all nodes of `cpus`, while no CPU runs.
    pub(crate) fn new(shared: &L::Shared, cpus: impl Iterator<Item = CpuId>) -> Self {
        let of_one = |cpu| (0..NODES).map(move |_| (cpu, L::new()));
        let held: Vec<_> = cpus.flat_map(of_one).collect();
        let take = |(cpu, it): &(CpuId, L)| P::on_behalf_of(*cpu, || lock(it, shared));
        let tokens = held.iter().map(take).collect();
        Self { held, tokens }
    }

    /// Returns the nodes, when no CPU runs any more.
    pub(crate) fn end(self, shared: &L::Shared) {
        for ((cpu, it), token) in self.held.iter().zip(self.tokens) {
            P::on_behalf_of(*cpu, || unlock(it, shared, token));
        }
    }
}
