//! What the operations of a machine cost: lines between CPUs, atomics, PAUSE, switches, wake-ups, timers, noise.
//!
//! The measurements are short, and come in rounds, each in another order. A disturbance of the machine then meets all
//! quantities alike and shows as spread. Each round gives each quantity one sample.

mod cpu;
mod pairs;
mod topology;
mod waking;

pub use topology::Distance;

use std::io;
use std::time::{Duration, Instant};

use crate::bench::{Lots, Warning, pin, warnings};
use crate::measure::{GapsByCause, Histogram, NoisePlan, System, allowed_cpus, lateness, noise};

/// Pairs of CPUs that a round measures at most.
const MOST_PAIRS: usize = 64;
/// Length of a look at the noise, in each round.
const NOISE: Duration = Duration::from_millis(100);
/// Sleeps of a sample, and their length.
const SLEEPS: usize = 5;
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
    /// A CPU goes from one thread to another, without the system calls, nanoseconds.
    ContextSwitch,
    /// From the wake-up of a sleeping thread to its first instruction on another CPU, nanoseconds.
    Wake,
    /// How late a sleep of a millisecond ends, nanoseconds.
    Timer,
    /// What that takes beyond the wake-up of a thread on another CPU, nanoseconds.
    IdleTimer,
    /// Speed of a CPU beside a busy sibling, thousandths of its speed alone.
    SmtPermille,
    /// Speed of a CPU beside a busy one that shares no core with it, as far as the kernel tells, thousandths of its speed
    /// alone. vCPUs of a virtual machine may share a core all the same.
    BesideBusy,
    /// Time that a CPU loses to others while its thread wants to run, thousandths of a percent.
    Noise,
    /// The longest interruption in a tenth of a second, nanoseconds.
    Interruption,
    /// A quantity of another crate: its key in `[host.costs]`, nanoseconds.
    Other(&'static str),
}

/// Keys in `[host.costs]` with nanoseconds.
pub type Costs = Vec<(&'static str, f64)>;

/// A measurement that another crate adds: exits and kicks of a hypervisor.
#[derive(Clone, Copy, Debug)]
pub struct Extra {
    /// The keys in `[host.costs]`.
    pub keys: &'static [&'static str],
    /// Makes one sample of each key that this machine has, in nanoseconds; the reason if it has none.
    pub sample: fn() -> Result<Costs, String>,
}

/// The samples of a quantity.
#[derive(Clone, Debug)]
pub struct Series {
    /// The quantity.
    pub quantity: Quantity,
    /// One for each round that measured it.
    pub samples: Vec<f64>,
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
type Job = Box<dyn Fn() -> io::Result<Vec<(Quantity, f64)>>>;

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
    let mut add = |quantity: Quantity, sample: f64| {
        // A measurement that others disturbed throughout has no sample in this round.
        if !sample.is_finite() {
            return;
        }
        match series.iter_mut().find(|s| s.quantity == quantity) {
            Some(s) => s.samples.push(sample),
            None => series.push(Series { quantity, samples: vec![sample] }),
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
                job()?.into_iter().for_each(|(quantity, sample)| add(quantity, sample));
            } else if let Some((a, b, distance)) = pairs.get(i - jobs.len()) {
                let ns = pairs::transfer(*a, *b)?;
                add(Quantity::Transfer(*distance), ns);
                add(Quantity::Between(*a as u32, *b as u32), ns);
            } else {
                let extra = extras[i - jobs.len() - pairs.len()];
                // Others have kept this thread to a CPU, and it may need two.
                pin(&cpus)?;
                match (extra.sample)() {
                    Ok(all) => all.into_iter().for_each(|(key, ns)| add(Quantity::Other(key), ns)),
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
        Box::new(move || cpu::local(first)),
        Box::new(move || Ok(vec![(Quantity::ContextSwitch, waking::switch(first)?)])),
    ];
    match cpus.get(1).copied() {
        Some(second) => jobs.push(Box::new(move || {
            let (wake, late) = (waking::wake(first, second)?, lateness(first, SLEEP, SLEEPS)?);
            Ok(vec![
                (Quantity::Wake, wake),
                (Quantity::Timer, late),
                (Quantity::IdleTimer, (late - wake).max(0.0)),
            ])
        })),
        None => {
            jobs.push(Box::new(move || {
                Ok(vec![(Quantity::Timer, lateness(first, SLEEP, SLEEPS)?)])
            }));
            for quantity in [Quantity::Wake, Quantity::IdleTimer] {
                missing.push((quantity, "this process may use only one CPU".into()));
            }
        }
    }
    match topology::siblings(cpus) {
        Some((a, b)) => {
            jobs.push(Box::new(move || Ok(vec![(Quantity::SmtPermille, cpu::beside(a, b)?)])));
        }
        None => missing.push((
            Quantity::SmtPermille,
            "no two CPUs of this process share a core, or the kernel does not tell".into(),
        )),
    }
    match topology::strangers(cpus) {
        Some((a, b)) => {
            jobs.push(Box::new(move || Ok(vec![(Quantity::BesideBusy, cpu::beside(a, b)?)])));
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
        Ok(vec![(Quantity::Noise, share), (Quantity::Interruption, longest as f64)])
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
