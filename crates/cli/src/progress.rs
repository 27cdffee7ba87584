//! Progress of long work: a bar on terminals, an occasional line elsewhere.

use crate::args::Global;
use crate::screen;
use indicatif::{ProgressBar, ProgressStyle};
use overspin_report::two_digits;
use overspin_scenario::{MS, Picos};
use std::cell::Cell;
use std::io::IsTerminal;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A progress bar on terminals, hidden elsewhere.
pub(crate) fn progress(global: &Global, length: u64, template: &str) -> ProgressBar {
    if global.quiet || global.no_progress || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(template) {
        let plain = || style.clone().progress_chars("#>-").tick_chars("-\\|/ ");
        bar.set_style(if screen::is_ascii() { plain() } else { style });
    }
    bar
}

/// What a bar of many runs shows.
pub(crate) const RUNS: &str = "{bar:40} {pos} of {len} runs, {elapsed} elapsed, {eta} left";

/// A bar for many runs, and what tells it how many runs are done, of how many.
pub(crate) fn of_runs(
    global: &Global,
    template: &str,
) -> (ProgressBar, impl Fn(usize, usize) + use<>) {
    let bar = progress(global, 0, template);
    let told = bar.clone();
    let tell = move |done: usize, all: usize| {
        told.set_length(all as u64);
        told.set_position(done as u64);
    };
    (bar, tell)
}

/// What long work does: a spinner on terminals, an occasional line elsewhere.
#[derive(Clone)]
pub(crate) struct Doing {
    bar: ProgressBar,
    /// Print lines instead of the spinner.
    lines: bool,
    next_line: Rc<Cell<Duration>>,
    began: Instant,
}

impl Doing {
    pub(crate) fn new(global: &Global) -> Self {
        let bar = progress(global, 0, "{spinner} {msg} ({elapsed} elapsed)");
        bar.enable_steady_tick(Duration::from_millis(500));
        let lines = !(global.quiet || global.no_progress || std::io::stderr().is_terminal());
        Self { bar, lines, next_line: Rc::new(Cell::new(SILENT)), began: Instant::now() }
    }

    /// Says what it does now.
    pub(crate) fn say(&self, what: String) {
        let passed = self.began.elapsed();
        if self.lines && passed >= self.next_line.get() {
            self.next_line.set(passed * 2);
            eprintln!("{what} ({} elapsed)", length(passed.as_secs_f64()));
        }
        self.bar.set_message(what);
    }

    /// Removes the spinner.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// How long a run without a bar is silent; then it reports after twice that time, and so on.
const SILENT: Duration = Duration::from_secs(5);

/// The progress of a run and its remaining time: a bar on terminals, an occasional line elsewhere.
pub(crate) struct Meter {
    bar: ProgressBar,
    /// Print lines instead of the bar.
    lines: bool,
    next_line: Cell<Duration>,
    began: Instant,
    limit: Picos,
}

impl Meter {
    /// Does `work` with a meter, to which it tells the simulated time of a run with this limit.
    pub(crate) fn during<T>(
        global: &Global,
        limit: Picos,
        work: impl FnOnce(&dyn Fn(Picos)) -> T,
    ) -> T {
        let meter = Self::new(global, limit);
        let done = work(&|at| meter.at(at));
        meter.bar.finish_and_clear();
        done
    }

    fn new(global: &Global, limit: Picos) -> Self {
        let lines = !(global.quiet || global.no_progress || std::io::stderr().is_terminal());
        // In simulated milliseconds: nobody sees finer steps, and a run of a thousand hours still fits.
        let bar = progress(global, (limit / MS).max(1), "{bar:40} {msg}");
        Self { bar, lines, next_line: Cell::new(SILENT), began: Instant::now(), limit }
    }

    /// Reports that the run is at this simulated time.
    fn at(&self, now: Picos) {
        let passed = self.began.elapsed();
        if self.lines && passed >= self.next_line.get() {
            self.next_line.set(passed * 2);
            eprintln!("{}", self.words(now, passed));
        } else if !self.lines {
            self.bar.set_position(now / MS);
            self.bar.set_message(self.words(now, passed));
        }
    }

    fn words(&self, now: Picos, passed: Duration) -> String {
        // A measured run is over a little after its limit.
        let (done, limit) = (now.min(self.limit).seconds(), self.limit.seconds());
        let rate = done / passed.as_secs_f64().max(1e-3);
        let left = match rate > 0.0 {
            true => length(((limit - done) / rate).min(1e15)),
            false => "unknown".into(),
        };
        format!(
            "{} of {} simulated s after {}, {} a second, at most {left} left",
            two_digits(done),
            two_digits(limit),
            length(passed.as_secs_f64()),
            two_digits(rate),
        )
    }
}

/// A length of real time, roughly.
fn length(seconds: f64) -> String {
    const UNITS: [(f64, &str); 4] =
        [(365.0 * 86_400.0, "years"), (86_400.0, "days"), (3600.0, "h"), (60.0, "min")];
    match UNITS.iter().find(|(unit, _)| seconds >= 2.0 * unit) {
        Some((unit, name)) => format!("{:.0} {name}", seconds / unit),
        None => format!("{seconds:.0} s"),
    }
}

/// The first runs of many, from whose time the whole is estimated: enough of them, for long enough.
const PILOT: (usize, Duration) = (8, Duration::from_millis(500));

/// The progress of many runs. It says first how many there are, and how long they will take as soon as the first
/// ones tell.
pub(crate) struct RunsMeter {
    bar: ProgressBar,
    /// Print lines: nobody asked for silence.
    lines: bool,
    /// Runs that an earlier command made: they take no time.
    found: usize,
    began: Instant,
    /// When the next line is due; `None` until the estimate has been told.
    next_line: Mutex<Option<Duration>>,
}

impl RunsMeter {
    /// For work that `words` describe, of which `found` runs are there already.
    pub(crate) fn new(global: &Global, words: &str, found: usize) -> Self {
        let lines = !(global.quiet || global.no_progress);
        if lines && !words.is_empty() {
            eprintln!("{words}");
        }
        let bar = progress(global, 0, RUNS);
        Self { bar, lines, found, began: Instant::now(), next_line: Mutex::new(None) }
    }

    /// Reports that this many of `total` runs are done.
    pub(crate) fn at(&self, done: usize, total: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        if !self.lines || done <= self.found || done == total {
            return;
        }
        let (new, passed) = (done - self.found, self.began.elapsed());
        let left = passed.as_secs_f64() / new as f64 * (total - done) as f64;
        let mut next_line = self.next_line.lock().unwrap_or_else(PoisonError::into_inner);
        match *next_line {
            None if new >= PILOT.0.min(total / 2) && passed >= PILOT.1 => {
                *next_line = Some(SILENT.max(passed * 2));
                if left >= 1.0 {
                    let line = format!("about {} more, by the first {new} runs", length(left));
                    self.bar.suspend(|| eprintln!("{line}"));
                }
            }
            Some(due) if passed >= due && self.bar.is_hidden() => {
                *next_line = Some(passed * 2);
                eprintln!("{done} of {total} runs, about {} left", length(left));
            }
            _ => {}
        }
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_in_the_unit_that_suits() {
        let shown = [0.4, 100.0, 600.0, 1e4, 1e6, 1e9].map(length);
        assert_eq!(shown, ["0 s", "100 s", "10 min", "3 h", "12 days", "32 years"]);
    }

    #[test]
    fn a_user_who_wants_no_progress_gets_neither_bars_nor_lines() {
        for (quiet, no_progress) in [(true, false), (false, true)] {
            let global = Global { quiet, no_progress };
            let meter = Meter::new(&global, MS);
            assert!(!meter.lines && meter.bar.is_hidden());
            let meter = RunsMeter::new(&global, "2 runs", 0);
            assert!(!meter.lines && meter.bar.is_hidden());
            let doing = Doing::new(&global);
            assert!(!doing.lines && doing.bar.is_hidden());
        }
    }
}
