//! dbench: file operations of many clients of a file server, played back. Andrew Tridgell's benchmark, which judged
//! the aligned locks of 2001 with 22 clients.

use crate::benchmark::{Benchmark, Outcome};
use crate::preload::{self, Locks};
use crate::program::{self, Ended, last_words, need};
use crate::scratch::Scratch;
use crate::{Cancel, Failed};
use overspin_scenario::Metric;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Throughput.
pub static THROUGHPUT: Metric =
    Metric::new("throughput", "MB/s", "written and read by all clients, as dbench reports it");
/// The longest operation.
pub static LATENCY: Metric =
    Metric::new("latency-max", "ms", "the longest operation of any client");
/// Operations of a kind.
pub static OPERATIONS: Metric = Metric::new("operations", "", "operations of this kind");
/// Their mean.
pub static MEAN: Metric = Metric::new("latency-mean", "ms", "their mean length");

/// Metrics of a run.
pub static METRICS: [&Metric; 2] = [&THROUGHPUT, &LATENCY];
/// Metrics of a kind of operation.
pub static OF_OPERATION: [&Metric; 3] = [&OPERATIONS, &MEAN, &LATENCY];

/// The benchmark.
#[derive(Debug)]
pub struct Dbench {
    /// Numbers of clients to compare.
    pub clients: Vec<u32>,
    /// Length of a run.
    pub length: Duration,
    /// dbench's file of operations, if not its own.
    pub loadfile: Option<PathBuf>,
    /// The locks to compare.
    pub locks: Locks,
    /// Where the clients' files are; none: where temporary files belong.
    pub scratch: Option<PathBuf>,
    ready: Option<Arc<Scratch>>,
}

impl Dbench {
    /// The benchmark with so many clients, for so long each.
    #[must_use]
    pub fn new(clients: Vec<u32>, length: Duration) -> Self {
        Self {
            clients,
            length,
            loadfile: None,
            locks: Locks::default(),
            scratch: None,
            ready: None,
        }
    }

    fn command(&self, clients: u32, length: Duration, scratch: &Arc<Scratch>) -> Command {
        let mut command = Command::new("dbench");
        // It counts in whole seconds.
        command.args(["-t", &length.as_secs().max(1).to_string(), "-D"]).arg(scratch.path());
        if let Some(file) = &self.loadfile {
            command.arg("-c").arg(file);
        }
        command.arg(clients.to_string());
        command
    }
}

/// The figures in dbench's output; `None` if its last line is not there.
fn figures(output: &str) -> Option<Outcome> {
    // `Throughput 387.513 MB/sec  2 clients  2 procs  max_latency=8.080 ms`
    let last = output.lines().rev().find_map(|l| l.strip_prefix("Throughput "))?;
    let throughput = last.split_ascii_whitespace().next()?.parse().ok()?;
    let latency =
        last.split_once("max_latency=")?.1.split_ascii_whitespace().next()?.parse().ok()?;
    let mut outcome = Outcome::default().with(&THROUGHPUT, throughput).with(&LATENCY, latency);
    // ` NTCreateX      33031     0.007     5.234`, below a line of dashes.
    let table = output.lines().skip_while(|l| !l.trim_start().starts_with("----")).skip(1);
    for line in table.take_while(|l| !l.trim().is_empty()) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, numbers @ ..] = &words[..] else { continue };
        let numbers: Vec<f64> = numbers.iter().filter_map(|n| n.parse().ok()).collect();
        let [count, mean, longest] = numbers[..] else { continue };
        for (metric, value) in [(&OPERATIONS, count), (&MEAN, mean), (&LATENCY, longest)] {
            outcome = outcome.with_part((*name).to_owned(), metric, value);
        }
    }
    Some(outcome)
}

impl Benchmark for Dbench {
    fn name(&self) -> &'static str {
        "dbench"
    }

    fn description(&self) -> String {
        format!(
            "{} s a run, files in {}.",
            self.length.as_secs(),
            match &self.scratch {
                Some(dir) => dir.display().to_string(),
                None => std::env::temp_dir().display().to_string(),
            }
        )
    }

    fn places(&self) -> Vec<String> {
        let of = |variant: String| {
            self.clients.iter().map(move |n| Locks::place(&variant, &format!("clients-{n}")))
        };
        self.locks.variants().into_iter().flat_map(of).collect()
    }

    fn prepare(&mut self, _: Cancel) -> Result<(), Failed> {
        need("dbench", "plays the operations", "dbench")?;
        if let Some(file) = &self.loadfile
            && !file.is_file()
        {
            let cause = format!("there is no file of operations `{}`", file.display());
            return Err(Failed::usage(cause, "name a file in dbench's format with --loadfile"));
        }
        self.ready = Some(Arc::new(Scratch::new(self.scratch.as_deref())?));
        Ok(())
    }

    fn run(&mut self, place: usize, warm_up: bool, cancel: Cancel) -> Result<Outcome, Failed> {
        let Some(scratch) = &self.ready else {
            return Err(Failed::usage("it was not prepared", "prepare it first"));
        };
        let clients = self.clients[place % self.clients.len()];
        let length = if warm_up { Duration::from_secs(1) } else { self.length };
        let mut command = self.command(clients, length, scratch);
        let variant = &self.locks.variants()[place / self.clients.len()];
        self.locks.apply(variant, &mut command)?;
        let Ended { stdout: output, stderr, .. } = program::run(command, scratch, cancel)?;
        let Some(outcome) = figures(&output) else {
            // A second may be too short for a figure.
            if warm_up {
                return Ok(Outcome::default());
            }
            let said = last_words(&output, &stderr);
            let cause = format!("dbench printed no line that begins with `Throughput`; {said}");
            return Err(Failed::needs(cause, "run `dbench 1` by hand to see what it prints"));
        };
        Ok(Outcome { output, ..outcome })
    }

    fn doubts(&self) -> Vec<String> {
        preload::doubt(&self.locks, "dbench").into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "   2     68763   387.51 MB/sec  execute   2 sec  latency 8.080 ms\n\n \
        Operation      Count    AvgLat    MaxLat\n ----------------------------------------\n \
        NTCreateX      33031     0.007     5.234\n Flush           2324     1.533     8.075\n\n\
        Throughput 387.513 MB/sec  2 clients  2 procs  max_latency=8.080 ms\n";

    #[test]
    fn output_of_version_4() {
        let outcome = figures(OUTPUT).unwrap();
        let found: Vec<(&str, &str, f64)> =
            (outcome.figures.iter()).map(|f| (f.part.as_str(), f.metric.name, f.value)).collect();
        let expected = [
            ("", "throughput", 387.513),
            ("", "latency-max", 8.08),
            ("NTCreateX", "operations", 33031.0),
            ("NTCreateX", "latency-mean", 0.007),
            ("NTCreateX", "latency-max", 5.234),
            ("Flush", "operations", 2324.0),
            ("Flush", "latency-mean", 1.533),
            ("Flush", "latency-max", 8.075),
        ];
        assert_eq!(found, expected);
        assert!(figures("nothing\n").is_none());
    }

    #[test]
    fn it_runs_where_it_is_installed() {
        if program::find("dbench").is_none() {
            overspin_testing::skip("dbench is not installed");
            return;
        }
        let clients = if overspin_testing::deep() { vec![1, 2] } else { vec![2] };
        let mut dbench = Dbench::new(clients.clone(), Duration::from_secs(2));
        let plan = crate::Plan { runs: 1, time: None, seed: 1 };
        let measured = crate::benchmark::measure_all(&mut dbench, &plan, &|| false).unwrap();
        assert!(measured.failed.is_none(), "{:?}", measured.failed);
        assert_eq!(measured.runs.len(), clients.len());
        assert!(measured.runs.iter().all(|r| r.outcome.figures[0].value > 0.0));
        assert!(measured.runs.iter().all(|r| r.seconds.len() >= 2), "a line each second");
    }
}
