//! Threads that take one lock again and again: the microbenchmark of every lock paper. With sleeps between sections and inside of
//! them it is what servers do.

use crate::parameters::parameters;
use crate::{
    Env, Excursion, Fault, Load, LockUse, Mode, Program, Random, SliceRequest, Start, Trip, Waking,
    WorkloadInfo, threads,
};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use overspin_scenario::{Parameters, Picos, Tree, Value, defaults};

/// The most locks of a lock loop. With more, threads hardly ever meet at one.
pub const MOST_LOCKS: u32 = 64;

parameters! {
    LockLoop: pub(crate) KEYS at "[domain.workload] with kind = \"lock-loop\"",
    "Threads that take one lock again and again." {
        threads: u32 = integer(0, 100_000), Is("0"), "Threads; 0 means one on each vCPU.";
        locks: u32 = integer(1, MOST_LOCKS as u64), Is("1"), "Locks; each section takes one of them by lot.";
        section: Picos = ANY, Is("2us"), "Time in the section.";
        outside: Picos = ANY, Is("10us"), "Mean time between sections.";
        fixed: bool = Boolean, Is("false"),
            "The time outside is fixed instead of exponential.";
        idle: Picos = ANY, Is("0"), "Mean time of a thread's sleeps between sections; 0: it never sleeps.";
        idle_every: u64 = integer(1, u64::MAX), Is("1"), "Mean number of sections from one such sleep to the next.";
        requests: bool = Boolean, Is("false"),
            "Sleeps come after exactly `idle_every` sections, and what a thread does between two sleeps is a request: its \
             latency is the time from the end of the sleep to the end of the last section. Threads stay on their vCPUs.";
        asleep: Picos = ANY, Is("0"),
            "Mean time of sleeps inside of sections, with the lock held, in user mode; 0: there are none.";
        asleep_every: u64 = integer(1, u64::MAX), Is("1"), "Mean number of sections to one with a sleep inside.";
        woken: Waking = Choice(Waking::WORDS), Is("timer"),
            "What ends the sleeps between sections: the thread's own vCPU, or an interrupt of another one.";
        excursion: Picos = ANY, Is("0"),
            "Time in the kernel of a thread in user mode, halfway through a section; 0: it stays in user mode. A system call's \
             entry and return come on top.";
        excursion_every: u64 = integer(1, u64::MAX), Is("1"), "Mean number of sections to one with an excursion.";
        excursion_kind: Excursion = Choice(Excursion::WORDS), Is("fault"), "What the excursion is.";
        run_up: Picos = ANY, Is("0"),
            "Time in user mode from a return out of the kernel to the lock; it comes after the time outside. What the kernel has \
             put off to the next return to user mode (`kernel.preemption = \"lazy\"`) waits for so long, and, with an excursion, \
             ends in the section.";
        unmap_every: u64 = integer(0, u64::MAX), Is("0"),
            "Mean number of sections to one after which the thread unmaps memory, and waits until the vCPUs of all others know \
             (TLB shootdown); 0: it never does.";
        mode: Mode = Choice(Mode::WORDS), Is("kernel"),
            "The lock is the guest kernel's, or a program's: then the kernel preempts its holder and its waiters.";
        irqs_off: bool = Boolean, Follows(|tree| Value::from(is_kernels(tree)), "true in kernel mode"),
            "Interrupts are off in the section and while waiting for it.";
        slice_request: SliceRequest = Choice(SliceRequest::WORDS), Is("never"),
            "When a thread in user mode asks its kernel for an extension of its time slice (`kernel.slice_extension`): while it tries \
             and holds the lock, but not while it waits (`holding`), or around lock and section (`waiting`).";
        count: u64 = integer(0, u64::MAX), Is("0"),
            "Sections of each thread; 0 means until the limit.";
    }
}

defaults!(LockLoop {});

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<LockLoop>(
    "threads that take one lock again and again, with work inside and outside",
    "Mellor-Crummey and Scott 1991; lockhammer's critical and parallel sections",
    &KEYS,
);

impl Parameters for LockLoop {
    const KIND: &'static str = "lock-loop";
}

/// Whether a table, which may lack the key, has sections in kernel mode.
fn is_kernels(tree: &Tree) -> bool {
    tree.get("mode").is_none_or(|mode| mode == Mode::Kernel.name())
}

impl Load for LockLoop {
    fn check(&self) -> Result<(), Fault> {
        if self.mode == Mode::User && self.irqs_off {
            let message = "user-mode code cannot switch interrupts off";
            return Err(Fault::new(
                "irqs_off",
                message,
                "leave `irqs_off` out, or write `mode = \"kernel\"`",
            ));
        }
        if self.requests && self.idle == Picos::ZERO {
            return Err(Fault::new(
                "requests",
                "a request begins when a sleep ends, and threads never sleep",
                "give `idle` a time, or leave `requests` out",
            ));
        }
        if self.mode == Mode::Kernel && self.asleep > Picos::ZERO {
            let message = "the kernel's locks are not held over sleeps";
            return Err(Fault::new(
                "asleep",
                message,
                "write `mode = \"user\"`, or `asleep = \"0\"`",
            ));
        }
        let entries = [("excursion", self.excursion), ("run_up", self.run_up)];
        if let Some((key, _)) = entries.iter().find(|(_, time)| *time > Picos::ZERO)
            && self.mode == Mode::Kernel
        {
            let message = "a thread in kernel mode does not enter the kernel";
            return Err(Fault::new(*key, message, "write `mode = \"user\"`, or leave the key out"));
        }
        if self.mode == Mode::Kernel && self.slice_request != SliceRequest::Never {
            let message = "the kernel does not preempt holders of its own locks";
            return Err(Fault::new(
                "slice_request",
                message,
                "write `mode = \"user\"`, or leave `slice_request` out",
            ));
        }
        Ok(())
    }

    fn asks_for_extensions(&self) -> bool {
        self.slice_request != SliceRequest::Never
    }

    fn makes_excursions(&self) -> bool {
        self.trips() || self.woken == Waking::Elsewhere && self.idle > Picos::ZERO
    }

    fn unmaps(&self) -> bool {
        self.unmap_every > 0
    }

    fn locks_in_user_mode(&self) -> bool {
        self.mode == Mode::User
    }

    fn stays(&self, _vcpus: u32) -> bool {
        self.requests
    }

    fn lock_names(&self) -> Vec<String> {
        match self.locks {
            0 | 1 => vec!["section".into()],
            locks => (0..locks).map(|lock| format!("section-{lock}")).collect(),
        }
    }

    fn is_endless(&self) -> bool {
        self.count == 0
    }

    fn work_per_item(&self) -> Option<Picos> {
        let sections = if self.requests { self.idle_every } else { 1 };
        Some(
            (self.section + self.outside + self.run_up + self.excursion / self.excursion_every)
                * sections,
        )
    }

    fn most_tasks(&self, vcpus: u32) -> u64 {
        threads::number(self.threads, vcpus).into()
    }

    fn start(&self, vcpus: u32) -> Vec<Start> {
        threads::start("loop", self.threads, vcpus, |_| {
            let w = self.clone();
            let program: Program = Box::new(move |env| w.run(env));
            program
        })
    }
}

impl LockLoop {
    /// Whether its sections are [trips](Env::trip).
    fn trips(&self) -> bool {
        self.excursion > Picos::ZERO || self.run_up > Picos::ZERO
    }

    /// A section with a run-up and, by lot, with an excursion.
    fn trip(&self, random: &mut Random) -> Trip {
        let enters = self.excursion > Picos::ZERO && random.below(self.excursion_every) == 0;
        Trip {
            run_up: self.run_up,
            work: self.section,
            excursion: enters.then_some((self.excursion_kind, self.excursion)),
        }
    }

    fn idles(&self, env: &dyn Env, time: Picos) {
        match self.woken {
            Waking::Timer => env.sleep(time),
            Waking::Elsewhere => env.sleep_until_woken(time),
        }
    }

    fn run(&self, env: &dyn Env) {
        let mut random = env.random(0);
        let how = match self.mode {
            Mode::User => LockUse::User,
            Mode::Kernel if self.irqs_off => LockUse::IrqSave,
            Mode::Kernel => LockUse::Plain,
        };
        if self.asks_for_extensions() {
            env.ask_for_extensions(self.slice_request);
        }
        let mut done = 0;
        // When the request came, and the sections that it still needs.
        let (mut came, mut left) = (env.now(), self.idle_every);
        while self.count == 0 || done < self.count {
            let lock = match self.locks {
                // Without a lot: runs with one lock are those of before.
                0 | 1 => 0,
                locks => random.below(locks.into()) as usize,
            };
            if self.asleep > Picos::ZERO && random.below(self.asleep_every) == 0 {
                env.acquire(lock, how);
                env.compute(self.section, Mode::User);
                env.sleep(random.exponential(self.asleep));
                env.release(lock);
            } else if self.trips() {
                env.trip(lock, self.trip(&mut random));
            } else {
                env.section(lock, how, self.section);
            }
            if !self.requests {
                env.item_done();
            }
            done += 1;
            if self.unmap_every > 0 && random.below(self.unmap_every) == 0 {
                env.unmap();
            }
            if self.outside > Picos::ZERO {
                let outside =
                    if self.fixed { self.outside } else { random.exponential(self.outside) };
                env.compute(outside, Mode::User);
            }
            if self.requests {
                left -= 1;
                if left == 0 {
                    env.answered(came);
                    let idle = random.exponential(self.idle);
                    came = env.now() + idle;
                    left = self.idle_every;
                    self.idles(env, idle);
                }
            } else if self.idle > Picos::ZERO && random.below(self.idle_every) == 0 {
                self.idles(env, random.exponential(self.idle));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kinds, Loads};
    use overspin_scenario::{Domain, MS};

    #[test]
    fn each_lock_has_its_name() {
        assert_eq!(LockLoop::default().lock_names(), ["section"]);
        let three = LockLoop { locks: 3, ..LockLoop::default() };
        assert_eq!(three.lock_names(), ["section-0", "section-1", "section-2"]);
    }

    #[test]
    fn only_a_programs_lock_is_held_over_a_sleep() {
        let program =
            LockLoop { mode: Mode::User, irqs_off: false, asleep: MS, ..LockLoop::default() };
        program.check().unwrap();
        let kernel = LockLoop { mode: Mode::Kernel, ..program };
        assert_eq!(kernel.check().unwrap_err().key, "asleep");
        let restless = LockLoop { requests: true, ..LockLoop::default() };
        assert_eq!(restless.check().unwrap_err().key, "requests");
    }

    #[test]
    fn only_a_program_enters_its_kernel_and_only_a_simulated_one_can_be_told_when() {
        let faults =
            LockLoop { mode: Mode::User, irqs_off: false, excursion: MS, ..LockLoop::default() };
        faults.check().unwrap();
        let kernel = LockLoop { mode: Mode::Kernel, ..faults.clone() };
        assert_eq!(kernel.check().unwrap_err().key, "excursion");
        let loads = Loads::of(&Domain::new("d", 1, "ticket", faults), &Kinds::builtin()).unwrap();
        assert!(loads.only_simulated().unwrap().contains("excursion"));
    }

    #[test]
    fn only_a_program_asks_for_extensions_and_only_a_simulated_kernel_grants_them() {
        let asks = LockLoop {
            mode: Mode::User,
            irqs_off: false,
            slice_request: SliceRequest::Holding,
            ..LockLoop::default()
        };
        asks.check().unwrap();
        let kernel = LockLoop { mode: Mode::Kernel, ..asks.clone() };
        assert_eq!(kernel.check().unwrap_err().key, "slice_request");
        let loads = Loads::of(&Domain::new("d", 1, "ticket", asks), &Kinds::builtin()).unwrap();
        assert!(loads.only_simulated().unwrap().contains("slice_request"));
    }
}
