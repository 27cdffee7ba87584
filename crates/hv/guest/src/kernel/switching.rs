//! The switch from one task to another, and how tasks begin and end.

use super::{Cpu, NO, NOW, State, Status, Task, World};
use crate::env::{self, Inherited};
use crate::local::Local;
use crate::switch::switch;
use crate::{cpu, trace, upcall};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::Cell;
use core::sync::atomic::Ordering;
use overspin_guest_abi::{NEVER, TaskStats, event, port};
use overspin_scenario::Preemption;
use overspin_sched::Nanos;
use overspin_workload::Program;

/// What a new stack begins with.
struct Begin {
    world: &'static World,
    number: usize,
    by: Inherited,
    program: Program,
}

impl World {
    /// Makes a task of this name that may use these vCPUs, and puts it on the queue of `vcpu`, or of that with the fewest
    /// tasks.
    pub fn add(
        &'static self,
        (name, may_use): (&str, Arc<[u32]>),
        by: Inherited,
        vcpu: Option<u32>,
        program: Program,
    ) {
        self.left.fetch_add(u32::from(by.awaited), Ordering::Relaxed);
        let boots = crate::world().is_none();
        self.with(|state| {
            let task = state.policy.add();
            let stats = env::stats_of(task as usize);
            if self.job.shares {
                stats.set_name(name);
            }
            let stack = state.stacks.pop().unwrap_or_default();
            let begin = Box::new(Begin { world: self, number: task as usize, by, program });
            let rest = stack.begin_with(begin_task, Box::into_raw(begin) as usize);
            let locker = self.cpus.len() + task as usize;
            state.tasks.push(Some(Box::new(Task {
                local: Local::new(locker, task),
                rest: Cell::new(rest),
                stack,
                stats,
                vcpus: may_use,
                status: Status::Runnable,
                home: None,
            })));
            let target = vcpu.map_or_else(|| self.idlest(state, task), |vcpu| vcpu as usize);
            let tell = self.enqueue(state, task, target);
            // A vCPU that comes up looks at its queue by itself.
            ((), tell.filter(|_| !boots))
        });
    }

    /// The loop of a vCPU that has no task. Upcalls are masked.
    pub(super) fn idle(&self, id: usize) -> ! {
        loop {
            self.events();
            let state = self.take();
            if !state.queues[id].waiting.is_empty() || self.pull(state, id) {
                self.pass();
                continue;
            }
            self.cpus[id].resched.store(NO, Ordering::Relaxed);
            let until = next_sleeper(state, id);
            self.give();
            // If an event has come since the look at the queue, this returns at once.
            self.cpus[id].armed.set(until);
            cpu::page().deadline.store(until, Ordering::Relaxed);
            cpu::hypercall(port::BLOCK, 0);
            // This vCPU held no lock, and no task has used it.
            cpu::page().pending.fetch_and(!(event::TICK | event::NOTICE), Ordering::AcqRel);
        }
    }

    /// Lets another task run if that is due, before the return to user mode. Upcalls are masked.
    #[inline]
    pub(super) fn schedule_if_needed(&self) {
        while self.cpus[cpu::id()].resched.load(Ordering::Relaxed) != NO {
            self.take();
            self.pass();
        }
    }

    /// Lets another task run if that cannot wait for the return to user mode. Upcalls are masked.
    #[inline]
    pub(super) fn preempt_kernel(&self) {
        while self.cpus[cpu::id()].resched.load(Ordering::Relaxed) == NOW {
            self.take();
            self.pass();
        }
    }

    /// Whether another task should take over, and where kernel work ends.
    #[inline(always)]
    pub fn at_end_of_kernel_work(&self) {
        if self.job.domain.kernel.preemption >= Preemption::Lazy
            && self.cpus[cpu::id()].resched.load(Ordering::Relaxed) == NOW
        {
            let masked = cpu::mask();
            self.preempt_kernel();
            upcall::restore(masked);
        }
    }

    /// The code that follows may be preempted by any task.
    #[inline(always)]
    pub fn before_user_mode(&self) {
        if self.cpus[cpu::id()].resched.load(Ordering::Relaxed) != NO {
            let masked = cpu::mask();
            self.schedule_if_needed();
            upcall::restore(masked);
        }
    }

    /// Gives this vCPU to the task that should run. The caller has taken the state, and masked upcalls; this gives the
    /// state back. Returns when the caller's task is chosen again, maybe on another vCPU.
    pub(super) fn pass(&self) {
        // SAFETY: the caller has taken it.
        let state = unsafe { &mut *self.state.get() };
        let id = cpu::id();
        let cpu = &self.cpus[id];
        self.charge(state, id);
        cpu.resched.store(NO, Ordering::Relaxed);
        let prev = state.queues[id].current;
        let status = prev.map(|prev| state.task(prev).status);
        let goes_on = status == Some(Status::Runnable);
        if let Some(prev) = prev.filter(|_| !goes_on) {
            state.policy.leave(id, prev);
        }
        let next = state.policy.pick(id);
        if next == prev {
            return self.give();
        }
        let keep = leave(state, id, (prev, goes_on), cpu);
        let queue = &mut state.queues[id];
        queue.current = next;
        queue.waiting.retain(|task| Some(*task) != next);
        let to = match next {
            None => {
                cpu::set_current(&raw const cpu.idle);
                cpu.rest.get()
            }
            Some(next) => {
                let task = state.task(next);
                cpu::set_current(&raw const task.local);
                task.rest.get()
            }
        };
        trace::runs(cpu::now(), next);
        // SAFETY: `to` is what that task or loop, which no vCPU runs, left when it began or last left its vCPU; the state
        // has been taken ever since. `keep` is in a task or vCPU that stays where it is.
        unsafe { switch(keep, to) };
        self.finish();
    }

    /// What the incoming task, or loop, does first: it gives the state back.
    fn finish(&self) {
        // SAFETY: it was taken before the switch that led here.
        let state = unsafe { &mut *self.state.get() };
        let id = cpu::id();
        if let Some(task) = state.queues[id].ended.take() {
            state.stacks.push(task.stack);
        }
        let sleeper = next_sleeper(state, id);
        self.give();
        self.arm(id, sleeper);
    }

    /// Sets the timer of this vCPU, unless it comes by then. The idle loop does this as it blocks.
    pub(super) fn arm(&self, id: usize, sleeper: u64) {
        let armed = &self.cpus[id].armed;
        if self.job.shares && sleeper < armed.get() {
            armed.set(sleeper);
            cpu::page().deadline.store(sleeper, Ordering::Relaxed);
            cpu::hypercall(port::TIMER, 0);
        }
    }

    /// Charges the running task of a vCPU for its CPU time since it was put there or last charged.
    pub(super) fn charge(&self, state: &mut State, id: usize) {
        let (page, queue) = (cpu::page_of(id), &mut state.queues[id]);
        let (now, clock) = (cpu::now(), cpu::cpu_time_of(page));
        let charged = cpu::charged(page);
        let before = charged.load(Ordering::Relaxed);
        // The host may be about to write the clock of another vCPU; no CPU time is longer than the time.
        let ran = clock.saturating_sub(before).min(now.saturating_sub(queue.charged_at));
        charged.store(clock.max(before), Ordering::Relaxed);
        queue.charged_at = now;
        let Some(task) = queue.current else { return };
        let task = state.task(task);
        task.local.cpu.fetch_add(ran, Ordering::Relaxed);
        TaskStats::add(&task.stats.cpu, ran);
        if state.policy.charge(id, Nanos(ran as i64)) {
            self.ask(id);
        }
    }

    /// Asks that another task take over on a vCPU, which runs a task. Returns whether that is new.
    pub(super) fn ask(&self, id: usize) -> bool {
        let lazily = self.job.domain.kernel.preemption == Preemption::Lazy;
        let asked = if lazily { super::LAZY } else { NOW };
        self.cpus[id].resched.fetch_max(asked, Ordering::Relaxed) == NO
    }

    /// Ends the running task.
    fn end(&self, stats: &TaskStats, awaited: bool) -> ! {
        cpu::mask();
        let state = self.take();
        self.charge(state, cpu::id());
        // Before anybody can know that it has ended: the end of the last task is the end of the run.
        stats.ended.store(cpu::now() + 1, Ordering::Relaxed);
        if awaited && self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            cpu::hypercall(port::SHUTDOWN, 0);
        }
        let task = state.queues[cpu::id()].current.expect("this task runs");
        state.task(task).status = Status::Ended;
        self.pass();
        // Nobody goes on with what has ended.
        cpu::idle()
    }
}

/// The task leaves vCPU `id`, and waits there if it `goes_on`. Returns where its stack pointer goes.
fn leave(
    state: &mut State,
    id: usize,
    (task, goes_on): (Option<u32>, bool),
    cpu: &Cpu,
) -> *mut usize {
    let Some(number) = task else { return cpu.rest.as_ptr() };
    if state.task(number).status == Status::Ended {
        state.queues[id].ended = state.tasks[number as usize].take();
        return cpu.scrap.as_ptr();
    }
    if goes_on {
        state.queues[id].waiting.push(number);
    }
    let task = state.task(number);
    let switches = if goes_on { &task.stats.preemptions } else { &task.stats.sleeps };
    TaskStats::add(switches, 1);
    task.local.preemptions.fetch_add(u64::from(goes_on), Ordering::Relaxed);
    task.rest.as_ptr()
}

/// When the first sleeper of a vCPU wakes.
pub(super) fn next_sleeper(state: &State, id: usize) -> u64 {
    state.queues[id].sleepers.peek().map_or(NEVER, |sleeper| sleeper.0.0)
}

/// The first function on a new stack.
extern "C" fn begin_task(begin: usize) -> ! {
    // SAFETY: `add` has made it of a box, for this stack alone.
    let begin = unsafe { Box::from_raw(begin as *mut Begin) };
    let Begin { world, number, by, program } = *begin;
    world.finish();
    upcall::unmask();
    let awaited = by.awaited;
    let task = env::Task::new(world, number, by);
    let stats = task.stats();
    stats.begun.store(1, Ordering::Relaxed);
    program(&task);
    drop(task);
    world.end(stats, awaited)
}
