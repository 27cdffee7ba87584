//! Fixed quanta of work on every CPU at once, and their interruptions.
//!
//! Sources: the FWQ and FTQ benchmarks of the ASC Sequoia suite; F. Petrini, D. Kerbyson and S. Pakin, The
//! Case of the Missing Supercomputer Performance (2003); the kernel's osnoise tracer, for the kinds of
//! interruptions.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::gaps::{self, Counters, GapsByCause};
use super::histogram::Histogram;
use super::system::{self, System, ThisCpu};
use crate::bench::{Warning, pin, warnings};

/// A measurement to make.
#[derive(Clone, Debug)]
pub struct NoisePlan {
    /// CPUs, with one thread on each; empty for all that this process may use.
    pub cpus: Vec<usize>,
    /// Length of a quantum.
    pub quantum: Duration,
    /// The measuring time, after a warm-up of a tenth of it, at most a second.
    pub duration: Duration,
}

/// The reasons why noise cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    /// A thread cannot be pinned to its CPU.
    #[error("cannot keep a thread to CPU {cpu}: {source}")]
    Pin {
        /// The CPU.
        cpu: usize,
        /// The CPUs that this process may use, as far as the kernel tells.
        allowed: Vec<usize>,
        /// The kernel's error.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread for CPU {cpu}: {source}")]
    Thread {
        /// The CPU that it was for.
        cpu: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel does not tell which CPUs exist.
    #[error("cannot tell which CPUs this process may use: {0}")]
    Cpus(io::Error),
}

/// The noise of a machine.
#[derive(Clone, Debug)]
pub struct Noise {
    /// The machine.
    pub system: System,
    /// Conditions that make the figures doubtful.
    pub warnings: Vec<Warning>,
    /// The requested length of a quantum, nanoseconds.
    pub quantum_ns: u64,
    /// The requested measuring time of each CPU, nanoseconds.
    pub duration_ns: u64,
    /// Cost of reading the clock, nanoseconds. Each quantum contains one reading.
    pub clock_read_ns: f64,
    /// The smallest step of the clock that was seen, nanoseconds.
    pub clock_step_ns: u64,
    /// Step of the kernel's count of stolen time, nanoseconds.
    pub steal_step_ns: u64,
    /// Each CPU.
    pub cpus: Vec<CpuNoise>,
}

/// The noise of a CPU.
#[derive(Clone, Debug)]
pub struct CpuNoise {
    /// Its number.
    pub cpu: usize,
    /// The interruptions of the quanta.
    pub noted: GapsByCause,
    /// Time that the hypervisor gave to others (steal) by the kernel's count, nanoseconds, if it counts.
    pub steal_ns: Option<u64>,
    /// Time that the thread could have run but did not by the kernel's count, nanoseconds, if it counts.
    pub run_delay_ns: Option<u64>,
}

/// Whether the kernel's count of stolen time agrees with the long gaps without a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Steal {
    /// The kernel does not count.
    Unknown,
    /// They agree, within a quarter and the steps of the count.
    Agrees,
    /// The kernel counts less: the hypervisor does not report steal, or the firmware had the CPU, or interrupts
    /// took long.
    CountsLess,
    /// The kernel counts more: time was also stolen in gaps of the other kinds.
    CountsMore,
}

impl Noise {
    /// Merges the gaps of one kind on all CPUs.
    #[must_use]
    pub fn all(&self, of: fn(&GapsByCause) -> &Histogram) -> Histogram {
        let mut all = Histogram::default();
        self.cpus.iter().for_each(|c| all.merge(of(&c.noted)));
        all
    }

    /// Time during which quanta were watched, of all CPUs, nanoseconds.
    #[must_use]
    pub fn watched_ns(&self) -> u64 {
        self.cpus.iter().map(|c| c.noted.watched_ns).sum()
    }

    /// Time that the kernel counted as stolen on all CPUs, nanoseconds; `None` if it does not count.
    #[must_use]
    pub fn steal_ns(&self) -> Option<u64> {
        self.cpus.iter().map(|c| c.steal_ns).sum()
    }

    /// Whether the kernel's count of stolen time agrees with the gaps.
    #[must_use]
    pub fn steal(&self) -> Steal {
        let steps = self.steal_step_ns * self.cpus.len() as u64;
        steal(self.all(|n| &n.taken).time_ns, self.steal_ns(), steps)
    }
}

fn steal(gaps_ns: u64, counted_ns: Option<u64>, steps_ns: u64) -> Steal {
    let Some(counted) = counted_ns else { return Steal::Unknown };
    // A count of ticks can be off by one at either end.
    let tolerance = 2 * steps_ns + gaps_ns.max(counted) / 4;
    if gaps_ns.abs_diff(counted) <= tolerance {
        Steal::Agrees
    } else if counted < gaps_ns {
        Steal::CountsLess
    } else {
        Steal::CountsMore
    }
}

/// No thread measures yet.
const WAIT: u8 = 0;
/// All threads are on their CPUs.
const GO: u8 = 1;
/// A thread is not on its CPU.
const GIVE_UP: u8 = 2;

/// Measures the noise of this machine: keeps a thread busy on each CPU, all at the same time. Calls `tell` ten
/// times with the elapsed and the total time. Without `tell`, this process runs nothing but the measuring
/// threads meanwhile.
///
/// # Errors
/// If a thread cannot be started or pinned to its CPU.
pub fn noise(
    plan: &NoisePlan,
    tell: Option<&mut dyn FnMut(Duration, Duration)>,
) -> Result<Noise, NoiseError> {
    let allowed = system::allowed_cpus();
    let (cpus, allowed) = match (plan.cpus.as_slice(), allowed) {
        ([], all) => {
            let all = all.map_err(NoiseError::Cpus)?;
            (all.clone(), all)
        }
        (chosen, all) => (chosen.to_vec(), all.unwrap_or_default()),
    };
    let warnings = warnings();
    let warm_up = (plan.duration / 10).min(Duration::from_secs(1));
    let phase = AtomicU8::new(WAIT);
    let (report, reports) = mpsc::channel();
    let measured = thread::scope(|scope| {
        let mut threads = Vec::new();
        for &cpu in &cpus {
            let (report, phase) = (report.clone(), &phase);
            let started = thread::Builder::new().spawn_scoped(scope, move || {
                let pinned = pin(&[cpu]);
                // The receiver waits for all reports.
                let _ = report.send((cpu, pinned));
                on_cpu(cpu, phase, plan, warm_up)
            });
            match started {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    phase.store(GIVE_UP, Ordering::Release);
                    return Err(NoiseError::Thread { cpu, source });
                }
            }
        }
        for (cpu, pinned) in reports.iter().take(cpus.len()) {
            if let Err(source) = pinned {
                phase.store(GIVE_UP, Ordering::Release);
                return Err(NoiseError::Pin { cpu, allowed, source });
            }
        }
        phase.store(GO, Ordering::Release);
        if let Some(tell) = tell {
            let whole = warm_up + plan.duration;
            for tenth in 0..10 {
                tell(whole * tenth / 10, whole);
                thread::sleep(whole / 10);
            }
        }
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // All threads went: the phase is `GO`, which only this thread changes.
        Ok(threads.into_iter().filter_map(join).collect::<Vec<(CpuNoise, (f64, u64))>>())
    })?;
    let clock = measured.first().map_or((0.0, 0), |(_, clock)| *clock);
    Ok(Noise {
        system: System::here(),
        warnings,
        quantum_ns: plan.quantum.as_nanos() as u64,
        duration_ns: plan.duration.as_nanos() as u64,
        clock_read_ns: clock.0,
        clock_step_ns: clock.1,
        steal_step_ns: system::ns_per_tick(),
        cpus: measured.into_iter().map(|(cpu, _)| cpu).collect(),
    })
}

/// The work of one CPU's thread, pinned to it. `None` if the measurement does not take place.
fn on_cpu(
    cpu: usize,
    phase: &AtomicU8,
    plan: &NoisePlan,
    warm_up: Duration,
) -> Option<(CpuNoise, (f64, u64))> {
    loop {
        match phase.load(Ordering::Acquire) {
            WAIT => thread::sleep(Duration::from_micros(100)),
            GO => break,
            _ => return None,
        }
    }
    let mut this = ThisCpu { number: cpu };
    let clock = gaps::clock(&mut this);
    let quantum_ns = plan.quantum.as_nanos() as u64;
    let steps = gaps::calibrate(&mut this, quantum_ns);
    let (noted, counters) = gaps::watch(
        &mut this,
        (steps, quantum_ns),
        warm_up.as_nanos() as u64,
        plan.duration.as_nanos() as u64,
    );
    let Counters { steal_ns, run_delay_ns } = counters;
    Some((CpuNoise { cpu, noted, steal_ns, run_delay_ns }, clock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_compared_within_the_steps_of_the_count() {
        const MS: u64 = 1_000_000;
        // Two CPUs, ticks of 10 ms: a tolerance of 40 ms either way, and a quarter.
        let told = |gaps: u64, counted: u64| steal(gaps * MS, Some(counted * MS), 20 * MS);
        assert_eq!(told(0, 0), Steal::Agrees);
        assert_eq!(told(0, 40), Steal::Agrees);
        assert_eq!(told(1000, 800), Steal::Agrees);
        assert_eq!(told(1000, 500), Steal::CountsLess);
        assert_eq!(told(100, 1000), Steal::CountsMore);
        assert_eq!(steal(5, None, 10), Steal::Unknown);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        let plan = NoisePlan {
            cpus: vec![system::allowed_cpus().unwrap()[0], 1023],
            quantum: Duration::from_micros(15),
            duration: Duration::from_millis(10),
        };
        match noise(&plan, None) {
            Err(NoiseError::Pin { cpu: 1023, allowed, .. }) => assert!(!allowed.is_empty()),
            // A machine that has so many CPUs.
            other => assert!(other.is_ok()),
        }
    }
}
