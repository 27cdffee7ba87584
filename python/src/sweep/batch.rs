//! The runs of a batch, one after the other, and the table of them.

use crate::table::{Columns, Table};
use overspin_runs::catalog::names;
use overspin_runs::record::Run;
use overspin_runs::runner::{Runner, Until};
use overspin_runs::scenario_file::Template;
use overspin_runs::sweep::{Cell, MEASURES};
use overspin_scenario::{Ending, Scenario, WaitCauses};
use pyo3::prelude::*;
use std::time::Instant;

/// A point: its `--set` arguments, and its value in each column.
pub(super) type Point = (Vec<String>, Vec<Option<String>>);

/// A run that has ended, or could not begin.
pub(super) struct Row {
    point: usize,
    seed: u64,
    result: Result<Cell, String>,
}

impl Row {
    /// The measured run; `None` if it did not come to its end.
    fn sound(&self) -> Option<&Cell> {
        self.result.as_ref().ok().filter(|cell| cell.is_sound())
    }

    fn run(&self) -> Option<&Run> {
        self.result.as_ref().ok().map(|cell| &cell.run)
    }

    fn ending(&self) -> Option<&'static str> {
        Some(match self.result.as_ref().ok()?.ending()? {
            Ending::Finished => "finished",
            Ending::Limit => "limit",
            Ending::Deadlock { .. } => "deadlock",
            Ending::Stopped { .. } => "stopped",
        })
    }

    /// Why there are no metrics.
    fn error(&self) -> Option<String> {
        match &self.result {
            Err(error) => Some(error.clone()),
            Ok(cell) => match cell.ending()? {
                Ending::Deadlock { waits } => Some(format!("deadlock: {}", waits.join("; "))),
                _ => None,
            },
        }
    }
}

/// Makes the runs. When it is time to stop, returns those that have ended. The second number is the seconds it took.
pub(super) fn run(
    template: &Template,
    points: &[Point],
    jobs: &[(usize, u64)],
    until: Until,
) -> (Vec<Row>, f64) {
    let begun = Instant::now();
    let runner = Runner { until, ..Runner::default() };
    // Several seeds of a point share its scenario.
    let mut scenarios: Vec<Option<Result<Scenario, String>>> = vec![None; points.len()];
    let mut rows = Vec::with_capacity(jobs.len());
    for (point, seed) in jobs {
        let (Some(scenario), Some((sets, _))) = (scenarios.get_mut(*point), points.get(*point))
        else {
            // A batch is made by this package, and has the points of its runs.
            continue;
        };
        let scenario = scenario
            .get_or_insert_with(|| template.scenario(names(), sets).map_err(|e| e.to_string()));
        let result = match scenario {
            Ok(scenario) => Cell::new(runner, scenario, *seed).map_err(|cause| cause.to_string()),
            Err(error) => Err(error.clone()),
        };
        if until.over().is_some() {
            break;
        }
        rows.push(Row { point: *point, seed: *seed, result });
    }
    (rows, begun.elapsed().as_secs_f64())
}

/// A row for each run. `first` is the number of the first one; each of `columns` has a name and says whether its values
/// are counts, numbers, flags or texts.
pub(super) fn table(
    first: u64,
    points: &[Point],
    columns: &[(String, String)],
    rows: &[Row],
) -> PyResult<Table> {
    let mut table = Columns::default().counts("run", "", (first..).zip(rows).map(|(i, _)| Some(i)));
    for (i, (name, kind)) in columns.iter().enumerate() {
        let value = |row: &Row| points.get(row.point)?.1.get(i)?.as_deref();
        let values = || rows.iter().map(value);
        table = match kind.as_str() {
            "count" => table.counts(name, "", values().map(|v| v?.parse().ok())),
            "number" => table.numbers(name, "", values().map(|v| v?.parse().ok())),
            "flag" => table.flags(name, values().map(|v| v?.parse().ok())),
            _ => table.maybe_texts(name, values()),
        };
    }
    table = table.counts("seed", "", rows.iter().map(|row| Some(row.seed)));
    for (i, measure) in MEASURES.iter().enumerate() {
        let values = rows.iter().map(|row| row.sound().map(|cell| cell.values[i]));
        table = table.numbers(measure.metric.name, measure.metric.unit, values);
    }
    let nothing = WaitCauses::default();
    let causes = rows.iter().map(|row| {
        let causes = row.run().and_then(|run| run.wait_causes.as_ref());
        causes.unwrap_or(&nothing)
    });
    table
        .causes(causes)
        .maybe_times("elapsed", rows.iter().map(|row| row.run()?.elapsed))
        .maybe_texts("ending", rows.iter().map(Row::ending))
        .maybe_texts("error", rows.iter().map(Row::error))
        .maybe_texts(
            "trace_hash",
            rows.iter().map(|row| Some(format!("{:016x}", row.run()?.trace_hash?))),
        )
        .table()
}
