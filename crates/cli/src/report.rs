//! `overspin report`, and the page that other commands write by default.

use crate::args::{Global, ReportArgs};
use crate::failure::{Failure, Verdict};
use crate::progress::Meter;
use crate::show::Outputs;
use overspin_host::Observer;
use overspin_lab::output::Output;
use overspin_lab::page::{self, DetailError, Entry};
use overspin_lab::record::{self, Record};
use overspin_lab::results;
use overspin_lab::way::Way;
use overspin_scenario::Scenario;
use std::path::{Path, PathBuf};

pub(crate) fn report(args: &ReportArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[Some(&args.output)])?;
    let records: Vec<Record> =
        args.results.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let output = Output::create(&args.output)?;
    let most = (!args.no_timeline).then_some(args.slices);
    let mut entries = Vec::new();
    for (record, path) in records.into_iter().zip(&args.results) {
        entries.push(entry(record, path, most, global)?);
    }
    let text = page::page(&entries);
    output.finish_with(&text)?;
    outputs.print(&written(&args.output, text.len(), &entries))?;
    Ok(Verdict::Fine)
}

/// The record of a results directory, or in a file.
fn read(path: &Path) -> Result<Record, Failure> {
    match path.is_dir() {
        true => Ok(results::read(path)?),
        false => Ok(record::read_path(path)?),
    }
}

/// A record with a run in detail, whose timeline has at most `most` slices and marks; without one if `most` is
/// `None`.
fn entry(
    record: Record,
    path: &Path,
    most: Option<usize>,
    global: &Global,
) -> Result<Entry, Failure> {
    let name = path.display().to_string();
    let make = |scenario: &Scenario, seed: u64, observer: &mut dyn Observer| {
        let meter = Meter::new(global, scenario.limit);
        let result = Way::default().run(scenario, seed, observer, &|at| meter.at(at));
        meter.end();
        result
    };
    let detail = match most {
        None => None,
        Some(most) => page::detail(&record, most, &make).map_err(|error| match error {
            DetailError::Record(message) => {
                Failure::usage(format!("{name}: {message}"), "write the record again")
            }
            DetailError::Refused(cause) => Failure::refused(&name, &cause),
        })?,
    };
    Ok(Entry { record, detail })
}

/// Says where a page is, how large it is, and what it holds.
fn written(path: &Path, bytes: usize, entries: &[Entry]) -> String {
    let slices: Vec<usize> =
        entries.iter().filter_map(|e| Some(e.detail.as_ref()?.timeline.slices())).collect();
    let timelines = match slices.as_slice() {
        [] => String::new(),
        [one] => format!(", a timeline of {one} slices"),
        many => format!(", {} timelines of {} slices", many.len(), many.iter().sum::<usize>()),
    };
    let results = if entries.len() == 1 { "result" } else { "results" };
    format!(
        "{}: {:.2} MB, {} {results}{timelines}. Open it in a browser.\n",
        path.display(),
        bytes as f64 / 1e6,
        entries.len()
    )
}

/// The page that a command writes besides its other output.
pub(crate) struct Page {
    path: PathBuf,
    output: Option<Output>,
}

impl Page {
    /// Opens the page: the file that the user `asked` for, or else `name` in the current directory. If only
    /// that one cannot be written, the command says so in a line and goes on without a page.
    pub(crate) fn open(asked: Option<&PathBuf>, name: &str) -> Result<Self, Failure> {
        if let Some(path) = asked {
            return Ok(Self { path: path.clone(), output: Some(Output::create(path)?) });
        }
        let path = PathBuf::from(name);
        let output = Output::create(&path);
        let output = output.inspect_err(|e| eprintln!("warning: no report page: {e}")).ok();
        Ok(Self { path, output })
    }

    /// Writes the page of `record`; returns the line that says so, or nothing if there is no page.
    pub(crate) fn write(self, record: Record) -> Result<String, Failure> {
        let Some(output) = self.output else { return Ok(String::new()) };
        let entries = [Entry { record, detail: None }];
        let text = page::page(&entries);
        output.finish_with(&text)?;
        Ok(written(&self.path, text.len(), &entries))
    }
}
