//! pgbench: transactions of many clients against a throw-away PostgreSQL (`server.rs`), as the paravirtual ticket locks
//! of 2012 were judged: 1 to 64 clients, ten runs each.

mod server;

use crate::benchmark::{Benchmark, Outcome};
use crate::preload::{Locks, NONE};
use crate::program;
use crate::scratch::Scratch;
use crate::{Cancel, Failed, cpus};
use overspin_scenario::Metric;
use server::{Programs, Server, Setup};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Transactions a second.
pub static RATE: Metric =
    Metric::new("rate", "1/s", "transactions a second, without the time to connect");
/// Mean latency.
pub static LATENCY: Metric = Metric::new("latency-mean", "ms", "mean length of a transaction");
/// Median latency.
pub static P50: Metric = Metric::new(
    "latency-p50",
    "ms",
    "half of the transactions took at most so long (with --latencies)",
);
/// A tail.
pub static P99: Metric = Metric::new(
    "latency-p99",
    "ms",
    "99 % of the transactions took at most so long (with --latencies)",
);
/// The longest.
pub static LONGEST: Metric =
    Metric::new("latency-max", "ms", "the longest transaction (with --latencies)");
/// All of them.
pub static METRICS: [&Metric; 5] = [&RATE, &LATENCY, &P50, &P99, &LONGEST];

/// If the server and pgbench took fewer pthread mutexes than this while a hundred thousand rows were loaded and a
/// second of transactions ran, their locks are others.
const FEW: u64 = 10_000;
/// Logs of transactions begin with this.
const LOG: &str = "transactions";

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Reads one row: the script of the published figures.
    Select,
    /// Updates a row and appends one.
    Update,
    /// The whole transaction of TPC-B, with its two hot tables.
    TpcB,
}

impl Script {
    /// pgbench's name for it.
    fn name(self) -> &'static str {
        match self {
            Self::Select => "select-only",
            Self::Update => "simple-update",
            Self::TpcB => "tpcb-like",
        }
    }
}

/// The benchmark.
#[derive(Debug)]
pub struct Pgbench {
    /// Numbers of clients to compare.
    pub clients: Vec<u32>,
    /// Length of a run.
    pub length: Duration,
    /// Scale: a hundred thousand rows each.
    pub scale: u32,
    /// What a transaction does.
    pub script: Script,
    /// `shared_buffers` of the server.
    pub buffers: String,
    /// Whether every transaction is timed, which costs some throughput.
    pub latencies: bool,
    /// The user that the server runs as, if we are root; none: `postgres`, or else `nobody`.
    pub user: Option<String>,
    /// The locks to compare, each with a server of its own.
    pub locks: Locks,
    /// Where the data are; none: where temporary files belong.
    pub scratch: Option<PathBuf>,
    ready: Option<Ready>,
}

#[derive(Debug)]
struct Ready {
    programs: Programs,
    /// A server for each variant.
    servers: Vec<Server>,
    doubts: Vec<String>,
    scratch: Arc<Scratch>,
}

impl Pgbench {
    /// The benchmark with so many clients, for so long each, reading from a small database.
    #[must_use]
    pub fn new(clients: Vec<u32>, length: Duration) -> Self {
        Self {
            clients,
            length,
            scale: 1,
            script: Script::Select,
            buffers: "32MB".into(),
            latencies: false,
            user: None,
            locks: Locks::default(),
            scratch: None,
            ready: None,
        }
    }
}

/// The rate and the mean latency in pgbench's output.
fn figures(output: &str) -> Option<(f64, f64)> {
    let number = |line: &str, begin: &str| -> Option<f64> {
        line.strip_prefix(begin)?.split_ascii_whitespace().next()?.parse().ok()
    };
    // Before version 14, the first of two such lines was `tps = .. (including connections establishing)`.
    let lines = || output.lines().filter(|l| !l.contains("(including"));
    let of = |begin: &str| lines().find_map(|l| number(l, begin));
    Some((of("tps = ")?, of("latency average = ")?))
}

/// The lengths of transactions in the logs of a folder, in milliseconds, sorted; the logs are removed. A line is
/// `client number length script ..`, with the length in microseconds.
fn lengths(dir: &Path) -> Vec<f64> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(LOG) {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            let of = |line: &str| line.split(' ').nth(2)?.parse::<f64>().ok();
            all.extend(text.lines().filter_map(of).map(|us| us / 1e3));
            // What stays is removed with the folder.
            let _ = std::fs::remove_file(entry.path());
        }
    }
    all.sort_by(f64::total_cmp);
    all
}

impl Benchmark for Pgbench {
    fn name(&self) -> &'static str {
        "pgbench"
    }

    fn description(&self) -> String {
        let version = self.ready.as_ref().map_or_else(String::new, |r| r.programs.version());
        format!(
            "{version}; {} at scale {}, shared_buffers {}, fsync off; {} s a run.",
            self.script.name(),
            self.scale,
            self.buffers,
            self.length.as_secs(),
        )
    }

    fn places(&self) -> Vec<String> {
        let of = |variant: String| {
            self.clients.iter().map(move |n| Locks::place(&variant, &format!("clients-{n}")))
        };
        self.locks.variants().into_iter().flat_map(of).collect()
    }

    fn prepare(&mut self, cancel: Cancel) -> Result<(), Failed> {
        let programs = Programs::find(self.user.as_deref())?;
        let scratch = Arc::new(Scratch::new(self.scratch.as_deref())?);
        let setup = Setup {
            programs: &programs,
            locks: &self.locks,
            scratch: &scratch,
            buffers: &self.buffers,
            scale: self.scale,
            most_clients: self.clients.iter().max().map_or(0, |n| *n),
        };
        let (mut servers, mut doubts) = (Vec::new(), Vec::new());
        for variant in self.locks.variants() {
            let (server, counted) = setup.server(&variant, cancel)?;
            servers.push(server);
            if !variant.is_empty() && variant != NONE && counted < FEW {
                doubts.push(format!(
                    "PostgreSQL and pgbench took {counted} pthread mutexes through `{variant}` while the data were \
                     loaded: their locks are others, so a difference is not this lock's"
                ));
            }
        }
        self.ready = Some(Ready { programs, servers, doubts, scratch });
        Ok(())
    }

    fn run(&mut self, place: usize, warm_up: bool, cancel: Cancel) -> Result<Outcome, Failed> {
        let Some(ready) = &self.ready else {
            return Err(Failed::usage("it was not prepared", "prepare it first"));
        };
        let server = &ready.servers[place / self.clients.len()];
        let clients = self.clients[place % self.clients.len()] as usize;
        let length = if warm_up { Duration::from_secs(1) } else { self.length };
        let mut command = server.pgbench(&ready.programs, &self.locks)?;
        command.args(["-n", "-b", self.script.name()]);
        command.args(["-c", &clients.to_string(), "-j", &clients.min(cpus()).to_string()]);
        command.args(["-T", &length.as_secs().max(1).to_string()]);
        if self.latencies && !warm_up {
            command.args(["-l", "--log-prefix", LOG]);
        }
        command.arg("postgres");
        let output = program::run(command, &ready.scratch, cancel)?.stdout;
        let Some((rate, latency)) = figures(&output) else {
            let cause = "pgbench printed no rate";
            return Err(Failed::needs(cause, "run pgbench by hand to see what it prints"));
        };
        let outcome = Outcome { output, ..Outcome::default() };
        let mut outcome = outcome.with(&RATE, rate).with(&LATENCY, latency);
        let lengths = lengths(server.folder());
        // The smallest length that so many transactions do not exceed.
        let quantile =
            |q: f64| lengths.get(((lengths.len() as f64 * q).ceil() as usize).max(1) - 1);
        for (metric, length) in
            [(&P50, quantile(0.5)), (&P99, quantile(0.99)), (&LONGEST, lengths.last())]
        {
            if let Some(length) = length {
                outcome = outcome.with(metric, *length);
            }
        }
        Ok(outcome)
    }

    fn doubts(&self) -> Vec<String> {
        self.ready.as_ref().map_or_else(Vec::new, |ready| ready.doubts.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_old_and_new_versions() {
        let new = "number of failed transactions: 0 (0.000%)\nlatency average = 0.079 ms\n\
                   initial connection time = 3.211 ms\ntps = 12659.123456 (without initial connection time)\n";
        assert_eq!(figures(new), Some((12_659.123_456, 0.079)));
        let old = "latency average = 0.231 ms\ntps = 4321.0 (including connections establishing)\n\
                   tps = 4330.5 (excluding connections establishing)\n";
        assert_eq!(figures(old), Some((4330.5, 0.231)));
        assert_eq!(figures("connection to server failed\n"), None);
    }

    #[test]
    fn lengths_of_all_logs_are_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("transactions.1", "0 1 2000 0 1700000000 1\n1 1 500 0 1700000000 1\n");
        write("transactions.1.1", "2 1 1000 0 1700000000 1\n");
        write("other", "0 1 9 0 1 1\n");
        assert_eq!(lengths(dir.path()), [0.5, 1.0, 2.0]);
        assert!(lengths(dir.path()).is_empty());
    }

    #[test]
    fn it_runs_where_a_server_is_installed_and_leaves_nothing() {
        if let Err(missing) = Programs::find(None) {
            overspin_testing::skip(&missing.to_string());
            return;
        }
        let parent = tempfile::Builder::new().permissions(open()).tempdir().unwrap();
        let clients = if overspin_testing::deep() { vec![1, 2] } else { vec![2] };
        let mut pgbench = Pgbench::new(clients.clone(), Duration::from_secs(1));
        pgbench.scratch = Some(parent.path().into());
        pgbench.latencies = true;
        let plan = crate::Plan { runs: 1, time: None, seed: 1 };
        let measured = crate::measure(&mut pgbench, &plan, &|| false, &mut |_| {}).unwrap();
        assert!(measured.failed.is_none(), "{:?}", measured.failed);
        assert_eq!(measured.runs.len(), clients.len());
        for run in &measured.runs {
            let value = |name: &str| {
                run.outcome.figures.iter().find(|f| f.metric.name == name).map(|f| f.value).unwrap()
            };
            assert!(value("rate") > 0.0 && value("latency-mean") > 0.0);
            assert!(value("latency-p50") <= value("latency-p99"));
            assert!(value("latency-p99") <= value("latency-max"));
        }
        drop(pgbench);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0, "nothing is left");
    }

    fn open() -> std::fs::Permissions {
        std::os::unix::fs::PermissionsExt::from_mode(0o755)
    }
}
