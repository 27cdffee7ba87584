//! Workloads on operating system threads. The programs know no world, so a plain one suffices. It has a mutex
//! for each lock, a condition variable for each semaphore, a clock, and no vCPUs. Times are scaled down: the
//! tests only check that everything ends with all items done.

use overspin_scenario::{Domain, NS, Parameters, Picos, WorkerReport, Workload, Workloads};
use overspin_workload::{
    BurnWait, Dbench, Env, Kernbench, Kinds, Loads, LockId, LockLoop, LockUse, Mode, Pft, Pgbench,
    Program, Random, Semaphore, Stream, Ticks, WordId,
};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The scale of time: a second of a workload takes a millisecond here.
const SCALE: u64 = 1000;

#[derive(Default)]
struct World {
    /// Whether each lock is held; waiters sleep on `released`.
    locks: Mutex<Vec<bool>>,
    released: Condvar,
    semaphores: Mutex<Vec<u32>>,
    raised: Condvar,
    words: Vec<AtomicUsize>,
    items: AtomicU64,
    tasks: AtomicU64,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

struct Task {
    world: Arc<World>,
    number: u64,
    began: Instant,
}

fn wall(time: Picos) -> Duration {
    Duration::from_nanos(time / NS / SCALE)
}

fn start(world: &Arc<World>, program: Program) {
    let number = world.tasks.fetch_add(1, SeqCst);
    let task = Task { world: Arc::clone(world), number, began: Instant::now() };
    let thread = thread::spawn(move || program(&task));
    world.threads.lock().unwrap().push(thread);
}

impl Env for Task {
    fn compute(&self, work: Picos, _mode: Mode) {
        let until = Instant::now() + wall(work);
        while Instant::now() < until {
            thread::yield_now();
        }
    }
    fn sleep(&self, time: Picos) {
        thread::sleep(wall(time));
    }
    fn yield_vcpu(&self) {
        thread::yield_now();
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
        let held = self.world.locks.lock().unwrap();
        let mut held = self.world.released.wait_while(held, |held| held[lock]).unwrap();
        held[lock] = true;
    }
    fn release(&self, lock: LockId) {
        assert!(std::mem::take(&mut self.world.locks.lock().unwrap()[lock]), "it is held");
        self.world.released.notify_all();
    }
    fn read(&self, word: WordId) -> usize {
        self.world.words[word].load(SeqCst)
    }
    fn write(&self, word: WordId, value: usize) {
        self.world.words[word].store(value, SeqCst);
    }
    fn write_out(&self, pages: &[u64]) {
        assert!(!pages.is_empty());
    }
    fn spawn(&self, _name: String, _vcpu: Option<u32>, program: Program) {
        start(&self.world, program);
    }
    fn semaphore(&self, count: u32) -> Semaphore {
        let mut all = self.world.semaphores.lock().unwrap();
        all.push(count);
        Semaphore(all.len() - 1)
    }
    fn down(&self, semaphore: Semaphore) {
        let all = self.world.semaphores.lock().unwrap();
        let none = |all: &mut Vec<u32>| all[semaphore.0] == 0;
        self.world.raised.wait_while(all, none).unwrap()[semaphore.0] -= 1;
    }
    fn up(&self, semaphore: Semaphore) {
        self.world.semaphores.lock().unwrap()[semaphore.0] += 1;
        self.world.raised.notify_all();
    }
    fn interrupt_in(&self, time: Picos, _work: Picos, semaphore: Semaphore) {
        start(
            &self.world,
            Box::new(move |env| {
                env.sleep(time);
                env.up(semaphore);
            }),
        );
    }
    fn item_done(&self) {
        self.world.items.fetch_add(1, SeqCst);
    }
    fn answered(&self, since: Picos) {
        assert!(since <= self.now() + Picos(1_000_000_000_000));
        self.item_done();
    }
    fn now(&self) -> Picos {
        self.began.elapsed().as_nanos() as u64 * NS
    }
    fn cpu_time(&self) -> Picos {
        self.now()
    }
    fn report(&self, _report: WorkerReport) {}
    fn offset(&self, _below: Picos) -> Picos {
        Picos::ZERO
    }
    fn all_up(&self) -> Picos {
        Picos::ZERO
    }
    fn random(&self, purpose: u32) -> Random {
        Random::new(self.number << 32 | u64::from(purpose))
    }
}

/// Runs workloads until all of their tasks have ended; returns the items that they have done.
fn run(workloads: Vec<Workload>) -> u64 {
    let domain = Domain::new("threads", 3, "mutex", Workloads(workloads));
    let loads = Loads::of(&domain, &Kinds::builtin()).unwrap();
    let world = Arc::new(World {
        locks: Mutex::new(vec![false; loads.lock_names().len()]),
        words: (0..64).map(|_| AtomicUsize::new(0)).collect(),
        ..World::default()
    });
    for first in loads.start(domain.vcpus) {
        start(&world, first.start.program);
    }
    loop {
        // A task adds the tasks that it starts before it ends.
        let thread = world.threads.lock().unwrap().pop();
        match thread {
            Some(thread) => thread.join().unwrap(),
            None => break,
        }
    }
    world.items.load(SeqCst)
}

/// The parameters of an empty table, with these changes.
fn with<P: Parameters>(changes: &str) -> Workload {
    let info = *Kinds::builtin().find(P::KIND).unwrap();
    let mut tree = info.keys.defaults();
    let changes: overspin_scenario::Tree = serde_json::from_str(changes).unwrap();
    tree.extend(changes);
    info.lower(tree).unwrap()
}

#[test]
fn every_workload_that_ends_does_so_on_threads() {
    let locks = r#"[{"name": "a", "hold": 1000000, "every": 50000000, "irqs_off": false}]"#;
    let count = |workload| run(vec![workload]);
    assert_eq!(count(with::<LockLoop>(r#"{"count": 500}"#)), 3 * 500);
    assert_eq!(count(with::<BurnWait>(r#"{"count": 20, "wait": 1000000}"#)), 3 * 20);
    let pft = format!("{{\"processes\": 3, \"pages\": 100, \"locks\": {locks}}}");
    assert_eq!(count(with::<Pft>(&pft)), 300);
    // A unit, and its compiler and its assembler.
    let compile = format!("{{\"jobs\": 3, \"units\": 8, \"locks\": {locks}}}");
    assert_eq!(count(with::<Kernbench>(&compile)), 3 * 8);
    let database =
        format!("{{\"clients\": 7, \"workers\": 2, \"transactions\": 40, \"locks\": {locks}}}");
    assert_eq!(count(with::<Pgbench>(&database)), 7 * 40);
    let files = r#"{"clients": 3, "files": 4, "pages": 5, "operations": 30, "dirty_limit": 6}"#;
    assert_eq!(count(with::<Dbench>(files)), 3 * (4 + 30 + 4));
    assert_eq!(count(with::<Stream>(r#"{"window": 5, "count": 60}"#)), 60);
}

#[test]
fn several_side_by_side_do_too() {
    let two = vec![with::<LockLoop>(r#"{"count": 50}"#), with::<Stream>(r#"{"count": 20}"#)];
    assert_eq!(run(two), 3 * 50 + 20);
}
