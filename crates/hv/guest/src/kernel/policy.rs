//! The scheduler of the guest's kernel: the one that the domain asks for.

use overspin_scenario::{GuestScheduler, Kernel, Picos};
use overspin_sched::{Cfs2008Queues, Nanos, TaskQueues};

/// Which task runs on a vCPU.
pub enum Policy {
    Cfs2008(Cfs2008Queues),
    Eevdf(TaskQueues),
}

fn nanos(time: Picos) -> Nanos {
    // No key allows more than some days.
    Nanos((time.0 / 1000) as i64)
}

impl Policy {
    pub fn new(kernel: &Kernel, vcpus: u32) -> Self {
        let tick = Nanos::SEC / i64::from(kernel.hz.max(1));
        let eevdf = |is_6_18| Self::Eevdf(TaskQueues::new(is_6_18, vcpus, tick));
        match kernel.scheduler {
            GuestScheduler::Cfs2008 => {
                let times = (nanos(kernel.slice), nanos(kernel.wakeup_granularity));
                Self::Cfs2008(Cfs2008Queues::new(vcpus, times.0, times.1))
            }
            GuestScheduler::Eevdf => eevdf(false),
            GuestScheduler::Eevdf618 => eevdf(true),
        }
    }

    /// A new task. Returns its number.
    pub fn add(&mut self) -> u32 {
        match self {
            Self::Cfs2008(queues) => queues.add(),
            Self::Eevdf(queues) => queues.add(),
        }
    }

    /// A task, for the first time or after a wait, joins the queue of a vCPU.
    pub fn enqueue(&mut self, id: usize, task: u32, new: bool) {
        match self {
            Self::Cfs2008(queues) => queues.enqueue(id as u32, task),
            Self::Eevdf(queues) => queues.enqueue(id as u32, task, new),
        }
    }

    /// A task that waited on another queue joins that of a vCPU.
    pub fn arrive(&mut self, id: usize, task: u32) {
        match self {
            Self::Cfs2008(queues) => queues.arrive(id as u32, task),
            Self::Eevdf(queues) => queues.arrive(id as u32, task),
        }
    }

    /// A task leaves the queue of a vCPU.
    pub fn leave(&mut self, id: usize, task: u32) {
        match self {
            Self::Cfs2008(queues) => queues.leave(id as u32, task),
            Self::Eevdf(queues) => queues.leave(id as u32, task),
        }
    }

    /// Charges the running task of a vCPU. Returns whether it must give way.
    pub fn charge(&mut self, id: usize, time: Nanos) -> bool {
        match self {
            Self::Cfs2008(queues) => {
                queues.charge(id as u32, time);
                false
            }
            Self::Eevdf(queues) => queues.charge(id as u32, time),
        }
    }

    /// Whether the running task, which is charged, must give way at a tick.
    pub fn tick(&self, id: usize) -> bool {
        match self {
            Self::Cfs2008(queues) => queues.tick(id as u32),
            // It says so when the task is charged.
            Self::Eevdf(_) => false,
        }
    }

    /// The task that runs from now on.
    pub fn pick(&mut self, id: usize) -> Option<u32> {
        match self {
            Self::Cfs2008(queues) => queues.pick(id as u32),
            Self::Eevdf(queues) => queues.pick(id as u32),
        }
    }

    /// Whether a task that has just joined preempts the running one.
    pub fn preempts(&mut self, id: usize, new: u32) -> bool {
        match self {
            Self::Cfs2008(queues) => queues.preempts(id as u32, new),
            Self::Eevdf(queues) => queues.preempts(id as u32, new),
        }
    }

    /// The running task lets the others run first. Returns whether it has to be asked who does.
    pub fn yield_now(&mut self, id: usize) -> bool {
        match self {
            Self::Cfs2008(queues) => queues.yield_now(id as u32),
            Self::Eevdf(queues) => {
                queues.yield_now(id as u32);
                true
            }
        }
    }
}
