//! A Linux whose only spinlock is a lock of Overspin as a guest of real Xen, in the emulated machine. Its waiters
//! sleep in Xen's poll hypercall until the holder kicks them, as in the experiments of 2008 and 2012.

use std::path::Path;
use std::time::{Duration, Instant};

use overspin_linux::benchmark::{VCPU_BLOCKED, VCPU_TIME, VCPU_WAIT, of_pairs, with_times};
use overspin_linux::machine::NO_JUDGES;
use overspin_linux::torture::{self, Judge, Verdict};
use overspin_linux::{Guard, LinuxError, STOCK, STOCK_FAIR, guard_of};
use overspin_real::scratch::Scratch;
use overspin_real::{Benchmark, Cancel, Failed, Outcome, Steps};
use overspin_xl::{Guest, GuestType, Job, Message, Pool, Reports, Sample};

use crate::emulated::{Clock, EmulatedError, Machine, memory_for, run};

const SECOND: u64 = 1_000_000_000;
/// The worker may make the hypercall that tells CPU times.
const OPTIONS: &str = "xen_privcmd.unrestricted=1";

/// A type of guest, in words.
#[must_use]
pub fn guest_type_words(guest_type: GuestType) -> &'static str {
    match guest_type {
        GuestType::Pv => "paravirtual",
        GuestType::Pvh => "PVH",
    }
}

/// Guests, and where they run.
#[derive(Clone, Debug)]
pub struct Guests {
    /// The emulated machine, with the kernel of `overspin linux build` for guests.
    pub machine: Machine,
    /// Scheduler of the guest's pCPUs.
    pub scheduler: String,
    /// pCPUs for the guest, beside the dom0's.
    pub cpus: u32,
    /// vCPUs of a guest.
    pub vcpus: u32,
    /// Memory of a guest in MiB.
    pub memory: u32,
}

impl Guests {
    /// Memory of the emulated machine in MiB.
    #[must_use]
    pub fn machine_memory(&self) -> u32 {
        memory_for(&[self.job(STOCK, "dup", 1)])
    }

    /// A run of one guest that works with `lock` as its kernel's spinlock.
    fn job(&self, lock: &str, work: &str, seconds: u64) -> Job {
        // Without paravirtual spinlocks the kernel takes its queue that serves in order.
        let choice = match lock {
            STOCK_FAIR => format!("overspin_lock={STOCK} nopvspin"),
            lock => format!("overspin_lock={lock}"),
        };
        Job {
            name: lock.into(),
            pool: Pool {
                name: "overspin".into(),
                scheduler: Some(self.scheduler.clone()),
                cpus: (1..=self.cpus).collect(),
            },
            guests: vec![Guest {
                name: "overspin-0".into(),
                vcpus: self.vcpus,
                memory: self.memory,
                work: vec![work.into()],
                seed: 1,
                kernel_options: format!("{choice} {OPTIONS} {NO_JUDGES}"),
            }],
            seconds,
        }
    }
}

/// The benchmark `dup` in such guests; its places are the locks.
#[derive(Debug)]
pub struct DupInXen {
    /// The guests.
    pub guests: Guests,
    /// The locks, by the names of [`overspin_linux::LOCKS`], or the kernel's own.
    pub locks: Vec<String>,
    /// Length of a run.
    pub seconds: u32,
    steps: Steps,
    xen: String,
}

impl DupInXen {
    /// The benchmark in these guests.
    #[must_use]
    pub fn new(guests: Guests, locks: Vec<String>, seconds: u32) -> Self {
        let steps = Steps::default();
        Self { guests, locks, seconds, steps, xen: String::new() }
    }
}

impl Benchmark for DupInXen {
    fn name(&self) -> &'static str {
        "dup in a guest of Xen"
    }

    fn description(&self) -> String {
        let Guests { machine, scheduler, cpus, vcpus, memory } = &self.guests;
        let by = match machine.clock {
            Clock::Instructions(shift) => format!("{} ns for each instruction", 1_u32 << shift),
            Clock::Host => "a thread for each pCPU".into(),
        };
        let kernel = match &machine.guest_kernel {
            Some(kernel) => kernel.display().to_string(),
            None => machine.unpacked.linux_name(),
        };
        let xen = if self.xen.is_empty() { "Xen".into() } else { format!("Xen {}", self.xen) };
        format!(
            "{vcpus} threads dup and close a file descriptor for {} s. A {} guest of {xen} with {vcpus} vCPUs and {memory} MiB \
             on {cpus} pCPU{}, under the scheduler {scheduler}; the dom0 has a pCPU of its own. Xen runs in \
             QEMU's emulation, {by}, and is booted anew for each run. Kernel: {}.",
            self.seconds,
            guest_type_words(machine.guest_type),
            if *cpus == 1 { "" } else { "s" },
            kernel
        )
    }

    fn places(&self) -> Vec<String> {
        self.locks.clone()
    }

    fn prepare(&mut self, _: Cancel) -> Result<(), Failed> {
        Ok(())
    }

    /// Each run has a machine of its own: there is nothing to warm.
    fn warm_up(&self) -> Vec<usize> {
        Vec::new()
    }

    fn tell_steps(&mut self, steps: Steps) {
        self.steps = steps;
    }

    fn run(&mut self, place: usize, _: bool, cancel: Cancel) -> Result<Outcome, Failed> {
        let scratch = Scratch::new(None)?;
        let job = self.guests.job(&self.locks[place], "dup", self.seconds.into());
        let (mut reports, mut why) = (None, None);
        self.steps.tell("Xen boots");
        let guard = guard_of(&scratch);
        let mut hear = |message: Message| match message {
            Message::Up { xen } => self.xen = xen,
            Message::Step { step, .. } => self.steps.tell(&step),
            Message::Done { reports: mut of, .. } => reports = of.pop(),
            Message::Failed { message, .. } => why = Some(message),
            Message::Watched { .. } | Message::End => {}
        };
        let machine = &self.guests.machine;
        let time = Time::of(self.seconds);
        let stop = || cancel() || time.is_over();
        run(machine, &[job], scratch.path(), &guard, &mut hear, &stop).map_err(|e| failed(&e))?;
        if cancel() {
            return Err(Failed::Stopped);
        }
        let lock = &self.locks[place];
        match (reports, why) {
            (Some(reports), _) => Ok(outcome(&reports, self.seconds)),
            (None, why) => Err(Failed::needs(
                format!("the guest with {lock} did not work: {}", why.unwrap_or(time.words())),
                "run it again, with less beside",
            )),
        }
    }
}

/// Boots a guest with `lock` as its kernel's spinlock, and lets `judge` torture it: see [`overspin_linux::torture`].
///
/// # Errors
/// If the machine or the guest cannot be started; if the kernel does not take that lock, or does not come to an end.
pub fn torture(
    guests: &Guests,
    lock: &str,
    judge: Judge,
    seconds: u32,
    folder: &Path,
    guard: Guard<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Verdict, LinuxError> {
    /// Seconds for an emulated kernel to boot with a lock that waits for its turn, and to end.
    const BOOT: u64 = 120;
    let mut job = guests.job(lock, "none", BOOT + u64::from(seconds) * 3);
    // The kernel takes the last word of each option. `quiet` is before these.
    job.guests[0].kernel_options =
        format!("loglevel=7 {}", torture::parameters(lock, judge, guests.vcpus, seconds));
    let machine = Machine { watch: true, ..guests.machine.clone() };
    let (mut console, mut why) = (None, None);
    let mut hear = |message: Message| match message {
        Message::Watched { mut consoles, .. } => console = consoles.pop(),
        Message::Failed { message, .. } => why = Some(message),
        _ => {}
    };
    let time = Time::of(seconds);
    run(&machine, &[job], folder, guard, &mut hear, &|| stop() || time.is_over())
        .map_err(|error| LinuxError::Guest(error.to_string()))?;
    match (console, why) {
        (Some(console), _) => torture::judged(&console, lock, judge),
        (None, why) => Err(LinuxError::Guest(why.unwrap_or(time.words()))),
    }
}

fn failed(error: &EmulatedError) -> Failed {
    Failed::needs(error.to_string(), error.remedy())
}

/// Time of this machine that a run may take. The limits of the emulated dom0 are of the emulated machine's time, which hardly
/// goes on if this machine has too much other work.
#[derive(Clone, Copy, Debug)]
struct Time {
    begun: Instant,
    limit: Duration,
}

impl Time {
    /// For a guest that works for so many seconds.
    fn of(seconds: u32) -> Self {
        /// For Xen and a guest to boot: ten times what they take on two idle CPUs.
        const BOOT: Duration = Duration::from_secs(300);
        /// For a second of work.
        const EACH: Duration = Duration::from_secs(10);
        Self { begun: Instant::now(), limit: BOOT.saturating_add(EACH.saturating_mul(seconds)) }
    }

    fn is_over(self) -> bool {
        self.begun.elapsed() > self.limit
    }

    fn words(self) -> String {
        format!("it was stopped after {} s", self.begun.elapsed().as_secs())
    }
}

/// The figures of a run.
fn outcome(reports: &Reports, seconds: u32) -> Outcome {
    // Xen counts them: from the first report of a vCPU to its last.
    let spent = |of: fn(&Sample) -> u64| -> Vec<f64> {
        let of_one = |vcpu| {
            let mut all = of_vcpu(reports, vcpu).map(of);
            let first = all.next().unwrap_or(0);
            all.next_back().unwrap_or(first).saturating_sub(first) as f64 / SECOND as f64
        };
        (0..vcpus(reports)).map(of_one).collect()
    };
    let times = [
        (&VCPU_TIME, spent(|sample| sample.cpu_time)),
        (&VCPU_WAIT, spent(|sample| sample.ready)),
        (&VCPU_BLOCKED, spent(|sample| sample.blocked)),
    ];
    with_times(of_pairs(pairs(reports, seconds)), &times)
}

fn vcpus(reports: &Reports) -> u32 {
    reports.iter().map(|sample| sample.vcpu + 1).max().unwrap_or(0)
}

/// Reports of the thread of a vCPU, in the order of time.
fn of_vcpu(reports: &Reports, vcpu: u32) -> impl DoubleEndedIterator<Item = &Sample> {
    reports.iter().filter(move |sample| sample.vcpu == vcpu)
}

/// Pairs of calls of all threads in each second. A thread reports when it comes to it: in between it is as if it went on
/// steadily.
fn pairs(reports: &Reports, seconds: u32) -> Vec<u64> {
    let until = |second: u32| -> f64 {
        let at = u64::from(second) * SECOND;
        (0..vcpus(reports)).map(|vcpu| operations_until(of_vcpu(reports, vcpu), at)).sum()
    };
    (0..seconds).map(|second| (until(second + 1) - until(second)).round() as u64).collect()
}

/// Operations at a time between two reports.
fn operations_until<'a>(reports: impl Iterator<Item = &'a Sample>, at: u64) -> f64 {
    let mut before: Option<&Sample> = None;
    for sample in reports {
        if sample.at >= at {
            let Some(before) = before else { return sample.operations as f64 };
            let part = (at - before.at) as f64 / (sample.at - before.at).max(1) as f64;
            return before.operations as f64
                + part * sample.operations.saturating_sub(before.operations) as f64;
        }
        before = Some(sample);
    }
    before.map_or(0.0, |last| last.operations as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(vcpu: u32, at: f64, operations: u64) -> Sample {
        let at = (at * SECOND as f64) as u64;
        // It runs half of the time, waits for a pCPU for a quarter, and for an event for the rest.
        let (cpu_time, ready, blocked) = (at / 2, at / 4, at / 4);
        Sample { vcpu, at, operations, cpu_time, ready, blocked, ..Sample::default() }
    }

    #[test]
    fn pairs_are_those_of_whole_seconds() {
        // The second thread waits for the lock from 0.5 s to 2.5 s, so that nobody knows when it did its 200.
        let reports = vec![
            sample(0, 0.0, 0),
            sample(1, 0.5, 0),
            sample(0, 1.0, 100),
            sample(0, 2.0, 300),
            sample(1, 2.5, 200),
            sample(0, 3.0, 400),
            sample(1, 3.0, 260),
        ];
        assert_eq!(pairs(&reports, 3), [150, 300, 210]);
        let outcome = outcome(&reports, 3);
        let value = |part: &str, metric: &str| {
            let of = |f: &&overspin_real::Figure| f.part == part && f.metric.name == metric;
            outcome.figures.iter().find(of).unwrap().value
        };
        // The first second does not count, and the median of two is the upper one.
        assert!((value("", "pairs") - 300.0).abs() < 1e-9);
        assert!((value("v0", "vcpu-time") - 1.5).abs() < 1e-9);
        assert!((value("v1", "vcpu-wait") - 0.625).abs() < 1e-9);
        assert!((value("", "vcpu-blocked") - (0.75 + 0.625)).abs() < 1e-9);
    }

    #[test]
    fn the_lock_is_chosen_on_the_kernels_command_line() {
        let unpacked = crate::emulated::Unpacked::at_nothing();
        let machine = Machine {
            unpacked,
            clock: Clock::Host,
            scheduler: "credit".into(),
            watch: false,
            guest_type: GuestType::Pv,
            guest_kernel: None,
        };
        let (scheduler, cpus, vcpus, memory) = ("credit2".into(), 2, 4, 256);
        let guests = Guests { machine, scheduler, cpus, vcpus, memory };
        let options = |lock| guests.job(lock, "dup", 3).guests[0].kernel_options.clone();
        let chosen = |options: &str, word: &str| options.split(' ').any(|w| w == word);
        assert!(chosen(&options("xen-pv"), "overspin_lock=xen-pv"));
        assert!(!chosen(&options("stock"), "nopvspin"));
        // Its paravirtual queue takes turns, too, but its waiters sleep.
        let fair = options("stock-fair");
        assert!(chosen(&fair, "overspin_lock=stock") && chosen(&fair, "nopvspin"), "{fair}");
        // The dom0 keeps pCPU 0.
        let job = guests.job("ticket", "dup", 3);
        assert_eq!((job.pool.cpus, job.pool.scheduler.as_deref()), (vec![1, 2], Some("credit2")));
    }

    #[test]
    fn a_guest_without_reports_did_nothing() {
        assert_eq!(pairs(&Vec::new(), 2), [0, 0]);
        assert_eq!(outcome(&Vec::new(), 2).figures[0].value.to_bits(), 0.0_f64.to_bits());
    }
}
