//! Tasks of a guest. Each is a stackful coroutine that runs ordinary code.

use super::latency::Latencies;
use super::slice::Slice;
use crate::engine::{Engine, Suspend, TaskYielder};
use crate::vcpu::OwnOperation;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use overspin_scenario::{Picos, WorkerReport};
use overspin_workload::{Mode, Program};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub(crate) type Body = Coroutine<(), Suspend, Suspend, DefaultStack>;

/// Size of a task's stack in bytes. Only touched pages cost memory.
const STACK: usize = 64 << 10;

/// The state of a task in the guest's scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// On a runqueue, or running.
    Runnable,
    /// Waits for a semaphore.
    Waiting,
    /// Waits for the disk.
    Blocked,
    /// Waits for a time.
    Sleeping,
    /// Waits for a lock, in a system call.
    Parked,
    /// Has ended.
    Ended,
}

/// A task. The fields that a switch needs come first, on as few cache lines as possible.
#[repr(C, align(64))]
pub(crate) struct Task {
    /// Index in its guest; idle tasks have none.
    pub index: Option<u32>,
    pub guest: u32,
    pub state: Cell<TaskState>,
    /// Whether a vCPU executes it: it has not left that vCPU since it last ran.
    pub on_cpu: Cell<bool>,
    pub mode: Cell<Mode>,
    pub rest: Cell<Rest>,
    pub vruntime: Cell<Picos>,
    /// The vCPU to whose queue its virtual runtime refers; `None` before it is first queued.
    pub queue: Cell<Option<u32>>,
    /// Run clock of its vCPU when the task was put there or last charged.
    pub clock_in: Cell<Picos>,
    pub cpu: Cell<Picos>,
    yielder: Cell<*const TaskYielder>,
    /// The end of its stack when it last suspended: an address to prefetch, not to read.
    pub stack: Cell<*const u8>,
    /// `None` if the task has ended or is an idle loop that rests.
    body: UnsafeCell<Option<Body>>,
    pub sleeps: Cell<u64>,
    pub items: Cell<u64>,
    pub preemptions: Cell<u64>,
    pub user_ticks: Cell<Picos>,
    pub system_ticks: Cell<Picos>,
    pub name: String,
    pub reports: RefCell<Vec<WorkerReport>>,
    pub ended: Cell<Option<Picos>>,
    pub latencies: Latencies,
    /// The lock operation in which another task has preempted it.
    pub lock: Cell<OwnOperation>,
    /// A wake-up has come since it began to look whether it must sleep (the token of `park` and `unpark`).
    pub latch: Cell<bool>,
    /// An interrupt of another vCPU ends its sleep.
    pub woken_elsewhere: Cell<bool>,
    /// It does kernel work in which another task may take over.
    pub preemptible: Cell<bool>,
    /// Its request for an extension of its time slice, and the grant.
    pub slice: Slice,
    /// The vCPUs that it may use; all if empty.
    pub vcpus: Arc<[u32]>,
    /// Whether its guest cannot finish before this task ends.
    pub awaited: bool,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A pointer to a task. Tasks are boxed and live as long as their guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskRef(*const Task);

impl TaskRef {
    /// Stands for "no task yet". It must not be dereferenced.
    pub(crate) fn dangling() -> Self {
        Self(std::ptr::null())
    }

    pub(crate) fn new(task: &Task) -> Self {
        Self(task)
    }

    pub(crate) fn as_ptr(self) -> *const Task {
        self.0
    }
}

impl Deref for TaskRef {
    type Target = Task;
    fn deref(&self) -> &Task {
        // SAFETY: the pointer was made from a boxed task that its guest keeps until the engine ends. The
        // null value of `dangling` is replaced for every vCPU before the first event.
        unsafe { &*self.0 }
    }
}

/// The place where an idle loop rests while it has no coroutine.
///
/// An idle loop keeps nothing on its stack while its vCPU halts or runs a task. So it gives the stack back,
/// and takes another when it goes on, most likely one that is still in the processor's cache.
/// Otherwise half of all stacks on a host with thousands of vCPUs would belong to idle loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It has not begun: no task has switched to it yet.
    Fresh,
    /// Its vCPU halts.
    Halted,
    /// Its vCPU runs a task.
    Away,
}

impl Task {
    /// Its number in its guest.
    pub(crate) fn number(&self) -> u32 {
        self.index.expect("an idle loop takes no lock of user mode")
    }

    /// Whether the task may run on `vcpu` of its guest.
    pub(crate) fn may_use(&self, vcpu: u32) -> bool {
        self.vcpus.is_empty() || self.vcpus.contains(&vcpu)
    }

    /// A task that has not started.
    ///
    /// # Panics
    /// If the operating system gives no memory for its stack.
    pub(crate) fn new(
        engine: &Engine,
        guest: u32,
        index: u32,
        name: String,
        program: Program,
    ) -> Box<Self> {
        let mut task = Self::without_body(guest, Some(index), name);
        let this = TaskRef::new(&task);
        *task.body.get_mut() = Some(body(engine, this, move |engine| {
            let guest = engine.guest(this.guest);
            guest.finish_switch(engine);
            program(&super::TaskEnv::new(engine, guest, this));
            guest.exit(engine);
            Suspend::SwitchTask
        }));
        task
    }

    /// The idle loop of a vCPU.
    pub(crate) fn idle(guest: u32, name: String) -> Box<Self> {
        Self::without_body(guest, None, name)
    }

    fn without_body(guest: u32, index: Option<u32>, name: String) -> Box<Self> {
        Box::new(Self {
            index,
            guest,
            name,
            body: UnsafeCell::new(None),
            rest: Cell::new(Rest::Fresh),
            yielder: Cell::new(std::ptr::null()),
            stack: Cell::new(std::ptr::null()),
            state: Cell::new(TaskState::Runnable),
            on_cpu: Cell::new(false),
            vruntime: Cell::new(Picos::ZERO),
            queue: Cell::new(None),
            mode: Cell::new(Mode::Kernel),
            clock_in: Cell::new(Picos::ZERO),
            cpu: Cell::new(Picos::ZERO),
            user_ticks: Cell::new(Picos::ZERO),
            system_ticks: Cell::new(Picos::ZERO),
            sleeps: Cell::new(0),
            preemptions: Cell::new(0),
            items: Cell::new(0),
            reports: RefCell::default(),
            ended: Cell::new(None),
            latencies: Latencies::default(),
            lock: Cell::default(),
            latch: Cell::new(false),
            woken_elsewhere: Cell::new(false),
            preemptible: Cell::new(false),
            slice: Slice::default(),
            vcpus: Arc::default(),
            awaited: false,
        })
    }
}

/// A coroutine that runs `code` for `task`.
fn body(engine: &Engine, task: TaskRef, code: impl FnOnce(&Engine) -> Suspend + 'static) -> Body {
    // The stack that was given back last is the warmest.
    let stack = engine.code.stacks.borrow_mut().pop().unwrap_or_else(|| {
        DefaultStack::new(STACK).expect("memory for a task's stack (raise vm.max_map_count?)")
    });
    Coroutine::with_stack(stack, move |yielder: &TaskYielder, ()| {
        task.yielder.set(yielder);
        let engine = crate::engine::engine();
        engine.code.yielder.set(yielder);
        code(engine)
    })
}

impl TaskRef {
    /// Runs the task's code until it suspends or ends. Returns the reason.
    #[inline(always)]
    pub(crate) fn run(self, engine: &Engine) -> Suspend {
        engine.code.yielder.set(self.yielder.get());
        // SAFETY: only this function touches the body, and no two calls for one task overlap: a task runs
        // on one vCPU at a time, and code in a coroutine never calls this function.
        let slot = unsafe { &mut *self.body.get() };
        // Only idle loops run again after they have lost their body.
        let running = slot.get_or_insert_with(|| {
            body(engine, self, move |engine| engine.guest(self.guest).idle(engine, self.rest.get()))
        });
        engine.telling.in_guest(true);
        let result = running.resume(());
        engine.telling.in_guest(false);
        match result {
            CoroutineResult::Yield(why) => why,
            CoroutineResult::Return(why) => {
                if let Some(body) = slot.take() {
                    engine.code.stacks.borrow_mut().push(body.into_stack());
                }
                why
            }
        }
    }
}
