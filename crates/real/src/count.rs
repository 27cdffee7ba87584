//! count: a loop that counts, beside packets at several rates. The documents of 2005 measured so what preemption
//! notification costs a guest with one processor: a program that counts from 0 to 2^32, timed by the wall clock.

use crate::benchmark::{Benchmark, Outcome};
use crate::packets::{self, Packets, Traffic};
use crate::{Cancel, Failed};
use overspin_scenario::Metric;
use std::hint::black_box;
use std::time::Instant;

/// Elapsed time.
pub static ELAPSED: Metric = Metric::new("elapsed", "s", "from the first count to the last");
/// CPU time.
pub static OWN: Metric = Metric::new("own-time", "s", "CPU time of the counting thread");
/// Involuntary switches.
pub static SWITCHES: Metric =
    Metric::new("context-switches", "", "involuntary switches of the measured threads");
/// Packets.
pub static PACKETS: Metric = Metric::new("packets", "1/s", "packets that were sent beside it");
/// Answers.
pub static ANSWERS: Metric = Metric::new("answers", "1/s", "packets that came back");
/// All of them.
pub static METRICS: [&Metric; 5] = [&ELAPSED, &OWN, &SWITCHES, &PACKETS, &ANSWERS];

/// Counts between two looks at whether the user stopped it.
const PIECE: u64 = 1 << 24;

/// The benchmark.
#[derive(Clone, Debug)]
pub struct Count {
    to: u64,
    rates: Vec<u32>,
    doubts: Doubts,
}

impl Count {
    /// Counts to this number, beside these packets a second in turn; 0 is none.
    #[must_use]
    pub fn new(to: u64, rates: Vec<u32>) -> Self {
        Self { to, rates, doubts: Doubts::default() }
    }
}

/// The place of a rate.
pub(crate) fn place(rate: u32) -> String {
    format!("packets-{rate}")
}

/// Adds what was sent.
pub(crate) fn with_traffic(outcome: Outcome, traffic: &Traffic) -> Outcome {
    if traffic.seconds <= 0.0 {
        return outcome;
    }
    outcome
        .with(&PACKETS, traffic.sent as f64 / traffic.seconds)
        .with(&ANSWERS, traffic.answered as f64 / traffic.seconds)
}

/// Runs `work` beside packets from `cpu`, if there are any.
pub(crate) fn beside<T>(
    rate: u32,
    cpu: usize,
    work: impl FnOnce() -> T,
) -> Result<(T, Traffic), Failed> {
    let packets = (rate > 0).then(|| Packets::start(rate, cpu)).transpose()?;
    let result = work();
    Ok((result, packets.map(Packets::stop).unwrap_or_default()))
}

/// Doubts about rates that were not reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubts(std::collections::BTreeMap<u32, f64>);

impl Doubts {
    /// Notes what was sent beside a run; 5 % less than asked for is noticed.
    pub(crate) fn note(&mut self, asked: u32, traffic: &Traffic) {
        let sent = traffic.sent as f64 / traffic.seconds.max(1e-9);
        if asked > 0 && sent < 0.95 * f64::from(asked) {
            let least = self.0.entry(asked).or_insert(sent);
            *least = least.min(sent);
        }
    }

    pub(crate) fn in_words(&self) -> Vec<String> {
        let words = |(asked, sent): (&u32, &f64)| {
            format!(
                "of {asked} packets a second, only {sent:.0} were sent in some run: the CPU could not do more"
            )
        };
        self.0.iter().map(words).collect()
    }
}

/// CPU time of the calling thread in seconds, and its involuntary switches.
pub(crate) fn own_usage() -> (f64, f64, u64) {
    // SAFETY: all zeros is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a variable that the kernel fills.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_nivcsw.cast_unsigned())
}

/// Counts on `cpu`; `None` if the user stopped it. Elapsed seconds, CPU seconds, involuntary switches.
fn count(to: u64, cpu: usize, cancel: Cancel) -> Result<Option<(f64, f64, u64)>, Failed> {
    packets::stay_on(cpu)?;
    let (user, system, switches) = own_usage();
    let began = Instant::now();
    let mut done = 0;
    while done < to {
        for i in done..to.min(done + PIECE) {
            black_box(i);
        }
        done = to.min(done + PIECE);
        if cancel() {
            return Ok(None);
        }
    }
    let elapsed = began.elapsed().as_secs_f64();
    let (user_then, system_then, switches_then) = own_usage();
    let own = user_then + system_then - user - system;
    Ok(Some((elapsed, own, switches_then - switches)))
}

impl Benchmark for Count {
    fn name(&self) -> &'static str {
        "count"
    }

    fn description(&self) -> String {
        format!("A loop from 0 to {}, on the CPU from which the packets are sent.", self.to)
    }

    fn places(&self) -> Vec<String> {
        self.rates.iter().map(|rate| place(*rate)).collect()
    }

    fn prepare(&mut self, _: Cancel) -> Result<(), Failed> {
        Ok(())
    }

    /// Once: there is nothing to fill but the processor's caches.
    fn warm_up(&self) -> Vec<usize> {
        vec![0]
    }

    fn run(&mut self, place: usize, _: bool, cancel: Cancel) -> Result<Outcome, Failed> {
        let (rate, cpu) = (self.rates[place], packets::meeting_cpu());
        // The thread's affinity ends with it. The caller's own thread asks for the user's wish.
        let stop = std::sync::atomic::AtomicBool::new(false);
        let asked = || stop.load(std::sync::atomic::Ordering::Relaxed);
        let (counted, traffic) = beside(rate, cpu, || {
            std::thread::scope(|scope| {
                let thread = scope.spawn(|| count(self.to, cpu, &asked));
                while !thread.is_finished() {
                    std::thread::park_timeout(std::time::Duration::from_millis(50));
                    if cancel() {
                        stop.store(true, std::sync::atomic::Ordering::Relaxed);
                    }
                }
                thread.join().unwrap_or(Ok(None))
            })
        })?;
        let (elapsed, own, switches) = counted?.ok_or(Failed::Stopped)?;
        let outcome = Outcome::default()
            .with(&ELAPSED, elapsed)
            .with(&OWN, own)
            .with(&SWITCHES, switches as f64);
        self.doubts.note(rate, &traffic);
        Ok(with_traffic(outcome, &traffic))
    }

    fn doubts(&self) -> Vec<String> {
        self.doubts.in_words()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::{Plan, measure_all};

    #[test]
    fn more_counts_take_longer_and_own_time_is_part_of_it() {
        let of = |to: u64| {
            let mut count = Count::new(to, vec![0]);
            let plan = Plan { runs: 3, time: None, seed: 1 };
            let measured = measure_all(&mut count, &plan, &|| false).unwrap();
            assert_eq!(measured.places, ["packets-0"]);
            let figures = |r: &crate::Run| {
                let value = |i: usize| r.outcome.figures[i].value;
                assert!(value(1) <= value(0) + 0.02, "{:?}", r.outcome.figures);
                value(0)
            };
            measured.runs.iter().map(figures).fold(f64::INFINITY, f64::min)
        };
        let (few, many) = (of(1 << 22), of(1 << 26));
        assert!(many > 4.0 * few, "{few} {many}");
    }

    #[test]
    fn a_rate_that_is_not_reached_is_a_doubt() {
        let mut doubts = Doubts::default();
        doubts.note(940, &Traffic { sent: 900, answered: 900, seconds: 1.0 });
        doubts.note(0, &Traffic::default());
        assert!(doubts.in_words().is_empty());
        doubts.note(1000, &Traffic { sent: 900, answered: 900, seconds: 1.0 });
        doubts.note(1000, &Traffic { sent: 1600, answered: 1600, seconds: 2.0 });
        let words = doubts.in_words();
        assert!(words.len() == 1 && words[0].contains("only 800"), "{words:?}");
    }
}
