//! A run: its guests begin together, their vCPUs are followed, and an outcome is made of what they did.

use std::slice;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use overspin_host::{Cancel, Observer, Refused};
use overspin_native::bench::Readings;
use overspin_native::world::{Switch, Switches, Trace, has_cpu, migrations, places, weights};
use overspin_scenario::{
    Domain, DomainOutcome, Ending, Measurement, Outcome, Picos, Scenario, Stopped, VcpuOutcome,
};

use super::NAME;
use super::guests::{Made, News, shares};
use super::job::{Job, Report};
use super::notes::{Noted, traces};
use crate::guest::{VcpuThread, vcpu_threads};

/// How often to look whether to stop, and to read the host kernel's records.
const LOOK: Duration = Duration::from_millis(10);
/// One in so many noted times may be one at which the vCPU had no CPU.
const MOST_IMPOSSIBLE: u64 = 50;

/// A guest of a run.
#[derive(Debug)]
struct RunGuest {
    job: Job,
    qemu: Option<u32>,
    is_over: bool,
    report: Option<Report>,
    noted: Option<Noted>,
    /// Switches of its vCPUs' threads; nothing if they cannot be had.
    switches: Vec<Switches>,
    /// The accounts of its vCPUs at the end of the warm-up, and at the end.
    before: Vec<[u64; 3]>,
    after: Vec<[u64; 3]>,
}

impl RunGuest {
    fn new(job: Job) -> Self {
        let (before, after, switches) = (Vec::new(), Vec::new(), Vec::new());
        let (qemu, report, noted) = (None, None, None);
        Self { job, qemu, is_over: false, report, noted, switches, before, after }
    }

    fn threads(&self) -> Vec<VcpuThread> {
        self.qemu.map(vcpu_threads).unwrap_or_default()
    }

    fn accounts(&self) -> Vec<[u64; 3]> {
        self.threads().into_iter().map(|thread| thread.account).collect()
    }

    /// Whether the switches of each of so many vCPUs are known.
    fn is_watched(&self, vcpus: u32) -> bool {
        self.switches.len() == vcpus as usize && self.switches.iter().all(|s| !s.lost)
    }
}

/// A run.
#[derive(Debug)]
pub(super) struct Run<'a> {
    scenario: &'a Scenario,
    seed: u64,
    warmup: Picos,
    guests: Vec<RunGuest>,
    begun: Option<Instant>,
    /// Both clocks since then.
    readings: Readings,
    stopped: Option<Stopped>,
}

impl<'a> Run<'a> {
    pub(super) fn new(scenario: &'a Scenario, seed: u64, jobs: Vec<Job>) -> Self {
        let warmup = scenario.warmup(jobs.iter().all(Job::is_endless));
        let guests = jobs.into_iter().map(RunGuest::new).collect();
        let readings = Readings::default();
        Self { scenario, seed, warmup, guests, begun: None, readings, stopped: None }
    }

    /// Boots the guests, lets them work, and ends them.
    pub(super) fn make(
        &mut self,
        made: &Made,
        cpus: &[usize],
        cancel: &dyn Cancel,
    ) -> Result<(), Refused> {
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
                Ok((number, News::Over(done))) => {
                    let guest = &mut self.guests[number];
                    guest.is_over = true;
                    if let Some(done) = done {
                        let (report, noted) = *done;
                        (guest.report, guest.noted) = (Some(report), noted);
                    }
                }
                Ok((_, News::Failed(refused))) => return Err(refused),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if self.begun.is_none() && self.guests.iter().all(|guest| guest.qemu.is_some()) {
                let wanted = self.guests.iter().any(|guest| guest.job.notes() > 0);
                for guest in self.guests.iter_mut().filter(|_| wanted) {
                    let of = |t: &VcpuThread| Switches::of_thread(t.id);
                    guest.switches = guest.threads().iter().filter_map(of).collect();
                }
                // A guest that is gone tells it by itself.
                gos.iter().for_each(|go| _ = go.send(()));
                self.begun = Some(Instant::now());
            }
            if self.begun.is_some() {
                self.readings.take();
            }
            let switches = self.guests.iter_mut().flat_map(|guest| &mut guest.switches);
            switches.for_each(Switches::read);
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

    pub(super) fn outcome(
        mut self,
        cpus: &[usize],
        doubts: Vec<String>,
        observer: &mut dyn Observer,
    ) -> Outcome {
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
        let domain = |(domain, guest): (&Domain, &RunGuest)| {
            let vcpus = (0..domain.vcpus as usize).map(|v| vcpu(guest, v, elapsed - warmup));
            let outcome = DomainOutcome {
                name: domain.name.clone(),
                vcpus: vcpus.collect(),
                ..DomainOutcome::default()
            };
            match &guest.report {
                Some(report) => report.of_domain(&guest.job, (steps, step), outcome),
                None => outcome,
            }
        };
        let steps_per_us = first.map_or(0.0, Report::steps_per_us);
        let mut domains: Vec<DomainOutcome> =
            self.scenario.domains.iter().zip(&self.guests).map(domain).collect();
        let mut missing = vec![
            "time of spinning apart from other waiting".to_owned(),
            "sleeps and kicks of waiters".to_owned(),
            "CPU time of single tasks of a kernel; that of programs has in it what the host took away"
                .to_owned(),
        ];
        let mut pcpus = Vec::new();
        match self.trace(cpus, warmup, elapsed) {
            Ok(trace) => {
                let warm_ns = trace.begun_ns + warmup.0 / 1_000;
                for of in &trace.vcpus {
                    let warm = of.switches.partition_point(|s| s.at_ns < warm_ns);
                    domains[of.domain].vcpus[of.vcpu as usize].migrations =
                        migrations(&of.switches[warm..]);
                }
                pcpus = trace.tell(observer, &mut domains);
            }
            Err(why) => missing.push(format!(
                "causes of waits, time on each pCPU, preempted holders, migrations: {why}"
            )),
        }
        let measurement = Measurement {
            world: NAME.into(),
            cpus: cpus.iter().map(|cpu| *cpu as u32).collect(),
            steps_per_us,
            missing,
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
            pcpus,
            domains,
            changes: Vec::new(),
            worst_waits: Vec::new(),
            noise: None,
            measurement: Some(measurement),
        }
    }

    /// What was noted of all vCPUs.
    ///
    /// # Errors
    /// Why it is not known, in words.
    fn trace<'c>(
        &mut self,
        cpus: &'c [usize],
        warmup: Picos,
        end: Picos,
    ) -> Result<Trace<'c>, &'static str> {
        let readings = &self.readings;
        let mut all_switches = Vec::new();
        // When the first guest began, which tells times since then.
        let mut begun_ns: Option<u64> = None;
        for (number, guest) in self.guests.iter_mut().enumerate() {
            if guest.job.notes() > 0 && guest.noted.is_none() {
                return Err(
                    "there were more acquisitions than a guest notes, or its clock runs at another speed",
                );
            }
            if !guest.is_watched(self.scenario.domains[number].vcpus) {
                return Err(
                    "the kernel does not let switches of vCPUs be recorded (perf_event_open), or some were lost",
                );
            }
            let switches = guest.switches.iter_mut().map(|s| std::mem::take(&mut s.seen));
            let switches: Vec<Vec<Switch>> = switches.collect();
            if let Some(noted) = &mut guest.noted {
                noted.settle(|vcpu, ticks| {
                    let had_cpu = switches.get(vcpu).and_then(|of| has_cpu(of, readings.ns(ticks)));
                    had_cpu == Some(false)
                });
                let began = guest.report.as_ref().and_then(Report::begun);
                let began = began.and_then(|ticks| noted.host(ticks)).map(|at| readings.ns(at));
                begun_ns = [begun_ns, began].into_iter().flatten().min();
            }
            all_switches.push(switches);
        }
        let begun_ns = begun_ns.ok_or("no guest noted an acquisition")?;
        let mut trace = Trace { vcpus: Vec::new(), begun_ns, warmup, end, cpus };
        for ((number, guest), switches) in self.guests.iter().enumerate().zip(all_switches) {
            let ns = |ticks| readings.ns(ticks).saturating_sub(begun_ns);
            trace.vcpus.extend(traces(number, switches, guest.noted.as_ref(), ns));
        }
        let (impossible, all) = trace.impossible();
        if impossible * MOST_IMPOSSIBLE > all {
            return Err("the clock of a guest cannot be compared with ours");
        }
        Ok(trace)
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
