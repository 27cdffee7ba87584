//! A task: a thread that runs a program. It is the program's [`Env`].
//!
//! # The end of a run
//! A program that has no end of its own is left by unwinding, from a call of its world in which it holds no lock.
//! Until then its work takes no time. So holders release, waiters get their locks in turn, and every thread ends.

use std::cell::{Cell, RefCell, RefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use overspin_scenario::{Picos, WorkerReport};
use overspin_workload::{Env, LockId, LockUse, Mode, Program, Random, Semaphore, Ticks, WordId};

use super::kernel::{Account, cpu_time};
use super::locks::Hand;
use super::picos;
use super::platform::counts;
use super::run::{Run, Task};
use super::switches::Switches;
use super::trace::Held;
use crate::bench::{Clock, Spread, precise_sleeps};
use crate::futex;

/// The purpose of the random numbers for [`Env::offset`]; workloads count theirs from 0.
const OFFSET: u32 = u16::MAX as u32;
/// The purpose of the random numbers for the start of a task.
const START: u32 = u16::MAX as u32 - 1;

/// Unwinds a program at the end of the run.
struct Over;

/// What a task saw of a lock, in ticks of the clock and numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct LockSeen {
    /// Waits of all acquisitions, in ticks, whose length is known at the end of the run; 0 for an acquisition that did not
    /// wait.
    pub waits: Spread,
    pub contended: u64,
    pub hold_total: u64,
    pub hold_max: u64,
    pub slow_paths: u64,
    pub kicks: u64,
}

/// What a task has done by its end.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Whether it has learned that the warm-up is over.
    is_warm: bool,
    pub latency: Option<Spread>,
    pub reports: Vec<WorkerReport>,
    pub locks: Vec<LockSeen>,
    /// Its acquisitions, in order.
    pub held: Vec<Held>,
}

/// The view of a task.
struct TaskEnv<'a> {
    run: &'a Arc<Run>,
    task: &'a Arc<Task>,
    hand: RefCell<Box<dyn Hand>>,
    /// Locks that it holds.
    holds: Cell<u32>,
    /// When it asked for each lock that it holds, and when it got it.
    since: RefCell<Vec<(u64, u64, bool)>>,
    done: RefCell<Done>,
}

/// The life of a task's thread.
pub(super) fn live(run: &Arc<Run>, task: &Arc<Task>, program: Program) {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let domain = &run.domains[task.domain];
        task.place(run);
        precise_sleeps();
        let Some(hand) = Arc::clone(&domain.bank).hand() else {
            run.fail(format!(
                "the lock of domain `{}` does not serve so many threads",
                domain.name
            ));
            return;
        };
        run.wait_to_go();
        let locks = domain.lock_names.len();
        let env = TaskEnv {
            run,
            task,
            hand: RefCell::new(hand),
            holds: Cell::new(0),
            since: RefCell::new(vec![(0, 0, false); locks]),
            done: RefCell::new(Done { locks: vec![LockSeen::default(); locks], ..Done::default() }),
        };
        task.begins(if run.watches { Switches::of_this_thread() } else { None });
        let over = catch_unwind(AssertUnwindSafe(|| {
            if let Some(below) = run.stagger(task) {
                env.sleep(below);
            }
            program(&env);
        }));
        // A program that fails must not leave others waiting for ever.
        (0..locks).for_each(|i| env.hand.borrow_mut().unlock(i));
        let ended = over.is_ok();
        task.ends(run, ended, env.done.into_inner());
        if let Err(why) = over
            && !why.is::<Over>()
        {
            resume_unwind(why);
        }
    }));
    if let Err(panic) = result {
        let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        run.fail(format!("task `{}` panicked: {text}", task.name));
    }
    run.left(task);
}

/// The offset of a task's start below `below`.
pub(super) fn start_offset(run: &Run, task: &Task, below: Picos) -> Picos {
    random(run, task, START).time_below(below)
}

fn random(run: &Run, task: &Task, purpose: u32) -> Random {
    let place = (task.domain as u64) << 32 | task.number as u64;
    let mut of_run = Random::new(run.seed);
    let mut of_task = Random::new(of_run.bits() ^ place);
    Random::new(of_task.bits() ^ u64::from(purpose))
}

impl TaskEnv<'_> {
    /// What it has done since the end of the warm-up.
    #[inline]
    fn done(&self) -> RefMut<'_, Done> {
        let mut done = self.done.borrow_mut();
        if self.run.is_warm() && !done.is_warm {
            (done.is_warm, done.latency) = (true, None);
            done.locks.iter_mut().for_each(|seen| *seen = LockSeen::default());
        }
        done
    }

    /// Leaves the program if the run is over and the task holds no lock. Returns whether the run is over.
    #[inline]
    fn over(&self) -> bool {
        if !self.run.is_over() {
            return false;
        }
        if self.holds.get() == 0 {
            // Not a panic: no message, no hook.
            resume_unwind(Box::new(Over));
        }
        true
    }
}

/// Maps a page, writes to it, and unmaps it: this kernel then interrupts the CPUs on which other threads of the process run.
fn unmap_a_page() {
    let (both, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping of one byte, and so of one page, which nobody else knows. It is written to only if it exists.
    unsafe {
        let page = libc::mmap(ptr::null_mut(), 1, both, kind, -1, 0);
        if page != libc::MAP_FAILED {
            page.cast::<u8>().write_volatile(1);
            libc::munmap(page, 1);
        }
    }
}

impl Env for TaskEnv<'_> {
    fn compute(&self, work: Picos, _mode: Mode) {
        self.run.burn.work(work, || self.run.is_over());
        self.over();
    }

    fn unmap(&self) {
        self.over();
        unmap_a_page();
    }

    fn sleep(&self, time: Picos) {
        if time == Picos::ZERO || self.over() {
            return;
        }
        let until = Instant::now() + Duration::from_nanos(time.0 / 1_000);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.over() {
                return;
            }
            futex::wait_for(&self.run.over, 0, left);
        }
    }

    fn yield_vcpu(&self) {
        self.over();
        std::thread::yield_now();
    }

    fn next_tick(&self, _of: Ticks) -> Option<Picos> {
        None
    }

    fn section(&self, lock: LockId, how: LockUse, work: Picos) {
        self.acquire(lock, how);
        self.compute(work, Mode::Kernel);
        self.release(lock);
    }

    fn acquire(&self, lock: LockId, _how: LockUse) {
        self.over();
        let _ = counts();
        let asked = Clock::ticks();
        self.hand.borrow_mut().lock(lock);
        let got = Clock::ticks();
        self.holds.set(self.holds.get() + 1);
        let waited = counts();
        if self.run.is_over() {
            // The end of the run let it through.
            self.since.borrow_mut()[lock] = (u64::MAX, 0, false);
            return;
        }
        let contended = waited.turns + waited.sleeps > 0;
        self.since.borrow_mut()[lock] = (asked, got, contended);
        let seen = &mut self.done().locks[lock];
        seen.contended += u64::from(contended);
        seen.slow_paths += u64::from(waited.sleeps > 0);
        seen.waits.record(if contended { got.saturating_sub(asked).max(1) } else { 0 });
    }

    fn release(&self, lock: LockId) {
        let released = Clock::ticks();
        self.hand.borrow_mut().unlock(lock);
        let freed = Clock::ticks();
        self.holds.set(self.holds.get().saturating_sub(1));
        let (asked, got, waited) = self.since.borrow()[lock];
        if asked != u64::MAX {
            let mut done = self.done();
            let seen = &mut done.locks[lock];
            let held = released.saturating_sub(got);
            seen.hold_total += held;
            seen.hold_max = seen.hold_max.max(held);
            seen.kicks += counts().kicks;
            if self.run.keeps(done.held.len()) {
                let lock = lock as u32;
                done.held.push(Held { asked, got, released, freed, lock, waited });
            }
        }
        self.over();
    }

    fn read(&self, word: WordId) -> usize {
        self.run.domains[self.task.domain].words.get(word).map_or(0, |w| w.load(Relaxed))
    }

    fn write(&self, word: WordId, value: usize) {
        if let Some(word) = self.run.domains[self.task.domain].words.get(word) {
            word.store(value, Relaxed);
        }
    }

    fn write_out(&self, _pages: &[u64]) {
        // `supports` has refused workloads with a disk.
        self.over();
    }

    fn spawn(&self, name: String, vcpu: Option<u32>, program: Program) {
        self.over();
        self.run.spawn(self.task, name, vcpu, program);
    }

    fn semaphore(&self, count: u32) -> Semaphore {
        self.run.domains[self.task.domain].semaphores.add(count)
    }

    fn down(&self, semaphore: Semaphore) {
        self.over();
        self.run.domains[self.task.domain].semaphores.down(semaphore, || self.run.is_over());
        self.over();
    }

    fn up(&self, semaphore: Semaphore) {
        self.run.domains[self.task.domain].semaphores.up(semaphore);
        self.over();
    }

    fn interrupt_in(&self, _time: Picos, _work: Picos, _semaphore: Semaphore) {
        // `supports` has refused workloads with devices.
        self.over();
    }

    fn item_done(&self) {
        if !self.run.is_over() {
            let items = &self.task.items;
            items.store(items.load(Relaxed) + 1, Relaxed);
        }
    }

    fn answered(&self, since: Picos) {
        self.item_done();
        let waited = self.now().saturating_sub(since);
        self.done().latency.get_or_insert_default().record(waited.0 / 1_000);
    }

    fn now(&self) -> Picos {
        self.run.now()
    }

    fn cpu_time(&self) -> Picos {
        picos(self.task.tid().map_or(0, cpu_time).saturating_sub(self.task.cpu_before()))
    }

    fn report(&self, report: WorkerReport) {
        self.done.borrow_mut().reports.push(report);
    }

    fn offset(&self, below: Picos) -> Picos {
        match self.run.stagger {
            Picos::ZERO => Picos::ZERO,
            _ => random(self.run, self.task, OFFSET).time_below(below),
        }
    }

    fn all_up(&self) -> Picos {
        Picos::ZERO
    }

    fn random(&self, purpose: u32) -> Random {
        random(self.run, self.task, purpose)
    }
}

impl Task {
    /// The kernel's account of the task so far; that of its end, if it has ended.
    pub(super) fn account(&self) -> Account {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match (&state.last, state.tid) {
            (Some(last), _) => *last,
            (None, Some(tid)) => Account::of(tid).since(state.before),
            (None, None) => Account::default(),
        }
    }
}
