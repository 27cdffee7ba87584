//! Reads the counters, again and again, and says what happened in between.

use super::mutexes::Mutexes as Memory;
use super::threads::{Thread, Threads};
use super::{
    Guests, Holders, Interval, Mutexes, Program, Quota, Throttling, group, threads, unseen,
};
use overspin_native::preload::Waits;
use overspin_real::seconds::Counters;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Groups are looked for at every so many readings: that reads all folders of groups.
const LOOK_FOR_GROUPS: u64 = 10;

/// What is watched beside the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing.
    Machine,
    /// A process and all that it starts.
    Process(u32),
    /// The processes of a control group, by its folder.
    Group(PathBuf),
}

/// Counters at a moment.
#[derive(Clone, Debug)]
struct Reading {
    at: Instant,
    machine: Counters,
    threads: Threads,
    groups: BTreeMap<PathBuf, Throttling>,
    guests: Result<Guests, ErrorKind>,
    waits: Option<Waits>,
    own_ns: Option<u64>,
}

/// Watches a machine, and perhaps a program on it.
#[derive(Debug)]
pub struct Watcher {
    root: PathBuf,
    target: Target,
    name: String,
    cpus: usize,
    groups: Vec<PathBuf>,
    memory: Memory,
    readings: u64,
    first: Reading,
    before: Reading,
    whole: Option<Interval>,
}

impl Watcher {
    /// Reads for the first time. `root` is `/` but in tests.
    #[must_use]
    pub fn begin(root: &Path, target: Target) -> Self {
        let name = match &target {
            Target::Machine => String::new(),
            Target::Process(process) => {
                threads::name(root, *process).unwrap_or_else(|| format!("process {process}"))
            }
            Target::Group(folder) => group::name(root, folder),
        };
        let mut this = Self {
            root: root.to_owned(),
            target,
            name,
            cpus: cpus(root),
            groups: Vec::new(),
            memory: Memory::Own,
            readings: 0,
            first: Reading::none(),
            before: Reading::none(),
            whole: None,
        };
        this.first = this.read();
        this.before = this.first.clone();
        this
    }

    /// What has happened since the last time.
    pub fn interval(&mut self) -> Interval {
        let now = self.read();
        let interval = self.between(&self.before, &now);
        match &mut self.whole {
            None => self.whole = Some(interval.clone()),
            Some(whole) => {
                let length_s = (now.at - self.first.at).as_secs_f64().max(1e-6);
                let machine = now.machine.since(&self.first.machine, length_s, length_s);
                whole.add(&interval);
                whole.machine = machine;
            }
        }
        self.before = now;
        interval
    }

    /// What has happened since the beginning. Unlike two readings it knows of threads that have ended.
    #[must_use]
    pub fn whole(&self) -> Option<&Interval> {
        self.whole.as_ref()
    }

    /// Whether the process that is watched has ended. Until its parent asks, its last counters can be read.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let Target::Process(process) = self.target else { return false };
        let stat = fs::read_to_string(self.root.join(format!("proc/{process}/stat")));
        // `7 (a name) Z 1`
        let has_ended = |stat: &str| {
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            matches!(state, None | Some('Z' | 'X'))
        };
        stat.map_or(true, |stat| has_ended(&stat))
    }

    fn read(&mut self) -> Reading {
        let root = &self.root;
        let threads = match &self.target {
            Target::Machine => Threads::default(),
            Target::Process(process) => Threads::of(root, &[*process]),
            Target::Group(folder) => Threads::of(root, &group::processes(folder)),
        };
        // A command that has just been started is still this program, and then becomes its own.
        if let Target::Process(process) = &self.target
            && let Some(name) = threads::name(root, *process)
        {
            self.name = name;
        }
        if self.readings.is_multiple_of(LOOK_FOR_GROUPS) {
            self.groups = match &self.target {
                Target::Machine => group::with_quota(root),
                Target::Process(process) => {
                    let file = root.join(format!("proc/{process}/cgroup"));
                    group::around(root, &fs::read_to_string(file).unwrap_or_default())
                }
                Target::Group(folder) => vec![folder.clone()],
            };
        }
        self.readings += 1;
        if self.target != Target::Machine && !matches!(self.memory, Memory::Counted(_)) {
            self.memory = Memory::find(root, threads.processes.iter().copied());
        }
        let throttling = |group: &PathBuf| Some((group.clone(), Throttling::of(group)?));
        Reading {
            machine: Counters::read(root),
            threads,
            groups: self.groups.iter().filter_map(throttling).collect(),
            guests: Guests::read(root),
            waits: self.memory.waits(),
            own_ns: own_ns(root),
            // Last: what was read before happened before.
            at: Instant::now(),
        }
    }

    fn between(&self, before: &Reading, now: &Reading) -> Interval {
        let length_s = (now.at - before.at).as_secs_f64().max(1e-6);
        let machine = now.machine.since(&before.machine, length_s, length_s);
        let mut unseen = unseen::of_machine(&self.root, &machine, now.guests);
        let program = (self.target != Target::Machine).then(|| {
            unseen.extend(unseen::of_program(&now.threads, &self.memory));
            self.program(before, now, length_s)
        });
        let quota = |(folder, counted): (&PathBuf, &Throttling)| {
            let before = before.groups.get(folder)?;
            let group = group::name(&self.root, folder);
            let cpus = group::quota(folder)?;
            Some(Quota { group, cpus, counted: counted.since(*before) })
        };
        Interval {
            length_s,
            cpus: self.cpus,
            machine,
            program,
            quotas: now.groups.iter().filter_map(quota).collect(),
            guests: now.guests.ok().zip(before.guests.ok()).map(|(now, then)| now.since(then)),
            own_cpu: now
                .own_ns
                .zip(before.own_ns)
                .map(|(now, then)| now.saturating_sub(then) as f64 / 1e9 / length_s),
            unseen,
        }
    }

    fn program(&self, before: &Reading, now: &Reading, length_s: f64) -> Program {
        let spent: Thread = now.threads.since(&before.threads);
        let rate = |count: u64| count as f64 / length_s;
        // A run whose memory was found meanwhile has counted from 0.
        let mutexes = now.waits.map(|waits| {
            let then = before.waits.unwrap_or_default();
            Mutexes {
                waits: rate(waits.ended.saturating_sub(then.ended)),
                waited: rate(waits.waited_ns.saturating_sub(then.waited_ns)) / 1e9,
                holders: holders(&waits).since(holders(&then)),
            }
        });
        Program {
            name: self.name.clone(),
            processes: now.threads.processes.len(),
            threads: now.threads.all.len(),
            left_out: now.threads.left_out,
            allowed: now.threads.allowed,
            running: rate(spent.running_ns) / 1e9,
            waiting: rate(spent.waiting_ns) / 1e9,
            preempted: rate(spent.preempted),
            slept: rate(spent.slept),
            mutexes,
        }
    }
}

impl Reading {
    fn none() -> Self {
        Self {
            at: Instant::now(),
            machine: Counters::default(),
            threads: Threads::default(),
            groups: BTreeMap::new(),
            guests: Err(ErrorKind::NotFound),
            waits: None,
            own_ns: None,
        }
    }
}

impl Interval {
    /// Adds the next interval to what happened so far, but for the machine, of which the first reading is kept.
    pub(super) fn add(&mut self, next: &Self) {
        let length_s = self.length_s + next.length_s;
        let mean = |a: f64, b: f64| (a * self.length_s + b * next.length_s) / length_s;
        if let (Some(program), Some(more)) = (&mut self.program, &next.program) {
            for (to, from) in [
                (&mut program.running, more.running),
                (&mut program.waiting, more.waiting),
                (&mut program.preempted, more.preempted),
                (&mut program.slept, more.slept),
            ] {
                *to = mean(*to, from);
            }
            if let Some(more) = more.mutexes {
                let sum = program.mutexes.get_or_insert_default();
                sum.waits = mean(sum.waits, more.waits);
                sum.waited = mean(sum.waited, more.waited);
                sum.holders.add(more.holders);
            }
            program.name.clone_from(&more.name);
            program.threads = program.threads.max(more.threads);
            program.processes = program.processes.max(more.processes);
            program.left_out = program.left_out.max(more.left_out);
            program.allowed = program.allowed.max(more.allowed);
        }
        for quota in &next.quotas {
            match self.quotas.iter_mut().find(|known| known.group == quota.group) {
                Some(known) => {
                    known.counted.periods += quota.counted.periods;
                    known.counted.throttled += quota.counted.throttled;
                    known.counted.throttled_ns += quota.counted.throttled_ns;
                }
                None => self.quotas.push(quota.clone()),
            }
        }
        if let (Some(guests), Some(more)) = (&mut self.guests, next.guests) {
            guests.yields += more.yields;
            guests.yielded += more.yielded;
            guests.halt_polling_ns += more.halt_polling_ns;
        }
        self.own_cpu = self.own_cpu.zip(next.own_cpu).map(|(a, b)| mean(a, b));
        // The last interval of a program finds none of its processes.
        if next.program.as_ref().is_none_or(|program| program.processes > 0) {
            self.unseen.clone_from(&next.unseen);
        }
        self.length_s = length_s;
    }
}

fn holders(waits: &Waits) -> Holders {
    let Waits { looks, held_ns, descheduled_ns, asleep_ns, .. } = *waits;
    Holders { looks, held_ns, descheduled_ns, asleep_ns }
}

impl Holders {
    fn since(mut self, mut before: Self) -> Self {
        for (count, then) in self.all().into_iter().zip(before.all()) {
            *count = count.saturating_sub(*then);
        }
        self
    }

    fn add(&mut self, mut more: Self) {
        for (count, more) in self.all().into_iter().zip(more.all()) {
            *count += *more;
        }
    }

    fn all(&mut self) -> [&mut u64; 4] {
        [&mut self.looks, &mut self.held_ns, &mut self.descheduled_ns, &mut self.asleep_ns]
    }
}

/// CPU time of this thread, which does all the watching, so far.
fn own_ns(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/thread-self/schedstat")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// CPUs that are online.
fn cpus(root: &Path) -> usize {
    let stat = fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
    let is_cpu = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    stat.lines().filter(is_cpu).count().max(1)
}
