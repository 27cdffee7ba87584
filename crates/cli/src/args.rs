//! Options that several commands have, and how their values are read.

use clap::Args;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const EXIT_CODES: &str = "Exit codes:
  0  it ran to the end
  1  a check failed, something got worse (compare --better), or with --strict a claim does not hold or a run deadlocked
  2  wrong usage or input
  3  the environment prevents it (output cannot be written, disk full)
  4  undecided (a model ran out of time, --max-wall expired, or with --strict a claim needs runs that did not finish)
  129, 130, 143  interrupted (SIGHUP, Ctrl-C, SIGTERM); finished results are kept
A benchmark that ran ends with 0, whatever its figures are.

Environment:
  NO_COLOR                no colours
  COLUMNS                 width of tables and text, instead of the terminal's
  LC_ALL, LC_CTYPE, LANG  the first that is set: with C or POSIX, the output is ASCII only";

/// Options of all commands.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print only errors and the output of --json, --trace, --markdown or --svg
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Show no progress: neither bars on terminals, nor lines elsewhere about runs that take more than
    /// seconds
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
}

/// Output files for measurements.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RecordArgs {
    /// Write the record, with all measurements, as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the samples as CSV, a line for each number (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the result as a directory, with samples as Parquet. Runs are written as they end; after an
    /// interruption the same command goes on where it stopped
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// The report page of `reproduce` and `sweep`.
#[derive(Debug, Default, Args)]
pub(crate) struct PageArgs {
    /// Write the report page there, instead of as report.html in the directory of --out, or in the current
    /// directory under the name of the experiment or scenario (`-`: standard output)
    #[arg(long, value_name = "FILE.html", conflicts_with = "no_report")]
    pub(crate) report: Option<PathBuf>,
    /// Write no report page
    #[arg(long)]
    pub(crate) no_report: bool,
}

/// A plausible number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(n) if n <= 1024 => Ok(n),
        _ => Err("a whole number from 0 (one for each CPU) to 1024".into()),
    }
}

/// A time that is not zero.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("a time longer than 0".into()),
        some => Ok(some),
    }
}

/// The number at the beginning of a text, and what its unit is worth, if it has one of these.
fn in_units<'t>(text: &'t str, units: [(&str, f64); 4]) -> (&'t str, Option<f64>) {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    (number, units.iter().find(|(name, _)| *name == unit).map(|(_, worth)| *worth))
}

/// A length of time with its unit.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let (number, ns) = in_units(text, [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]);
    match (number.parse::<f64>(), ns) {
        // An hour: nobody waits longer for a run.
        (Ok(number), Some(ns)) if (0.0..=3.6e12).contains(&(number * ns)) => {
            Ok(Duration::from_nanos((number * ns) as u64))
        }
        _ => Err("a number with ns, us, ms or s, at most an hour: for example 100ns, 1.5us".into()),
    }
}

/// A length of real time to wait for.
pub(crate) fn wall(text: &str) -> Result<Duration, String> {
    let (number, s) = in_units(text, [("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)]);
    match (number.trim().parse::<f64>(), s) {
        // A year: nobody waits longer for a result.
        (Ok(number), Some(s)) if (0.0..=3.2e7).contains(&(number * s)) => {
            Ok(Duration::from_secs_f64(number * s))
        }
        _ => Err("a number with ms, s, min or h: for example 90s or 10min".into()),
    }
}

/// A CPU, or a range of CPUs.
pub(crate) fn cpus(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last && last < 4096 => Ok(first..=last),
        _ => Err("numbers of CPUs, for example 0,2-3".into()),
    }
}
