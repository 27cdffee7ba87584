//! Benchmark of locks, ours and others': speed, fairness and waiting times in one table.
//!
//! A point is a lock, a number of threads, the length of the critical section and the length of the work
//! between two sections. Every point is measured several times, and the runs of all points are shuffled. A
//! temporary disturbance of the machine then affects all points alike, and shows as spread.
//!
//! Each thread repeats: outside work, whose length is uniform between 0 and twice the mean, so that threads
//! do not fall into step; lock; a section of fixed length; unlock. Both lengths are counted in steps of
//! work, not in time. The wait lasts from just before `lock` to just after it. Each wait goes into a
//! histogram of the thread. An acquisition costs two readings of the time stamp counter, one of them with
//! the lock held. This cost is the same for all locks.
//!
//! The loop is not the workload `lockloop`, which every world runs: that one calls its world through `dyn Env`
//! for each section: a cost of the order of what is measured here.

mod contestants;
mod machine;
mod own;
mod paired;
mod work;

use std::io;
use std::mem::MaybeUninit;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use contestants::{Contestant, Visitor};
use machine::MachineTime;

pub(crate) use work::{Clock, Lots, work};

pub use contestants::MUTEXES;
pub use machine::{Warning, warnings};
pub use own::OwnLock;
pub use paired::{PairedPoint, PairedReport, Pairs, ticket_against_pv_ticket};

/// A benchmark plan: all combinations are measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names of locks: of the registry, of [`MUTEXES`], or of `own`.
    pub locks: Vec<String>,
    /// Locks from outside. They take precedence over others of the same name.
    pub own: Vec<OwnLock>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Lengths of the critical section.
    pub sections: Vec<Duration>,
    /// Mean lengths of the work between two sections of a thread.
    pub outsides: Vec<Duration>,
    /// CPUs to run on; empty for all that this process may use.
    pub cpus: Vec<usize>,
    /// Length of one run, after a warm-up of a tenth of it.
    pub time: Duration,
    /// Runs of each point.
    pub runs: usize,
    /// Seed for the order of the runs and the draws of the threads.
    pub seed: u64,
}

/// The reasons why a plan cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is no lock of that name.
    #[error("there is no lock `{0}`")]
    UnknownLock(String),
    /// The plan measures nothing.
    #[error(
        "there must be at least one each of locks, threads, sections, outsides and runs, and some time"
    )]
    Empty,
    /// The lock, or the crate, does not serve that many threads.
    #[error("`{lock}` serves at most {max} threads, not {threads}")]
    TooManyThreads {
        /// The lock.
        lock: &'static str,
        /// The number of threads that it serves.
        max: usize,
        /// The number of threads that were requested.
        threads: usize,
    },
    /// A section is longer than the work loop can count.
    #[error("{0:?} is too long for a section, or for the work between two sections")]
    TooLong(Duration),
    /// This process may not run on these CPUs.
    #[error("cannot run on CPUs {cpus:?}")]
    Cpus {
        /// The CPUs.
        cpus: Vec<usize>,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The results of a plan.
#[derive(Clone, Debug)]
pub struct Report {
    /// Conditions that make the results doubtful.
    pub warnings: Vec<Warning>,
    /// One for each point, in the order of the plan.
    pub points: Vec<Point>,
}

/// The results of a lock in one situation.
#[derive(Clone, Debug)]
pub struct Point {
    /// Name of the lock.
    pub lock: &'static str,
    /// Threads.
    pub threads: usize,
    /// Length of the section, nanoseconds.
    pub section_ns: u64,
    /// Mean length of the work between two sections, nanoseconds.
    pub outside_ns: u64,
    /// Acquisitions per second: the median of the runs.
    pub throughput: f64,
    /// The lowest and the highest throughput of the runs.
    pub throughput_range: [f64; 2],
    /// The share of the thread with the fewest acquisitions over the share of the one with the most;
    /// median.
    pub min_max_share: f64,
    /// Jain's index of the shares: 1 if equal, 1/n if one thread has all; median.
    pub jain: f64,
    /// Waits of all acquisitions of all runs.
    pub wait: Waits,
    /// CPU time per acquisition, nanoseconds; median.
    pub cpu_ns: f64,
    /// Involuntary switches (a thread was descheduled) per second; median.
    pub involuntary_switches: f64,
    /// Voluntary switches (a thread went to sleep) per second; median.
    pub voluntary_switches: f64,
    /// The underlying samples.
    pub samples: Vec<Sample>,
}

/// Waits, in nanoseconds. Percentiles are exact to 1 %.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p99_9: u64,
    /// Longest.
    pub max: u64,
}

impl Waits {
    fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), p99_9: at(0.999), max: histogram.max() }
    }
}

/// One run.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its place in the order of all runs.
    pub place: usize,
    /// Its duration, nanoseconds.
    pub time_ns: u64,
    /// Acquisitions of each thread.
    pub acquisitions: Vec<u64>,
    /// Waits of all threads.
    pub wait: Waits,
    /// CPU time of all threads, nanoseconds.
    pub cpu_ns: u64,
    /// Involuntary switches (a thread was descheduled).
    pub involuntary_switches: u64,
    /// Voluntary switches (a thread went to sleep).
    pub voluntary_switches: u64,
}

impl Sample {
    fn total(&self) -> f64 {
        self.acquisitions.iter().sum::<u64>() as f64
    }

    /// Acquisitions per second.
    fn throughput(&self) -> f64 {
        self.per_second(self.total())
    }

    fn per_second(&self, count: f64) -> f64 {
        count / (self.time_ns as f64 / 1e9)
    }

    fn min_max_share(&self) -> f64 {
        let max = self.acquisitions.iter().max().copied().unwrap_or(0);
        let min = self.acquisitions.iter().min().copied().unwrap_or(0);
        if max == 0 { 1.0 } else { min as f64 / max as f64 }
    }

    /// Jain's fairness index (Jain, Chiu and Hawe 1984).
    fn jain(&self) -> f64 {
        let squares: f64 = self.acquisitions.iter().map(|&n| (n as f64).powi(2)).sum();
        if squares == 0.0 {
            1.0
        } else {
            self.total().powi(2) / (self.acquisitions.len() as f64 * squares)
        }
    }
}

/// Carries out `plan`. Calls `tell` after each run with the numbers of finished runs and of all runs.
///
/// # Errors
/// If the plan is impossible.
///
/// # Panics
/// If threads cannot be started.
pub fn measure(plan: &Plan, tell: &mut dyn FnMut(usize, usize)) -> Result<Report, PlanError> {
    let names = plan.check()?;
    let mut warnings = warnings();
    let clock = Clock::calibrated();
    let steps_per_ns = work::steps_per_ns(clock);
    let mut situations = Vec::new();
    for &lock in &names {
        for &threads in &plan.threads {
            for &section in &plan.sections {
                for &outside in &plan.outsides {
                    situations.push((lock, threads, section, outside));
                }
            }
        }
    }
    let mut lots = Lots::new(plan.seed);
    let mut order: Vec<usize> = (0..plan.runs).flat_map(|_| 0..situations.len()).collect();
    lots.shuffle(&mut order);

    let mut results: Vec<Vec<(Sample, Histogram<u64>)>> = vec![Vec::new(); situations.len()];
    let (before, start) = (MachineTime::now(), Instant::now());
    for (place, &index) in order.iter().enumerate() {
        let (lock, threads, section, outside) = situations[index];
        let run = Run {
            clock,
            threads,
            section: work::steps(section, steps_per_ns)?,
            outside: work::steps(outside, steps_per_ns)?,
            time: plan.time,
            cpus: &plan.cpus,
            seed: lots.draw(),
            place,
        };
        // `check` has found the name.
        let result = match plan.own(lock) {
            Some(own) => Some(own.run(run)),
            None => contestants::with_contestant(lock, run),
        };
        results[index].extend(result.transpose()?);
        tell(place + 1, order.len());
    }
    let ours: u64 = results.iter().flatten().map(|(sample, _)| sample.cpu_ns).sum();
    if let (Some(before), Some(after)) = (before, MachineTime::now()) {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let wall_s = start.elapsed().as_secs_f64();
        let percent = after.taken_since(before, wall_s, cpus, ours as f64 / 1e9);
        // Allows for the kernel's own work, and for our warm-ups, which take a tenth.
        if percent > 15.0 {
            warnings.push(Warning::Taken { percent });
        }
    }
    let points = situations.into_iter().zip(results).map(|(situation, result)| {
        let (lock, threads, section, outside) = situation;
        point(lock, threads, section, outside, result)
    });
    Ok(Report { warnings, points: points.collect() })
}

impl Plan {
    /// Checks the plan and returns the canonical names of the locks.
    fn check(&self) -> Result<Vec<&'static str>, PlanError> {
        let empty = self.locks.is_empty()
            || self.threads.is_empty()
            || self.threads.contains(&0)
            || self.sections.is_empty()
            || self.outsides.is_empty()
            || self.runs == 0
            || self.time.is_zero();
        if empty {
            return Err(PlanError::Empty);
        }
        let name = |name: &String| {
            let own = self.own(name).map(|own| own.info.name);
            let lock = own.or_else(|| contestants::canonical(name));
            lock.ok_or_else(|| PlanError::UnknownLock(name.clone()))
        };
        let names = self.locks.iter().map(name).collect::<Result<Vec<_>, _>>()?;
        let threads = self.threads.iter().copied().max().unwrap_or(0);
        for &lock in &names {
            let registered = || overspin_locks::infos().iter().find(|info| info.name == lock);
            let info = self.own(lock).map(|own| &own.info).or_else(registered);
            let own = info.map_or(crate::MAX_THREADS, |info| info.max_cpus as usize);
            // One less, because the caller may have a thread number.
            let max = own.min(crate::MAX_THREADS - 1);
            if threads > max {
                return Err(PlanError::TooManyThreads { lock, max, threads });
            }
        }
        Ok(names)
    }

    fn own(&self, name: &str) -> Option<&OwnLock> {
        self.own.iter().find(|own| own.info.name == name)
    }
}

fn point(
    lock: &'static str,
    threads: usize,
    section: Duration,
    outside: Duration,
    results: Vec<(Sample, Histogram<u64>)>,
) -> Point {
    let mut waits = histogram();
    for (_, histogram) in &results {
        waits.add(histogram).expect("all have the same bounds");
    }
    let samples: Vec<Sample> = results.into_iter().map(|(sample, _)| sample).collect();
    let sorted = |of: &dyn Fn(&Sample) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let median = |of: &dyn Fn(&Sample) -> f64| {
        let values = sorted(of);
        (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
    };
    let throughputs = sorted(&Sample::throughput);
    Point {
        lock,
        threads,
        section_ns: section.as_nanos() as u64,
        outside_ns: outside.as_nanos() as u64,
        throughput: median(&Sample::throughput),
        throughput_range: [throughputs[0], throughputs[throughputs.len() - 1]],
        min_max_share: median(&Sample::min_max_share),
        jain: median(&Sample::jain),
        wait: Waits::of(&waits),
        cpu_ns: median(&|sample| sample.cpu_ns as f64 / sample.total().max(1.0)),
        involuntary_switches: median(&|s| s.per_second(s.involuntary_switches as f64)),
        voluntary_switches: median(&|s| s.per_second(s.voluntary_switches as f64)),
        samples,
    }
}

/// Creates a histogram from 1 ns to some minutes.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 1_000_000_000_000, 2).expect("the bounds are in order")
}

const WARM_UP: u32 = 0;
const MEASURE: u32 = 1;
const STOP: u32 = 2;

/// One run of one point.
struct Run<'a> {
    clock: Clock,
    threads: usize,
    section: u32,
    outside: u32,
    time: Duration,
    cpus: &'a [usize],
    seed: u64,
    place: usize,
}

type RunResult = Result<(Sample, Histogram<u64>), PlanError>;

/// The result of one thread of a run.
struct Worked {
    acquisitions: u64,
    waits: Histogram<u64>,
    usage: Usage,
}

impl Visitor for Run<'_> {
    type Output = RunResult;

    fn visit<C: Contestant>(self) -> Self::Output {
        let lock = C::boxed();
        let phase = AtomicU32::new(WARM_UP);
        let all_in = Barrier::new(self.threads + 1);
        let (time, worked) = thread::scope(|scope| {
            let start = |thread: usize| {
                let (run, lock, phase, all_in) = (&self, &*lock, &phase, &all_in);
                scope.spawn(move || {
                    let pinned = pin(run.cpus);
                    let lots = Lots::new(run.seed.wrapping_add(thread as u64));
                    all_in.wait();
                    pinned.map(|()| run.work(lock, phase, lots))
                })
            };
            let threads: Vec<_> = (0..self.threads).map(start).collect();
            all_in.wait();
            thread::sleep(self.time / 10);
            phase.store(MEASURE, Relaxed);
            let start = Instant::now();
            thread::sleep(self.time);
            phase.store(STOP, Relaxed);
            let time = start.elapsed();
            let join = |thread: thread::ScopedJoinHandle<'_, io::Result<Worked>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            (time, threads.into_iter().map(join).collect::<io::Result<Vec<_>>>())
        });
        let worked =
            worked.map_err(|source| PlanError::Cpus { cpus: self.cpus.to_vec(), source })?;
        let mut waits = histogram();
        for thread in &worked {
            waits.add(&thread.waits).expect("all have the same bounds");
        }
        let sum = |of: &dyn Fn(&Usage) -> u64| worked.iter().map(|thread| of(&thread.usage)).sum();
        let sample = Sample {
            place: self.place,
            time_ns: time.as_nanos() as u64,
            acquisitions: worked.iter().map(|thread| thread.acquisitions).collect(),
            wait: Waits::of(&waits),
            cpu_ns: sum(&|usage| usage.cpu_ns),
            involuntary_switches: sum(&|usage| usage.involuntary_switches),
            voluntary_switches: sum(&|usage| usage.voluntary_switches),
        };
        Ok((sample, waits))
    }
}

impl Run<'_> {
    fn work<C: Contestant>(&self, lock: &C, phase: &AtomicU32, mut lots: Lots) -> Worked {
        let mut waits = histogram();
        let mut acquisitions = 0;
        let mut usage = None;
        loop {
            let asked = Clock::ticks();
            let mut got = 0;
            lock.with(|| {
                got = Clock::ticks();
                work(self.section);
            });
            let phase = phase.load(Relaxed);
            if phase != WARM_UP {
                let usage = usage.get_or_insert_with(Usage::now);
                // A wait that outlasts the run counts as a wait, but not as an acquisition within its time.
                waits.saturating_record(self.clock.ns(asked, got));
                if phase == STOP {
                    return Worked { acquisitions, waits, usage: Usage::now().since(*usage) };
                }
                acquisitions += 1;
            }
            work(lots.up_to(self.outside * 2));
        }
    }
}

/// Pins the calling thread to these CPUs, if there are any.
///
/// # Errors
/// If there is no such CPU, or the thread may not use it.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    // SAFETY: all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: the number is within the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the kernel reads this many bytes of `set`. 0 is the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sleeps of the calling thread end when they should, and not up to 50 us later, which is what the kernel allows
/// itself by default.
pub(crate) fn precise_sleeps() {
    // SAFETY: it changes a property of this thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Resources that the calling thread has used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    cpu_ns: u64,
    pub(crate) involuntary_switches: u64,
    voluntary_switches: u64,
}

impl Usage {
    pub(crate) fn now() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: `usage` is ours to write. The call cannot fail with these arguments; all zeros would be a
        // valid value, too.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        // None of them is negative.
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Self {
            cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
            involuntary_switches: usage.ru_nivcsw as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns - before.cpu_ns,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
        }
    }
}
