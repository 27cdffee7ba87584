//! `overspin report`, and the page that other commands write by default.

use crate::args::{EXIT_CODES, Global, PageArgs};
use crate::failure::{Failure, Verdict};
use crate::progress::Meter;
use crate::show::Outputs;
use clap::Args;
use overspin_host::Observer;
use overspin_page as page;
use overspin_page::{DetailError, Entry};
use overspin_record::output::Output;
use overspin_runs::record::{self, Record};
use overspin_runs::runner::Runner;
use overspin_scenario::{Picos, Scenario};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct ReportArgs {
    /// Records that --json wrote, directories that --out wrote, and .bench files (`-`: standard input)
    #[arg(required = true, num_args = 1.., value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// HTML file to write (`-`: standard output)
    #[arg(long, short, value_name = "FILE.html", default_value = "report.html")]
    output: PathBuf,
    /// Make no run again: no timeline, no waits by length, and of seeds and sweeps no run in detail
    #[arg(long)]
    no_timeline: bool,
    /// Most slices and marks of a timeline
    #[arg(long, value_name = "N", default_value_t = overspin_page::MOST_SLICES, value_parser = slices)]
    slices: usize,
}

/// A number of slices that a browser can hold.
fn slices(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(n) if (1000..=4_000_000).contains(&n) => Ok(n),
        _ => Err("a whole number from 1000 to 4000000".into()),
    }
}

pub(crate) fn report(args: &ReportArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[Some(&args.output)])?;
    let records: Vec<Record> =
        args.results.iter().map(|path| record::read_path(path)).collect::<Result<_, _>>()?;
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
        let run = |tell: &dyn Fn(Picos)| Runner::default().run(scenario, seed, observer, tell);
        Meter::during(global, scenario.limit, run)
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

/// Writes the page of a record into the directory of its result, without a timeline: that would run the
/// scenario once more, which `overspin report DIR` does.
pub(crate) fn into_directory(dir: &Path, record: Record) -> Result<(), Failure> {
    let output = Output::create(&dir.join("report.html"))?;
    Ok(output.finish_with(&page::page(&[Entry { record, detail: None }]))?)
}

/// The page that a command writes besides its other output.
pub(crate) struct Page {
    path: PathBuf,
    output: Option<Output>,
}

impl Page {
    /// Opens the page, if it is wanted: the file that the user asked for, or else `report.html` in the
    /// directory of --out, or else the page of `subject` in the current directory. If only that one cannot be
    /// written, the command says so in a line and goes on without a page.
    pub(crate) fn open(
        args: &PageArgs,
        out: Option<&PathBuf>,
        subject: &str,
    ) -> Result<Option<Self>, Failure> {
        if args.no_report {
            return Ok(None);
        }
        Self::create(args.report.as_ref(), out, subject).map(Some)
    }

    fn create(
        asked: Option<&PathBuf>,
        out: Option<&PathBuf>,
        subject: &str,
    ) -> Result<Self, Failure> {
        let in_out = out.map(|dir| dir.join("report.html"));
        if let Some(path) = asked.or(in_out.as_ref()) {
            return Ok(Self { path: path.clone(), output: Some(Output::create(path)?) });
        }
        // The name of a user's scenario or experiment may be any text, so it may not become a path.
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let name: String = subject.chars().map(plain).collect();
        let path = PathBuf::from(format!("{}.html", name.trim_start_matches('.')));
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
