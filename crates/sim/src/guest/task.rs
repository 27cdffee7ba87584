//! Tasks of a guest: each a stackful coroutine that runs ordinary code.

use crate::world::{Suspend, TaskYielder, World};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use overspin_scenario::{Picos, WorkerReport};
use overspin_workload::{Mode, Program};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::fmt;
use std::ops::Deref;

pub(crate) type Body = Coroutine<(), Suspend, (), DefaultStack>;

/// Bytes of a task's stack. Only touched pages cost memory.
const STACK: usize = 64 << 10;

/// What the guest's scheduler knows of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// On a runqueue, or running.
    Runnable,
    /// Waits for a semaphore.
    Waiting,
    /// Waits for a time.
    Sleeping,
    /// Has ended.
    Ended,
}

/// A task.
pub(crate) struct Task {
    /// Index in its guest; idle tasks have none.
    pub index: Option<u32>,
    pub name: String,
    body: UnsafeCell<Option<Body>>,
    yielder: Cell<*const TaskYielder>,
    pub state: Cell<TaskState>,
    /// Some vCPU executes it: it has not left since it last ran.
    pub on_cpu: Cell<bool>,
    pub vruntime: Cell<Picos>,
    /// vCPU whose queue its virtual runtime refers to; `None` before it is first queued.
    pub queue: Cell<Option<u32>>,
    pub mode: Cell<Mode>,
    /// Run clock of its vCPU when it was put there.
    pub clock_in: Cell<Picos>,
    pub cpu: Cell<Picos>,
    pub user_ticks: Cell<Picos>,
    pub system_ticks: Cell<Picos>,
    pub sleeps: Cell<u64>,
    pub preemptions: Cell<u64>,
    pub items: Cell<u64>,
    pub reports: RefCell<Vec<WorkerReport>>,
    pub ended: Cell<Option<Picos>>,
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
}

impl Deref for TaskRef {
    type Target = Task;
    fn deref(&self) -> &Task {
        // SAFETY: made from a boxed task that its guest keeps until the world ends; the null value
        // of `dangling` is replaced for every vCPU before the first event.
        unsafe { &*self.0 }
    }
}

/// What a task's coroutine starts with.
pub(crate) enum Start {
    /// The idle loop of a vCPU.
    Idle,
    /// A program.
    Program(Program),
}

impl Task {
    /// A task that has not started.
    ///
    /// # Panics
    /// If the operating system gives no memory for its stack.
    pub(crate) fn new(
        world: &World,
        guest: u32,
        index: Option<u32>,
        name: String,
        start: Start,
    ) -> Box<Self> {
        let stack = world.stacks.borrow_mut().pop().unwrap_or_else(|| {
            DefaultStack::new(STACK).expect("memory for a task's stack (raise vm.max_map_count?)")
        });
        let mut task = Box::new(Self {
            index,
            name,
            body: UnsafeCell::new(None),
            yielder: Cell::new(std::ptr::null()),
            state: Cell::new(TaskState::Runnable),
            on_cpu: Cell::new(false),
            vruntime: Cell::new(0),
            queue: Cell::new(None),
            mode: Cell::new(Mode::Kernel),
            clock_in: Cell::new(0),
            cpu: Cell::new(0),
            user_ticks: Cell::new(0),
            system_ticks: Cell::new(0),
            sleeps: Cell::new(0),
            preemptions: Cell::new(0),
            items: Cell::new(0),
            reports: RefCell::default(),
            ended: Cell::new(None),
        });
        let this = TaskRef::new(&task);
        let body = Coroutine::with_stack(stack, move |yielder: &TaskYielder, ()| {
            this.yielder.set(yielder);
            let world = crate::world::world();
            world.yielder.set(yielder);
            let guest = world.guest(guest);
            match start {
                // The first code on a vCPU: nobody switched to it.
                Start::Idle => guest.idle(world),
                Start::Program(program) => {
                    guest.finish_switch(world);
                    program(&super::TaskEnv::new(world, guest, this));
                    guest.exit(world);
                }
            }
        });
        *task.body.get_mut() = Some(body);
        task
    }
}

impl TaskRef {
    /// Runs the task's code until it suspends; says why.
    #[inline]
    pub(crate) fn run(self, world: &World) -> Suspend {
        world.yielder.set(self.yielder.get());
        // SAFETY: only this function touches the body, and it is not entered twice for one task:
        // a task runs on one vCPU at a time, and a coroutine never calls the engine.
        let body = unsafe { &mut *self.body.get() };
        let running = body.as_mut().expect("a task that runs has a body");
        match running.resume(()) {
            CoroutineResult::Yield(why) => why,
            CoroutineResult::Return(()) => {
                if let Some(body) = body.take() {
                    world.stacks.borrow_mut().push(body.into_stack());
                }
                Suspend::SwitchTask
            }
        }
    }
}
