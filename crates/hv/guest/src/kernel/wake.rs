//! Puts tasks on queues: chooses the vCPU of a task when it is new, when it wakes, and when a vCPU has nothing to do. As the
//! simulator's `guest/balance.rs`.

use super::{NO, NOW, State, Status, World};
use crate::cpu;
use core::sync::atomic::Ordering;

impl World {
    /// The vCPU with the fewest tasks among those that `task` may use. The search begins with this vCPU, which therefore
    /// wins a tie.
    pub(super) fn idlest(&self, state: &mut State, task: u32) -> usize {
        let (here, vcpus) = (cpu::id(), self.cpus.len());
        let all = (0..vcpus).map(|i| (here + i) % vcpus);
        let may_use =
            |id: &usize| state.tasks[task as usize].as_ref().is_some_and(|task| task.may_use(*id));
        all.filter(may_use).min_by_key(|id| state.load(*id)).unwrap_or(here)
    }

    /// The vCPU for a task that wakes from a wait for a lock: its own if that idles, else one that idles, else its own.
    pub(super) fn target(&self, state: &mut State, task: u32) -> usize {
        let own = state.task(task).home.unwrap_or(0);
        if state.load(own) == 0 {
            return own;
        }
        let idlest = self.idlest(state, task);
        if state.load(idlest) == 0 { idlest } else { own }
    }

    /// Makes a waiting task ready on `target`, or on the idlest vCPU that it may use. Returns a vCPU to tell. No effect on
    /// a task that waits no longer.
    pub(super) fn wake(&self, state: &mut State, task: u32, target: usize) -> Option<usize> {
        let it = state.task(task);
        if it.status == Status::Runnable {
            return None;
        }
        it.status = Status::Runnable;
        let target = if it.may_use(target) { target } else { self.idlest(state, task) };
        self.enqueue(state, task, target)
    }

    /// Puts a task on the queue of `target`. Returns that vCPU if it has to be told.
    pub(super) fn enqueue(&self, state: &mut State, task: u32, target: usize) -> Option<usize> {
        self.charge(state, target);
        let new = state.task(task).home.replace(target).is_none();
        state.policy.enqueue(target, task, new);
        let idles = state.queues[target].current.is_none();
        state.queues[target].waiting.push(task);
        if !state.policy.preempts(target, task) {
            return None;
        }
        let resched = &self.cpus[target].resched;
        let tell = if idles {
            resched.swap(NOW, Ordering::Relaxed) == NO
        } else {
            // A task that may wait for the return to user mode is not told.
            self.ask(target) && resched.load(Ordering::Relaxed) == NOW
        };
        (tell && target != cpu::id()).then_some(target)
    }

    /// Moves a waiting task from the fullest other vCPU to this one. Returns whether there was one.
    pub(super) fn pull(&self, state: &mut State, here: usize) -> bool {
        let vcpus = self.cpus.len();
        let of = |state: &State, id: usize| {
            let mut waiting = state.queues[id].waiting.iter().rev().copied();
            waiting.find(|task| {
                state.tasks[*task as usize].as_ref().is_some_and(|task| task.may_use(here))
            })
        };
        let others = (1..vcpus).map(|i| (here + i) % vcpus);
        let Some((from, task)) = others
            .filter_map(|id| Some((id, of(state, id)?)))
            // As in the simulator, a vCPU with a single task keeps it.
            .filter(|(id, _)| state.load(*id) > 1)
            .max_by_key(|(id, _)| state.load(*id))
        else {
            return false;
        };
        state.queues[from].waiting.retain(|waiting| *waiting != task);
        state.policy.leave(from, task);
        state.task(task).home = Some(here);
        state.policy.arrive(here, task);
        state.queues[here].waiting.push(task);
        true
    }
}
