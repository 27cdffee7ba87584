//! Tasks that do again what was recorded of them: run, sleep, wait for each other, wake each other.
//!
//! What follows what is kept, not when it was. A task that another task woke is woken by it again, at the same
//! point of the waker's work. So on other CPUs, under another scheduler, the recorded work takes a course of its own.
//!
//! Each task has a semaphore on which it waits. If it is woken before it waits, it does not wait at all: as a
//! reader of a pipe that is not empty.

use crate::parameters::parameters;
use crate::{Env, Fault, Load, LockUse, Mode, Program, Semaphore, Start, WorkloadInfo};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{AcqRel, Acquire};
use overspin_scenario::{Parameters, Picos, parse_time};

parameters! {
    Replay: pub(crate) KEYS at "[domain.workload] with kind = \"replay\"",
    "Recorded tasks, one on each vCPU, that wake each other in the recorded order. With fewer vCPUs than tasks, the \
     kernel of the domain deals them out. `overspin import perf-sched` writes it." {
        tasks: Vec<String> = Texts, Required,
            "The tasks, numbered from 0: `NAME: STEP, STEP`. Steps are `run 85us` (CPU time), `sleep 3ms`, `wait` \
             (until another task wakes this one), `wake 2` (wakes task 2) and `hold NAME 2us` (CPU time under a lock).";
        mode: Mode = Choice(Mode::WORDS), Is("kernel"),
            "The locks are the guest kernel's, or a program's: then the kernel preempts their holders and waiters.";
    }
}

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<Replay>(
    "recorded tasks that run, sleep, wait for each other and wake each other",
    "perf sched",
    &KEYS,
);

impl Parameters for Replay {
    const KIND: &'static str = "replay";
}

/// Something that a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Uses this much CPU time.
    Run(Picos),
    /// Sleeps for this long.
    Sleep(Picos),
    /// Sleeps until another task wakes it.
    Wait,
    /// Wakes the task of this number.
    Wake(usize),
    /// Uses this much CPU time under the lock of this number.
    Hold(usize, Picos),
}

/// All tasks, and the locks that they take.
#[derive(Debug)]
struct Script {
    tasks: Vec<(String, Vec<Step>)>,
    locks: Vec<String>,
}

impl Script {
    fn of(texts: &[String]) -> Result<Self, Fault> {
        let mut script = Self { tasks: Vec::with_capacity(texts.len()), locks: Vec::new() };
        for (i, text) in texts.iter().enumerate() {
            let (name, steps) = match text.split_once(": ") {
                Some((name, steps)) => (name.to_owned(), steps),
                None => (format!("task{i}"), text.as_str()),
            };
            let steps: Result<Vec<Step>, String> =
                steps.split(',').map(|step| script.step(step.trim(), texts.len())).collect();
            let steps = steps.map_err(|message| {
                let help = "for example \"cat: wait, run 85us, wake 0, sleep 3ms, hold inode 2us\"";
                Fault::new("tasks", format!("task {i}, `{name}`: {message}"), help)
            })?;
            script.tasks.push((name, steps));
        }
        Ok(script)
    }

    fn step(&mut self, text: &str, tasks: usize) -> Result<Step, String> {
        let (what, rest) = text.split_once(' ').unwrap_or((text, ""));
        match what {
            "run" => Ok(Step::Run(parse_time(rest)?)),
            "sleep" => Ok(Step::Sleep(parse_time(rest)?)),
            "wait" if rest.is_empty() => Ok(Step::Wait),
            "wake" => match rest.parse() {
                Ok(task) if task < tasks => Ok(Step::Wake(task)),
                _ => Err(format!("there is no task `{rest}` to wake; there are {tasks}, from 0")),
            },
            "hold" => {
                let (name, length) =
                    rest.split_once(' ').ok_or(format!("`{text}` needs a lock and a time"))?;
                let known = self.locks.iter().position(|lock| lock == name);
                let lock = known.unwrap_or_else(|| {
                    self.locks.push(name.to_owned());
                    self.locks.len() - 1
                });
                Ok(Step::Hold(lock, parse_time(length)?))
            }
            _ => Err(format!("`{text}` is not a step; steps are run, sleep, wait, wake, hold")),
        }
    }
}

impl Load for Replay {
    fn check(&self) -> Result<(), Fault> {
        let script = Script::of(&self.tasks)?;
        // Waits, and the wake-ups for them.
        let mut sides = vec![(0_u64, 0_u64); script.tasks.len()];
        for (i, (_, steps)) in script.tasks.iter().enumerate() {
            for step in steps {
                match *step {
                    Step::Wait => sides[i].0 += 1,
                    Step::Wake(task) => sides[task].1 += 1,
                    _ => {}
                }
            }
        }
        match sides.iter().position(|(waits, wakes)| waits > wakes) {
            None => Ok(()),
            Some(i) => {
                let (name, (waits, wakes)) = (&script.tasks[i].0, sides[i]);
                let message =
                    format!("task {i}, `{name}`, waits {waits} times, but is woken {wakes} times");
                let help = format!("each `wait` of task {i} needs a `wake {i}` of another task");
                Err(Fault::new("tasks", message, help))
            }
        }
    }

    fn locks_in_user_mode(&self) -> bool {
        self.mode == Mode::User
    }

    fn lock_names(&self) -> Vec<String> {
        Script::of(&self.tasks).map_or_else(|_| Vec::new(), |script| script.locks)
    }

    fn is_endless(&self) -> bool {
        false
    }

    fn most_tasks(&self, _vcpus: u32) -> u64 {
        self.tasks.len() as u64
    }

    fn stays(&self, vcpus: u32) -> bool {
        self.tasks.len() as u64 <= u64::from(vcpus)
    }

    fn start(&self, vcpus: u32) -> Vec<Start> {
        let Ok(script) = Script::of(&self.tasks) else { return Vec::new() };
        let gates = Arc::new(Gates::new(script.tasks.len()));
        let how = match self.mode {
            Mode::User => LockUse::User,
            Mode::Kernel => LockUse::Plain,
        };
        let mut starts = Vec::with_capacity(script.tasks.len());
        for (i, (name, steps)) in script.tasks.into_iter().enumerate() {
            let gates = Arc::clone(&gates);
            let program: Program = Box::new(move |env| go(env, i, &steps, (&gates, how)));
            starts.push(Start { name, vcpu: Some(i as u32 % vcpus.max(1)), program });
        }
        starts
    }
}

fn go(env: &dyn Env, me: usize, steps: &[Step], (gates, how): (&Gates, LockUse)) {
    for step in steps {
        match *step {
            Step::Run(work) => {
                env.compute(work, Mode::User);
                env.item_done();
            }
            Step::Sleep(time) => env.sleep(time),
            Step::Wait => env.down(gates.of(env, me)),
            Step::Wake(task) => env.up(gates.of(env, task)),
            Step::Hold(lock, work) => env.section(lock, how, work),
        }
    }
}

/// A semaphore for each task. Only a world makes semaphores, so the first task that needs one has it made.
#[derive(Debug)]
struct Gates(Vec<AtomicUsize>);

/// No semaphore yet; a gate keeps the number of its semaphore plus one.
const NONE: usize = 0;

impl Gates {
    fn new(tasks: usize) -> Self {
        Self((0..tasks).map(|_| AtomicUsize::new(NONE)).collect())
    }

    fn of(&self, env: &dyn Env, task: usize) -> Semaphore {
        let gate = &self.0[task];
        // `Acquire` and `AcqRel`: another task may use the semaphore only after it was made.
        match gate.load(Acquire) {
            NONE => {
                let made = env.semaphore(0);
                match gate.compare_exchange(NONE, made.0 + 1, AcqRel, Acquire) {
                    Ok(_) => made,
                    // Another task was faster; nobody uses this one.
                    Err(theirs) => Semaphore(theirs - 1),
                }
            }
            made => Semaphore(made - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::{MS, US};
    use std::string::ToString;

    fn replay(tasks: &[&str]) -> Replay {
        let tasks = tasks.iter().map(ToString::to_string).collect();
        Replay { tasks, mode: Mode::Kernel }
    }

    #[test]
    fn texts_become_steps() {
        let all =
            replay(&["a b-7: run 1.5us, wake 1, hold inode 2us", "wait, sleep 3ms, hold x 1us"]);
        all.check().unwrap();
        let script = Script::of(&all.tasks).unwrap();
        assert_eq!(script.locks, ["inode", "x"]);
        let (name, steps) = &script.tasks[0];
        assert_eq!(name, "a b-7");
        assert_eq!(steps, &[Step::Run(Picos(1_500_000)), Step::Wake(1), Step::Hold(0, 2 * US)]);
        let (name, steps) = &script.tasks[1];
        assert_eq!(name, "task1");
        assert_eq!(steps, &[Step::Wait, Step::Sleep(3 * MS), Step::Hold(1, US)]);
    }

    #[test]
    fn faults_name_the_task() {
        for (tasks, message) in [
            (&["a: runs 1us"][..], "task 0, `a`: `runs 1us` is not a step"),
            (&["a: run 1", "b: run 1us"], "task 0, `a`: "),
            (&["a: run 1us", "b: wake 2"], "task 1, `b`: there is no task `2`"),
            (&["a: hold 1us"], "`hold 1us` needs a lock and a time"),
            (&["a: run 2000h"], "longer than 1000h"),
            (&["a: wait, wait", "b: wake 0"], "waits 2 times, but is woken 1 times"),
        ] {
            let fault = replay(tasks).check().unwrap_err();
            assert!(fault.message.contains(message), "{}", fault.message);
            assert_eq!(fault.key, "tasks");
        }
    }
}
