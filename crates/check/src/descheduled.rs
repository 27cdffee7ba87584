//! Compares the claims of [`LockInfo`] about descheduled CPUs with what happens. One CPU stops for ever, as the
//! holder or at one of its looks as a waiter, and the others go on. Also checks the claims about waiting: whether
//! waiters sleep, and whether they look at each other's cells.
//!
//! This is a shuttle world. Its scheduler draws the CPU of the next step from those that are neither asleep nor
//! stopped. The clock counts steps.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

use overspin_locks::{AtomicCell, Budget, CpuId, LockInfo, Meanwhile, Platform, RawLock, Tuning};
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use shuttle::sync::atomic::Ordering::SeqCst;
use shuttle::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use shuttle::{Config, FailurePersistence, Runner};

/// CPUs of a run in which one CPU stops.
pub(crate) const CPUS: usize = 4;
/// CPUs of a run in which the holder keeps the lock and the others look.
pub(crate) const CPUS_THAT_LOOK: usize = 6;
/// The CPU that stops.
const VICTIM: CpuId = 1;
/// Nanoseconds per step.
const STEP: u64 = 200;
/// Steps after the stop. The verdict looks at the second half of them, the lasting state.
const STEPS: u64 = 20_000;
/// Steps of a run with a lock that promises to bound a wait: the longest patience is 10 ms.
const LONG: u64 = 150_000;
/// The victim stops after this many failed looks, one run for each count. `MORE_LOOKS` are tried until the worst
/// outcome that the lock claims is seen.
const LOOKS: [u32; 10] = [1, 2, 3, 5, 8, 13, 34, 55, 144, 377];
const MORE_LOOKS: std::ops::Range<u32> = 14..60;
/// Sections that the victim completes before the one in which it stops, one run for each count.
const SECTIONS: [u32; 7] = [0, 1, 2, 5, 9, 17, 33];
/// The victim starts at this step, because some locks first learn how long a section takes.
const LATE: u64 = 2_000;
/// Locks of which one waiter may keep spinning behind a descheduled holder, though the others give way. It is the
/// first of the queue, which was woken and found the lock stolen.
const ONE_SPINS_ON: [&str; 2] = ["pv-qspinlock", "pv-qspinlock-4.5"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// In its section, after this many completed sections.
    Holder(u32),
    /// As a waiter, after this many failed looks.
    Waiter(u32),
}

#[derive(Default)]
struct Cpu {
    stopped: Cell<bool>,
    asleep: Cell<bool>,
    /// The cell that it sleeps on; 0 for its latch.
    asleep_at: Cell<usize>,
    latch: Cell<bool>,
    in_lock: Cell<bool>,
    looks_in_vain: Cell<u32>,
    /// The step of the last acquisition, and the step at which it last gave way or called `lock`.
    acquired_at: Cell<u64>,
    gave_way_at: Cell<u64>,
}

struct World {
    cpus: Vec<Cpu>,
    stop: Stop,
    /// The platform tells which CPUs do not run, and tells the victim that its slice is over.
    told: bool,
    steps: Cell<u64>,
    stopped_at: Cell<Option<u64>>,
    limit: u64,
    slept: Cell<bool>,
    /// Looks at each cell by each CPU since the stop.
    looks: RefCell<HashMap<(usize, CpuId), u64>>,
}

thread_local! {
    static WORLD: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

fn world() -> Rc<World> {
    WORLD.with_borrow(|world| Rc::clone(world.as_ref().expect("a run has a world")))
}

fn here() -> CpuId {
    shuttle::current::get_current_task().map_or(0, CpuId::from)
}

impl World {
    fn me(&self) -> &Cpu {
        &self.cpus[here()]
    }

    fn step(&self) {
        self.steps.set(self.steps.get() + 1);
    }

    fn stop(&self) {
        self.me().stopped.set(true);
        self.stopped_at.set(Some(self.steps.get()));
        self.looks.borrow_mut().clear();
        shuttle::thread::yield_now();
    }

    /// Called after a failed look, or at the end of a sleep.
    fn waits(&self) {
        let me = self.me();
        if me.in_lock.get() {
            me.looks_in_vain.set(me.looks_in_vain.get() + 1);
            if here() == VICTIM && self.stop == Stop::Waiter(me.looks_in_vain.get()) {
                self.stop();
            }
        }
        shuttle::thread::yield_now();
    }

    fn gives_way(&self) {
        self.me().gave_way_at.set(self.steps.get());
    }

    fn sleep_at(&self, address: usize) {
        let me = self.me();
        self.slept.set(true);
        self.gives_way();
        me.asleep_at.set(address);
        me.asleep.set(true);
        while me.asleep.get() {
            shuttle::thread::yield_now();
        }
        self.gives_way();
        self.waits();
    }

    /// Judges what the other CPUs have done since the halfway point.
    fn seen(&self, info: &LockInfo) -> Meanwhile {
        let stopped_at = self.stopped_at.get().expect("it was stopped");
        let halfway = stopped_at + self.limit / 2;
        let others = || self.cpus.iter().filter(|cpu| !cpu.stopped.get());
        let burns =
            |cpu: &Cpu| cpu.in_lock.get() && !cpu.asleep.get() && cpu.gave_way_at.get() < halfway;
        if others().filter(|cpu| burns(cpu)).count()
            > usize::from(ONE_SPINS_ON.contains(&info.name))
        {
            Meanwhile::Burn
        } else if others().any(|cpu| cpu.acquired_at.get() > halfway) {
            Meanwhile::Pass
        } else {
            Meanwhile::GiveWay
        }
    }
}

/// Draws the CPU that makes the next step.
struct Draw {
    state: u64,
    started: bool,
}

impl Draw {
    fn draw(&mut self) -> u64 {
        // Xorshift, Marsaglia 2003.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}

impl Scheduler for Draw {
    fn new_execution(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.started, true)).then(|| Schedule::new(self.state))
    }

    fn next_task(&mut self, runnable: &[&Task], _: Option<TaskId>, _: bool) -> Option<TaskId> {
        let world = world();
        let steps = world.steps.get();
        if world.stopped_at.get().is_some_and(|at| steps > at + world.limit) || steps > 12 * LONG {
            return None;
        }
        // Time also passes while all CPUs are asleep.
        world.step();
        let runs = |task: &&&Task| {
            let cpu = &world.cpus[usize::from(task.id())];
            !cpu.stopped.get() && !cpu.asleep.get()
        };
        let awake: Vec<TaskId> = runnable.iter().filter(runs).map(|task| task.id()).collect();
        if awake.is_empty() {
            return None;
        }
        let which = self.draw() as usize % awake.len();
        Some(awake[which])
    }

    fn next_u64(&mut self) -> u64 {
        self.draw()
    }
}

macro_rules! cell {
    ($cell:ident, $atomic:ty, $value:ty) => {
        /// A cell that counts looks.
        #[derive(Debug)]
        pub struct $cell($atomic);

        impl $cell {
            fn address(&self) -> usize {
                std::ptr::from_ref(self).addr()
            }
        }

        impl AtomicCell for $cell {
            type Value = $value;

            fn new(value: $value) -> Self {
                Self(<$atomic>::new(value))
            }
            fn load(&self, _: Ordering) -> $value {
                let world = world();
                *world.looks.borrow_mut().entry((self.address(), here())).or_default() += 1;
                self.0.load(SeqCst)
            }
            fn store(&self, value: $value, _: Ordering) {
                self.0.store(value, SeqCst);
            }
            fn swap(&self, value: $value, _: Ordering) -> $value {
                self.0.swap(value, SeqCst)
            }
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                _: Ordering,
                _: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange(current, new, SeqCst, SeqCst)
            }
            fn fetch_add(&self, value: $value, _: Ordering) -> $value {
                self.0.fetch_add(value, SeqCst)
            }
            fn fetch_sub(&self, value: $value, _: Ordering) -> $value {
                self.0.fetch_sub(value, SeqCst)
            }
            fn fetch_or(&self, value: $value, _: Ordering) -> $value {
                self.0.fetch_or(value, SeqCst)
            }
            fn fetch_and(&self, value: $value, _: Ordering) -> $value {
                self.0.fetch_and(value, SeqCst)
            }
            fn spin_until(
                &self,
                until: impl Fn($value) -> bool,
                budget: Budget,
            ) -> Result<$value, $value> {
                let mut looks = 0;
                loop {
                    let value = self.load(SeqCst);
                    if until(value) {
                        return Ok(value);
                    }
                    looks += 1;
                    if matches!(budget, Budget::Iterations(limit) if looks >= limit) {
                        return Err(value);
                    }
                    world().waits();
                }
            }
        }
    };
}

cell!(U8, AtomicU8, u8);
cell!(U16, AtomicU16, u16);
cell!(U32, AtomicU32, u32);
cell!(Usize, AtomicUsize, usize);

/// The world in which one CPU stops.
#[derive(Debug)]
pub struct Away;

impl Platform for Away {
    type U8 = U8;
    type U16 = U16;
    type U32 = U32;
    type Usize = Usize;
    type Slots<T: Debug + 'static> = Box<[T]>;
    type IrqState = ();

    fn slots<T: Debug + 'static>(len: usize, init: impl FnMut(usize) -> T) -> Box<[T]> {
        (0..len).map(init).collect()
    }
    fn cpu_id() -> CpuId {
        here()
    }
    fn relax() {
        world().waits();
    }
    fn fence(_: Ordering) {}
    fn irq_save() {}
    fn irq_restore((): ()) {}
    fn irqs_were_on((): ()) -> bool {
        false
    }
    fn latch_clear() {
        world().me().latch.set(false);
    }
    fn latch_set() {
        world().me().latch.set(true);
    }
    fn latch_test() -> bool {
        world().me().latch.get()
    }
    fn poll() {
        if !Self::latch_test() {
            world().sleep_at(0);
        }
    }
    fn kick(cpu: CpuId) {
        let world = world();
        let cpu = &world.cpus[cpu];
        cpu.latch.set(true);
        if cpu.asleep_at.get() == 0 {
            cpu.asleep.set(false);
        }
    }
    fn wait(cell: &U32, value: u32) {
        if cell.load(SeqCst) == value {
            world().sleep_at(cell.address());
        }
    }
    fn wake_one(address: *const U32) {
        let sleeps = |cpu: &&Cpu| cpu.asleep.get() && cpu.asleep_at.get() == address.addr();
        if let Some(cpu) = world().cpus.iter().find(sleeps) {
            cpu.asleep.set(false);
        }
    }
    fn yield_now() {
        world().gives_way();
        world().waits();
    }
    fn now() -> u64 {
        world().steps.get() * STEP
    }
    fn preempted(cpu: CpuId) -> bool {
        world().told && world().cpus[cpu].stopped.get()
    }
    fn time_to_preempt() -> Option<u64> {
        (world().told && here() == VICTIM).then_some(0)
    }
}

/// The work of a CPU.
type Work = Arc<dyn Fn() + Send + Sync>;

/// All CPUs take the lock again and again, and one stops. `None` if it never stopped.
fn run<L>(cpus: usize, stop: Stop, told: bool, tuning: Tuning, limit: u64) -> Option<Rc<World>>
where
    L: RawLock<Away> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    let work = move || -> Work {
        let (lock, shared) = (L::new(), L::shared(cpus, tuning).expect("few CPUs"));
        Arc::new(move || {
            for round in 0.. {
                let me = &world().cpus[here()];
                me.in_lock.set(true);
                world().gives_way();
                let token = lock.lock(&shared);
                me.in_lock.set(false);
                me.acquired_at.set(world().steps.get());
                if here() == VICTIM && stop == Stop::Holder(round) {
                    world().stop();
                }
                (0..3).for_each(|_| shuttle::thread::yield_now());
                lock.unlock(&shared, token);
                (0..2).for_each(|_| shuttle::thread::yield_now());
            }
        })
    };
    run_work(cpus, stop, told, limit, Box::new(work))
}

/// What [`run`] does, compiled once for all locks. `work` makes the lock.
fn run_work(
    cpus: usize,
    stop: Stop,
    told: bool,
    limit: u64,
    work: Box<dyn Fn() -> Work + Send + Sync>,
) -> Option<Rc<World>> {
    let new = || {
        Rc::new(World {
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            stop,
            told,
            steps: Cell::new(0),
            stopped_at: Cell::new(None),
            limit,
            slept: Cell::new(false),
            looks: RefCell::default(),
        })
    };
    WORLD.set(Some(new()));
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = shuttle::MaxSteps::None;
    let scheduler = Draw { state: 0x9e37_79b9_7f4a_7c15, started: false };
    Runner::new(scheduler, config).run(move || {
        let work = work();
        let late = move || {
            while here() == VICTIM && world().steps.get() < LATE {
                shuttle::thread::yield_now();
            }
            work();
        };
        for _ in 1..cpus {
            shuttle::thread::spawn(late.clone());
        }
        late();
    });
    let world = WORLD.take().expect("it was set above");
    world.stopped_at.get().is_some().then_some(world)
}

/// Returns the worse of two outcomes.
fn worse(one: Meanwhile, other: Meanwhile) -> Meanwhile {
    let badness = |it| match it {
        Meanwhile::Pass => 0,
        Meanwhile::GiveWay => 1,
        _ => 2,
    };
    if badness(one) >= badness(other) { one } else { other }
}

/// Returns a tuning with little patience, so that runs are short. FlexGuard keeps its default, which spins for
/// ever without hints. The mutex gets no patience: it then wakes a sleeper at each release, which may
/// become the heir.
fn tuning(info: &LockInfo) -> Tuning {
    let spin_budget = match info.name {
        "flexguard" => None,
        "mutex" => Some(0),
        _ => Some(8),
    };
    Tuning { spin_budget, ..Tuning::DEFAULT }
}

/// What a lock claims for a world that gives no hints, and for one that gives all.
fn said(claim: Meanwhile) -> [Meanwhile; 2] {
    match claim {
        Meanwhile::AvoidIfTold => [Meanwhile::Burn, Meanwhile::Pass],
        Meanwhile::GiveWayIfTold => [Meanwhile::Burn, Meanwhile::GiveWay],
        Meanwhile::PassIfTold => [Meanwhile::Burn, Meanwhile::Pass],
        always => [always, always],
    }
}

fn limit(said: Meanwhile) -> u64 {
    if said == Meanwhile::Burn { STEPS } else { LONG }
}

/// Stops a holder, then a waiter, and compares the behaviour of the others with the lock's claims.
///
/// # Panics
/// If they differ.
pub fn holder_and_waiters<L>()
where
    L: RawLock<Away> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    stops(&L::INFO, run::<L>);
}

/// What [`holder_and_waiters`] does, given [`run`] for the lock that `info` describes.
fn stops(info: &LockInfo, run: fn(usize, Stop, bool, Tuning, u64) -> Option<Rc<World>>) {
    let mut slept = false;
    for (told, said) in said(info.lhp).into_iter().enumerate() {
        // The victim would not take the lock.
        if info.lhp == Meanwhile::AvoidIfTold && told == 1 {
            continue;
        }
        let mut seen = Meanwhile::Pass;
        for sections in SECTIONS {
            let stop = Stop::Holder(sections);
            let world = run(CPUS, stop, told == 1, tuning(info), limit(said));
            let world = world.expect("it gets the lock that often");
            seen = worse(seen, world.seen(info));
            slept |= world.slept.get();
        }
        assert_eq!(seen, said, "holder, {}, told: {told}", info.name);
    }
    for (told, said) in said(info.lwp).into_iter().enumerate() {
        let avoids = info.lwp == Meanwhile::AvoidIfTold && told == 1;
        let mut seen = Meanwhile::Pass;
        for looks in LOOKS.into_iter().chain(MORE_LOOKS) {
            // Beyond this count the waiter stays away.
            if avoids && looks > overspin_locks::ispinlock::REFUSALS
                || seen == said && MORE_LOOKS.contains(&looks)
            {
                break;
            }
            let stop = Stop::Waiter(looks);
            let again = |times| run(CPUS, stop, told == 1, tuning(info), times * limit(said));
            let Some(mut world) = again(1) else { continue };
            // The lock is acquired, but one CPU seems to starve. Does it get the lock in a longer run?
            if world.seen(info) != said && said == Meanwhile::Pass {
                world = again(8).expect("as before");
            }
            seen = worse(seen, world.seen(info));
            slept |= world.slept.get();
        }
        assert_eq!(seen, said, "waiter, {}, told: {told}", info.name);
    }
    assert_eq!(slept, info.blocks, "sleeps, {}", info.name);
}

/// Checks, for a lock that claims that each waiter spins on a cell of its own, that at most two CPUs share a cell.
///
/// # Panics
/// If more than two do.
pub fn local_spin<L>()
where
    L: RawLock<Away> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    let crowd = crowd::<L>();
    // `ttas` and `ticket-backoff` hardly look at all, which is a different property.
    assert!(!L::INFO.local_spin || crowd <= 2, "{crowd} look at one cell");
}

/// Counts the waiters that share their cells while the holder keeps the lock: those with more than a fifth of their
/// looks at cells that other waiters look at too.
pub fn crowd<L>() -> usize
where
    L: RawLock<Away> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    let world = run::<L>(CPUS_THAT_LOOK, Stop::Holder(2), false, Tuning::DEFAULT, STEPS);
    crowd_in(&world.expect("it gets the lock"))
}

fn crowd_in(world: &World) -> usize {
    let looks = world.looks.borrow();
    let in_crowd = |cpu: &CpuId| {
        let mine = looks.iter().filter(|((_, who), _)| who == cpu);
        let all: u64 = mine.clone().map(|(_, count)| count).sum();
        let shared = mine.filter(|((at, _), _)| {
            looks.keys().any(|(other_at, who)| other_at == at && who != cpu && *who != VICTIM)
        });
        shared.map(|(_, count)| count).sum::<u64>() * 5 > all
    };
    (0..CPUS_THAT_LOOK).filter(|cpu| *cpu != VICTIM).filter(in_crowd).count()
}
