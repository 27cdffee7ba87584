//! What the checkers ask of a lock at each call, and when all is over.

use std::cell::Cell;
use std::rc::Rc;

use overspin_locks::{CpuId, LockUntil, Platform, RawLock};

use crate::Profile;

/// What every message about a `try_lock` that waits contains.
pub const TRY_WAITS_MESSAGE: &str = "try_lock waits";

/// The contexts of a CPU that are in `try_lock`, one bit for each: a handler that interrupts one may wait.
#[derive(Debug, Default)]
pub(crate) struct Tries(Cell<u32>);

impl Tries {
    /// `try_lock`, in the context `level`.
    pub(crate) fn during<R>(&self, level: usize, try_lock: impl FnOnce() -> R) -> R {
        self.0.set(self.0.get() | 1 << level);
        let result = try_lock();
        self.0.set(self.0.get() & !(1 << level));
        result
    }

    /// A wait without a bound begins in the context `level`.
    pub(crate) fn assert_may_wait(&self, level: usize) {
        assert!(self.0.get() >> level & 1 == 0, "{TRY_WAITS_MESSAGE}");
    }
}

/// What a world keeps of an execution for the checkers.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Accesses to cells, by all CPUs, so far.
    accesses: Cell<u64>,
    /// Weak exchanges do not fail for no reason.
    calm: Cell<bool>,
}

impl Watch {
    /// A CPU accesses a cell.
    pub(crate) fn count(&self) {
        self.accesses.set(self.accesses.get() + 1);
    }

    /// Whether weak exchanges do not fail for no reason now.
    pub(crate) fn is_calm(&self) -> bool {
        self.calm.get()
    }

    /// Does `work`, in which no weak exchange fails for no reason. Returns also how many accesses it takes.
    fn cost<R>(&self, work: impl FnOnce() -> R) -> (R, u64) {
        let before = self.accesses.get();
        self.calm.set(true);
        let result = work();
        self.calm.set(false);
        (result, self.accesses.get() - before)
    }
}

/// A world that sees what a lock does to its CPU.
pub(crate) trait Watches: Platform {
    /// Whether interrupts are on, on this CPU.
    fn irqs_on() -> bool;
    /// Does `try_lock`, in which this CPU must not wait.
    fn tries<R>(try_lock: impl FnOnce() -> R) -> R;
    /// What the world keeps of this execution.
    fn watch() -> Rc<Watch>;
    /// Does `work` as another CPU, while no CPU runs.
    fn on_behalf_of<R>(cpu: CpuId, work: impl FnOnce() -> R) -> R;
}

fn keeps_interrupts<P: Watches, R>(what: &str, call: impl FnOnce() -> R) -> R {
    let before = P::irqs_on();
    let result = call();
    let now = P::irqs_on();
    assert_eq!(now, before, "{what} found interrupts {} and leaves them {}", on(before), on(now));
    result
}

fn on(irqs: bool) -> &'static str {
    if irqs { "on" } else { "off" }
}

/// `lock`, which leaves interrupts alone.
pub(crate) fn lock<P: Watches, L: RawLock<P>>(lock: &L, shared: &L::Shared) -> L::Token {
    keeps_interrupts::<P, _>("lock", || lock.lock(shared))
}

/// `try_lock`, which leaves interrupts alone and does not wait.
pub(crate) fn try_lock<P: Watches, L: RawLock<P>>(
    lock: &L,
    shared: &L::Shared,
) -> Option<L::Token> {
    keeps_interrupts::<P, _>("try_lock", || P::tries(|| lock.try_lock(shared)))
}

/// An acquisition that may give up, which leaves interrupts alone.
pub(crate) fn lock_until<P: Watches, L: RawLock<P>>(
    lock: &L,
    shared: &L::Shared,
    lock_until: LockUntil<P, L>,
    deadline: u64,
) -> Option<L::Token> {
    keeps_interrupts::<P, _>("lock_until", || lock_until(lock, shared, deadline))
}

/// `unlock`, which leaves interrupts alone.
pub(crate) fn unlock<P: Watches, L: RawLock<P>>(lock: &L, shared: &L::Shared, token: L::Token) {
    keeps_interrupts::<P, _>("unlock", || lock.unlock(shared, token));
}

/// `lock_irqsave`, which switches interrupts off and tells how they were.
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

/// Accesses of an acquisition and its release on this CPU.
fn cost<P: Watches, L: RawLock<P>>(lock: &L, shared: &L::Shared) -> u64 {
    let watch = P::watch();
    let (token, taken) = watch.cost(|| self::lock(lock, shared));
    assert!(lock.is_locked(shared), "a CPU has just taken it, but it is not locked");
    assert!(!lock.is_contended(shared), "nobody but its holder is there, but it is contended");
    let ((), released) = watch.cost(|| unlock(lock, shared, token));
    taken + released
}

/// Accesses of an acquisition and its release where nobody else is: of a new lock, the second time.
pub(crate) fn cost_alone<P: Watches, L: RawLock<P>>(shared: &L::Shared) -> u64 {
    let lock = L::new();
    cost(&lock, shared);
    cost(&lock, shared)
}

/// Nobody holds `lock` or waits for it, and `cpus` CPUs find it so: `try_lock` takes it at once and then not
/// again, and an acquisition takes as many accesses as [alone](cost_alone), or fewer if it is the first. A node
/// that is still out, or a flag that nobody has cleared, costs some more.
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
            "all is over, and CPU {cpu} needs {found} accesses for a lock and an unlock, where alone it is \
             {cost_alone}: a node is out, or a flag is set"
        );
    }
    assert_free(lock, shared);
}

/// The same but for what it costs.
pub(crate) fn assert_free<P: Watches, L: RawLock<P>>(lock: &L, shared: &L::Shared) {
    let tried = || try_lock(lock, shared);
    let asks_for_time = Profile::of(&L::INFO).asks_for_time;
    let take = || tried().or_else(|| asks_for_time.then(|| self::lock(lock, shared)));
    assert_had_once(lock, shared, take, tried, |token| unlock(lock, shared, token));
}

/// Nobody holds `lock` or waits for it, and it can be had at once by `take`, and then not `again`, until
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
    // One that waits for the holder, in whatever way, waits for ever here.
    assert!(again().is_none(), "try_lock takes a lock that is held");
    release(token);
    assert_looks_idle(lock, shared);
}

/// Nobody holds `lock` or waits for it.
pub(crate) fn assert_looks_idle<P: Platform, L: RawLock<P>>(lock: &L, shared: &L::Shared) {
    assert!(!lock.is_locked(shared), "nobody holds it, but it is locked");
    assert!(!lock.is_contended(shared), "nobody waits, but it is contended");
}

/// As many locks as a CPU has queue nodes.
const NODES: usize = 8;

/// Locks of a system that CPUs hold, so many that no queue node is left to them.
pub(crate) struct OutOfNodes<P: Platform, L: RawLock<P>> {
    held: Vec<(CpuId, L)>,
    tokens: Vec<L::Token>,
}

impl<P: Watches, L: RawLock<P>> OutOfNodes<P, L> {
    /// While no CPU runs, takes all nodes of `cpus`.
    pub(crate) fn new(shared: &L::Shared, cpus: impl Iterator<Item = CpuId>) -> Self {
        let of_one = |cpu| (0..NODES).map(move |_| (cpu, L::new()));
        let held: Vec<_> = cpus.flat_map(of_one).collect();
        let take = |(cpu, it): &(CpuId, L)| P::on_behalf_of(*cpu, || lock(it, shared));
        let tokens = held.iter().map(take).collect();
        Self { held, tokens }
    }

    /// Gives them back, when no CPU runs any more.
    pub(crate) fn end(self, shared: &L::Shared) {
        for ((cpu, it), token) in self.held.iter().zip(self.tokens) {
            P::on_behalf_of(*cpu, || unlock(it, shared, token));
        }
    }
}
