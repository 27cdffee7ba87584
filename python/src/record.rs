//! Records: what was measured, and how. `overspin/result.py` makes results of them.

use crate::interrupt::interruptible;
use crate::table::Table;
use crate::{errors, tables};
use overspin_host::Observer;
use overspin_page as page;
use overspin_page::{DetailError, Entry};
use overspin_record::output::Output;
use overspin_report as report;
use overspin_runs::record::{self, Kind, Record as Plain};
use overspin_runs::run::{self, Beside};
use overspin_runs::runner::Runner;
use overspin_scenario::{Ending, Outcome, Picos, Scenario};
use overspin_watch::explain::{self, ExplainError};
use overspin_watch::timeline::{Recorder, Timeline};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::path::PathBuf;
use std::time::Duration;

/// A record.
#[pyclass(frozen, module = "overspin._overspin", eq)]
#[derive(Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) record: Plain,
}

impl Record {
    pub(crate) fn new(record: Plain) -> Self {
        Self { record }
    }

    /// The scenario and the outcome of a single run.
    fn run(&self) -> PyResult<(&Scenario, &Outcome)> {
        let record = &self.record;
        let outcome = record.runs.first().and_then(|run| run.outcome.as_deref());
        match record.scenario.as_deref().zip(outcome) {
            Some(run) if record.kind == Kind::Run => Ok(run),
            _ => Err(errors::plain(
                "NotInResult",
                &format!(
                    "only a result of a single run has this; this one is of {}",
                    record.kind.words()
                ),
                "run one scenario with one seed: overspin.run(scenario, seed=...)",
            )),
        }
    }

    fn refused(&self, cause: &overspin_host::Refused) -> PyErr {
        errors::refused(&self.record.name, cause)
    }
}

/// What a run is asked for again: a timeline of at most `limit` slices and marks that end at `from` or later.
fn timeline(
    scenario: &Scenario,
    seed: u64,
    runner: Runner,
    from: Picos,
    limit: usize,
) -> Result<Timeline, overspin_host::Refused> {
    let mut recorder = Recorder::new(scenario, from, limit);
    let outcome = runner.run(scenario, seed, &mut recorder, &|_| {})?;
    Ok(recorder.finish(&outcome))
}

#[pymethods]
impl Record {
    #[classmethod]
    fn load(_: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        record::read_path(&path).map(Self::new).map_err(|e| errors::load(&e))
    }

    #[classmethod]
    fn from_json(_: &Bound<'_, PyType>, text: &str) -> PyResult<Self> {
        record::read("record", text).map(Self::new).map_err(|e| errors::scenario(&e))
    }

    fn to_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.record.to_json())
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| Output::create(&path)?.finish_with(&self.record.to_json()))
            .map_err(|e| errors::output(&e))
    }

    #[getter]
    fn kind(&self) -> String {
        let kind = serde_json::to_value(self.record.kind).unwrap_or_default();
        kind.as_str().unwrap_or_default().to_owned()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.record.name
    }

    #[getter]
    fn seed(&self) -> Option<u64> {
        self.record.seed
    }

    #[getter]
    fn world(&self) -> &str {
        self.record.world.as_deref().unwrap_or("sim")
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.record.warnings.clone()
    }

    #[getter]
    fn is_repeatable(&self) -> bool {
        self.record.unrepeatable().is_none()
    }

    #[getter]
    fn ending(&self) -> PyResult<&'static str> {
        Ok(match self.run()?.1.ending {
            Ending::Finished => "finished",
            Ending::Limit => "limit",
            Ending::Deadlock { .. } => "deadlock",
            Ending::Stopped { .. } => "stopped",
        })
    }

    /// What each waiter of a deadlock waits for; empty without one.
    #[getter]
    fn deadlock(&self) -> PyResult<Vec<String>> {
        Ok(match &self.run()?.1.ending {
            Ending::Deadlock { waits } => waits.clone(),
            _ => Vec::new(),
        })
    }

    #[getter]
    fn elapsed_s(&self) -> PyResult<f64> {
        Ok(self.run()?.1.elapsed.seconds())
    }

    #[getter]
    fn warmup_s(&self) -> PyResult<f64> {
        Ok(self.run()?.1.warmup.seconds())
    }

    #[getter]
    fn trace_hash(&self) -> PyResult<String> {
        Ok(format!("{:016x}", self.run()?.1.trace_hash))
    }

    #[getter]
    fn metrics(&self) -> PyResult<Table> {
        tables::metrics(&self.record)
    }

    #[getter]
    fn runs(&self) -> PyResult<Table> {
        tables::runs(&self.record)
    }

    #[getter]
    fn locks(&self) -> PyResult<Table> {
        tables::locks(self.run()?.1)
    }

    #[getter]
    fn vcpus(&self) -> PyResult<Table> {
        tables::vcpus(self.run()?.1)
    }

    #[getter]
    fn pcpus(&self) -> PyResult<Table> {
        tables::pcpus(self.run()?.1)
    }

    #[getter]
    fn tasks(&self) -> PyResult<Table> {
        tables::tasks(self.run()?.1)
    }

    #[getter]
    fn waits(&self) -> PyResult<Table> {
        let (scenario, outcome) = self.run()?;
        tables::waits(scenario, outcome)
    }

    #[getter]
    fn figures(&self) -> PyResult<Table> {
        tables::figures(&self.record)
    }

    #[getter]
    fn claims(&self) -> PyResult<Table> {
        tables::claims(&self.record)
    }

    /// Slices and marks, and the end of what they cover in microseconds if that is before the end of the run.
    fn timeline(
        &self,
        py: Python<'_>,
        from_us: f64,
        limit: usize,
    ) -> PyResult<(Table, Table, Option<f64>)> {
        let (scenario, outcome) = self.run()?;
        if let Some(why) = self.record.unrepeatable() {
            let message = format!("{}: no run is repeated for its slices: {why}", self.record.name);
            return Err(errors::plain(
                "NotInResult",
                &message,
                "write a trace with the command, --trace",
            ));
        }
        // A run that was stopped from outside is repeated up to there.
        let mut scenario = scenario.clone();
        if matches!(outcome.ending, Ending::Stopped { .. }) {
            (scenario.limit, scenario.warmup) = (outcome.elapsed, Some(outcome.warmup));
        }
        let from = Picos((from_us.max(0.0) * 1e6) as u64);
        let timeline = interruptible(py, None, |until| {
            timeline(&scenario, outcome.seed, Runner { until, ..Runner::default() }, from, limit)
        })?
        .map_err(|e| self.refused(&e))?;
        let cut = (timeline.until < timeline.end).then(|| timeline.until.micros());
        Ok((tables::slices(&timeline)?, tables::marks(&timeline)?, cut))
    }

    /// What `overspin run --verbose` prints about a run; what `overspin explain` says about it with `explain`.
    #[pyo3(signature = (explain = false, markdown = false))]
    fn text(&self, py: Python<'_>, explain: bool, markdown: bool) -> PyResult<String> {
        let record = &self.record;
        let blocks = if explain {
            interruptible(py, None, |until| {
                explain::record(record, &Runner { until, ..Runner::default() })
            })?
            .map_err(|error| match error {
                ExplainError::Record { message, remedy } => {
                    errors::plain("NotInResult", &format!("{}: {message}", record.name), remedy)
                }
                ExplainError::Refused(cause) => self.refused(&cause),
            })?
        } else {
            let (scenario, outcome) = self.run()?;
            run::report(scenario, outcome)
        };
        let screen = if explain { report::Screen::page() } else { report::Screen::default() };
        Ok(if markdown { report::markdown(&blocks) } else { report::text_on(&blocks, &screen) })
    }

    /// The answer of a run, as `overspin run` prints it.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        let (scenario, outcome) = self.run()?;
        let subject = run::subject(outcome);
        let beside = interruptible(py, None, |until| match outcome.measurement {
            Some(_) => Beside::default(),
            None => {
                let runner = Runner { until, ..Runner::default() };
                Beside::of(runner, scenario, outcome.seed, subject, Duration::ZERO)
            }
        })?;
        Ok(report::text(&run::answer(scenario, outcome, &beside, None)))
    }

    /// The report page, with a timeline of at most so many slices and marks; without one for `None`.
    fn html(&self, py: Python<'_>, slices: Option<usize>) -> PyResult<String> {
        let record = &self.record;
        let made = interruptible(py, None, |until| {
            let run = |scenario: &Scenario, seed: u64, observer: &mut dyn Observer| {
                Runner { until, ..Runner::default() }.run(scenario, seed, observer, &|_| {})
            };
            let detail = match slices {
                Some(most) => page::detail(record, most, &run)?,
                None => None,
            };
            Ok(page::page(&[Entry { record: record.clone(), detail }]))
        })?;
        made.map_err(|error| match error {
            DetailError::Record(message) => errors::plain(
                "NotInResult",
                &format!("{}: {message}", record.name),
                "write the record again",
            ),
            DetailError::Refused(cause) => self.refused(&cause),
        })
    }

    /// The charts of the record, for a notebook.
    fn fragment(&self) -> String {
        page::fragment(&self.record)
    }
}
