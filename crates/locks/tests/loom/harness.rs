//! Exploring a model, and the two verdicts.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use overspin_locks::{CpuId, RawLock, Tuning};

use crate::platform::{LoomPlatform, Mutation, World, set_cpu};

/// Steps of one execution. The longest here takes a few hundred; a lock that spins without end and
/// writes as it does so is stopped by this.
const MAX_STEPS: usize = 20_000;

/// Sleep at once.
pub const NO_SPIN: Tuning = Tuning { spin_budget: Some(0) };

/// A lock and what it protects.
pub struct Protected<L: RawLock<LoomPlatform>> {
    pub lock: L,
    pub shared: L::Shared,
    /// loom finds two accesses that the lock did not order, whatever they read and write.
    data: UnsafeCell<usize>,
}

impl<L: RawLock<LoomPlatform>> Protected<L> {
    /// A free lock for `cpus` CPUs.
    pub fn new(cpus: usize) -> Rc<Self> {
        Self::with_shared(L::shared(cpus, NO_SPIN).expect("the lock serves so many CPUs"))
    }

    /// A free lock of a system with state `shared`.
    pub fn with_shared(shared: L::Shared) -> Rc<Self> {
        Rc::new(Self { lock: L::new(), shared, data: UnsafeCell::new(0) })
    }

    /// The critical section. Returns how many have been through.
    pub fn inside(&self) -> usize {
        self.data.with_mut(|data| {
            // SAFETY: `with_mut` gives a valid pointer to the data, and loom runs one thread at a
            // time and has just checked that no other access is unordered with this one.
            unsafe {
                *data += 1;
                *data
            }
        })
    }

    /// One acquisition.
    pub fn pair(&self) {
        let token = self.lock.lock(&self.shared);
        self.inside();
        self.lock.unlock(&self.shared, token);
    }

    /// One acquisition, with interrupts off.
    pub fn pair_irqsave(&self) {
        use overspin_locks::Platform;
        let (token, state) = self.lock.lock_irqsave(&self.shared);
        self.inside();
        self.lock.unlock(&self.shared, token);
        LoomPlatform::irq_restore(state);
    }

    /// What must hold when all is over.
    pub fn assert_idle(&self, acquisitions: usize) {
        assert_eq!(self.inside(), acquisitions + 1, "an update was lost");
        assert!(!self.lock.is_locked(&self.shared), "nobody holds it, but it is locked");
        assert!(!self.lock.is_contended(&self.shared), "nobody waits, but it is contended");
    }
}

/// Runs `work` on all CPUs; the calling thread is CPU 0.
pub fn on_cpus(cpus: usize, work: impl Fn(CpuId) + 'static) {
    let work = Rc::new(work);
    let others: Vec<_> = (1..cpus)
        .map(|cpu| {
            let work = Rc::clone(&work);
            loom::thread::spawn(move || {
                set_cpu(cpu);
                work(cpu);
            })
        })
        .collect();
    work(0);
    for other in others {
        other.join().expect("a model thread never unwinds alone");
    }
}

/// A model: how many CPUs it has, how often one may be preempted in an execution where it could
/// have gone on, and what they do.
#[derive(Clone)]
pub struct Model {
    cpus: usize,
    preemptions: usize,
    body: Arc<dyn Fn() + Send + Sync>,
}

impl Model {
    /// A model of `cpus` CPUs.
    pub fn new(cpus: usize, preemptions: usize, body: impl Fn() + Send + Sync + 'static) -> Self {
        Self { cpus, preemptions, body: Arc::new(body) }
    }

    /// So many CPUs that each take the lock so often.
    pub fn pairs<L: RawLock<LoomPlatform> + 'static>(
        cpus: usize,
        pairs: usize,
        preemptions: usize,
    ) -> Self {
        Self::pairs_of(cpus, pairs, preemptions, move || Protected::<L>::new(cpus))
    }

    /// As [`Model::pairs`], of a lock that is made in a particular way.
    pub fn pairs_of<L: RawLock<LoomPlatform> + 'static>(
        cpus: usize,
        pairs: usize,
        preemptions: usize,
        make: impl Fn() -> Rc<Protected<L>> + Send + Sync + 'static,
    ) -> Self {
        Self::new(cpus, preemptions, move || {
            let it = make();
            let shared = Rc::clone(&it);
            on_cpus(cpus, move |_| (0..pairs).for_each(|_| shared.pair()));
            it.assert_idle(cpus * pairs);
        })
    }

    fn explore(&self, mutation: Mutation) {
        let Self { cpus, preemptions, body } = self.clone();
        let executions = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&executions);
        let mut builder = Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = MAX_STEPS;
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| {
            builder.check(move || {
                count.fetch_add(1, Ordering::Relaxed);
                World::install(cpus, mutation);
                set_cpu(0);
                body();
            });
        }));
        // Shown with `--nocapture`; the numbers in docs/model-checking.md come from here.
        println!(
            "{}: {mutation:?}, {cpus} CPUs, {preemptions} preemptions: {} executions, {} ms",
            std::thread::current().name().unwrap_or("?"),
            executions.load(Ordering::Relaxed),
            start.elapsed().as_millis(),
        );
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    }

    /// The lock as it is passes.
    pub fn passes(&self) {
        self.explore(Mutation::None);
    }

    /// The lock as it is fails, with a message that contains `expected`.
    pub fn fails(&self, expected: &str) {
        self.fails_with(Mutation::None, expected);
    }

    /// The lock as it is passes, and the mutant fails with a message that contains `expected`.
    pub fn catches(&self, mutation: Mutation, expected: &str) {
        self.passes();
        self.fails_with(mutation, expected);
    }

    fn fails_with(&self, mutation: Mutation, expected: &str) {
        let panic = catch_unwind(AssertUnwindSafe(|| self.explore(mutation)))
            .expect_err("the mutant survived");
        let message = message(&*panic);
        assert!(message.contains(expected), "caught, but for another reason: {message}");
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(message), _) => message,
        (None, Some(message)) => message,
        (None, None) => "a panic without a message",
    }
}
