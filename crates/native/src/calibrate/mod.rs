//! What the operations of a machine cost: lines between CPUs, atomics, PAUSE, switches, cold caches, wake-ups, timers,
//! noise.
//!
//! The measurements are short, and come in rounds, each in another order. A disturbance of the machine then meets all
//! quantities alike and shows as spread. Each round gives each quantity one sample.

mod cpu;
mod pairs;
mod rewarm;
mod topology;
mod waking;

pub use topology::Distance;

use std::io;
use std::time::{Duration, Instant};

use crate::bench::{Lots, Warning, pin, warnings};
use crate::measure::{
    GapsByCause, Histogram, NoisePlan, System, allowed_cpus, busy_lateness, deviations, halves,
    lateness, median, noise, without,
};

/// Pairs of CPUs that a round measures at most.
const MOST_PAIRS: usize = 64;
/// Length of a look at the noise, in each round.
const NOISE: Duration = Duration::from_millis(100);
/// Sleeps and timers of a sample, and their length.
const SLEEPS: usize = 15;
const SLEEP: Duration = Duration::from_millis(1);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// A load or store that hits this core's cache, nanoseconds.
    CacheHit,
    /// What an atomic operation on an owned line takes beyond that, nanoseconds.
    Atomic,
    /// A fence, nanoseconds.
    Fence,
    /// A turn of a spin loop: load, compare, PAUSE; nanoseconds.
    SpinIteration,
    /// A line moves between two CPUs at this distance, nanoseconds.
    Transfer(Distance),
    /// A line moves between these two CPUs, nanoseconds.
    Between(u32, u32),
    /// A futex call that wakes nobody, nanoseconds.
    SystemCall,
    /// A CPU goes from one thread to another, without the system calls, nanoseconds.
    ContextSwitch,
    /// From the wake-up of a sleeping thread to its first instruction on another CPU, nanoseconds.
    Wake,
    /// How late a sleep of a millisecond ends, nanoseconds.
    Timer,
    /// What that takes beyond the wake-up of a thread on another CPU, nanoseconds.
    IdleTimer,
    /// How late a timer ends on a busy CPU, nanoseconds.
    HostTimer,
    /// Speed of a CPU beside a busy sibling, thousandths of its speed alone.
    SmtPermille,
    /// Speed of a CPU beside a busy one that shares no core with it, as far as the kernel tells, thousandths of its speed
    /// alone. vCPUs of a virtual machine may share a core all the same.
    BesideBusy,
    /// What a thread loses to the caches when it returns to its CPU after another thread ran there, nanoseconds.
    Rewarm {
        /// Working set of each of the two threads.
        bytes: u32,
        /// They walk it in the order of addresses instead of a random one.
        in_order: bool,
        /// How long the other thread ran, microseconds.
        away: u32,
    },
    /// What the thread loses if the other thread touches nothing, nanoseconds. It is subtracted from the other already.
    RewarmControl {
        /// As above.
        bytes: u32,
        /// As above.
        in_order: bool,
        /// As above.
        away: u32,
    },
    /// Time that a CPU loses to others while its thread wants to run, thousandths of a percent.
    Noise,
    /// The longest interruption in a tenth of a second, nanoseconds.
    Interruption,
    /// A quantity of another crate: its key in `[host.costs]`, nanoseconds.
    Other(&'static str),
}

/// A cost of another crate.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Its key in `[host.costs]`.
    pub key: &'static str,
    /// The median of a round, nanoseconds.
    pub ns: f64,
    /// By how much single occurrences are longer, nanoseconds.
    pub singles: Vec<f64>,
}

/// A measurement that another crate adds: exits and kicks of a hypervisor.
#[derive(Clone, Copy, Debug)]
pub struct Extra {
    /// The keys in `[host.costs]`.
    pub keys: &'static [&'static str],
    /// Makes one sample of each key that this machine has, in nanoseconds; the reason if it has none.
    pub sample: fn() -> Result<Vec<Cost>, String>,
}

/// The samples of a quantity.
#[derive(Clone, Debug)]
pub struct Series {
    /// The quantity.
    pub quantity: Quantity,
    /// One for each round that measured it.
    pub samples: Vec<f64>,
    /// By how much single occurrences were longer than the median of their round, nanoseconds; empty where they are not
    /// timed one by one.
    pub singles: Vec<f64>,
}

/// What a round measured of a quantity.
struct Sample {
    quantity: Quantity,
    value: f64,
    singles: Vec<f64>,
}

impl From<(Quantity, f64)> for Sample {
    fn from((quantity, value): (Quantity, f64)) -> Self {
        Self { quantity, value, singles: Vec::new() }
    }
}

/// The result.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The machine.
    pub system: System,
    /// Conditions that make the figures doubtful.
    pub warnings: Vec<Warning>,
    /// CPUs that were used.
    pub cpus: Vec<usize>,
    /// What was measured.
    pub series: Vec<Series>,
    /// What could not be measured, and why.
    pub missing: Vec<(Quantity, String)>,
    /// How long it took.
    pub elapsed: Duration,
}

/// A measurement of a round.
type Job = Box<dyn Fn() -> io::Result<Vec<Sample>>>;

/// The middle of the times of many equal pieces: the pieces in which another thread had the CPU do not move it.
fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Measures this machine for `time`, at least three rounds. Calls `tell` after each round with the time so far.
/// Stops early if `over`.
///
/// # Errors
/// If this process may not choose its CPUs.
pub fn calibrate(
    time: Duration,
    seed: u64,
    extras: &[Extra],
    tell: &mut dyn FnMut(Duration),
    over: &dyn Fn() -> bool,
) -> io::Result<Calibration> {
    let (cpus, began) = (allowed_cpus()?, Instant::now());
    let warnings = warnings();
    let mut missing = Vec::new();
    let mut lots = Lots::new(seed);
    let jobs = jobs(&cpus, &mut missing);
    let mut all_pairs = topology::pairs(&cpus);
    let mut extras = extras.to_vec();
    let mut series: Vec<Series> = Vec::new();
    let mut add = |Sample { quantity, value, singles }| {
        // A measurement that others disturbed throughout has no sample in this round.
        if !value.is_finite() {
            return;
        }
        match series.iter_mut().find(|s| s.quantity == quantity) {
            Some(s) => {
                s.samples.push(value);
                s.singles.extend(singles);
            }
            None => series.push(Series { quantity, samples: vec![value], singles }),
        }
    };
    let mut rounds = 0;
    while !over() && (rounds < 3 || began.elapsed() < time) {
        lots.shuffle(&mut all_pairs);
        let pairs = &all_pairs[..all_pairs.len().min(MOST_PAIRS)];
        let mut order: Vec<usize> = (0..jobs.len() + pairs.len() + extras.len()).collect();
        lots.shuffle(&mut order);
        let mut failed = Vec::new();
        for i in order {
            if let Some(job) = jobs.get(i) {
                job()?.into_iter().for_each(&mut add);
            } else if let Some((a, b, distance)) = pairs.get(i - jobs.len()) {
                let ns = pairs::transfer(*a, *b)?;
                add((Quantity::Transfer(*distance), ns).into());
                add((Quantity::Between(*a as u32, *b as u32), ns).into());
            } else {
                let extra = extras[i - jobs.len() - pairs.len()];
                // Others have kept this thread to a CPU, and it may need two.
                pin(&cpus)?;
                match (extra.sample)() {
                    Ok(all) => all.into_iter().for_each(|Cost { key, ns, singles }| {
                        add(Sample { quantity: Quantity::Other(key), value: ns, singles });
                    }),
                    Err(why) => failed.push((extra.keys, why)),
                }
            }
        }
        for (keys, why) in failed {
            missing.extend(keys.iter().map(|key| (Quantity::Other(key), why.clone())));
            extras.retain(|e| e.keys != keys);
        }
        rounds += 1;
        tell(began.elapsed());
    }
    // The calling thread may have been kept to a CPU.
    pin(&cpus)?;
    for distance in Distance::ALL {
        if !all_pairs.iter().any(|(_, _, d)| *d == distance) {
            missing.push((Quantity::Transfer(distance), distance.absent().into()));
        }
    }
    series.sort_by_key(|s| s.quantity);
    missing.sort_by_key(|(quantity, _)| *quantity);
    let elapsed = began.elapsed();
    Ok(Calibration { system: System::here(), warnings, cpus, series, missing, elapsed })
}

/// The measurements of every round, apart from pairs.
fn jobs(cpus: &[usize], missing: &mut Vec<(Quantity, String)>) -> Vec<Job> {
    let first = cpus[0];
    let mut jobs: Vec<Job> = vec![
        Box::new(move || Ok(cpu::local(first)?.into_iter().map(Sample::from).collect())),
        Box::new(move || {
            let turns = waking::turns(first, first)?;
            let singles = halves(&turns);
            let value = waking::switch(&turns, first)?;
            Ok(vec![Sample { quantity: Quantity::ContextSwitch, value, singles }])
        }),
        Box::new(move || {
            let late = busy_lateness(first, SLEEP, SLEEPS)?;
            let (value, singles) = (median(&late), deviations(&late));
            Ok(vec![Sample { quantity: Quantity::HostTimer, value, singles }])
        }),
    ];
    for bytes in rewarm::sizes(first) {
        for in_order in [false, true] {
            jobs.push(Box::new(move || {
                Ok(rewarm::losses(first, bytes, in_order)?.into_iter().map(Sample::from).collect())
            }));
        }
    }
    match cpus.get(1).copied() {
        Some(second) => jobs.push(Box::new(move || {
            let turns = waking::turns(first, second)?;
            let (wake, late) = (waking::wake(&turns, first)?, lateness(first, SLEEP, SLEEPS)?);
            let singles = without(deviations(&late), halves(&turns));
            let late = median(&late);
            let beyond = (late - wake).max(0.0);
            Ok(vec![
                (Quantity::Wake, wake).into(),
                (Quantity::Timer, late).into(),
                Sample { quantity: Quantity::IdleTimer, value: beyond, singles },
            ])
        })),
        None => {
            jobs.push(Box::new(move || {
                Ok(vec![(Quantity::Timer, median(&lateness(first, SLEEP, SLEEPS)?)).into()])
            }));
            for quantity in [Quantity::Wake, Quantity::IdleTimer] {
                missing.push((quantity, "this process may use only one CPU".into()));
            }
        }
    }
    match topology::siblings(cpus) {
        Some((a, b)) => {
            jobs.push(Box::new(move || {
                Ok(vec![(Quantity::SmtPermille, cpu::beside(a, b)?).into()])
            }));
        }
        None => missing.push((
            Quantity::SmtPermille,
            "no two CPUs of this process share a core, or the kernel does not tell".into(),
        )),
    }
    match topology::strangers(cpus) {
        Some((a, b)) => {
            jobs.push(Box::new(move || {
                Ok(vec![(Quantity::BesideBusy, cpu::beside(a, b)?).into()])
            }));
        }
        None => missing.push((Quantity::BesideBusy, "this process may use only one core".into())),
    }
    let all = cpus.to_vec();
    jobs.push(Box::new(move || {
        let plan =
            NoisePlan { cpus: all.clone(), quantum: Duration::from_micros(15), duration: NOISE };
        let noise = noise(&plan, None).map_err(io::Error::other)?;
        let (mut lost, mut longest) = (0, 0);
        let kinds: [fn(&GapsByCause) -> &Histogram; 3] =
            [|n| &n.thread, |n| &n.taken, |n| &n.short];
        for of in kinds {
            let all = noise.all(of);
            lost += all.time_ns;
            longest = longest.max(all.max_ns);
        }
        let share = 1e5 * lost as f64 / noise.watched_ns().max(1) as f64;
        Ok(vec![(Quantity::Noise, share).into(), (Quantity::Interruption, longest as f64).into()])
    }));
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_calibration_measures_what_every_machine_has() {
        let extra = Extra { keys: &["hypercall", "ipi"], sample: || Err("no hypervisor".into()) };
        let found = calibrate(Duration::ZERO, 1, &[extra], &mut |_| {}, &|| false).unwrap();
        let of = |q: Quantity| found.series.iter().find(|s| s.quantity == q);
        for q in
            [Quantity::CacheHit, Quantity::Atomic, Quantity::SpinIteration, Quantity::ContextSwitch]
        {
            let s = of(q).unwrap();
            assert!(s.samples.len() == 3 && s.samples.iter().all(|ns| ns.is_finite()), "{s:?}");
        }
        // A turn has a load, a branch and a PAUSE: several cycles on every CPU.
        assert!(of(Quantity::SpinIteration).unwrap().samples.iter().all(|ns| *ns > 0.1));
        let switch = of(Quantity::ContextSwitch).unwrap();
        let middle = switch.singles.iter().filter(|ns| **ns <= 0.0).count();
        assert!(
            2 * middle >= switch.singles.len() && middle > 100,
            "{middle} are not longer than the median"
        );
        assert_eq!(of(Quantity::HostTimer).unwrap().singles.len(), 3 * SLEEPS);
        let timer = of(Quantity::Timer).unwrap();
        assert!(timer.samples.iter().all(|ns| *ns >= 0.0), "a sleep never ends early: {timer:?}");
        for key in extra.keys {
            let missing = |(q, why): &(Quantity, String)| {
                *q == Quantity::Other(key) && why == "no hypervisor"
            };
            assert!(found.missing.iter().any(missing), "{key}");
        }
    }
}
