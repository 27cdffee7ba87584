//! What a benchmark is, and how its places are measured: a warm-up, then rounds. In each round every place runs once,
//! in an order that the seed shuffles, so that a slow minute of the machine does not meet one place alone.

use crate::seconds::{Recorder, Second, Watched};
use crate::{Cancel, Failed};
use overspin_scenario::Metric;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Something that can be run in several configurations.
pub trait Benchmark {
    /// Its name.
    fn name(&self) -> &'static str;

    /// What it ran, and how, in a few sentences; known when it was prepared.
    fn description(&self) -> String;

    /// The configurations, as dotted words from the general to the particular; the first one is the base of
    /// comparisons.
    fn places(&self) -> Vec<String>;

    /// Gets everything ready: checks what it needs, makes files and servers, fills caches.
    ///
    /// # Errors
    /// If the machine lacks something, or the user asked for nonsense.
    fn prepare(&mut self, cancel: Cancel) -> Result<(), Failed>;

    /// Runs once in a place of [`Self::places`], by its index. `warm_up`: nothing of it will be kept.
    ///
    /// # Errors
    /// If it could not be measured.
    fn run(&mut self, place: usize, warm_up: bool, cancel: Cancel) -> Result<Outcome, Failed>;

    /// The places that run once before anything is kept.
    fn warm_up(&self) -> Vec<usize> {
        (0..self.places().len()).collect()
    }

    /// From now on, it tells what it does within a run, and while it gets ready; most have nothing to tell.
    fn tell_steps(&mut self, _: Steps) {}

    /// Reasons to doubt the figures, known at the end.
    fn doubts(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Is called with each step, in a few words.
type Hear = Rc<dyn Fn(&str)>;

/// Hears what a benchmark does within a run, and while it gets ready.
#[derive(Clone, Default)]
pub struct Steps(Option<Hear>);

impl Steps {
    /// Calls `hear` with each step, in a few words.
    pub fn to(hear: impl Fn(&str) + 'static) -> Self {
        Self(Some(Rc::new(hear)))
    }

    /// Tells a step, in a few words.
    pub fn tell(&self, step: &str) {
        if let Some(hear) = &self.0 {
            hear(step);
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Steps").field(&self.0.is_some()).finish()
    }
}

/// One measured number.
#[derive(Clone, Debug)]
pub struct Figure {
    /// A part of the place, empty for the whole of it.
    pub part: String,
    /// What it is.
    pub metric: &'static Metric,
    /// The number, in the metric's unit.
    pub value: f64,
}

/// What a run gave.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The numbers.
    pub figures: Vec<Figure>,
    /// What the program printed, from which the numbers come; empty for a benchmark of our own.
    pub output: String,
}

impl Outcome {
    /// Adds a number of the whole place.
    #[must_use]
    pub fn with(self, metric: &'static Metric, value: f64) -> Self {
        self.with_part(String::new(), metric, value)
    }

    /// Adds a number of a part of the place.
    #[must_use]
    pub fn with_part(mut self, part: String, metric: &'static Metric, value: f64) -> Self {
        self.figures.push(Figure { part, metric, value });
        self
    }
}

/// A run that is kept.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its place.
    pub place: String,
    /// Its numbers and output.
    pub outcome: Outcome,
    /// When it began, in seconds since the first run began.
    pub began_s: f64,
    /// What the machine did meanwhile.
    pub whole: Second,
    /// The machine beside the program, second by second.
    pub seconds: Vec<Second>,
    /// The kernel's statistics of its locks, where it has them.
    pub lock_stat: Option<String>,
}

/// How often to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds.
    pub runs: u32,
    /// Instead of a number of rounds: begin no new round after this long. One round is always made.
    pub time: Option<Duration>,
    /// Seed of the order.
    pub seed: u64,
}

/// The runs that an earlier command made of the same plan; by default none.
#[derive(Clone, Debug, Default)]
pub struct Earlier {
    /// Their places, in the order of time.
    pub places: Vec<String>,
    /// From the begin of the first one to the end of the last.
    pub lasted: Duration,
}

/// How far a measurement is.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// What runs now.
    pub place: &'a str,
    /// Whether it is the warm-up.
    pub warm_up: bool,
    /// Runs that have ended.
    pub done: usize,
    /// All runs, if that is known.
    pub of: Option<usize>,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// Name of the benchmark.
    pub name: String,
    /// What it ran.
    pub description: String,
    /// All places, also those that have no run.
    pub places: Vec<String>,
    /// Runs in the order of time, without those of an earlier command.
    pub runs: Vec<Run>,
    /// Reasons to doubt the figures.
    pub doubts: Vec<String>,
    /// Why it ended before the plan did.
    pub failed: Option<Failed>,
}

/// What a measurement calls while it goes on.
pub struct Hears<'a> {
    /// Is told what begins.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Is told of each run as it ends: what was measured so far, this run last. If it cannot keep the run, the measurement
    /// ends.
    pub ended: &'a mut dyn FnMut(&Measured) -> Result<(), Failed>,
}

impl fmt::Debug for Hears<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hears").finish_non_exhaustive()
    }
}

/// Measures what `earlier` has not measured yet. What was measured before an error or a stop is kept; [`Measured::failed`]
/// tells of it.
///
/// # Errors
/// If not even the preparation succeeds, or if `earlier` is of another plan.
pub fn measure(
    benchmark: &mut dyn Benchmark,
    plan: &Plan,
    earlier: &Earlier,
    cancel: Cancel,
    hears: &mut Hears<'_>,
) -> Result<Measured, Failed> {
    benchmark.prepare(cancel)?;
    let places = benchmark.places();
    let mut order = Order::new(places.len(), plan.seed);
    for place in &earlier.places {
        let due = &places[order.next()];
        if place != due {
            return Err(Failed::usage(
                format!(
                    "the runs that were kept are of another measurement: `{place}`, not `{due}`"
                ),
                "name another directory with --out",
            ));
        }
    }
    let mut measured = Measured {
        name: benchmark.name().into(),
        description: benchmark.description(),
        places,
        ..Measured::default()
    };
    let rounds = rounds(benchmark, plan, (order, earlier), cancel, hears, &mut measured);
    measured.doubts = benchmark.doubts();
    measured.doubts.extend(nothing_done(&measured));
    measured.failed = rounds.err();
    Ok(measured)
}

/// A doubt for each place in which the main figure of some run is 0: its program ended before it had done anything that it
/// counts.
fn nothing_done(measured: &Measured) -> Vec<String> {
    let mut doubts = Vec::new();
    for place in &measured.places {
        let runs: Vec<&Run> = measured.runs.iter().filter(|run| run.place == *place).collect();
        let main =
            |run: &&Run| run.outcome.figures.first().map(|figure| (figure.metric, figure.value));
        let zeros: Vec<_> =
            runs.iter().filter_map(main).filter(|(_, value)| *value == 0.0).collect();
        if let [(metric, _), ..] = zeros[..] {
            doubts.push(format!(
                "{} of {} runs of `{place}` ended before any operation was counted, so {} is 0: make runs longer with --length",
                zeros.len(),
                runs.len(),
                metric.name
            ));
        }
    }
    doubts
}

/// Measures all, for tests.
#[cfg(test)]
pub(crate) fn measure_all(
    benchmark: &mut dyn Benchmark,
    plan: &Plan,
    cancel: Cancel,
) -> Result<Measured, Failed> {
    let mut hears = Hears { progress: &mut |_| {}, ended: &mut |_| Ok(()) };
    measure(benchmark, plan, &Earlier::default(), cancel, &mut hears)
}

/// The places in the order in which they run.
struct Order {
    round: Vec<usize>,
    lots: ChaCha8Rng,
    /// Runs so far.
    made: usize,
}

impl Order {
    fn new(places: usize, seed: u64) -> Self {
        Self { round: (0..places).collect(), lots: ChaCha8Rng::seed_from_u64(seed), made: 0 }
    }

    /// Whether the next run is the first of a round.
    fn begins_round(&self) -> bool {
        self.made.is_multiple_of(self.round.len())
    }

    fn next(&mut self) -> usize {
        if self.begins_round() {
            shuffle(&mut self.round, &mut self.lots);
        }
        self.made += 1;
        self.round[(self.made - 1) % self.round.len()]
    }
}

fn rounds(
    benchmark: &mut dyn Benchmark,
    plan: &Plan,
    (mut order, earlier): (Order, &Earlier),
    cancel: Cancel,
    hears: &mut Hears<'_>,
    measured: &mut Measured,
) -> Result<(), Failed> {
    let of = plan.time.is_none().then_some(measured.places.len() * plan.runs as usize);
    let over = |order: &Order, elapsed: Duration| match (plan.time, of) {
        (Some(time), _) => order.begins_round() && order.made > 0 && elapsed >= time,
        (None, of) => of.is_none_or(|of| order.made >= of),
    };
    if over(&order, earlier.lasted) {
        return Ok(());
    }
    for place in benchmark.warm_up() {
        let place_name = &measured.places[place];
        (hears.progress)(&Progress { place: place_name, warm_up: true, done: 0, of: None });
        benchmark.run(place, true, cancel)?;
    }
    let began = Instant::now();
    let elapsed = || earlier.lasted + began.elapsed();
    while !over(&order, elapsed()) {
        if cancel() {
            return Err(Failed::Stopped);
        }
        let done = order.made;
        let place = order.next();
        let name = measured.places[place].clone();
        (hears.progress)(&Progress { place: &name, warm_up: false, done, of });
        let (began_s, recorder) = (elapsed().as_secs_f64(), Recorder::start());
        let outcome = benchmark.run(place, false, cancel);
        let Watched { whole, seconds, lock_stat } = recorder.stop();
        let outcome = outcome?;
        measured.runs.push(Run { place: name, outcome, began_s, whole, seconds, lock_stat });
        (hears.ended)(measured)?;
    }
    Ok(())
}

/// Fisher and Yates's shuffle. The bias of the remainder is below 2^-32 of anything that is shuffled here.
fn shuffle(order: &mut [usize], lots: &mut ChaCha8Rng) {
    for last in (1..order.len()).rev() {
        let other = lots.next_u64() % (last as u64 + 1);
        order.swap(last, usize::try_from(other).unwrap_or(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ONE: Metric = Metric::new("one", "", "one");

    /// Notes what runs; fails after `fails_after` runs.
    #[derive(Default)]
    struct Notes {
        log: Vec<(usize, bool)>,
        fails_after: Option<usize>,
    }

    impl Benchmark for Notes {
        fn name(&self) -> &'static str {
            "notes"
        }

        fn description(&self) -> String {
            String::new()
        }

        fn places(&self) -> Vec<String> {
            ["a", "b", "c"].map(str::to_owned).into()
        }

        fn prepare(&mut self, _: Cancel) -> Result<(), Failed> {
            Ok(())
        }

        fn run(&mut self, place: usize, warm_up: bool, _: Cancel) -> Result<Outcome, Failed> {
            if self.fails_after.is_some_and(|after| self.log.len() >= after) {
                return Err(Failed::needs("no more", "none"));
            }
            self.log.push((place, warm_up));
            Ok(Outcome::default().with(&ONE, 1.0))
        }
    }

    fn plan(runs: u32, seed: u64) -> Plan {
        Plan { runs, time: None, seed }
    }

    fn after(notes: &mut Notes, plan: &Plan, earlier: &Earlier) -> Result<Measured, Failed> {
        let mut hears = Hears { progress: &mut |_| {}, ended: &mut |_| Ok(()) };
        measure(notes, plan, earlier, &|| false, &mut hears)
    }

    fn order(seed: u64) -> Vec<usize> {
        let mut notes = Notes::default();
        measure_all(&mut notes, &plan(20, seed), &|| false).unwrap();
        notes.log.iter().filter(|(_, warm_up)| !warm_up).map(|(place, _)| *place).collect()
    }

    #[test]
    fn each_round_has_each_place_once_in_an_order_of_the_seed() {
        let first = order(1);
        for round in first.chunks(3) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
        }
        assert_eq!(first, order(1));
        assert_ne!(first, order(2));
        assert!(first.chunks(3).any(|round| round != &first[..3]), "orders differ");
    }

    #[test]
    fn warm_ups_are_not_kept_and_a_time_ends_with_a_whole_round() {
        let mut notes = Notes::default();
        let plan = Plan { runs: 7, time: Some(Duration::ZERO), seed: 1 };
        let measured = measure_all(&mut notes, &plan, &|| false).unwrap();
        assert_eq!(measured.runs.len(), 3);
        assert_eq!(notes.log.len(), 6);
        assert!(notes.log[..3].iter().all(|(_, warm_up)| *warm_up));
    }

    #[test]
    fn a_run_without_an_operation_is_a_doubt() {
        let run = |place: &str, value: f64| Run {
            place: place.into(),
            outcome: Outcome::default().with(&ONE, value),
            began_s: 0.0,
            whole: crate::seconds::Recorder::start().stop().whole,
            seconds: Vec::new(),
            lock_stat: None,
        };
        let runs = vec![run("a", 0.0), run("b", 1.0), run("a", 2.0), run("b", 1.0)];
        let places = vec!["a".into(), "b".into()];
        let doubts = nothing_done(&Measured { places, runs, ..Measured::default() });
        let said = "1 of 2 runs of `a` ended before any operation was counted, so one is 0: make runs longer with --length";
        assert_eq!(doubts, [said]);
    }

    #[test]
    fn a_measurement_goes_on_where_an_earlier_one_stopped() {
        let whole = measure_all(&mut Notes::default(), &plan(4, 1), &|| false).unwrap();
        let places: Vec<String> = whole.runs.iter().map(|run| run.place.clone()).collect();
        for made in 0..=places.len() {
            let lasted = Duration::from_secs(100);
            let earlier = Earlier { places: places[..made].to_vec(), lasted };
            let mut notes = Notes::default();
            let rest = after(&mut notes, &plan(4, 1), &earlier).unwrap();
            assert!(rest.runs.iter().map(|run| &run.place).eq(&places[made..]), "{made}");
            assert!(rest.runs.iter().all(|run| run.began_s >= 100.0), "time goes on");
            assert_eq!(notes.log.is_empty(), made == places.len(), "a whole one has no warm-up");
        }
        let other = Earlier { places: vec!["d".into()], lasted: Duration::ZERO };
        let error = after(&mut Notes::default(), &plan(4, 1), &other).unwrap_err();
        assert!(error.to_string().contains("`d`"), "{error}");
    }

    #[test]
    fn a_run_that_cannot_be_kept_ends_the_measurement() {
        let mut kept = 0;
        let mut ended = |so_far: &Measured| {
            kept = so_far.runs.len();
            if kept < 2 { Ok(()) } else { Err(Failed::needs("disk full", "free some")) }
        };
        let mut hears = Hears { progress: &mut |_| {}, ended: &mut ended };
        let (mut notes, none) = (Notes::default(), Earlier::default());
        let measured = measure(&mut notes, &plan(4, 1), &none, &|| false, &mut hears).unwrap();
        assert_eq!((measured.runs.len(), kept), (2, 2));
        assert_eq!(measured.failed.unwrap().to_string(), "disk full");
    }

    #[test]
    fn what_was_measured_before_a_failure_or_a_stop_is_kept() {
        let mut notes = Notes { fails_after: Some(5), ..Notes::default() };
        let measured = measure_all(&mut notes, &plan(2, 1), &|| false).unwrap();
        assert_eq!(measured.runs.len(), 2, "five less three to warm up");
        assert_eq!(measured.failed.unwrap().to_string(), "no more");
        let asked = std::cell::Cell::new(0);
        let cancel = || {
            asked.set(asked.get() + 1);
            asked.get() > 4
        };
        let measured = measure_all(&mut Notes::default(), &plan(2, 1), &cancel).unwrap();
        assert_eq!(measured.runs.len(), 4);
        assert!(matches!(measured.failed, Some(Failed::Stopped)));
    }
}
