//! Tasks of a guest: each a stackful coroutine that runs ordinary code.

use super::latency::Latencies;
use crate::engine::{Engine, Suspend, TaskYielder};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use overspin_scenario::{Picos, WorkerReport};
use overspin_workload::{Mode, Program};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub(crate) type Body = Coroutine<(), Suspend, Suspend, DefaultStack>;

/// Bytes of a task's stack. Only touched pages cost memory.
const STACK: usize = 64 << 10;

/// What the guest's scheduler knows of a task.
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
    /// Has ended.
    Ended,
}

/// A task. What a switch needs comes first, on as few cache lines as can be.
#[repr(C, align(64))]
pub(crate) struct Task {
    /// Index in its guest; idle tasks have none.
    pub index: Option<u32>,
    pub guest: u32,
    pub state: Cell<TaskState>,
    /// Some vCPU executes it: it has not left since it last ran.
    pub on_cpu: Cell<bool>,
    pub mode: Cell<Mode>,
    pub rest: Cell<Rest>,
    pub vruntime: Cell<Picos>,
    /// vCPU whose queue its virtual runtime refers to; `None` before it is first queued.
    pub queue: Cell<Option<u32>>,
    /// Run clock of its vCPU when it was put there.
    pub clock_in: Cell<Picos>,
    pub cpu: Cell<Picos>,
    yielder: Cell<*const TaskYielder>,
    /// Where its stack ended when it suspended last: to fetch it, not to read it.
    pub stack: Cell<*const u8>,
    /// None: it has ended, or is an idle loop that rests.
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
    /// vCPUs that it may use; all if empty.
    pub vcpus: Arc<[u32]>,
    /// Its guest has not ended before it has.
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
    /// Stands for "no task yet"; must not be dereferenced.
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
        // SAFETY: made from a boxed task that its guest keeps until the engine ends; the null value
        // of `dangling` is replaced for every vCPU before the first event.
        unsafe { &*self.0 }
    }
}

/// Where an idle loop is while it has no coroutine.
///
/// An idle loop keeps nothing on its stack while its vCPU halts or runs a task, so it gives the stack
/// back and takes another when it goes on, most likely one that is still in the processor's cache.
/// On a host with thousands of vCPUs, half of all stacks would be those of idle loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It has not begun: nobody switched to it.
    Fresh,
    /// Its vCPU halts.
    Halted,
    /// Its vCPU runs a task.
    Away,
}

impl Task {
    /// Whether it may run on this vCPU of its guest.
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
            vcpus: Arc::default(),
            awaited: false,
        })
    }
}

/// A coroutine that runs `code` for `task`.
fn body(engine: &Engine, task: TaskRef, code: impl FnOnce(&Engine) -> Suspend + 'static) -> Body {
    // The one given back last: it is the warmest.
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
    /// Runs the task's code until it suspends or ends; says why.
    #[inline(always)]
    pub(crate) fn run(self, engine: &Engine) -> Suspend {
        engine.code.yielder.set(self.yielder.get());
        // SAFETY: only this function touches the body, and it is not entered twice for one task:
        // a task runs on one vCPU at a time, and a coroutine never calls the engine.
        let slot = unsafe { &mut *self.body.get() };
        // Only idle loops come back from where they have no body.
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
