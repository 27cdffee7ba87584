//! The causes of waits for locks: for each lock and each vCPU, and the longest waits of the run with their
//! chains. Attribution is an observer: it knows only the moments, not the world.
//!
//! `clock.rs` has the definitions and the arithmetic, `chain.rs` the pieces of one wait; this file follows
//! the moments. It needs no moments of locks without waiters.

mod chain;
mod clock;

use crate::moment::{Interest, LockEvent, Moment, Observer, SleepEvent, Timed};
use crate::why::Doing;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use clock::{Absence, Absent, Descheduled, LockClock, NONE, Times, Waits};
use overspin_scenario::{
    Cause, Decision, Link, LongWait, Outcome, Picos, Scenario, VcpuId, VcpuOutcome, WaitCauses, Why,
};

/// Number of waits that an outcome describes in full.
const WORST: usize = 10;

/// The state of a lock.
#[derive(Debug)]
struct Lock {
    /// Whether there is a waiter.
    contended: bool,
    /// If there is a waiter: the vCPU that holds it or is releasing it, `NONE` if it is free.
    holder: u32,
    /// Created with the first wait: most locks of a large host are never contended.
    clock: Option<Box<LockClock>>,
}

impl Lock {
    const FREE: Self = Self { holder: NONE, contended: false, clock: None };

    /// The clock of a lock that has or had a waiter.
    fn clock(&mut self) -> &mut LockClock {
        self.clock.get_or_insert_with(|| Box::new(LockClock::new()))
    }
}

/// The state of a vCPU.
#[derive(Debug)]
struct Vcpu {
    domain: u32,
    /// Number in its domain.
    index: u32,
    /// Whether it is part of the host's noise.
    is_noise: bool,
    doing: Doing,
    /// A task: it sleeps, or was woken and has not returned from that, whatever its vCPU does.
    asleep: bool,
    /// Its cap keeps it from running.
    throttled: bool,
    /// Its innermost wait for a lock, `NONE` if it does not wait.
    wait: u32,
    /// Number of contended locks of its guest that it holds or is releasing.
    holds_up: u32,
    /// The last decision that took it off its pCPU against its will.
    decision: Option<Descheduled>,
    /// Whether it executes its guest's code.
    running: bool,
    /// Time on a pCPU up to `since`, and the time since which it runs.
    ran: Picos,
    since: Picos,
    /// CPU time of finished waits; the start of its outermost current wait, by its run clock (`Picos::MAX`:
    /// there is none); and the lock of that wait.
    waiting: Picos,
    waits_since: Picos,
    waits_for: u32,
    /// Time of its finished waits by cause.
    waited: Times,
}

impl Vcpu {
    fn new(domain: u32, index: u32, is_noise: bool) -> Self {
        Self {
            domain,
            index,
            is_noise,
            // A vCPU that comes up wants to run.
            doing: Doing::Wants,
            asleep: false,
            throttled: false,
            wait: NONE,
            holds_up: 0,
            decision: None,
            running: false,
            ran: Picos::ZERO,
            since: Picos::ZERO,
            waiting: Picos::ZERO,
            waits_since: Picos::MAX,
            waits_for: NONE,
            waited: [Picos::ZERO; Cause::ALL.len()],
        }
    }

    /// Why it is off its pCPU, if it did not want to leave.
    fn descheduled(&self) -> Option<Descheduled> {
        self.decision.filter(|_| self.doing == Doing::Wants)
    }

    /// What it does, as waiters see a holder.
    fn as_holder(&self) -> Doing {
        match self.doing {
            Doing::Wants | Doing::Wakes if self.throttled => Doing::Throttled,
            doing => doing,
        }
    }

    /// Its run time so far.
    fn run_clock(&self, now: Picos) -> Picos {
        self.ran + if self.running { now - self.since } else { Picos::ZERO }
    }

    /// CPU time of all its waits so far.
    fn waiting_time(&self, now: Picos) -> Picos {
        self.waiting + self.run_clock(now).saturating_sub(self.waits_since)
    }

    /// Begins a wait for `lock`. The wait of an interrupt handler may be inside another one, and then counts
    /// as part of it.
    fn starts_to_wait(&mut self, lock: u32, now: Picos) {
        if self.waits_since == Picos::MAX {
            self.waits_since = self.run_clock(now);
            self.waits_for = lock;
        }
    }

    /// Ends the wait for `lock`.
    fn stops_to_wait(&mut self, lock: u32, now: Picos) {
        if self.waits_for == lock {
            self.waiting = self.waiting_time(now);
            self.waits_since = Picos::MAX;
            self.waits_for = NONE;
        }
    }
}

/// Follows the waits of one run.
#[derive(Debug)]
pub struct Attribution {
    /// The vCPUs, and after them the tasks that take locks in user mode.
    vcpus: Vec<Vcpu>,
    /// The numbers of these tasks in `vcpus`, by domain and task.
    tasks: BTreeMap<(u32, u32), u32>,
    /// The task that each vCPU runs.
    current: Vec<Option<u32>>,
    /// By domain and lock, up to the highest lock number seen.
    locks: Vec<Vec<Lock>>,
    waits: Waits,
    worst: Vec<LongWait>,
    /// A wait must be longer than this to be among the worst.
    longer_than: Picos,
}

fn add(sum: &mut Times, times: &Times) {
    for (sum, time) in sum.iter_mut().zip(times) {
        *sum += *time;
    }
}

impl Attribution {
    /// The moments that it needs.
    pub const INTEREST: Interest = Interest::SCHEDULING.and(Interest::WAITS);

    /// Attribution of a run of `scenario`.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let own = scenario.domains.len();
        let sizes = scenario.domain_sizes();
        let vcpus = (0..)
            .zip(&sizes)
            .flat_map(|(d, vcpus)| (0..*vcpus).map(move |i| Vcpu::new(d, i, d as usize >= own)));
        let vcpus: Vec<Vcpu> = vcpus.collect();
        Self {
            current: vcpus.iter().map(|_| None).collect(),
            vcpus,
            tasks: BTreeMap::new(),
            locks: sizes.iter().map(|_| Vec::new()).collect(),
            waits: Waits::default(),
            worst: Vec::new(),
            longer_than: Picos::ZERO,
        }
    }

    /// Takes one moment. If it ends a wait, returns the causes of that wait.
    pub fn record(&mut self, at: Picos, moment: &Moment) -> Option<WaitCauses> {
        self.follow::<true>(at, moment)
    }

    /// Like [`record`](Self::record), but returns causes only with `TELL`. Returning them is slow, since the
    /// processor waits for the stores of the result.
    #[inline]
    fn follow<const TELL: bool>(&mut self, at: Picos, moment: &Moment) -> Option<WaitCauses> {
        match *moment {
            Moment::LockAcquired { vcpu, lock, contended: true } => {
                return self.acquired::<TELL>(at, vcpu, lock);
            }
            Moment::LockReleased { vcpu, lock, contended: true } => self.releases(at, vcpu, lock),
            Moment::LockFreed { vcpu, lock, contended: true } => self.freed(at, vcpu, lock),
            Moment::LockWait { vcpu, lock, holder, releasing } => {
                self.wait_begins(at, vcpu, lock, (holder.unwrap_or(NONE), releasing));
            }
            Moment::Switch { pcpu, prev, why, next, .. } => {
                if let Some(vcpu) = prev {
                    let v = &mut self.vcpus[vcpu as usize];
                    (v.ran, v.running) = (v.run_clock(at), false);
                    if let Some(why) = why {
                        let by = next.unwrap_or(NONE);
                        v.decision = Some(Descheduled { at, pcpu, by, why });
                        self.does(at, vcpu, Doing::Wants);
                    }
                }
            }
            Moment::Runs { vcpu, .. } => {
                let v = &mut self.vcpus[vcpu as usize];
                (v.running, v.since) = (true, at);
                // A vCPU that slept counts as running only from `Returns` on.
                if v.doing == Doing::Wants {
                    self.does(at, vcpu, Doing::Runs);
                }
            }
            Moment::Sleeps { vcpu } => self.does(at, vcpu, Doing::Sleeps),
            Moment::Wake { vcpu, .. } => {
                if self.vcpus[vcpu as usize].doing == Doing::Sleeps {
                    self.does(at, vcpu, Doing::Wakes);
                }
            }
            Moment::Throttle { vcpu, on } => self.throttles(at, vcpu, on),
            Moment::Returns { vcpu } => self.does(at, vcpu, Doing::Runs),
            Moment::Task { vcpu, task } => self.switches(at, vcpu, task),
            Moment::TaskSleep { domain, task, what } => {
                let e = self.task(at, domain.into(), task);
                let doing = match what {
                    SleepEvent::Begins => Doing::Sleeps,
                    SleepEvent::Wakes => Doing::Wakes,
                    SleepEvent::Returns => Doing::Runs,
                };
                self.vcpus[e as usize].asleep = what != SleepEvent::Returns;
                self.does(at, e, doing);
            }
            Moment::TaskLock { domain, task, lock, what } => {
                return self.task_locks::<TELL>(at, (domain.into(), task), lock, what);
            }
            Moment::Counts => self.counts_from(at),
            Moment::LockAcquired { .. }
            | Moment::LockReleased { .. }
            | Moment::LockFreed { .. }
            | Moment::PollBegins { .. }
            | Moment::PollEnds { .. }
            | Moment::Yield { .. }
            | Moment::PauseLoopExit { .. }
            | Moment::DirectedYield { .. }
            | Moment::WindowOpens { .. }
            | Moment::WindowCloses { .. }
            | Moment::Interrupt { .. }
            | Moment::InterruptEnds { .. }
            | Moment::Kick { .. }
            | Moment::Change { .. } => {}
        }
        None
    }

    /// Forgets the waits that are over. One that is not will count as a whole, but the CPU time of waits begins here.
    fn counts_from(&mut self, at: Picos) {
        for v in &mut self.vcpus {
            v.waited = [Picos::ZERO; Cause::ALL.len()];
            v.waiting = Picos::ZERO;
            if v.waits_since != Picos::MAX {
                v.waits_since = v.run_clock(at);
            }
        }
        for clock in self.locks.iter_mut().flatten().filter_map(|lock| lock.clock.as_mut()) {
            clock.sum = [Picos::ZERO; Cause::ALL.len()];
        }
        self.worst.clear();
        self.longer_than = Picos::ZERO;
        self.waits.worth_a_line = chain::worth_a_line(self.longer_than);
    }

    /// A task does something at a lock of user mode: the same as a vCPU at one of the kernel.
    #[inline(never)]
    fn task_locks<const TELL: bool>(
        &mut self,
        at: Picos,
        (domain, task): (u32, u32),
        lock: u32,
        what: LockEvent,
    ) -> Option<WaitCauses> {
        let who = self.task(at, domain, task);
        match what {
            LockEvent::Waits { holder, releasing } => {
                let holder = holder.map_or(NONE, |h| self.task(at, domain, h));
                self.wait_begins(at, who, lock, (holder, releasing));
            }
            LockEvent::Acquired { contended: true } => {
                return self.acquired::<TELL>(at, who, lock);
            }
            LockEvent::Released { contended: true } => self.releases(at, who, lock),
            LockEvent::Freed { contended: true } => self.freed(at, who, lock),
            LockEvent::Acquired { .. } | LockEvent::Released { .. } | LockEvent::Freed { .. } => {}
        }
        None
    }

    /// `vcpu` begins to release a lock that others wait for.
    #[inline]
    fn releases(&mut self, at: Picos, vcpu: u32, lock: u32) {
        let domain = self.vcpus[vcpu as usize].domain;
        let lock = lock_of(&mut self.locks, domain, lock);
        // Another vCPU may have told already that it has taken it.
        if lock.contended && lock.holder == vcpu {
            lock.clock().release(&self.waits, at);
        }
    }

    /// `vcpu` has finished releasing a lock that others wait for.
    #[inline]
    fn freed(&mut self, at: Picos, vcpu: u32, lock: u32) {
        let v = &mut self.vcpus[vcpu as usize];
        let lock = lock_of(&mut self.locks, v.domain, lock);
        // Another vCPU may have taken it by now.
        if lock.contended && lock.holder == vcpu {
            lock.holder = NONE;
            v.holds_up -= 1;
            lock.clock().released(&self.waits, at);
        }
    }

    /// The number of a task among vCPUs and tasks, which it gets when it first takes a lock in user mode.
    fn task(&mut self, at: Picos, domain: u32, task: u32) -> u32 {
        if let Some(known) = self.tasks.get(&(domain, task)) {
            return *known;
        }
        let number = self.vcpus.len() as u32;
        self.tasks.insert((domain, task), number);
        let mut new = Vcpu::new(domain, task, false);
        let on = |(v, current): (usize, &Option<u32>)| {
            *current == Some(task) && self.vcpus[v].domain == domain
        };
        match self.current.iter().enumerate().position(on) {
            Some(v) => {
                let Vcpu { doing, decision, throttled, .. } = self.vcpus[v];
                (new.doing, new.decision, new.throttled) = (doing, decision, throttled);
            }
            None => new.decision = Some(Descheduled { at, pcpu: NONE, by: NONE, why: Why::Guest }),
        }
        self.vcpus.push(new);
        number
    }

    /// The guest of `vcpu` runs `task` there from now on.
    fn switches(&mut self, at: Picos, vcpu: u32, task: Option<u32>) {
        let before = core::mem::replace(&mut self.current[vcpu as usize], task);
        if self.tasks.is_empty() {
            return;
        }
        let Vcpu { domain, doing, decision, .. } = self.vcpus[vcpu as usize];
        let number = |task: Option<u32>| self.tasks.get(&(domain, task?)).copied();
        let (out, comes) = (number(before), number(task));
        if let Some(out) = out.filter(|e| !self.vcpus[*e as usize].asleep) {
            let by = comes.unwrap_or(NONE);
            self.vcpus[out as usize].decision =
                Some(Descheduled { at, pcpu: NONE, by, why: Why::Guest });
            self.does(at, out, Doing::Wants);
        }
        if let Some(comes) = comes.filter(|e| !self.vcpus[*e as usize].asleep) {
            self.vcpus[comes as usize].decision = decision;
            self.does(at, comes, doing);
        }
    }

    /// The code on `vcpu` starts to wait for `lock` of its guest.
    fn wait_begins(&mut self, at: Picos, vcpu: u32, lock: u32, (holder, releasing): (u32, bool)) {
        let v = &mut self.vcpus[vcpu as usize];
        v.starts_to_wait(lock, at);
        let (domain, outer) = (v.domain, v.wait);
        let contention = lock_of(&mut self.locks, domain, lock);
        if !contention.contended {
            (contention.contended, contention.holder) = (true, holder);
            let clock = contention.clock();
            if holder == NONE {
                clock.held_by(NONE, false, Doing::Runs, None);
            } else {
                let h = &mut self.vcpus[holder as usize];
                clock.held_by(holder, releasing, h.as_holder(), h.descheduled());
                h.holds_up += 1;
            }
        }
        let id = contention.clock().begin(&mut self.waits, at, (vcpu, lock, outer));
        self.vcpus[vcpu as usize].wait = id;
    }

    /// `vcpu` has acquired a lock for which it or another vCPU waited. Returns the causes of its own wait.
    fn acquired<const TELL: bool>(
        &mut self,
        at: Picos,
        vcpu: u32,
        lock: u32,
    ) -> Option<WaitCauses> {
        let v = &mut self.vcpus[vcpu as usize];
        v.stops_to_wait(lock, at);
        let contention = lock_of(&mut self.locks, v.domain, lock);
        if !contention.contended {
            // The world says that the lock is contended, but has not reported a wait.
            return None;
        }
        // The vCPU that is still releasing it.
        let before = core::mem::replace(&mut contention.holder, vcpu);
        if before != NONE {
            self.vcpus[before as usize].holds_up -= 1;
        }
        let v = &mut self.vcpus[vcpu as usize];
        let (domain, id) = (v.domain, v.wait);
        let mut contention = lock_of(&mut self.locks, domain, lock);
        let clock = contention.clock();
        let waited = id != NONE && self.waits.get(id).lock == lock;
        clock.acquire(&mut self.waits, at, vcpu, if waited { id } else { NONE });
        let mut causes = None;
        if waited {
            let times = clock.end(&mut self.waits, id);
            let wait = self.waits.get(id);
            let time = at - wait.since;
            // They add up wherever moments are complete and in order. A real machine may have told of a moment too
            // late or not at all; then the causes of this wait are not known, and it counts without them.
            let known = times.iter().sum::<Picos>() == time;
            if known {
                add(&mut clock.sum, &times);
                add(&mut v.waited, &times);
            }
            v.wait = wait.outer;
            causes = (TELL && known).then(|| times.into());
            if known && time > self.longer_than {
                self.keep(at, id, times.into(), true);
                contention = lock_of(&mut self.locks, domain, lock);
            }
            self.waits.remove(id);
        }
        let clock = contention.clock();
        clock.acquisitions += 1;
        let contended = clock.somebody_waits();
        if contended {
            self.vcpus[vcpu as usize].holds_up += 1;
        } else {
            clock.forget();
        }
        contention.contended = contended;
        causes
    }

    /// Records a change of what a vCPU does.
    #[inline]
    fn does(&mut self, at: Picos, vcpu: u32, doing: Doing) {
        let v = &mut self.vcpus[vcpu as usize];
        v.doing = doing;
        if v.holds_up > 0 || v.wait != NONE {
            self.tell_locks(at, vcpu, doing);
        }
        if !self.tasks.is_empty() {
            self.task_does(at, vcpu, doing);
        }
    }

    /// A cap begins or ceases to keep `vcpu` from running, and with it the task that it runs.
    #[cold]
    fn throttles(&mut self, at: Picos, vcpu: u32, on: bool) {
        let task = self.current.get(vcpu as usize).copied().flatten();
        let domain = self.vcpus[vcpu as usize].domain;
        let task = task.and_then(|task| self.tasks.get(&(domain, task)).copied());
        for who in [Some(vcpu), task].into_iter().flatten() {
            let v = &mut self.vcpus[who as usize];
            v.throttled = on;
            if v.holds_up > 0 || v.wait != NONE {
                let doing = v.doing;
                self.tell_locks(at, who, doing);
            }
        }
    }

    /// The task that `vcpu` runs, if that is a vCPU, does the same.
    fn task_does(&mut self, at: Picos, vcpu: u32, doing: Doing) {
        let task = self.current.get(vcpu as usize).copied().flatten();
        let Vcpu { domain, decision, .. } = self.vcpus[vcpu as usize];
        let task = task.and_then(|task| self.tasks.get(&(domain, task)).copied());
        if let Some(e) = task.filter(|e| !self.vcpus[*e as usize].asleep) {
            self.vcpus[e as usize].decision = decision;
            self.does(at, e, doing);
        }
    }

    fn tell_locks(&mut self, now: Picos, vcpu: u32, doing: Doing) {
        let v = &self.vcpus[vcpu as usize];
        let absent = Absent { doing, throttled: v.throttled, decision: v.descheduled() };
        let mut id = v.wait;
        while id != NONE {
            let (lock, outer) = (self.waits.get(id).lock, self.waits.get(id).outer);
            let clock = lock_of(&mut self.locks, v.domain, lock).clock();
            clock.waiter_changes(&mut self.waits, now, id, absent);
            id = outer;
        }
        if v.holds_up > 0 {
            self.tell_held(now, vcpu);
        }
    }

    /// Tells the contended locks that `vcpu` holds what it does.
    fn tell_held(&mut self, now: Picos, vcpu: u32) {
        let v = &self.vcpus[vcpu as usize];
        let (doing, decision) = (v.as_holder(), v.descheduled());
        let locks = &mut self.locks[v.domain as usize];
        for held in locks.iter_mut().filter(|l| l.holder == vcpu && l.contended) {
            held.clock().holder_changes(&self.waits, now, doing, decision);
        }
    }

    /// Completes the outcome of the run: waits by cause, CPU time of waits, and the longest waits, including
    /// those that the end of the run cuts short. Call it once, at the end.
    pub fn complete(&mut self, outcome: &mut Outcome) {
        let now = outcome.elapsed;
        for vcpu in 0..self.vcpus.len() {
            let mut id = core::mem::replace(&mut self.vcpus[vcpu].wait, NONE);
            while id != NONE {
                let (lock, outer) = (self.waits.get(id).lock, self.waits.get(id).outer);
                let domain = self.vcpus[vcpu].domain;
                let clock = lock_of(&mut self.locks, domain, lock).clock();
                let times = clock.cut(&mut self.waits, now, id);
                if times.iter().sum::<Picos>() > self.longer_than {
                    self.keep(now, id, times.into(), false);
                }
                id = outer;
            }
        }
        let place = |v: &Vcpu, outcome: &mut Outcome, put: &dyn Fn(&mut VcpuOutcome)| {
            let domain = outcome.domains.get_mut(v.domain as usize);
            if let Some(of) = domain.and_then(|d| d.vcpus.get_mut(v.index as usize)) {
                put(of);
            }
        };
        for v in &self.vcpus[..self.current.len()] {
            place(v, outcome, &|of| {
                of.waiting = v.waiting_time(now);
                of.wait_causes = v.waited.into();
            });
        }
        for (domain, locks) in outcome.domains.iter_mut().zip(&self.locks) {
            for (of, lock) in domain.locks.iter_mut().zip(locks) {
                of.wait_causes =
                    lock.clock.as_ref().map_or_else(Default::default, |c| c.sum.into());
            }
        }
        outcome.worst_waits = core::mem::take(&mut self.worst);
    }

    /// Keeps a wait that ends now as one of the longest, unless it is a wait of the host's noise.
    fn keep(&mut self, now: Picos, id: u32, causes: WaitCauses, finished: bool) {
        let wait = self.waits.get(id);
        let v = &self.vcpus[wait.vcpu as usize];
        if v.is_noise {
            return;
        }
        let lock = &self.locks[v.domain as usize][wait.lock as usize];
        let clock = lock.clock.as_deref().expect("a lock that was waited for has a clock");
        let index = |v: u32| self.vcpus[v as usize].index;
        let kept = LongWait {
            domain: v.domain,
            vcpu: v.index,
            lock: wait.lock,
            since: wait.since,
            time: now - wait.since,
            finished,
            of_tasks: wait.vcpu as usize >= self.current.len(),
            holder: (wait.holder != NONE).then(|| index(wait.holder)),
            acquisitions: clock.acquisitions - wait.acquisitions,
            causes,
            chain: self.links(
                &chain::absences(wait, clock, now),
                (wait.since, wait.acquisitions),
                (now, clock.acquisitions),
            ),
        };
        // Among equally long waits, the earlier one stays in front.
        let at = self.worst.partition_point(|w| w.time >= kept.time);
        self.worst.insert(at, kept);
        self.worst.truncate(WORST);
        if self.worst.len() == WORST {
            self.longer_than = self.worst[WORST - 1].time;
            self.waits.worth_a_line = chain::worth_a_line(self.longer_than);
        }
    }

    /// The links of an outcome: absences, and the pieces between them. `begin` and `end` are times, with the
    /// acquisitions of the lock up to then.
    fn links(
        &self,
        absences: &[(Absence, bool)],
        begin: (Picos, u64),
        end: (Picos, u64),
    ) -> Vec<Link> {
        let mut links = Vec::new();
        let mut from = begin;
        // Time of unlisted absences since the last listed one.
        let mut unlisted = Picos::ZERO;
        // The acquisitions of another vCPU's absence are those up to its end, even if the waiter's own absence cuts
        // it short. If the lock changed hands in between, the count of the next piece begins later than the piece.
        let between = |from: (Picos, u64), to: (Picos, u64), unlisted| Link {
            since: from.0,
            time: to.0 - from.0,
            cause: None,
            vcpu: None,
            decision: None,
            acquisitions: to.1.saturating_sub(from.1),
            unlisted,
        };
        for (a, listed) in absences {
            if !listed {
                unlisted += a.time();
                continue;
            }
            // An absence may begin before the last one ended; an acquisition counts once.
            let taken = (a.acquisitions.0.max(from.1), a.acquisitions.1.max(from.1));
            let to = (a.since, taken.0);
            if to != from {
                links.push(between(from, to, core::mem::take(&mut unlisted)));
            }
            links.push(Link {
                since: a.since,
                time: a.time(),
                cause: Some(a.cause),
                vcpu: Some(self.vcpus[a.who as usize].index),
                decision: a.decision.map(|d| Decision {
                    at: d.at,
                    pcpu: d.pcpu,
                    by: (d.by != NONE).then(|| self.vcpu_id(d.by)),
                    why: d.why,
                }),
                acquisitions: taken.1 - taken.0,
                unlisted: Picos::ZERO,
            });
            from = (a.until, taken.1);
        }
        if end != from {
            links.push(between(from, end, unlisted));
        }
        links
    }

    fn vcpu_id(&self, v: u32) -> VcpuId {
        let v = &self.vcpus[v as usize];
        VcpuId { domain: v.domain, vcpu: v.index }
    }
}

/// A lock of a domain; adds locks up to this number if needed.
#[inline]
fn lock_of(locks: &mut [Vec<Lock>], domain: u32, lock: u32) -> &mut Lock {
    let locks = &mut locks[domain as usize];
    let lock = lock as usize;
    if lock >= locks.len() {
        locks.resize_with(lock + 1, || Lock::FREE);
    }
    &mut locks[lock]
}

impl Observer for Attribution {
    fn interest(&self) -> Interest {
        Self::INTEREST
    }

    fn observe(&mut self, moments: &[Timed]) {
        for Timed { at, moment } in moments {
            self.follow::<false>(*at, moment);
        }
    }
}
