//! Exploring a model; protected locks; running CPUs.

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

use super::platform::LoomPlatform;
use super::world::{World, set_cpu, world};

/// Steps of one execution. The longest here takes a few hundred. This bound stops a lock that spins
/// without end and writes while it spins.
const MAX_STEPS: usize = 20_000;

/// Models run one at a time. loom maps and unmaps a stack for each CPU of each execution, which stops
/// the process on all CPUs: two models side by side took 1.7 times as long as one after the other (two
/// CPUs).
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A model never ended and keeps its turn for ever.
static LEFT_BEHIND: AtomicBool = AtomicBool::new(false);

/// Abandons the model that runs now: nothing waits for it any more.
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

/// The text of loom's message about two unordered critical sections.
pub const EXCLUSION_MESSAGE: &str = "Causality violation";

/// A lock and the data it protects.
#[derive(Debug)]
pub struct Protected<L: RawLock<LoomPlatform>> {
    lock: L,
    shared: Rc<L::Shared>,
    /// loom detects two accesses that the lock did not order, whatever they read and write.
    data: UnsafeCell<usize>,
    cost_alone: u64,
}

impl<L: RawLock<LoomPlatform>> Protected<L> {
    /// Creates a free lock for `cpus` CPUs. Its waiters sleep at once if they can.
    ///
    /// # Panics
    /// If the lock does not serve that many CPUs.
    pub fn new(cpus: usize) -> Rc<Self> {
        Self::tuned(cpus, NO_SPIN)
    }

    /// Creates a free lock for `cpus` CPUs of a system with `tuning`.
    ///
    /// # Panics
    /// If the lock does not serve that many CPUs.
    pub fn tuned(cpus: usize, tuning: Tuning) -> Rc<Self> {
        Self::with_shared(L::shared(cpus, tuning).expect("the lock serves that many CPUs"))
    }

    /// Creates a free lock of a system with state `shared`.
    pub fn with_shared(shared: L::Shared) -> Rc<Self> {
        Self::of(L::new(), Rc::new(shared))
    }

    /// Wraps the free lock `lock` of a system with state `shared`.
    pub fn of(lock: L, shared: Rc<L::Shared>) -> Rc<Self> {
        let cost_alone = asked::cost_alone::<_, L>(&shared);
        Rc::new(Self { lock, shared, data: UnsafeCell::new(0), cost_alone })
    }

    /// Creates another free lock of the same system.
    pub fn another(&self) -> Rc<Self> {
        Self::of(L::new(), Rc::clone(&self.shared))
    }

    /// Returns the lock and its shared state.
    pub fn raw(&self) -> (&L, &L::Shared) {
        (&self.lock, &self.shared)
    }

    /// The critical section. Returns the number of sections so far.
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

    /// Acquires if the lock is free now.
    #[must_use]
    pub fn try_lock(&self) -> Option<L::Token> {
        asked::try_lock(&self.lock, &self.shared)
    }

    /// Releases.
    pub fn unlock(&self, token: L::Token) {
        asked::unlock(&self.lock, &self.shared, token);
    }

    /// One acquisition. Returns the number of sections so far.
    pub fn pair(&self) -> usize {
        let token = self.lock();
        let count = self.inside();
        self.unlock(token);
        count
    }

    /// One acquisition with interrupts off.
    pub fn pair_irqsave(&self) {
        let (token, state) = asked::lock_irqsave(&self.lock, &*self.shared);
        self.inside();
        self.unlock(token);
        LoomPlatform::irq_restore(state);
    }

    /// From now on no CPU may touch the lock. See [`World::expect_free`].
    pub fn free(&self) {
        world().free(&self.lock);
    }

    /// Asserts what must hold at the end, after this many acquisitions.
    ///
    /// # Panics
    /// If it does not hold.
    pub fn assert_idle(&self, acquisitions: usize) {
        assert_eq!(self.inside(), acquisitions + 1, "an update was lost");
        self.assert_as_new();
    }

    /// Asserts that no CPU holds the lock or waits for it, that one CPU can take it at once, and that
    /// this costs no more than with a new lock.
    ///
    /// # Panics
    /// If this does not hold.
    pub fn assert_as_new(&self) {
        asked::assert_idle(&self.lock, &*self.shared, world().cpus(), self.cost_alone);
    }

    /// Asserts that no CPU holds the lock or waits for it, whatever taking it costs.
    ///
    /// # Panics
    /// If this does not hold.
    pub fn assert_free(&self) {
        asked::assert_free(&self.lock, &*self.shared);
    }
}

/// Runs `work` on all CPUs, in a model; the calling thread is CPU 0.
pub fn on_cpus(cpus: usize, work: impl Fn(CpuId) + 'static) {
    on_cpus_boxed(cpus, Rc::new(work));
}

/// What [`on_cpus`] does, compiled once for all kinds of work.
fn on_cpus_boxed(cpus: usize, work: Rc<dyn Fn(CpuId)>) {
    let start = |cpu| {
        let work = Rc::clone(&work);
        start(cpu, move || work(cpu))
    };
    let others: Vec<_> = (1..cpus).map(start).collect();
    work(0);
    others.into_iter().for_each(Started::join);
}

/// A running CPU.
#[derive(Debug)]
pub struct Started(loom::thread::JoinHandle<()>);

/// Runs `work` on `cpu`, beside the calling thread.
pub fn start(cpu: CpuId, work: impl FnOnce() + 'static) -> Started {
    start_boxed(cpu, Box::new(work))
}

fn start_boxed(cpu: CpuId, work: Box<dyn FnOnce()>) -> Started {
    Started(loom::thread::spawn(move || {
        set_cpu(cpu);
        work();
    }))
}

impl Started {
    /// Waits until its work is done.
    ///
    /// # Panics
    /// Never: if one CPU panics, the model ends.
    pub fn join(self) {
        self.0.join().expect("a model thread never unwinds alone");
    }
}

/// A model: the number of CPUs, the number of preemptions (switches away from a CPU that could have
/// gone on) in an execution, and the work of the CPUs.
#[derive(Clone)]
pub struct Model {
    pub(crate) cpus: usize,
    pub(crate) preemptions: usize,
    time_limit: Option<Duration>,
    most: Option<usize>,
    body: Arc<dyn Fn() + Send + Sync>,
}

impl Model {
    /// Creates a model of `cpus` CPUs.
    pub fn new(cpus: usize, preemptions: usize, body: impl Fn() + Send + Sync + 'static) -> Self {
        Self { cpus, preemptions, time_limit: None, most: None, body: Arc::new(body) }
    }

    /// Sets a time limit. The rest of the bound is then unexplored.
    pub fn time_limit(self, limit: Duration) -> Self {
        Self { time_limit: Some(limit), ..self }
    }

    /// Limits the number of executions. The rest of the bound is then unexplored.
    ///
    /// The explored executions are neighbours: they begin alike and differ near their ends.
    pub fn at_most(self, executions: usize) -> Self {
        Self { most: Some(executions), ..self }
    }

    /// Allows so many more preemptions.
    pub fn further(self, preemptions: usize) -> Self {
        Self { preemptions: self.preemptions + preemptions, ..self }
    }

    /// Creates a model of `cpus` CPUs that each take the lock `pairs` times.
    pub fn pairs<L: RawLock<LoomPlatform> + 'static>(
        cpus: usize,
        pairs: usize,
        preemptions: usize,
    ) -> Self {
        Self::pairs_of(cpus, pairs, preemptions, move || Protected::<L>::new(cpus))
    }

    /// As [`Model::pairs`], with a lock that `make` creates.
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

    /// Runs all executions as [`Model::explore`] does. Counts executions as they begin.
    pub(crate) fn explore_counting(
        &self,
        mutation: Mutation,
        executions: &Arc<AtomicUsize>,
    ) -> Report {
        let Self { cpus, preemptions, most, body, .. } = self.clone();
        let count = Arc::clone(executions);
        let mut builder = Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = MAX_STEPS;
        builder.max_duration = self.time_limit;
        // loom checks both limits once in this many executions, before the last of them.
        builder.checkpoint_interval = most.map_or(1_000, |most| most.saturating_add(1));
        builder.max_permutations = most.map(|most| most.saturating_add(1));
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
        let runs = executions.load(Ordering::Relaxed);
        Report {
            runs,
            time,
            // A model of exactly as many executions as the limit counts as cut short.
            complete: self.time_limit.is_none_or(|limit| time < limit)
                && most.is_none_or(|most| runs < most),
            fault: result.err().map(|panic| crate::panic_message(&*panic)),
        }
    }

    /// Asserts that the unmodified lock passes.
    ///
    /// # Panics
    /// If the lock fails.
    pub fn passes(&self) {
        if let Some(fault) = self.tell(Mutation::None).fault {
            panic!("the lock as it is fails: {fault}");
        }
    }

    /// Asserts that the unmodified lock fails with a message that contains `expected`.
    ///
    /// # Panics
    /// If it does not fail so.
    pub fn fails(&self, expected: &str) {
        self.fails_with(Mutation::None, expected);
    }

    /// Asserts that the unmodified lock passes, and that the mutant fails with a message that contains
    /// `expected`.
    ///
    /// # Panics
    /// If this does not hold.
    pub fn catches(&self, mutation: Mutation, expected: &str) {
        self.passes();
        self.fails_with(mutation, expected);
    }

    /// Asserts that the mutant fails with a message that contains `expected`. Use it for further
    /// mutants of a model that is known to pass.
    ///
    /// # Panics
    /// If it does not fail so.
    pub fn fails_with(&self, mutation: Mutation, expected: &str) {
        let message = self.tell(mutation).fault.expect("the mutant survived");
        assert!(message.contains(expected), "caught, but for another reason: {message}");
    }

    /// Explores and prints one line, which a test shows with `--nocapture`. The numbers in
    /// docs/model-checking.md come from these lines.
    fn tell(&self, mutation: Mutation) -> Report {
        let result = self.explore(mutation);
        println!(
            "{}: {mutation:?}, {} CPUs, {} preemptions: {} executions, {}, {} ms",
            std::thread::current().name().unwrap_or("?"),
            self.cpus,
            self.preemptions,
            result.runs,
            if result.complete { "all" } else { "not all" },
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
