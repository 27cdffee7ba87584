//! Waits of tasks: for a time, for a semaphore, and for a lock of user mode. An address is that of a futex.

use super::{NOW, State, Status, World};
use crate::{cpu, trace, upcall};
use alloc::collections::VecDeque;
use core::cmp::Reverse;
use core::sync::atomic::Ordering;
use overspin_guest_abi::kind;

impl World {
    /// Lets the running task wait, after `enlist` has put it where others find it. `enlist` returns false if it need not.
    fn wait(&self, enlist: impl FnOnce(&mut State, u32) -> bool) {
        let masked = cpu::mask();
        let state = self.take();
        let task = cpu::current().task;
        if enlist(state, task) {
            state.task(task).status = Status::Waiting;
            self.pass();
        } else {
            self.give();
        }
        upcall::restore(masked);
    }

    /// Lets the running task wait until `end`.
    pub fn sleep_until(&self, end: u64) {
        self.wait(|state, task| {
            let queue = &mut state.queues[cpu::id()];
            queue.slept += 1;
            queue.sleepers.push(Reverse((end, queue.slept, task)));
            true
        });
    }

    /// A new semaphore.
    pub fn semaphore(&self, count: u32) -> usize {
        self.with(|state| {
            state.semaphores.push((count, VecDeque::new()));
            (state.semaphores.len() - 1, None)
        })
    }

    /// Takes a unit of a semaphore, waiting for it if need be.
    pub fn down(&self, semaphore: usize) {
        self.wait(|state, task| {
            let (count, waiters) = &mut state.semaphores[semaphore];
            if *count > 0 {
                *count -= 1;
                return false;
            }
            waiters.push_back(task);
            true
        });
    }

    /// Gives a unit to the first waiter of a semaphore, or to the semaphore.
    pub fn up(&self, semaphore: usize) {
        self.with(|state| {
            let (count, waiters) = &mut state.semaphores[semaphore];
            match waiters.pop_front() {
                // A synchronous wake-up: the sleeper moves to the waker's vCPU.
                Some(task) => ((), self.wake(state, task, cpu::id())),
                None => {
                    *count += 1;
                    ((), None)
                }
            }
        });
    }

    /// A system call of a task in user mode. What it does is kernel code.
    fn system_call(&self, does: impl FnOnce()) {
        let local = cpu::current();
        let masked = cpu::mask();
        local.user.store(false, Ordering::SeqCst);
        does();
        self.schedule_if_needed();
        local.user.store(true, Ordering::SeqCst);
        upcall::restore(masked);
    }

    /// Puts the running task to sleep until [`unpark`](Self::unpark); not if that came since its latch was cleared, or if
    /// `still` returns false.
    pub fn park(&self, still: impl FnOnce() -> bool) {
        self.system_call(|| {
            let (state, local) = (self.take(), cpu::current());
            if still() && !local.latch.swap(false, Ordering::SeqCst) {
                state.task(local.task).status = Status::Parked;
                trace::sleeps(cpu::now(), kind::SLEEPS, local.task);
                self.pass();
                trace::sleeps(cpu::now(), kind::RETURNS, local.task);
            } else {
                self.give();
            }
        });
    }

    /// Wakes a task that parks, or keeps it from doing so; `None`: the call finds nobody.
    pub fn unpark(&self, task: Option<u32>) {
        self.system_call(|| {
            let state = self.take();
            let tell = task.and_then(|task| self.unpark_in(state, task));
            self.give();
            self.tell(tell);
        });
    }

    fn unpark_in(&self, state: &mut State, task: u32) -> Option<usize> {
        let it = state.tasks.get_mut(task as usize)?.as_mut()?;
        it.local.latch.store(true, Ordering::SeqCst);
        if it.status != Status::Parked {
            return None;
        }
        trace::sleeps(cpu::now(), kind::WAKES, task);
        let target = self.target(state, task);
        self.wake(state, task, target)
    }

    /// Lets the running task sleep until a wake-up at `address`. Returns at once if `still` returns false.
    pub fn task_waits_at(&self, address: u64, still: impl FnOnce() -> bool) {
        let local = cpu::current();
        local.latch.store(false, Ordering::SeqCst);
        // Register first, then look: a wake-up between the two sets the latch.
        self.in_state(|state| state.waiters.push_back((address, local.task)));
        self.park(still);
        // A wake-up has removed the entry already.
        self.in_state(|state| state.waiters.retain(|(_, task)| *task != local.task));
    }

    fn in_state(&self, does: impl FnOnce(&mut State)) {
        self.with(|state| (does(state), None));
    }

    /// Wakes the task that has slept on `address` for the longest time, if any.
    pub fn wake_at(&self, address: u64) {
        self.system_call(|| {
            let state = self.take();
            let at = state.waiters.iter().position(|(key, _)| *key == address);
            let first = at.and_then(|at| state.waiters.remove(at));
            let tell = first.and_then(|(_, task)| self.unpark_in(state, task));
            self.give();
            self.tell(tell);
        });
    }

    /// Lets the other tasks of its vCPU run before the running one (`sched_yield`).
    pub fn yield_task(&self) {
        self.system_call(|| {
            let (state, id) = (self.take(), cpu::id());
            self.charge(state, id);
            if state.policy.yield_now(id) {
                self.cpus[id].resched.store(NOW, Ordering::Relaxed);
            }
            self.give();
        });
    }
}
