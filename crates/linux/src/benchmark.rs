//! Benchmarks inside guests, as benchmarks of the host: a guest is booted for each run, so that none has what another left.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use overspin_real::kernbench::{Load, with_usage};
use overspin_real::program::Usage;
use overspin_real::scratch::Scratch;
use overspin_real::{Benchmark, Cancel, Failed, Outcome, Steps, told};
use overspin_scenario::Metric;

use crate::guest::{Guest, NoAnswer, VcpuTime};
use crate::image;
use crate::inside::with_counts;
use crate::machine::{Accelerator, Files, Machine, in_brief};
use crate::talk::{Ask, Ran, Root, Say, Watched};
use crate::{LinuxError, STOCK_FAIR};

/// Whether it came to its end.
pub static FINISHED: Metric =
    Metric::new("finished", "", "1 if the run came to its end within its limit, else 0");
/// Time of a vCPU, or of its thread.
pub static VCPU_TIME: Metric = Metric::new(
    "vcpu-time",
    "s",
    "time that a vCPU, or all, had a CPU of the host, or a pCPU of Xen",
);
/// Time without a CPU.
pub static VCPU_WAIT: Metric =
    Metric::new("vcpu-wait", "s", "time that a vCPU, or all, was ready and had none");
/// Time of waiting, which only Xen tells.
pub static VCPU_BLOCKED: Metric = Metric::new(
    "vcpu-blocked",
    "s",
    "time that a vCPU, or all, slept; under Xen, where only waiters do",
);
/// What the kernel's own lock counts.
pub static SLOW_PATHS: Metric = Metric::new(
    "slow-paths",
    "",
    "acquisitions of the kernel's own queued spinlocks that found the lock taken; only with them",
);
/// Pairs of calls.
pub static PAIRS: Metric = Metric::new(
    "pairs",
    "1/s",
    "pairs of dup and close of all threads in a second, the median of the seconds but for the first",
);

/// Figures of a vCPU.
pub static OF_VCPU: [&Metric; 3] = [&VCPU_TIME, &VCPU_WAIT, &VCPU_BLOCKED];
/// Figures of a guest, beside kernbench's own.
pub static METRICS: [&Metric; 6] =
    [&PAIRS, &FINISHED, &SLOW_PATHS, &VCPU_TIME, &VCPU_WAIT, &VCPU_BLOCKED];

/// What runs inside.
#[derive(Clone, Debug)]
pub enum Work {
    /// kernbench on the disk's tree, with these loads.
    Kernbench(Vec<Load>),
    /// A thread for each vCPU duplicates a file descriptor and closes it, for so many seconds.
    Dup(u32),
    /// A benchmark of the host, by the host's own command, on the host's files; what it writes stays in the guest's memory.
    Measured(Measured),
}

/// A benchmark of the host that runs inside.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// Its places.
    pub places: Vec<String>,
    /// The command. With `--only PLACE` for each place behind it, it runs once there, and prints the figures as [`told`] has
    /// them.
    pub command: Vec<String>,
    /// What follows then.
    pub arguments: Vec<String>,
    /// Where it runs.
    pub folder: String,
}

/// How much longer than the first lock's a run may take before it counts as one that never ends.
const NEVER: f64 = 10.0;
/// The limit as long as the first lock has not run.
const AT_FIRST: Duration = Duration::from_secs(30 * 60);
/// The limit of what only gets ready.
const READY: Duration = Duration::from_secs(300);

/// The benchmark. Its places are the locks and, for kernbench, the loads: `ticket.half`.
#[derive(Debug)]
pub struct InGuests {
    /// The machine, but for the parameter that chooses the lock.
    pub machine: Machine,
    /// The initial file system of [`crate::init`].
    pub init: PathBuf,
    /// The disk of [`crate::image`]; without one, guests see the host's files where programs run in them.
    pub disk: Option<PathBuf>,
    /// The locks, by the names of [`crate::LOCKS`], or the kernel's own.
    pub locks: Vec<String>,
    /// What runs.
    pub work: Work,
    /// Why there is no KVM.
    pub why_emulated: Option<String>,
    /// For each load, how long the run took from which the limits of others follow.
    base: Vec<Option<Duration>>,
    /// Places with runs that were ended.
    ended: Vec<String>,
    /// Outcomes of this round whose turn has not come, by their places.
    kept: BTreeMap<usize, Outcome>,
    scratch: Option<Arc<Scratch>>,
    steps: Steps,
}

impl InGuests {
    /// The benchmark on such machines.
    #[must_use]
    pub fn new(
        machine: Machine,
        init: PathBuf,
        disk: Option<PathBuf>,
        locks: Vec<String>,
        work: Work,
    ) -> Self {
        let parts = match &work {
            Work::Kernbench(loads) => loads.len(),
            Work::Dup(_) => 1,
            Work::Measured(measured) => measured.places.len(),
        };
        Self {
            machine,
            init,
            disk,
            locks,
            work,
            why_emulated: None,
            base: vec![None; parts],
            ended: Vec::new(),
            kept: BTreeMap::new(),
            scratch: None,
            steps: Steps::default(),
        }
    }

    fn parts(&self) -> usize {
        self.base.len()
    }

    /// Boots a guest with this lock, and lets `work` use it.
    fn in_guest<T>(
        &self,
        lock: &str,
        cancel: Cancel,
        work: impl FnOnce(&mut Guest) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let Some(scratch) = &self.scratch else {
            return Err(Failed::usage("it was not prepared", "prepare it first"));
        };
        self.steps.tell("booting");
        let machine = self.machine.clone().with_lock(lock);
        let files = match (&self.disk, &self.work) {
            (Some(disk), _) => Files::Disk(disk),
            (None, Work::Dup(_)) => Files::None,
            (None, _) => Files::OfHost,
        };
        let mut guest = Guest::boot(&machine, &self.init, files, scratch.path(), scratch, cancel)
            .map_err(no_answer)?;
        let result = work(&mut guest);
        let qemu = guest.id();
        drop(guest);
        // Its number may soon be that of another process, which the guardian must not end.
        scratch.ended(qemu);
        result
    }

    fn kernbench(&mut self, place: usize, load: Load, cancel: Cancel) -> Result<Outcome, Failed> {
        let part = place % self.parts();
        let lock = &self.locks[place / self.parts()];
        let base = self.base[part];
        let limit = base.map_or(AT_FIRST, |base| base.mul_f64(NEVER));
        let mut command = vec!["make".to_owned(), load.argument(self.machine.vcpus as usize)];
        command.extend(image::TARGETS.map(str::to_owned));
        let ask = Ask::Run { command, folder: image::TREE.into() };
        let (mut lines, mut output) = (0, String::new());
        let mut hear = |line: &str| {
            lines += 1;
            output += line;
            output.push('\n');
            self.steps.tell(&format!("{lines} lines of make"));
        };
        let (said, times, lasted) = self.in_guest(lock, cancel, |guest| {
            self.steps.tell("reading the disk");
            let read = image::READ.map(|folder| Ask::Read(folder.into()));
            for ask in [Ask::Root(Root::Disk)].iter().chain(&read) {
                guest.ask(ask, READY, &mut |_| {}, cancel).map_err(no_answer)?;
            }
            let (before, began) = (guest.vcpu_times(), Instant::now());
            let said = watched(guest, &ask, limit, &mut hear, cancel);
            Ok((said, since(&before, &guest.vcpu_times()), began.elapsed()))
        })?;
        let (ran, counts) = match said {
            Ok((Say::Ran(ran), counts)) if ran.status == 0 => (ran, counts),
            Ok((Say::Ran(ran), _)) => return Err(program_failed("make", ran.status, &output)),
            Ok((other, _)) => return Err(strange(&other)),
            Err(NoAnswer::TooLong) => {
                let place = &self.places()[place];
                if !self.ended.contains(place) {
                    self.ended.push(place.clone());
                }
                let outcome = Outcome { output, ..Outcome::default() }.with(&FINISHED, 0.0);
                return Ok(with_vcpus(outcome, &times));
            }
            Err(other) => return Err(no_answer(other)),
        };
        let outcome = Outcome { output, ..Outcome::default() }.with(&FINISHED, 1.0);
        let outcome = with_counts(outcome, &counts, lock == STOCK_FAIR);
        self.base[part].get_or_insert(lasted);
        Ok(with_vcpus(with_usage(outcome, &usage(&ran)), &times))
    }

    fn dup(&self, place: usize, seconds: u32, cancel: Cancel) -> Result<Outcome, Failed> {
        let ask = Ask::Dup { threads: self.machine.vcpus, seconds };
        let limit = READY + Duration::from_secs(u64::from(seconds));
        let lock = &self.locks[place];
        let ((said, counts), times) = self.in_guest(lock, cancel, |guest| {
            self.steps.tell("dup and close");
            let before = guest.vcpu_times();
            let said = watched(guest, &ask, limit, &mut |_| {}, cancel).map_err(no_answer)?;
            Ok((said, since(&before, &guest.vcpu_times())))
        })?;
        let Say::Dups(pairs) = said else { return Err(strange(&said)) };
        let outcome = with_counts(of_pairs(pairs), &counts, lock == STOCK_FAIR);
        Ok(with_vcpus(outcome, &times))
    }

    /// One guest runs all places of its lock, in the order in which they come in this round: to get ready takes longer than
    /// a run.
    fn measured(
        &mut self,
        place: usize,
        work: &Measured,
        cancel: Cancel,
    ) -> Result<Outcome, Failed> {
        let (lock, part) = (place / self.parts(), place % self.parts());
        if let Some(kept) = self.kept.remove(&place) {
            return Ok(kept);
        }
        let mut command = work.command.clone();
        // This place first, and the others behind it.
        for i in (part..self.parts()).chain(0..part) {
            command.extend(["--only".to_owned(), work.places[i].clone()]);
        }
        command.extend_from_slice(&work.arguments);
        let ask = Ask::Run { command, folder: work.folder.clone() };
        let mut output = String::new();
        let mut hear = |line: &str| {
            output += line;
            output.push('\n');
        };
        let said = self.in_guest(&self.locks[lock], cancel, |guest| {
            let root = Ask::Root(Root::Host);
            guest.ask(&root, READY, &mut |_| {}, cancel).map_err(no_answer)?;
            self.steps.tell("running");
            watched(guest, &ask, AT_FIRST, &mut hear, cancel).map_err(no_answer)
        })?;
        let (said, counts) = said;
        match said {
            Say::Ran(ran) if ran.status == 0 => {}
            Say::Ran(ran) => return Err(program_failed(work.name, ran.status, &output)),
            other => return Err(strange(&other)),
        }
        for (told, outcome) in told::outcomes(&output) {
            if let Some(part) = work.places.iter().position(|known| *known == told) {
                self.kept.insert(lock * self.parts() + part, outcome);
            }
        }
        let outcome = self.kept.remove(&place).ok_or_else(|| {
            Failed::needs(format!("{} said nothing of its run", work.name), "run it again")
        })?;
        // They are of all places of this guest; the first that ran has them.
        Ok(with_counts(outcome, &counts, self.locks[lock] == STOCK_FAIR))
    }
}

impl Benchmark for InGuests {
    fn name(&self) -> &'static str {
        match &self.work {
            Work::Kernbench(_) => "kernbench in a guest",
            Work::Dup(_) => "dup in a guest",
            Work::Measured(measured) => measured.name,
        }
    }

    fn description(&self) -> String {
        let Machine { vcpus, memory, cpus, accelerator, kernel, by_instructions, share, .. } =
            &self.machine;
        let quota = share.map_or(String::new(), |share| {
            format!(" that gets {} CPUs", f64::from(share.cap) / 100.0)
        });
        let on = cpus.as_ref().map_or("all CPUs".into(), |cpus| format!("the CPUs {cpus}"));
        let by = match accelerator {
            _ if *by_instructions => {
                "QEMU's emulation by the clock of instructions, one CPU for all vCPUs".to_owned()
            }
            Accelerator::Kvm => "KVM".to_owned(),
            Accelerator::Emulation => {
                let why = self.why_emulated.as_deref().map(in_brief);
                let why = why.map_or(String::new(), |why| format!(" ({why})"));
                format!("QEMU's emulation with a thread for each vCPU{why}")
            }
        };
        let work = match &self.work {
            Work::Kernbench(loads) => {
                let loads: Vec<String> = (loads.iter())
                    .map(|load| {
                        format!("{} load is make {}", load.name(), load.argument(*vcpus as usize))
                    })
                    .collect();
                format!(
                    "make {} of a Linux 6.1, tinyconfig; {}",
                    image::TARGETS.join(" "),
                    loads.join(", ")
                )
            }
            Work::Dup(seconds) => {
                format!("{vcpus} threads dup and close a file descriptor for {seconds} s")
            }
            Work::Measured(measured) => {
                let words = [measured.name].into_iter();
                let words: Vec<&str> =
                    words.chain(measured.arguments.iter().map(String::as_str)).collect();
                let arguments = words.join(" ");
                format!(
                    "overspin measure {arguments}, on the host's files, with what is written in memory; one guest runs all places of its lock in a round"
                )
            }
        };
        format!(
            "{work}. A guest of {vcpus} vCPUs and {memory} MiB{quota} on {on}, by {by}, booted anew each time. Kernel: {}.",
            kernel.display()
        )
    }

    fn places(&self) -> Vec<String> {
        let parts: Vec<String> = match &self.work {
            Work::Kernbench(loads) => loads.iter().map(|load| load.name()).collect(),
            Work::Dup(_) => return self.locks.clone(),
            Work::Measured(measured) => measured.places.clone(),
        };
        let of = |lock: &String| -> Vec<String> {
            parts.iter().map(|part| format!("{lock}.{part}")).collect()
        };
        self.locks.iter().flat_map(of).collect()
    }

    fn prepare(&mut self, _: Cancel) -> Result<(), Failed> {
        self.scratch = Some(Arc::new(Scratch::new(None)?));
        Ok(())
    }

    /// The limits of all locks follow from the first one's warm-up.
    fn warm_up(&self) -> Vec<usize> {
        match &self.work {
            Work::Kernbench(loads) => (0..loads.len()).collect(),
            // Each run warms up for itself: its guest is new.
            Work::Dup(_) | Work::Measured(_) => Vec::new(),
        }
    }

    fn tell_steps(&mut self, steps: Steps) {
        self.steps = steps;
    }

    fn run(&mut self, place: usize, _: bool, cancel: Cancel) -> Result<Outcome, Failed> {
        match &self.work {
            Work::Kernbench(loads) => {
                let load = loads[place % loads.len()];
                self.kernbench(place, load, cancel)
            }
            Work::Dup(seconds) => self.dup(place, *seconds, cancel),
            Work::Measured(work) => self.measured(place, &work.clone(), cancel),
        }
    }

    fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if !self.ended.is_empty() {
            doubts.push(format!(
                "Ended after {NEVER} times the time of {} at the same load: {}.",
                self.locks[0],
                self.ended.join(", ")
            ));
        }
        doubts
    }
}

fn program_failed(name: &str, status: i32, output: &str) -> Failed {
    let mut last: Vec<&str> = output.lines().rev().take(4).collect();
    last.reverse();
    let said = last.join(" / ");
    let cause = format!("{name} ended with {status} in the guest; it said last: {said}");
    Failed::needs(cause, "see what it says")
}

fn strange(said: &Say) -> Failed {
    Failed::needs(format!("the guest says {said:?}"), "run it again")
}

fn usage(ran: &Ran) -> Usage {
    let Ran { elapsed_s, user_s, system_s, preempted, slept, .. } = *ran;
    Usage { elapsed_s, user_s, system_s, preempted, slept }
}

/// Asks for something, and for what the guest's kernel counted meanwhile.
fn watched(
    guest: &mut Guest,
    ask: &Ask,
    limit: Duration,
    line: &mut dyn FnMut(&str),
    cancel: Cancel,
) -> Result<(Say, Watched), NoAnswer> {
    guest.ask(&Ask::Watch, READY, &mut |_| {}, cancel)?;
    let said = guest.ask(ask, limit, line, cancel)?;
    match guest.ask(&Ask::Watched, READY, &mut |_| {}, cancel)? {
        Say::Watched(counts) => Ok((said, counts)),
        other => Err(LinuxError::Guest(format!("it says {other:?}")).into()),
    }
}

fn since(before: &[VcpuTime], after: &[VcpuTime]) -> Vec<VcpuTime> {
    let spent = |(before, after): (&VcpuTime, &VcpuTime)| VcpuTime {
        ran_s: after.ran_s - before.ran_s,
        waited_s: after.waited_s - before.waited_s,
    };
    before.iter().zip(after).map(spent).collect()
}

/// The outcome of a run of dup, from the pairs of calls in each second.
#[must_use]
pub fn of_pairs(mut pairs: Vec<u64>) -> Outcome {
    let output = format!("pairs in each second: {pairs:?}\n");
    // The threads are not all there at first.
    if pairs.len() > 1 {
        pairs.remove(0);
    }
    pairs.sort_unstable();
    let median = pairs.get(pairs.len() / 2).copied().unwrap_or(0);
    Outcome { output, ..Outcome::default() }.with(&PAIRS, median as f64)
}

/// Adds times in seconds: of all vCPUs, then of each of them.
#[must_use]
pub fn with_times(outcome: Outcome, times: &[(&'static Metric, Vec<f64>)]) -> Outcome {
    let all = |outcome: Outcome, (metric, each): &(&'static Metric, Vec<f64>)| {
        outcome.with(metric, each.iter().sum())
    };
    let mut outcome = times.iter().fold(outcome, all);
    let vcpus = times.iter().map(|(_, each)| each.len()).max().unwrap_or(0);
    for vcpu in 0..vcpus {
        for (metric, each) in times {
            if let Some(time) = each.get(vcpu) {
                outcome = outcome.with_part(format!("v{vcpu}"), metric, *time);
            }
        }
    }
    outcome
}

fn with_vcpus(outcome: Outcome, times: &[VcpuTime]) -> Outcome {
    let each = |of: fn(&VcpuTime) -> f64| times.iter().map(of).collect();
    let times = [(&VCPU_TIME, each(|time| time.ran_s)), (&VCPU_WAIT, each(|time| time.waited_s))];
    with_times(outcome, &times)
}

fn no_answer(no: NoAnswer) -> Failed {
    match no {
        NoAnswer::Stopped => Failed::Stopped,
        NoAnswer::TooLong => {
            Failed::needs("the guest gives no answer", "run it again, with less beside")
        }
        NoAnswer::Error(error) => failed(&error),
    }
}

fn failed(error: &LinuxError) -> Failed {
    Failed::needs(error.to_string(), error.remedy())
}
