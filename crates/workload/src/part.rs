//! A workload that shares its guest, or uses only some of its vCPUs, does not know this: it counts its locks
//! and its vCPUs from 0. A layer between the workload and the world translates those numbers. A workload that
//! is alone and uses all vCPUs has the world's [`Env`] itself.

use crate::{
    Env, LockId, LockUse, Mode, Program, Random, Semaphore, SliceRequest, Start, Ticks, Trip,
    WordId,
};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use overspin_scenario::{Picos, WorkerReport};

/// What to translate.
#[derive(Debug)]
pub(crate) struct Part {
    /// The prefix of its tasks' names.
    pub(crate) label: Option<Box<str>>,
    /// vCPUs that it may use; all if empty.
    pub(crate) vcpus: Arc<[u32]>,
    /// The world's number of its first lock.
    pub(crate) first_lock: LockId,
}

/// A name with the label of its workload.
pub(crate) fn named(label: Option<&str>, name: &str) -> String {
    label.map_or_else(|| name.into(), |label| format!("{label}/{name}"))
}

/// A task of the part, as the world sees it.
pub(crate) fn place(part: &Arc<Part>, start: Start) -> Start {
    let on = |vcpu: u32| match part.vcpus.len() {
        0 => vcpu,
        some => part.vcpus[vcpu as usize % some],
    };
    let (name, vcpu) = (named(part.label.as_deref(), &start.name), start.vcpu.map(on));
    let part = Arc::clone(part);
    let program: Program = Box::new(move |env| (start.program)(&PartEnv { env, part }));
    Start { name, vcpu, program }
}

/// The world as a task of a part sees it.
struct PartEnv<'a> {
    env: &'a dyn Env,
    part: Arc<Part>,
}

impl Env for PartEnv<'_> {
    fn section(&self, lock: LockId, how: LockUse, work: Picos) {
        self.env.section(self.part.first_lock + lock, how, work);
    }

    fn acquire(&self, lock: LockId, how: LockUse) {
        self.env.acquire(self.part.first_lock + lock, how);
    }

    fn release(&self, lock: LockId) {
        self.env.release(self.part.first_lock + lock);
    }

    fn spawn(&self, name: String, vcpu: Option<u32>, program: Program) {
        let Start { name, vcpu, program } = place(&self.part, Start { name, vcpu, program });
        self.env.spawn(name, vcpu, program);
    }

    // The world does the rest.

    fn compute(&self, work: Picos, mode: Mode) {
        self.env.compute(work, mode);
    }

    fn exec(&self) {
        self.env.exec();
    }

    fn unmap(&self) {
        self.env.unmap();
    }

    fn ask_for_extensions(&self, when: SliceRequest) {
        self.env.ask_for_extensions(when);
    }

    fn trip(&self, lock: LockId, trip: Trip) {
        self.env.trip(self.part.first_lock + lock, trip);
    }

    fn sleep_until_woken(&self, time: Picos) {
        self.env.sleep_until_woken(time);
    }

    fn touch_page(&self) {
        self.env.touch_page();
    }

    fn sleep(&self, time: Picos) {
        self.env.sleep(time);
    }

    fn yield_vcpu(&self) {
        self.env.yield_vcpu();
    }

    fn next_tick(&self, of: Ticks) -> Option<Picos> {
        self.env.next_tick(of)
    }

    fn read(&self, word: WordId) -> usize {
        self.env.read(word)
    }

    fn write(&self, word: WordId, value: usize) {
        self.env.write(word, value);
    }

    fn write_out(&self, pages: &[u64]) {
        self.env.write_out(pages);
    }

    fn semaphore(&self, count: u32) -> Semaphore {
        self.env.semaphore(count)
    }

    fn down(&self, semaphore: Semaphore) {
        self.env.down(semaphore);
    }

    fn up(&self, semaphore: Semaphore) {
        self.env.up(semaphore);
    }

    fn interrupt_in(&self, time: Picos, work: Picos, semaphore: Semaphore) {
        self.env.interrupt_in(time, work, semaphore);
    }

    fn item_done(&self) {
        self.env.item_done();
    }

    fn answered(&self, since: Picos) {
        self.env.answered(since);
    }

    fn now(&self) -> Picos {
        self.env.now()
    }

    fn cpu_time(&self) -> Picos {
        self.env.cpu_time()
    }

    fn report(&self, report: WorkerReport) {
        self.env.report(report);
    }

    fn offset(&self, below: Picos) -> Picos {
        self.env.offset(below)
    }

    fn all_up(&self) -> Picos {
        self.env.all_up()
    }

    fn random(&self, purpose: u32) -> Random {
        self.env.random(purpose)
    }
}
