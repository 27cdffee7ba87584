//! pgbench: transactions of many clients against a throw-away PostgreSQL (`server.rs`), as the paravirtual ticket locks
//! of 2012 were judged: 1 to 64 clients, ten runs each.

mod server;

use crate::benchmark::{Benchmark, Outcome};
use crate::preload::{Locks, NONE};
use crate::program::{self, Ended, last_words};
use crate::scratch::Scratch;
use crate::{Cancel, Failed, cpus};
use overspin_scenario::Metric;
use server::{Programs, Server, Setup};
use std::path::{Path, PathBuf};
use std::process::Command;
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
    "half of the transactions took at most so long; of some 20,000 of a run, or of all with --latencies",
);
/// A tail.
pub static P99: Metric =
    Metric::new("latency-p99", "ms", "99 % of the same transactions took at most so long");
/// The longest.
pub static LONGEST: Metric =
    Metric::new("latency-max", "ms", "the longest transaction, if all were timed");
/// All of them.
pub static METRICS: [&Metric; 5] = [&RATE, &LATENCY, &P50, &P99, &LONGEST];

/// If the server and pgbench took fewer pthread mutexes than this while a hundred thousand rows were loaded and a
/// second of transactions ran, their locks are others.
const FEW: u64 = 10_000;
/// Logs of transactions begin with this.
const LOG: &str = "transactions";
/// So many transactions of a run are timed, unless the user wants all: 200 of them are slower than the quantile 99 %.
const TIMED: f64 = 20_000.0;
/// A client's share of a warm-up, besides the first second: on a busy machine, a server takes so long to begin with a
/// client.
const TO_CONNECT: Duration = Duration::from_millis(20);
/// A warm-up in which no transaction ended is repeated with twice the length, up to this.
const LONGEST_WARM_UP: Duration = Duration::from_secs(160);

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
    /// Whether every transaction is timed, not only some: that costs some throughput.
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
    /// What the warm-up of each place found.
    warm: Vec<Printed>,
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

/// What pgbench prints of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Printed {
    /// Transactions a second.
    rate: f64,
    /// Mean latency in milliseconds.
    latency: f64,
    /// Until all clients were connected, in milliseconds; 0 before version 14, which does not tell.
    connect: f64,
}

impl Printed {
    /// Reads its output; `None` if it has no rate, because no transaction ended.
    fn of(output: &str) -> Option<Self> {
        let number = |line: &str, begin: &str| -> Option<f64> {
            line.strip_prefix(begin)?.split_ascii_whitespace().next()?.parse().ok()
        };
        // Before version 14, the first of two such lines was `tps = .. (including connections establishing)`.
        let lines = || output.lines().filter(|l| !l.contains("(including"));
        let of = |begin: &str| lines().find_map(|l| number(l, begin));
        Some(Self {
            rate: of("tps = ")?,
            latency: of("latency average = ")?,
            connect: of("initial connection time = ").unwrap_or(0.0),
        })
    }
}

impl Pgbench {
    /// pgbench with so many clients, without the name of the database.
    fn command(
        &self,
        ready: &Ready,
        server: &Server,
        clients: u32,
        length: Duration,
    ) -> Result<Command, Failed> {
        let mut command = server.pgbench(&ready.programs, &self.locks)?;
        command.args(["-n", "-b", self.script.name(), "-c", &clients.to_string()]);
        command.args(["-j", &(clients as usize).min(cpus()).to_string()]);
        // It counts in whole seconds.
        command.args(["-T", &format!("{:.0}", length.as_secs_f64().max(1.0).ceil())]);
        Ok(command)
    }

    /// A run that lasts until some transactions have ended.
    fn warmed_up(
        &self,
        ready: &Ready,
        server: &Server,
        clients: u32,
        cancel: Cancel,
    ) -> Result<Printed, Failed> {
        let mut length = Duration::from_secs(1) + TO_CONNECT * clients;
        loop {
            let mut command = self.command(ready, server, clients, length)?;
            command.arg("postgres");
            let Ended { stdout, stderr, .. } = program::run(command, &ready.scratch, cancel)?;
            match Printed::of(&stdout) {
                Some(printed) => return Ok(printed),
                None if length >= LONGEST_WARM_UP => {
                    return Err(no_rate(
                        clients,
                        length.as_secs_f64(),
                        &last_words(&stdout, &stderr),
                    ));
                }
                None => length *= 2,
            }
        }
    }
}

fn no_rate(clients: u32, seconds: f64, said: &str) -> Failed {
    Failed::needs(
        format!(
            "pgbench printed no rate: of its {clients} clients, none had done a transaction after {seconds:.0} s; {said}"
        ),
        "ask for longer runs with --length, or for fewer --clients",
    )
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
        let warm = vec![Printed::default(); self.places().len()];
        self.ready = Some(Ready { programs, servers, warm, doubts, scratch });
        Ok(())
    }

    fn run(&mut self, place: usize, warm_up: bool, cancel: Cancel) -> Result<Outcome, Failed> {
        let Some(ready) = &self.ready else {
            return Err(Failed::usage("it was not prepared", "prepare it first"));
        };
        let server = &ready.servers[place / self.clients.len()];
        let clients = self.clients[place % self.clients.len()];
        if warm_up {
            let printed = self.warmed_up(ready, server, clients, cancel)?;
            if let Some(ready) = &mut self.ready {
                ready.warm[place] = printed;
            }
            return Ok(Outcome::default());
        }
        // pgbench's time begins before its clients are connected.
        let warm = ready.warm[place];
        let length = self.length + Duration::from_secs_f64(warm.connect / 1e3);
        let mut command = self.command(ready, server, clients, length)?;
        let transactions = warm.rate * self.length.as_secs_f64();
        let timed = if self.latencies { 1.0 } else { (TIMED / transactions.max(TIMED)).max(1e-4) };
        command.args(["-l", "--log-prefix", LOG, &format!("--sampling-rate={timed:.4}")]);
        command.arg("postgres");
        let Ended { stdout: output, stderr, .. } = program::run(command, &ready.scratch, cancel)?;
        let Some(Printed { rate, latency, .. }) = Printed::of(&output) else {
            let length = length.as_secs_f64();
            return Err(no_rate(clients, length, &last_words(&output, &stderr)));
        };
        let outcome = Outcome { output, ..Outcome::default() };
        let mut outcome = outcome.with(&RATE, rate).with(&LATENCY, latency);
        let lengths = lengths(server.folder());
        // The smallest length that so many transactions do not exceed.
        let quantile =
            |q: f64| lengths.get(((lengths.len() as f64 * q).ceil() as usize).max(1) - 1);
        let longest = lengths.last().filter(|_| timed >= 1.0);
        for (metric, length) in [(&P50, quantile(0.5)), (&P99, quantile(0.99)), (&LONGEST, longest)]
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
        let of = |rate, latency, connect| Some(Printed { rate, latency, connect });
        assert_eq!(Printed::of(new), of(12_659.123_456, 0.079, 3.211));
        let old = "latency average = 0.231 ms\ntps = 4321.0 (including connections establishing)\n\
                   tps = 4330.5 (excluding connections establishing)\n";
        assert_eq!(Printed::of(old), of(4330.5, 0.231, 0.0));
        assert_eq!(Printed::of("connection to server failed\n"), None);
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
        // So many clients take longer than a second to connect.
        let clients = if overspin_testing::deep() { vec![1, 2, 300] } else { vec![150] };
        let mut pgbench = Pgbench::new(clients.clone(), Duration::from_secs(1));
        pgbench.scratch = Some(parent.path().into());
        pgbench.latencies = true;
        let plan = crate::Plan { runs: 1, time: None, seed: 1 };
        let measured = crate::benchmark::measure_all(&mut pgbench, &plan, &|| false).unwrap();
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
