//! Exploring a model, and the two verdicts.

use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use loom::cell::UnsafeCell;
use loom::model::Builder;
use overspin_locks::{CpuId, Platform, RawLock, Tuning};

use crate::asked;
use crate::{Mutation, NO_SPIN, Report};

use super::platform::{LoomPlatform, World, set_cpu, world};

/// Steps of one execution. The longest here takes a few hundred; a lock that spins without end and
/// writes as it does so is stopped by this.
const MAX_STEPS: usize = 20_000;

/// loom maps a stack for each CPU of each execution and unmaps it again, which stops the process on all
/// CPUs: two models side by side took 1.7 times as long as one after the other (two CPUs).
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A model never ended, and has the turn for ever.
static LEFT_BEHIND: AtomicBool = AtomicBool::new(false);

/// Nobody waits for the model that runs now any more.
pub(crate) fn leave_behind() {
    LEFT_BEHIND.store(true, Ordering::Relaxed);
}

fn take_turn() -> Option<MutexGuard<'static, ()>> {
    loop {
        match ONE_AT_A_TIME.try_lock() {
            Ok(turn) => return Some(turn),
            Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) if LEFT_BEHIND.load(Ordering::Relaxed) => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// What loom says when two critical sections are not ordered.
pub const EXCLUSION_MESSAGE: &str = "Causality violation";

/// A lock and what it protects.
#[derive(Debug)]
pub struct Protected<L: RawLock<LoomPlatform>> {
    lock: L,
    shared: Rc<L::Shared>,
    /// loom finds two accesses that the lock did not order, whatever they read and write.
    data: UnsafeCell<usize>,
    cost_alone: u64,
}

impl<L: RawLock<LoomPlatform>> Protected<L> {
    /// A free lock for `cpus` CPUs, whose waiters go to sleep at once if they can.
    ///
    /// # Panics
    /// If the lock does not serve so many.
    pub fn new(cpus: usize) -> Rc<Self> {
        Self::tuned(cpus, NO_SPIN)
    }

    /// A free lock for `cpus` CPUs of a system with `tuning`.
    ///
    /// # Panics
    /// If the lock does not serve so many.
    pub fn tuned(cpus: usize, tuning: Tuning) -> Rc<Self> {
        Self::with_shared(L::shared(cpus, tuning).expect("the lock serves so many CPUs"))
    }

    /// A free lock of a system with state `shared`.
    pub fn with_shared(shared: L::Shared) -> Rc<Self> {
        Self::of(L::new(), Rc::new(shared))
    }

    /// The free lock `lock` of a system with state `shared`.
    pub fn of(lock: L, shared: Rc<L::Shared>) -> Rc<Self> {
        let cost_alone = asked::cost_alone::<_, L>(&shared);
        Rc::new(Self { lock, shared, data: UnsafeCell::new(0), cost_alone })
    }

    /// Another free lock of the same system.
    pub fn another(&self) -> Rc<Self> {
        Self::of(L::new(), Rc::clone(&self.shared))
    }

    /// The lock itself.
    pub fn raw(&self) -> (&L, &L::Shared) {
        (&self.lock, &self.shared)
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

    /// Acquires.
    #[must_use]
    pub fn lock(&self) -> L::Token {
        asked::lock(&self.lock, &self.shared)
    }

    /// Acquires if that is possible at once.
    #[must_use]
    pub fn try_lock(&self) -> Option<L::Token> {
        asked::try_lock(&self.lock, &self.shared)
    }

    /// Releases.
    pub fn unlock(&self, token: L::Token) {
        asked::unlock(&self.lock, &self.shared, token);
    }

    /// One acquisition. Returns how many have been through.
    pub fn pair(&self) -> usize {
        let token = self.lock();
        let count = self.inside();
        self.unlock(token);
        count
    }

    /// One acquisition, with interrupts off.
    pub fn pair_irqsave(&self) {
        let (token, state) = asked::lock_irqsave(&self.lock, &*self.shared);
        self.inside();
        self.unlock(token);
        LoomPlatform::irq_restore(state);
    }

    /// From now on nobody may touch the lock. See [`World::expect_free`].
    pub fn free(&self) {
        world().free(&self.lock);
    }

    /// What must hold when all is over, after so many acquisitions.
    ///
    /// # Panics
    /// If it does not.
    pub fn assert_idle(&self, acquisitions: usize) {
        assert_eq!(self.inside(), acquisitions + 1, "an update was lost");
        self.assert_as_new();
    }

    /// Nobody holds it or waits for it, and it can be had at once, once, and at the price of a new one.
    ///
    /// # Panics
    /// If it is not so.
    pub fn assert_as_new(&self) {
        asked::assert_idle(&self.lock, &*self.shared, world().cpus(), self.cost_alone);
    }

    /// The same, at whatever price.
    ///
    /// # Panics
    /// If it is not so.
    pub fn assert_free(&self) {
        asked::assert_free(&self.lock, &*self.shared);
    }
}

/// Runs `work` on all CPUs, in a model; the calling thread is CPU 0.
pub fn on_cpus(cpus: usize, work: impl Fn(CpuId) + 'static) {
    let work = Rc::new(work);
    let start = |cpu| {
        let work = Rc::clone(&work);
        start(cpu, move || work(cpu))
    };
    let others: Vec<_> = (1..cpus).map(start).collect();
    work(0);
    others.into_iter().for_each(Started::join);
}

/// A CPU that runs.
#[derive(Debug)]
pub struct Started(loom::thread::JoinHandle<()>);

/// Runs `work` on `cpu`, beside the calling thread.
pub fn start(cpu: CpuId, work: impl FnOnce() + 'static) -> Started {
    Started(loom::thread::spawn(move || {
        set_cpu(cpu);
        work();
    }))
}

impl Started {
    /// Waits until its work is done.
    ///
    /// # Panics
    /// Never: where one CPU panics the model ends.
    pub fn join(self) {
        self.0.join().expect("a model thread never unwinds alone");
    }
}

/// A model: how many CPUs it has, how often one may be preempted in an execution where it could
/// have gone on, and what they do.
#[derive(Clone)]
pub struct Model {
    pub(crate) cpus: usize,
    pub(crate) preemptions: usize,
    time_limit: Option<Duration>,
    body: Arc<dyn Fn() + Send + Sync>,
}

impl Model {
    /// A model of `cpus` CPUs.
    pub fn new(cpus: usize, preemptions: usize, body: impl Fn() + Send + Sync + 'static) -> Self {
        Self { cpus, preemptions, time_limit: None, body: Arc::new(body) }
    }

    /// The same, given up after so long: what is left of the bound is then unexplored.
    pub fn time_limit(self, limit: Duration) -> Self {
        Self { time_limit: Some(limit), ..self }
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
            on_cpus(cpus, move |_| (0..pairs).for_each(|_| _ = shared.pair()));
            it.assert_idle(cpus * pairs);
        })
    }

    /// Runs all executions within the bound, until one fails.
    pub fn explore(&self, mutation: Mutation) -> Report {
        self.explore_counting(mutation, &Arc::new(AtomicUsize::new(0)))
    }

    /// The same, with executions counted as they begin.
    pub(crate) fn explore_counting(
        &self,
        mutation: Mutation,
        executions: &Arc<AtomicUsize>,
    ) -> Report {
        let Self { cpus, preemptions, body, .. } = self.clone();
        let count = Arc::clone(executions);
        let mut builder = Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = MAX_STEPS;
        builder.max_duration = self.time_limit;
        // loom looks at the clock this often, counted in executions.
        builder.checkpoint_interval = 1_000;
        let turn = take_turn();
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| {
            builder.check(move || {
                count.fetch_add(1, Ordering::Relaxed);
                World::install(cpus, mutation);
                set_cpu(0);
                body();
            });
        }));
        let time = start.elapsed();
        drop(turn);
        Report {
            runs: executions.load(Ordering::Relaxed),
            time,
            complete: self.time_limit.is_none_or(|limit| time < limit),
            fault: result.err().map(|panic| crate::panic_message(&*panic)),
        }
    }

    /// Asserts that the lock as it is passes.
    ///
    /// # Panics
    /// If it does not.
    pub fn passes(&self) {
        if let Some(fault) = self.tell(Mutation::None).fault {
            panic!("the lock as it is fails: {fault}");
        }
    }

    /// Asserts that the lock as it is fails, with a message that contains `expected`.
    ///
    /// # Panics
    /// If it does not.
    pub fn fails(&self, expected: &str) {
        self.fails_with(Mutation::None, expected);
    }

    /// Asserts that the lock as it is passes, and that the mutant fails with a message that contains
    /// `expected`.
    ///
    /// # Panics
    /// If it is not so.
    pub fn catches(&self, mutation: Mutation, expected: &str) {
        self.passes();
        self.fails_with(mutation, expected);
    }

    /// Asserts that the mutant fails, with a message that contains `expected`. For one more mutant of a
    /// model that is known to pass.
    ///
    /// # Panics
    /// If it does not.
    pub fn fails_with(&self, mutation: Mutation, expected: &str) {
        let message = self.tell(mutation).fault.expect("the mutant survived");
        assert!(message.contains(expected), "caught, but for another reason: {message}");
    }

    /// Explores and prints a line: what a test shows with `--nocapture`, and where the numbers in
    /// docs/model-checking.md come from.
    fn tell(&self, mutation: Mutation) -> Report {
        let result = self.explore(mutation);
        println!(
            "{}: {mutation:?}, {} CPUs, {} preemptions: {} executions, {} ms",
            std::thread::current().name().unwrap_or("?"),
            self.cpus,
            self.preemptions,
            result.runs,
            result.time.as_millis(),
        );
        result
    }
}

impl Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpus, preemptions, .. } = self;
        f.debug_struct("Model")
            .field("cpus", cpus)
            .field("preemptions", preemptions)
            .finish_non_exhaustive()
    }
}
