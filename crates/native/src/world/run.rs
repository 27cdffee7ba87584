//! One run: its domains, its tasks and which of them have not ended, and when the run is over.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use overspin_host::Curve;
use overspin_scenario::Picos;
use overspin_workload::Program;

use super::Place;
use super::burn::Burn;
use super::control_group::{ControlGroup, Throttling};
use super::kernel::{Account, set_nice};
use super::locks::Bank;
use super::semaphores::Semaphores;
use super::switches::Switches;
use super::task::{Done, live, start_offset};
use crate::bench::{Reading, pin};
use crate::{futex, kernel_thread_id};

/// Acquisitions of which a run remembers all times: 40 bytes each.
const MOST_HELD: usize = 2_000_000;

/// A domain of a run.
#[derive(Debug)]
pub(super) struct DomainRun {
    pub name: String,
    /// vCPUs.
    pub vcpus: u32,
    /// Where the threads of each vCPU run.
    pub places: Vec<Place>,
    /// The group with its cap, and how many of the vCPUs, the first ones, are in it.
    pub group: Option<ControlGroup>,
    pub capped: u32,
    /// How often its quota had stopped it at the end of the warm-up, and in all.
    pub throttling: Mutex<[Option<Throttling>; 2]>,
    pub bank: Arc<dyn Bank>,
    pub lock_names: Vec<String>,
    pub words: Vec<AtomicUsize>,
    pub semaphores: Semaphores,
    /// Tasks that must end before the domain does, and have not.
    pub awaited: AtomicUsize,
    /// When the last of them ended.
    pub finished: Mutex<Option<Picos>>,
}

/// A task of a run.
#[derive(Debug)]
pub(super) struct Task {
    pub name: String,
    pub domain: usize,
    /// Its number in the domain.
    pub number: usize,
    /// The vCPU that it stands on, or for.
    pub vcpu: u32,
    /// vCPUs that it and the tasks that it starts may use; all if empty.
    pub vcpus: Arc<[u32]>,
    pub awaited: bool,
    /// Items so far. Only its own thread counts them.
    pub items: AtomicU64,
    pub state: Mutex<State>,
}

/// What is known about a task's thread.
#[derive(Debug, Default)]
pub(super) struct State {
    pub tid: Option<i32>,
    /// The account when the program began, and when it ended.
    pub before: Account,
    pub last: Option<Account>,
    pub switches: Option<Switches>,
    pub ended: Option<Picos>,
    pub done: Option<Done>,
    /// What it had done at the end of the warm-up.
    pub warm: Warm,
}

/// What a task had done at the end of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Warm {
    pub account: Account,
    pub items: u64,
    pub switches: usize,
}

impl Task {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the calling thread where the task belongs.
    pub(super) fn place(&self, run: &Run) {
        let domain = &run.domains[self.domain];
        let of_vcpu = |v: u32| domain.places.get(v as usize).map_or(&[][..], |p| &p.cpus);
        let cpus: Vec<usize> = match &*self.vcpus {
            [] => of_vcpu(self.vcpu).to_vec(),
            several => several.iter().flat_map(|v| of_vcpu(*v)).copied().collect(),
        };
        if let Err(e) = pin(&cpus) {
            run.fail(format!("cannot keep a thread to CPUs {cpus:?}: {e}"));
        }
        if let Some(Place { nice, .. }) = domain.places.get(self.vcpu as usize)
            && let Err(e) = set_nice(*nice)
        {
            run.fail(format!("cannot give a thread nice value {nice}: {e}"));
        }
        let group = domain.group.as_ref().filter(|_| self.vcpu < domain.capped);
        if let Some(Err(e)) = group.map(ControlGroup::add_this_thread) {
            run.fail(format!("cannot put a thread of domain `{}` under its cap: {e}", domain.name));
        }
    }

    pub(super) fn begins(&self, switches: Option<Switches>) {
        let tid = kernel_thread_id();
        let before = Account::of(tid);
        let mut state = self.state();
        (state.tid, state.before, state.switches) = (Some(tid), before, switches);
    }

    /// The program has ended, by itself or because the run is over.
    pub(super) fn ends(&self, run: &Run, by_itself: bool, done: Done) {
        let now = run.now();
        let mut state = self.state();
        let before = state.before;
        // At the end of the run, the account was taken when it ended.
        if state.last.is_none() {
            state.last = Some(Account::of(kernel_thread_id()).since(before));
        }
        if let Some(switches) = &mut state.switches {
            switches.read();
        }
        state.ended = Some(now).filter(|_| by_itself && !run.is_over());
        state.done = Some(done);
    }

    pub(super) fn tid(&self) -> Option<i32> {
        self.state().tid
    }

    /// CPU time of its thread before the program began.
    pub(super) fn cpu_before(&self) -> u64 {
        self.state().before.cpu_ns
    }
}

/// What all threads of a run share.
#[derive(Debug)]
pub(super) struct Run {
    pub seed: u64,
    pub burn: Burn,
    pub stagger: Picos,
    /// Whether it records switches and acquisitions.
    pub watches: bool,
    pub domains: Vec<DomainRun>,
    /// 1 when the run is over. Sleepers wait on it.
    pub over: AtomicU32,
    /// When the tasks began.
    pub began: OnceLock<(Instant, Reading)>,
    /// 1 when they may begin.
    go: AtomicU32,
    /// Whether the warm-up is over: threads learn it at their next acquisition.
    counting: AtomicBool,
    /// When it was over; 0 if there was none.
    pub warmup: Mutex<Picos>,
    pub curve: Mutex<Curve>,
    /// All tasks so far.
    pub tasks: Mutex<Vec<Arc<Task>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Domains that have awaited tasks. The run may end when there are none.
    open: AtomicUsize,
    /// Changes when a domain finishes or the run fails; the coordinator waits on it.
    news: AtomicU32,
    held: AtomicUsize,
    /// Whether acquisitions were left out because there were too many.
    pub full: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl Run {
    pub(super) fn new(
        seed: u64,
        burn: Burn,
        (stagger, watches): (Picos, bool),
        domains: Vec<DomainRun>,
    ) -> Self {
        let curve = Mutex::new(Curve::new(domains.len()));
        Self {
            seed,
            burn,
            stagger,
            watches,
            domains,
            over: AtomicU32::new(0),
            began: OnceLock::new(),
            go: AtomicU32::new(0),
            counting: AtomicBool::new(false),
            warmup: Mutex::default(),
            curve,
            tasks: Mutex::default(),
            threads: Mutex::default(),
            open: AtomicUsize::new(0),
            news: AtomicU32::new(0),
            held: AtomicUsize::new(0),
            full: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    pub(super) fn now(&self) -> Picos {
        // More nanoseconds than fit are more than 500 years.
        let elapsed = self.began.get().map_or(Duration::ZERO, |(at, _)| at.elapsed());
        super::picos(elapsed.as_nanos() as u64)
    }

    /// Lets all tasks begin.
    pub(super) fn go(&self) {
        self.began.get_or_init(|| (Instant::now(), Reading::now()));
        self.go.store(1, Release);
        futex::wake(&raw const self.go, i32::MAX);
    }

    /// Waits until the tasks may begin.
    pub(super) fn wait_to_go(&self) {
        while self.go.load(Acquire) == 0 {
            futex::wait(&self.go, 0);
        }
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        // Relaxed: a thread that learns it later ends later.
        self.over.load(Relaxed) != 0
    }

    #[inline]
    pub(super) fn is_warm(&self) -> bool {
        // Relaxed: an acquisition more or less counts.
        self.counting.load(Relaxed)
    }

    /// The warm-up is over.
    pub(super) fn count_from_here(&self) {
        *self.warmup.lock().unwrap_or_else(PoisonError::into_inner) = self.now();
        let tasks = super::of(&self.tasks);
        // At once: to ask the kernel for accounts takes as long as many acquisitions.
        self.counting.store(true, Release);
        let items: Vec<u64> = tasks.iter().map(|task| task.items.load(Relaxed)).collect();
        for (task, items) in tasks.iter().zip(items) {
            let account = task.account();
            let mut state = task.state();
            let switches = state.switches.as_mut().map_or(0, |switches| {
                switches.read();
                switches.seen.len()
            });
            state.warm = Warm { account, items, switches };
        }
    }

    /// Takes the items of all domains.
    pub(super) fn look(&self) {
        let now = self.now();
        let mut curve = self.curve.lock().unwrap_or_else(PoisonError::into_inner);
        if curve.due() <= now {
            let mut items = vec![0; self.domains.len()];
            for task in super::of(&self.tasks) {
                items[task.domain] += task.items.load(Relaxed);
            }
            curve.look(now, items);
        }
    }

    /// Ends the run: threads learn it at their next call.
    pub(super) fn end(&self) {
        self.over.store(1, Release);
        futex::wake(&raw const self.over, i32::MAX);
        self.domains.iter().for_each(|d| d.semaphores.release_all());
    }

    /// The run cannot go on.
    pub(super) fn fail(&self, why: String) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(why);
        drop(failure);
        self.tell();
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell(&self) {
        self.news.fetch_add(1, Release);
        futex::wake(&raw const self.news, 1);
    }

    /// The number of the latest news: a domain has finished, or the run has failed.
    pub(super) fn news(&self) -> u32 {
        self.news.load(Acquire)
    }

    /// Waits until there is news after number `last`, at most this long.
    pub(super) fn wait_for_news(&self, last: u32, limit: Duration) {
        futex::wait_for(&self.news, last, limit);
    }

    /// Whether every domain has finished.
    pub(super) fn has_finished(&self) -> bool {
        self.open.load(Acquire) == 0
    }

    /// How long the task waits before it begins, if it does.
    pub(super) fn stagger(&self, task: &Task) -> Option<Picos> {
        (self.stagger > Picos::ZERO).then(|| start_offset(self, task, self.stagger))
    }

    /// Whether a task that remembers `own` acquisitions may remember one more.
    #[inline]
    pub(super) fn keeps(&self, own: usize) -> bool {
        /// A task takes its share in pieces of this size.
        const PIECE: usize = 1024;
        if !self.watches || self.full.load(Relaxed) {
            return false;
        }
        if own.is_multiple_of(PIECE) && self.held.fetch_add(PIECE, Relaxed) + PIECE > MOST_HELD {
            self.full.store(true, Relaxed);
            return false;
        }
        true
    }

    /// Starts a task beside `parent`.
    pub(super) fn spawn(
        self: &Arc<Self>,
        parent: &Arc<Task>,
        name: String,
        vcpu: Option<u32>,
        program: Program,
    ) {
        let (vcpus, awaited) = (Arc::clone(&parent.vcpus), parent.awaited);
        self.start((parent.domain, vcpus, awaited), name, vcpu, program);
    }

    /// Starts a task of a domain. Without a vCPU, tasks are dealt to them in turn.
    pub(super) fn start(
        self: &Arc<Self>,
        (domain, vcpus, awaited): (usize, Arc<[u32]>, bool),
        name: String,
        vcpu: Option<u32>,
        program: Program,
    ) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let number = tasks.iter().filter(|t| t.domain == domain).count();
        let of = &self.domains[domain];
        let turn = match &*vcpus {
            [] => number as u32 % of.vcpus.max(1),
            several => several[number % several.len()],
        };
        let vcpu = vcpu.unwrap_or(turn);
        let (items, state) = (AtomicU64::new(0), Mutex::default());
        let task = Arc::new(Task { name, domain, number, vcpu, vcpus, awaited, items, state });
        tasks.push(Arc::clone(&task));
        drop(tasks);
        if awaited && of.awaited.fetch_add(1, AcqRel) == 0 {
            self.open.fetch_add(1, AcqRel);
        }
        let run = Arc::clone(self);
        let life = {
            let task = Arc::clone(&task);
            move || live(&run, &task, program)
        };
        let short: String = task.name.chars().take(15).collect();
        match thread::Builder::new().name(short).spawn(life) {
            Ok(thread) => {
                self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
            }
            Err(e) => {
                self.fail(format!("cannot start a thread for task `{}`: {e}", task.name));
                self.left(&task);
            }
        }
    }

    /// A task's thread is about to end.
    pub(super) fn left(&self, task: &Task) {
        let domain = &self.domains[task.domain];
        if task.awaited && domain.awaited.fetch_sub(1, AcqRel) == 1 {
            if !self.is_over() {
                let mut finished = domain.finished.lock().unwrap_or_else(PoisonError::into_inner);
                *finished = Some(self.now());
            }
            self.open.fetch_sub(1, AcqRel);
            self.tell();
        }
    }

    /// Waits for the end of all threads.
    pub(super) fn join(&self) {
        loop {
            let next = self.threads.lock().unwrap_or_else(PoisonError::into_inner).pop();
            // A thread does not panic: it catches panics, and `fail` has the words.
            match next {
                Some(thread) => _ = thread.join(),
                None => return,
            }
        }
    }
}
