//! The guest kernel: tasks on per-vCPU runqueues, timer ticks, interrupts that nest on top of the running
//! code, sections with interrupts off, tick-based CPU accounting.
//!
//! Kernel code runs in the coroutine of the task (or idle loop) that it interrupts or serves, as on a
//! real machine. So an interrupt handler is a call on top of the interrupted code. The kernel is not
//! preemptible: a task switch happens when a task sleeps, ends, or returns to user mode.
//!
//! The kernel charges CPU time as kernels of 2008 did: each tick interrupt that a vCPU *takes* charges one
//! period to the task and mode that it finds. A vCPU with interrupts off takes a tick late, and only once
//! for all the periods that have passed. The other periods are charged to no task.

mod balance;
mod data;
mod device;
mod disk;
mod env;
mod excursion;
mod latency;
mod locks;
mod process;
mod report;
mod runqueue;
mod shootdown;
mod sleep;
mod slice;
mod steal_governor;
mod task;
mod tick;
mod vmstat;

use data::KernelData;
use device::Devices;
pub(crate) use disk::Drive;
pub(crate) use env::TaskEnv;
use excursion::Excursions;
use locks::LockBank;
pub(crate) use locks::{BankResult, MakeBank};
use runqueue::{Resched, RunQueue};
pub(crate) use shootdown::Shootdowns;
use sleep::Sleeper;
use slice::Extensions;
use steal_governor::Folding;
use task::TaskState;
pub(crate) use task::{Task, TaskRef};
use vmstat::Vmstat;

use crate::Simulator;
use crate::engine::Engine;
use crate::memory::NONE;
use crate::prefetch::touch;
use crate::vcpu::Vcpu;
use overspin_host::{Moment, Refused, irq};
use overspin_locks::Tuning;
use overspin_scenario::{Domain, GuestScheduler, Picos, SEC};
use overspin_sched::{Nanos, TaskQueues};
use overspin_workload::{First, Loads, LockUse, Mode, Program, Random, Semaphore};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

/// Stand for a task where the guest itself draws random numbers: `TICKING` for the phases of ticks,
/// `STARTING` for the times at which vCPUs come up, `FIRST_HOME` for the pCPUs on which they do.
const TICKING: u32 = u32::MAX;
const STARTING: u32 = u32::MAX - 1;
const FIRST_HOME: u32 = u32::MAX - 2;

/// A semaphore on which tasks sleep.
#[derive(Debug, Default)]
pub(crate) struct SemaphoreState {
    count: u32,
    waiters: VecDeque<TaskRef>,
}

/// The run queues of a guest whose scheduler has them.
fn eevdf(domain: &Domain) -> Option<RefCell<TaskQueues>> {
    let is_6_18 = match domain.kernel.scheduler {
        GuestScheduler::Cfs2008 => return None,
        GuestScheduler::Eevdf => false,
        GuestScheduler::Eevdf618 => true,
    };
    let tick = Nanos::SEC / i64::from(domain.kernel.hz.max(1));
    Some(RefCell::new(TaskQueues::new(is_6_18, domain.vcpus, tick)))
}

/// A guest.
#[derive(Debug)]
pub(crate) struct Guest {
    pub id: u32,
    /// Its first vCPU; the others follow.
    pub first: u32,
    pub vcpus: u32,
    pub domain: Domain,
    /// Its workloads: what its tasks do.
    pub loads: Loads,
    bank: Box<dyn LockBank>,
    /// The data beside its locks.
    pub data: KernelData,
    pub disk: Option<Drive>,
    pub shootdowns: Option<Shootdowns>,
    extensions: Extensions,
    /// `None`: its kernel uses all vCPUs.
    folding: Option<Folding>,
    excursions: Excursions,
    devices: Devices,
    pub vmstat: Vmstat,
    /// Names of the workload's locks. The runqueue locks follow, one for each vCPU.
    pub named_locks: Vec<String>,
    // The boxes matter: `TaskRef` points at the tasks, and the vector grows.
    #[expect(clippy::vec_box, reason = "tasks must not move when the vector grows")]
    pub tasks: RefCell<Vec<Box<Task>>>,
    #[expect(clippy::vec_box, reason = "`TaskRef` points at the boxed tasks")]
    idle: Vec<Box<Task>>,
    queues: Vec<RunQueue>,
    /// The order of the tasks on them, if their virtual runtime does not say it.
    eevdf: Option<RefCell<TaskQueues>>,
    semaphores: RefCell<Vec<SemaphoreState>>,
    /// Those that sleep until a wake-up at an address, in order of arrival.
    sleepers: RefCell<VecDeque<(usize, Sleeper)>>,
    /// Tick period; `Picos::MAX` if tickless.
    period: Picos,
    /// Number of awaited tasks that have not ended.
    live: Cell<u32>,
    pub started: Cell<Picos>,
    pub finished: Cell<Option<Picos>>,
    /// Whether the guest is part of the host's noise: its work does not count as progress.
    pub is_noise: bool,
    /// The target of the last directed yield.
    pub last_boosted: Cell<u32>,
}

impl Guest {
    /// A guest with its kernel. Its workload has not started.
    pub(crate) fn new(
        engine: &Engine,
        id: u32,
        first: u32,
        domain: &Domain,
        loads: Loads,
        simulator: &Simulator,
    ) -> Result<Self, Refused> {
        let named_locks = loads.lock_names();
        let make = MakeBank {
            engine,
            count: named_locks.len() + domain.vcpus as usize,
            cpus: loads.lock_cpus(domain.vcpus),
            tuning: Tuning {
                spin_budget: domain.spin_budget,
                nopvspin: domain.nopvspin,
                ..Tuning::DEFAULT
            },
            loads: &loads,
        };
        let (bank, data) = simulator
            .make(&domain.lock, make)
            .ok_or_else(|| Refused::UnknownLock {
                domain: domain.name.clone(),
                lock: domain.lock.clone(),
                known: simulator.lock_names(),
            })?
            .map_err(|e| {
                Refused::Invalid(format!("domain `{}`: lock `{}`: {e}", domain.name, domain.lock))
            })?;
        Ok(Self {
            id,
            first,
            vcpus: domain.vcpus,
            domain: domain.clone(),
            bank,
            data,
            named_locks,
            disk: loads.disk().map(Drive::new),
            shootdowns: loads.unmaps().then(|| Shootdowns::new(engine, domain.vcpus)),
            extensions: Extensions::default(),
            folding: Folding::of(domain),
            excursions: Excursions::default(),
            loads,
            devices: Devices::default(),
            vmstat: Vmstat::default(),
            tasks: RefCell::new(Vec::new()),
            idle: (0..domain.vcpus).map(|i| Task::idle(id, format!("idle/{i}"))).collect(),
            queues: (0..domain.vcpus).map(|_| RunQueue::default()).collect(),
            eevdf: eevdf(domain),
            semaphores: RefCell::new(Vec::new()),
            sleepers: RefCell::default(),
            period: SEC.checked_div(domain.kernel.hz.into()).unwrap_or(Picos::MAX),
            live: Cell::new(0),
            started: Cell::new(Picos::ZERO),
            finished: Cell::new(None),
            is_noise: id as usize >= engine.own_domains,
            last_boosted: Cell::new(0),
        })
    }

    /// Puts the workload's first tasks on their runqueues and idle loops on the vCPUs.
    pub(crate) fn boot(&self, engine: &Engine) {
        for (i, idle) in self.idle.iter().enumerate() {
            let v = &engine.vcpus[self.first as usize + i];
            v.task.set(TaskRef::new(idle));
            idle.on_cpu.set(true);
            // Each vCPU's ticks have a phase of their own.
            let phase = Picos(self.random_bits(engine, TICKING, i as u32)) % self.period.min(SEC);
            self.queues[i].phase.set(phase);
        }
        for First { start, vcpus, awaited } in self.loads.start(self.vcpus) {
            let vcpu = start.vcpu.or(vcpus.first().copied()).unwrap_or(0);
            let task = self.new_task(engine, start.name, start.program, (vcpus, awaited));
            self.place(vcpu, task, Picos::ZERO);
            self.queues[vcpu as usize].insert(task);
        }
        self.start_vmstat(engine);
    }

    fn new_task(
        &self,
        engine: &Engine,
        name: String,
        program: Program,
        (vcpus, awaited): (Arc<[u32]>, bool),
    ) -> TaskRef {
        let index = self.tasks.borrow().len() as u32;
        let mut task = Task::new(engine, self.id, index, name, program);
        (task.vcpus, task.awaited) = (vcpus, awaited);
        let task_ref = TaskRef::new(&task);
        self.tasks.borrow_mut().push(task);
        if let Some(queues) = &self.eevdf {
            queues.borrow_mut().add();
        }
        self.live.set(self.live.get() + u32::from(awaited));
        task_ref
    }

    /// Wakes the first task that sleeps on a semaphore and hands it a unit, or adds the unit to the count.
    fn up(&self, engine: &Engine, semaphore: Semaphore) {
        let woken = {
            let mut all = self.semaphores.borrow_mut();
            let s = &mut all[semaphore.0];
            let woken = s.waiters.pop_front();
            if woken.is_none() {
                s.count += 1;
            }
            woken
        };
        if let Some(task) = woken {
            // A synchronous wake-up: the sleeper moves to the waker's vCPU.
            self.wake(engine, task, engine.cpu().index);
        }
    }

    /// 64 random bits for a task and a purpose. Each pair has its own `ChaCha` stream, so the order in
    /// which tasks ask does not matter.
    fn random_bits(&self, engine: &Engine, task: u32, purpose: u32) -> u64 {
        let mut rng = ChaCha8Rng::seed_from_u64(engine.seed);
        rng.set_stream(u64::from(self.id) << 48 ^ u64::from(task) << 16 ^ u64::from(purpose));
        rng.next_u64()
    }

    /// Random numbers for the time at which vCPU `index` comes up.
    pub(crate) fn starting_offset(&self, engine: &Engine, index: u32) -> Random {
        Random::new(self.random_bits(engine, STARTING, index))
    }

    /// A random number for the pCPU on which vCPU `index` begins.
    pub(crate) fn first_home(&self, engine: &Engine, index: u32) -> u64 {
        self.random_bits(engine, FIRST_HOME, index)
    }

    /// Prefetches the pointers to the runqueues, their locks and the idle loops.
    pub(crate) fn fetch(&self) {
        touch(&raw const self.queues, 1);
        touch(&raw const self.bank, 1);
        touch(&raw const self.named_locks, 1);
        touch(&raw const self.idle, 1);
    }

    /// The idle loop of `v`.
    pub(crate) fn idle_of(&self, v: &Vcpu) -> TaskRef {
        TaskRef::new(&self.idle[v.index as usize])
    }

    /// Prefetches the runqueue of `v`, and the pointers to its idle loop and its lock.
    pub(crate) fn fetch_queue(&self, v: &Vcpu) {
        touch(&raw const *self.queue(v), size_of::<RunQueue>());
        touch(&raw const self.idle[v.index as usize], 1);
        touch((&raw const *self.bank).cast::<u8>(), 1);
    }

    /// Prefetches the lists of the runqueue of `v`, and the entry of its lock.
    pub(crate) fn fetch_queue_lists(&self, v: &Vcpu) {
        self.queue(v).fetch_lists();
        self.bank.fetch_entry(self.queue_lock(v.index));
    }

    /// Prefetches the lock of the runqueue of `v`.
    pub(crate) fn fetch_queue_lock(&self, engine: &Engine, v: &Vcpu) {
        self.bank.fetch_lock(&engine.machine.memory, self.queue_lock(v.index));
    }

    /// The task of this number.
    pub(crate) fn task(&self, index: usize) -> TaskRef {
        TaskRef::new(&self.tasks.borrow()[index])
    }

    /// The sleeping task of `v` that wakes first.
    pub(crate) fn next_sleeper(&self, v: &Vcpu) -> Option<TaskRef> {
        self.queue(v).sleepers.borrow().peek().map(|s| s.0.task)
    }

    fn queue(&self, v: &Vcpu) -> &RunQueue {
        &self.queues[v.index as usize]
    }

    fn is_idle(&self, v: &Vcpu) -> bool {
        v.task.get().index.is_none()
    }

    /// Index of a runqueue's lock among all locks of the guest.
    fn queue_lock(&self, index: u32) -> usize {
        self.named_locks.len() + index as usize
    }

    fn lock_queue(&self, engine: &Engine, index: u32) {
        self.bank.acquire(engine, self.queue_lock(index), LockUse::IrqSave);
    }

    fn unlock_queue(&self, engine: &Engine, index: u32) {
        self.bank.release(engine, self.queue_lock(index));
    }

    /// Takes the pending interrupts of the current vCPU, on top of the code that runs there. Interrupts
    /// are on when this function is called and when it returns.
    pub(crate) fn interrupts(&self, engine: &Engine) {
        loop {
            let v = engine.cpu();
            v.irqs.on.set(false);
            v.irqs.nesting.set(v.irqs.nesting.get() + 1);
            let pending = v.irqs.pending.replace(0);
            engine.tell(Moment::Interrupt { vcpu: v.id, pending });
            engine.burn(engine.scenario.host.costs.interrupt);
            if pending & irq::TIMER != 0 {
                self.timer_interrupt(engine);
            }
            if pending & irq::DISK != 0 {
                self.disk_interrupt(engine);
            }
            if pending & irq::DEVICE != 0 {
                self.device_interrupt(engine);
            }
            if pending & irq::CALL != 0 {
                self.answer(engine);
            }
            if pending & irq::RESCHED != 0 {
                self.queue(engine.cpu()).resched.set(Resched::Now);
            }
            if pending & irq::NOTIFY != 0 {
                engine.asked_to_give_up();
            }
            let v = engine.cpu();
            v.irqs.nesting.set(v.irqs.nesting.get() - 1);
            engine.tell(Moment::InterruptEnds { vcpu: v.id });
            engine.notes_end_of_interrupt();
            v.irqs.on.set(true);
            if v.irqs.pending.get() == 0 {
                break;
            }
        }
        // The return to user mode, or to kernel work that may be preempted, is where another task may take over.
        let task = engine.cpu().task.get();
        if task.mode.get() == Mode::User {
            task.mode.set(Mode::Kernel);
            self.schedule_or_extend(engine);
            task.mode.set(Mode::User);
        } else if task.preemptible.replace(false) {
            self.preempt_kernel(engine);
            task.preemptible.set(true);
        }
    }

    /// Lets other tasks run if that is due.
    #[inline]
    fn schedule_if_needed(&self, engine: &Engine) {
        if self.queue(engine.cpu()).resched.get() != Resched::No {
            self.schedule_while_needed(engine);
        }
    }

    #[cold]
    fn schedule_while_needed(&self, engine: &Engine) {
        while self.queue(engine.cpu()).resched.get() != Resched::No {
            self.schedule(engine);
        }
    }

    /// Lets other tasks run if that cannot wait for the return to user mode.
    fn preempt_kernel(&self, engine: &Engine) {
        while self.queue(engine.cpu()).resched.get() == Resched::Now {
            self.schedule(engine);
        }
    }

    /// Whether `v` does the work of a task, or of an interrupt handler on top of a task. The idle loop,
    /// a wait for a lock, and noise are no such work.
    pub(crate) fn works_for_a_task(&self, v: &Vcpu) -> bool {
        !self.is_idle(v) && v.lock.wants.get() == NONE && !v.is_noise
    }

    /// Whether no task of this guest sleeps for a time, or for a disk or device that is at work. Tasks of a
    /// noise guest do not count.
    pub(crate) fn nobody_sleeps_for_a_time(&self) -> bool {
        if self.is_noise {
            return true;
        }
        self.queues.iter().all(|q| q.sleepers.borrow().is_empty())
            && self.disk.as_ref().is_none_or(|d| !d.is_busy())
            && !self.devices.is_busy()
    }
}
