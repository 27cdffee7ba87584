//! The world `linux`: scenarios whose guests are real Linux kernels, with the scenario's lock as their spinlock.
//!
//! Each domain is a machine of QEMU. Threads of its kernel do the sections of the workload `lock-loop` (`kernel.rs`), programs
//! do what has no locks (`programs.rs`); the kernel of this machine schedules the vCPUs. `docs/linux.md` says what it can do.
//!
//! ```text
//!   this process                               each guest
//!   boots all of them                          Ready
//!   Work(job), or Programs(scenario)           makes the threads, Done
//!   all are ready: Go                          the threads begin
//!   takes the accounts of the vCPUs' threads
//!   after the warm-up, and at the limit        Worked: all threads have ended
//! ```

mod job;
mod kernel;
mod programs;

use std::path::PathBuf;
use std::process::Command;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use overspin_host::{Cancel, Ignored, Observer, Refused, Unhonoured, World};
use overspin_native::world::{ControlGroup, Place, Share, cpus, places, refused_caps, weights};
use overspin_real::scratch::Scratch;
use overspin_scenario::{
    Domain, DomainOutcome, Ending, Measurement, Outcome, Picos, Scenario, Stopped, VcpuOutcome,
};

use job::{IGNORED, Job, Report, jobs};

use crate::guest::{Guest, NoAnswer, vcpu_threads};
use crate::machine::{Accelerator, Files, Machine, accelerator, in_brief};
use crate::program::output;
use crate::talk::{Ask, Say};
use crate::{LinuxError, alone, cache, guard_of, init, needs, source};

/// The name of the world.
const NAME: &str = "linux";
/// Memory of a guest, in MiB.
const MEMORY: u32 = 256;
/// How often to look whether to stop.
const LOOK: Duration = Duration::from_millis(10);
/// Time to make the threads of a job, and for the last of them to come to its end: each waiter may need a turn.
const READY: Duration = Duration::from_secs(120);

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

impl World for Linux {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports(&self, scenario: &Scenario) -> Result<Vec<Unhonoured>, Refused> {
        jobs(scenario)?;
        let mut ignored = Ignored::of(&IGNORED, scenario);
        ignored.extend(refused_caps(scenario));
        Ok(ignored)
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        _observer: &mut dyn Observer,
        cancel: &dyn Cancel,
    ) -> Result<Outcome, Refused> {
        let jobs = jobs(scenario)?;
        let cpus = cpus(&scenario.host)?;
        let endless = jobs.iter().all(Job::is_endless);
        let mut run = Run {
            scenario,
            seed,
            warmup: scenario.warmup(endless),
            guests: jobs.into_iter().map(RunGuest::new).collect(),
            begun: None,
            stopped: None,
        };
        let mut doubts = Vec::new();
        if scenario.limit > Picos::ZERO {
            let made = Made::here(scenario.domains.len())?;
            doubts.extend(made.why_emulated.as_ref().map(|why| {
                format!("QEMU emulates the guests, in which a lock costs many times what it costs here ({})", in_brief(why))
            }));
            run.make(&made, &cpus, cancel)?;
        }
        Ok(run.outcome(&cpus, doubts))
    }
}

/// What all guests of a run share.
struct Made {
    kernel: PathBuf,
    init: PathBuf,
    accelerator: Accelerator,
    why_emulated: Option<String>,
    scratch: Scratch,
    /// Whether the run is to end.
    stop: AtomicBool,
}

impl Made {
    fn here(guests: usize) -> Result<Self, Refused> {
        let cache = cache().map_err(|e| refused(&e))?;
        let kernel = cache.join(source::PACKAGE).join("vmlinux");
        if !kernel.exists() {
            return Err(Refused::Machine {
                cause: format!("there is no kernel with our locks: {}", kernel.display()),
                remedy: "compile it once, in five to ten minutes: overspin linux build".into(),
            });
        }
        for needed in [needs::TO_RUN, needs::TO_PIN] {
            needs::programs(&needed).map_err(|e| refused(&e))?;
        }
        needs::memory(MEMORY.saturating_mul(guests as u32)).map_err(|e| Refused::Machine {
            cause: e.to_string(),
            remedy: "end other programs, or leave some domains out".into(),
        })?;
        let failed = |f: overspin_real::Failed| Refused::Machine {
            cause: f.to_string(),
            remedy: f.remedy().to_owned(),
        };
        let scratch = Scratch::new(None).map_err(failed)?;
        // Another command may make the same files.
        let _alone = alone(&cache).map_err(|e| refused(&e))?;
        let init = init::compile(&cache.join("init")).map_err(|e| refused(&e))?;
        let found = accelerator(&kernel, &cache, &guard_of(&scratch)).map_err(|e| refused(&e))?;
        let (accelerator, why_emulated) = found;
        let stop = AtomicBool::new(false);
        Ok(Self { kernel, init, accelerator, why_emulated, scratch, stop })
    }

    fn stops(&self) -> bool {
        // Relaxed: the flag stands alone.
        self.stop.load(Ordering::Relaxed)
    }

    /// Boots a guest and gets its threads ready.
    fn guest(
        &self,
        number: usize,
        domain: &Domain,
        ask: &Ask,
        (places, share): (&[Place], Option<Share>),
    ) -> Result<Guest, NoAnswer> {
        let folder = self.scratch.path().join(number.to_string());
        std::fs::create_dir_all(&folder).map_err(|cause| crate::program::file(&folder, cause))?;
        let machine = Machine::new(self.kernel.clone(), domain.vcpus, MEMORY, self.accelerator);
        let mut machine = machine.with_lock(&domain.lock);
        if let Some(budget) = domain.spin_budget {
            machine.parameters += &format!(" overspin_budget={budget}");
        }
        machine.cpus = Some(list(places.iter().flat_map(|place| &place.cpus)));
        machine.share = share;
        let (scratch, stop) = (&self.scratch, || self.stops());
        let mut guest = Guest::boot(&machine, &self.init, Files::None, &folder, scratch, &stop)?;
        for (thread, place) in vcpu_threads(guest.id()).iter().zip(places) {
            let id = thread.id.to_string();
            output(Command::new("taskset").args(["-cp", &list(&place.cpus), &id]))?;
            if place.nice != 0 {
                output(Command::new("renice").args(["-n", &place.nice.to_string(), "-p", &id]))?;
            }
        }
        guest.ask(ask, READY, &mut |_| {}, &stop)?;
        Ok(guest)
    }

    /// Lets the threads of a guest work to their end, or until the run is to end.
    fn work(&self, guest: &mut Guest, job: &Job, limit: Picos) -> Result<Report, NoAnswer> {
        let limit = Duration::from_nanos(limit.0 / 1_000) + READY;
        let mut hear = |_: &str| {};
        let said = match guest.ask(&Ask::Go, limit, &mut hear, &|| self.stops()) {
            Err(NoAnswer::Stopped) => guest.ask(&Ask::Stop, READY, &mut hear, &|| false),
            said => said,
        };
        let text = match said? {
            Say::Worked(text) => text,
            other => format!("{other:?}"),
        };
        let strange = || LinuxError::Guest(format!("it says what is no result: {text}"));
        job.report(&text).ok_or_else(strange).map_err(NoAnswer::Error)
    }

    /// A guest from its boot to its end.
    fn live(
        &self,
        boot: impl FnOnce() -> Result<Guest, NoAnswer>,
        (job, limit): (&Job, Picos),
        tell: &dyn Fn(News),
        go: &Receiver<()>,
    ) {
        let over = |result: Result<Report, NoAnswer>| match result {
            Ok(report) => tell(News::Over(Some(report))),
            Err(NoAnswer::Stopped) => tell(News::Over(None)),
            Err(no) => tell(News::Failed(no_answer(&no))),
        };
        let mut guest = match boot() {
            Ok(guest) => guest,
            Err(no) => return over(Err(no)),
        };
        tell(News::Ready(guest.id()));
        let result = match go.recv() {
            Ok(()) => self.work(&mut guest, job, limit),
            Err(_) => Err(NoAnswer::Stopped),
        };
        over(result);
        // Until its accounts were taken.
        let _ = go.recv();
        let qemu = guest.id();
        drop(guest);
        // Its number may soon be that of another process, which the guardian must not end.
        self.scratch.ended(qemu);
    }
}

/// What control groups give the domains, in their order; nothing if no domain has a cap or a weight of its own, or there can
/// be no groups: then nice values weigh.
fn shares(scenario: &Scenario) -> Vec<Share> {
    let domains = &scenario.domains;
    let heaviest = f64::from(weights(domains).max().unwrap_or(1).max(1));
    // A weight is that of each vCPU.
    let weight = |d| Some(weights([d]).map(|w| f64::from(w) / heaviest).sum());
    let shares: Vec<Share> =
        domains.iter().map(|d| Share { cap: d.cap, weight: weight(d) }).collect();
    let equal = domains.iter().all(|d| d.cap == 0 && d.weight == domains[0].weight);
    let possible = || shares.iter().all(|share| ControlGroup::new(*share).is_ok());
    if equal || !possible() { Vec::new() } else { shares }
}

/// What happened to a guest.
enum News {
    /// Its threads wait for their begin; the number of its process.
    Ready(u32),
    /// They have ended; nothing if they never began.
    Over(Option<Report>),
    /// It cannot do what is asked for.
    Failed(Refused),
}

/// A guest of a run.
#[derive(Debug)]
struct RunGuest {
    job: Job,
    qemu: Option<u32>,
    is_over: bool,
    report: Option<Report>,
    /// The accounts of its vCPUs at the end of the warm-up, and at the end.
    before: Vec<[u64; 3]>,
    after: Vec<[u64; 3]>,
}

impl RunGuest {
    fn new(job: Job) -> Self {
        let (before, after) = (Vec::new(), Vec::new());
        Self { job, qemu: None, is_over: false, report: None, before, after }
    }

    fn accounts(&self) -> Vec<[u64; 3]> {
        let threads = self.qemu.map(vcpu_threads).unwrap_or_default();
        threads.into_iter().map(|thread| thread.account).collect()
    }
}

/// A run.
#[derive(Debug)]
struct Run<'a> {
    scenario: &'a Scenario,
    seed: u64,
    warmup: Picos,
    guests: Vec<RunGuest>,
    begun: Option<Instant>,
    stopped: Option<Stopped>,
}

impl Run<'_> {
    /// Boots the guests, lets them work, and ends them.
    fn make(&mut self, made: &Made, cpus: &[usize], cancel: &dyn Cancel) -> Result<(), Refused> {
        let (to, news) = channel();
        let scenario = self.scenario;
        let shares = shares(scenario);
        thread::scope(|scope| {
            let mut gos = Vec::new();
            for (number, domain) in scenario.domains.iter().enumerate() {
                let (go, wait) = channel();
                gos.push(go);
                let to = to.clone();
                let seed = self.seed.wrapping_add((number as u64) << 32);
                let job = self.guests[number].job.clone();
                let ask = job.ask(scenario, domain, self.warmup, seed);
                // In a group of its own, a domain is weighed by the group.
                let share = shares.get(number).copied();
                let beside =
                    if share.is_some() { slice::from_ref(domain) } else { &scenario.domains };
                let heaviest = weights(beside).max().unwrap_or(1);
                let places = places(scenario, domain, cpus, heaviest);
                scope.spawn(move || {
                    let boot = || made.guest(number, domain, &ask, (&places, share));
                    // Nobody hears it after an error elsewhere.
                    let tell = |news| _ = to.send((number, news));
                    made.live(boot, (&job, scenario.limit), &tell, &wait);
                });
            }
            drop(to);
            let result = self.conduct(made, &news, &mut gos, cancel);
            if result.is_err() {
                made.stop.store(true, Ordering::Relaxed);
            }
            result
        })
    }

    /// Follows the guests to their end.
    fn conduct(
        &mut self,
        made: &Made,
        news: &Receiver<(usize, News)>,
        gos: &mut Vec<Sender<()>>,
        cancel: &dyn Cancel,
    ) -> Result<(), Refused> {
        let Scenario { limit, to_the_limit, .. } = *self.scenario;
        let (mut warm, mut ended) = (false, false);
        while self.guests.iter().any(|guest| !guest.is_over) {
            match news.recv_timeout(self.look(warm)) {
                Ok((number, News::Ready(qemu))) => self.guests[number].qemu = Some(qemu),
                Ok((number, News::Over(report))) => {
                    (self.guests[number].is_over, self.guests[number].report) = (true, report);
                }
                Ok((_, News::Failed(refused))) => return Err(refused),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if self.begun.is_none() && self.guests.iter().all(|guest| guest.qemu.is_some()) {
                // A guest that is gone tells it by itself.
                gos.iter().for_each(|go| _ = go.send(()));
                self.begun = Some(Instant::now());
            }
            let now = self.now();
            if self.begun.is_some() && !warm && now >= self.warmup {
                self.guests.iter_mut().for_each(|guest| guest.before = guest.accounts());
                warm = true;
            }
            if warm && !ended && (now >= limit || self.guests.iter().all(|guest| guest.is_over)) {
                self.guests.iter_mut().for_each(|guest| guest.after = guest.accounts());
                ended = true;
            }
            if self.stopped.is_none() {
                self.stopped = cancel.asked(now);
            }
            if self.stopped.is_some() || self.has_finished() && !to_the_limit {
                made.stop.store(true, Ordering::Relaxed);
                if self.begun.is_none() {
                    gos.clear();
                }
            }
        }
        Ok(())
    }

    /// Time since the begin.
    fn now(&self) -> Picos {
        let elapsed = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        Picos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1_000))
    }

    /// How long to wait for news.
    fn look(&self, warm: bool) -> Duration {
        let next = if warm { self.scenario.limit } else { self.warmup };
        let left = Duration::from_nanos(next.saturating_sub(self.now()).0 / 1_000);
        if self.begun.is_none() || left.is_zero() { LOOK } else { left.min(LOOK) }
    }

    /// Whether all work that has an end is done; endless work beside it goes on for nothing.
    fn has_finished(&self) -> bool {
        let mut finite = self.guests.iter().filter(|guest| !guest.job.is_endless()).peekable();
        let is_done = |guest: &RunGuest| guest.report.as_ref().is_some_and(Report::has_finished);
        finite.peek().is_some() && finite.all(is_done)
    }

    fn outcome(self, cpus: &[usize], doubts: Vec<String>) -> Outcome {
        let end = || {
            let ends = self.guests.iter().filter_map(|guest| guest.report.as_ref());
            ends.map(Report::end).max().unwrap_or(Picos::ZERO)
        };
        let limit = self.scenario.limit;
        let (ending, elapsed) = match self.stopped {
            Some(by) => (Ending::Stopped { by }, end().min(limit)),
            None if self.has_finished() && !self.scenario.to_the_limit => {
                let finite = self.guests.iter().filter(|guest| !guest.job.is_endless());
                let ends = finite.filter_map(|guest| guest.report.as_ref()).map(Report::end);
                (Ending::Finished, ends.max().unwrap_or(Picos::ZERO))
            }
            None => (Ending::Limit, limit),
        };
        let warmup = self.warmup.min(elapsed);
        let step = limit / Report::SLOTS;
        let steps = elapsed.0.checked_div(step.0).unwrap_or(0) as usize;
        let first = self.guests.iter().find_map(|guest| guest.report.as_ref());
        let domain = |(domain, guest): (&Domain, RunGuest)| {
            let vcpus = (0..domain.vcpus as usize).map(|v| vcpu(&guest, v, elapsed - warmup));
            let outcome = DomainOutcome {
                name: domain.name.clone(),
                vcpus: vcpus.collect(),
                ..DomainOutcome::default()
            };
            match guest.report {
                Some(report) => report.of_domain(&guest.job, (steps, step), outcome),
                None => outcome,
            }
        };
        let measurement = Measurement {
            world: NAME.into(),
            cpus: cpus.iter().map(|cpu| *cpu as u32).collect(),
            steps_per_us: first.map_or(0.0, Report::steps_per_us),
            missing: [
                "time of spinning apart from other waiting",
                "causes of waits, time on each pCPU, preempted holders, migrations",
                "sleeps and kicks of waiters",
                "CPU time of single tasks of a kernel; that of programs has in it what the host took away",
            ]
            .map(str::to_owned)
            .into(),
            doubts,
            ..Measurement::default()
        };
        Outcome {
            seed: self.seed,
            ending,
            elapsed,
            warmup,
            progress_step: step,
            events: 0,
            run_ahead: 0,
            trace_hash: 0,
            pcpus: Vec::new(),
            domains: self.scenario.domains.iter().zip(self.guests).map(domain).collect(),
            changes: Vec::new(),
            worst_waits: Vec::new(),
            noise: None,
            measurement: Some(measurement),
        }
    }
}

/// What the thread of a vCPU did in the time that counts.
fn vcpu(guest: &RunGuest, vcpu: usize, counted: Picos) -> VcpuOutcome {
    let Some((before, after)) = guest.before.get(vcpu).zip(guest.after.get(vcpu)) else {
        return VcpuOutcome::default();
    };
    let since = |i: usize| after[i].saturating_sub(before[i]);
    let running = Picos(since(0).saturating_mul(1_000)).min(counted);
    let runnable = Picos(since(1).saturating_mul(1_000)).min(counted - running);
    let blocked = counted - running - runnable;
    VcpuOutcome { running, runnable, blocked, dispatches: since(2), ..VcpuOutcome::default() }
}

/// CPUs as `taskset -c` reads them.
fn list<'a>(cpus: impl IntoIterator<Item = &'a usize>) -> String {
    let mut all: Vec<usize> = cpus.into_iter().copied().collect();
    all.sort_unstable();
    all.dedup();
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn refused(error: &LinuxError) -> Refused {
    Refused::Machine { cause: error.to_string(), remedy: error.remedy() }
}

fn no_answer(no: &NoAnswer) -> Refused {
    match no {
        NoAnswer::Error(error) => refused(error),
        NoAnswer::TooLong | NoAnswer::Stopped => Refused::Machine {
            cause: "a guest gives no answer".into(),
            remedy: "run it again, with less beside".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::{Host, SEC, Workloads};
    use overspin_workload::{BurnWait, LockLoop, Mode, Stream};

    pub(super) fn scenario(lock: &str, vcpus: u32, workload: impl Into<Workloads>) -> Scenario {
        let domain = Domain::new("d", vcpus, lock, workload);
        Scenario::new("s", Host::default(), vec![domain], SEC)
    }

    /// The outcome of a run of a second with these domains.
    pub(super) fn outcome(domains: Vec<DomainOutcome>, progress_step: Picos) -> Outcome {
        let run = Run {
            scenario: &scenario("ticket", 1, BurnWait::default()),
            seed: 1,
            warmup: Picos::ZERO,
            guests: Vec::new(),
            begun: None,
            stopped: None,
        };
        Outcome { domains, progress_step, ..run.outcome(&[], Vec::new()) }
    }

    fn refusal(scenario: &Scenario) -> String {
        Linux.supports(scenario).unwrap_err().to_string()
    }

    #[test]
    fn what_a_kernel_cannot_do_is_refused_with_what_it_can() {
        let work = LockLoop { irqs_off: true, ..LockLoop::default() };
        assert!(Linux.supports(&scenario("ticket", 4, work.clone())).is_ok());
        assert!(Linux.supports(&scenario("ticket", 4, BurnWait::default())).is_ok());
        let user = LockLoop { mode: Mode::User, irqs_off: false, ..work.clone() };
        let many = LockLoop { threads: 4097, ..work.clone() };
        for (scenario, words) in [
            (scenario("mcs", 4, work.clone()), &["domain `d`", "`mcs`", "ticket", "xen-pv"][..]),
            (scenario("ticket", 65, work.clone()), &["up to 64 vCPUs", "65"]),
            (scenario("ticket", 4, Stream::default()), &["stream", "`lock-loop`", "`sim`"]),
            (scenario("ticket", 4, user), &["write `mode = \"kernel\"`", "`threads`"]),
            (scenario("ticket", 4, many), &["4097 threads with 1 locks", "up to 4096"]),
        ] {
            let refusal = refusal(&scenario);
            words.iter().for_each(|word| assert!(refusal.contains(word), "{refusal}"));
        }
        let mut two = scenario("ticket", 4, work.clone());
        two.domains[0].workload.0.push(work.into());
        assert!(refusal(&two).contains("one workload"), "{}", refusal(&two));
        two.domains.clear();
        assert!(refusal(&two).contains("no domain"));
    }

    #[test]
    fn what_has_no_effect_is_named() {
        let mut scenario = scenario("xen-pv", 2, LockLoop::default());
        scenario.host = scenario.host.undisturbed();
        scenario.domains[0].cap = 50;
        scenario.domains[0].weight = 512;
        let mut ignored = Linux.supports(&scenario).unwrap();
        // Where there can be no groups, the reason is named.
        let refused = ignored.iter().find(|key| key.key == "domain.cap").cloned();
        assert_eq!(refused, refused_caps(&scenario));
        ignored.retain(|key| key.key != "domain.cap");
        let keys: Vec<&str> = ignored.iter().map(|key| key.key.as_str()).collect();
        let always = ["host.scheduler", "host.machine and host.costs"];
        assert_eq!(keys, [&always[..], &["domain.kernel"]].concat());
    }

    #[test]
    fn a_group_weighs_as_much_as_its_vcpus() {
        let mut scenario = scenario("ticket", 2, LockLoop::default());
        let other = Domain { name: "e".into(), vcpus: 4, ..scenario.domains[0].clone() };
        scenario.domains.push(other);
        assert_eq!(shares(&scenario), [], "as threads without groups");
        scenario.domains[1].weight = scenario.domains[0].weight / 2;
        let found = shares(&scenario);
        // Not every system has groups for us.
        if ControlGroup::new(Share::default()).is_ok() {
            let of = |weight| Share { cap: 0, weight: Some(weight) };
            assert_eq!(found, [of(2.0), of(2.0)], "four vCPUs of half the weight");
        } else {
            assert_eq!(found, []);
        }
    }

    #[test]
    fn cpus_are_listed_once() {
        assert_eq!(list(&[3, 0, 3, 1]), "0,1,3");
    }
}
