//! What the machine did in each second of a run: `/proc/stat`, `/proc/vmstat`, pressure (PSI), schedstat and waits for
//! the kernel's locks, as `vmstat 1` would show them and more.

use crate::contention::Contention;
use crate::lock_stat::LockStat;
use overspin_scenario::Metric;
pub use overspin_scenario::{Second, Shares};
use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// `user-share` of a machine.
pub static USER: Metric =
    Metric::new("user-share", "%", "user time, of all CPUs, by all processes of the machine");
/// `system-share` of a machine.
pub static SYSTEM: Metric =
    Metric::new("system-share", "%", "system time and interrupts, of all CPUs");
/// `idle-share` of a machine.
pub static IDLE: Metric = Metric::new("idle-share", "%", "idle time, of all CPUs");
/// `iowait-share` of a machine.
pub static IOWAIT: Metric =
    Metric::new("iowait-share", "%", "idle time while a disk was waited for");
/// `steal-share` of a machine.
pub static STEAL: Metric =
    Metric::new("steal-share", "%", "time that the hypervisor gave to others");
/// `switches` of a machine.
pub static SWITCHES: Metric =
    Metric::new("switches", "1/s", "context switches of the whole machine");
/// `cpu-pressure` of a machine.
pub static CPU_PRESSURE: Metric = Metric::new(
    "cpu-pressure",
    "%",
    "part of the time in which a thread waited for a CPU; absent where the kernel does not tell",
);
/// `run-delay` of a machine.
pub static RUN_DELAY: Metric = Metric::new(
    "run-delay",
    "s/s",
    "time in which threads could have run and did not, together; absent where the kernel does not tell",
);
/// `contentions` of a machine.
pub static CONTENTIONS: Metric = Metric::new(
    "contentions",
    "1/s",
    "waits for the kernel's own locks that began; absent where the kernel does not tell",
);

/// What a machine does.
pub static METRICS: [&Metric; 9] =
    [&USER, &SYSTEM, &IDLE, &IOWAIT, &STEAL, &SWITCHES, &CPU_PRESSURE, &RUN_DELAY, &CONTENTIONS];

/// The figures of a second, or of a whole run as one line. What the kernel does not tell has none.
#[must_use]
pub fn figures(s: &Second) -> [(&'static Metric, Option<f64>); 9] {
    let shares = s.shares.as_ref();
    [
        (&USER, shares.map(|s| s.user)),
        (&SYSTEM, shares.map(|s| s.system)),
        (&IDLE, shares.map(|s| s.idle)),
        (&IOWAIT, shares.map(|s| s.iowait)),
        (&STEAL, shares.map(|s| s.steal)),
        (&SWITCHES, Some(s.switches)),
        (&CPU_PRESSURE, s.cpu_pressure),
        (&RUN_DELAY, s.run_delay),
        (&CONTENTIONS, s.contentions),
    ]
}

/// The length of a line.
const SECOND: Duration = Duration::from_secs(1);
/// A rest that is shorter than this says little, and is left out if there are whole seconds.
const SHORTEST: Duration = Duration::from_millis(200);

/// The shares of ticks in the order of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn shares(ticks: [u64; 8]) -> Option<Shares> {
    let all = ticks.iter().sum::<u64>();
    let share =
        |of: &[usize]| 100.0 * of.iter().map(|i| ticks[*i]).sum::<u64>() as f64 / all as f64;
    (all > 0).then(|| Shares {
        user: share(&[0, 1]),
        system: share(&[2, 5, 6]),
        idle: share(&[3]),
        iowait: share(&[4]),
        steal: share(&[7]),
    })
}

/// Counters of the kernel at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// User, nice, system, idle, iowait, irq, softirq, steal: clock ticks of all CPUs.
    ticks: [u64; 8],
    interrupts: u64,
    switches: u64,
    runnable: u64,
    blocked: u64,
    read_kib: u64,
    written_kib: u64,
    faults: u64,
    /// Microseconds.
    pressure: [Option<u64>; 3],
    /// Nanoseconds.
    run_delay: Option<u64>,
    contentions: Option<u64>,
}

/// The files that counters come from.
struct Sources<'a> {
    stat: &'a str,
    vmstat: &'a str,
    pressure: [Option<&'a str>; 3],
    schedstat: Option<&'a str>,
}

/// The number after a word that begins a line.
fn after(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(word)?.strip_prefix(' '))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

impl Counters {
    fn now(contention: Option<&Contention>) -> Self {
        let this = Self::read(Path::new("/"));
        Self { contentions: contention.and_then(Contention::begun), ..this }
    }

    /// Those of the machine whose files are below `root`. Waits for the kernel's locks are not among them.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let proc = root.join("proc");
        let read = |path: &str| fs::read_to_string(proc.join(path)).ok();
        let (stat, vmstat) = (read("stat"), read("vmstat"));
        let pressure = ["cpu", "io", "memory"].map(|what| read(&format!("pressure/{what}")));
        let schedstat = read("schedstat");
        Self::of(&Sources {
            stat: stat.as_deref().unwrap_or_default(),
            vmstat: vmstat.as_deref().unwrap_or_default(),
            pressure: pressure.each_ref().map(Option::as_deref),
            schedstat: schedstat.as_deref(),
        })
    }

    /// What is not there counts as 0, or as unknown if it is optional.
    fn of(sources: &Sources<'_>) -> Self {
        let mut ticks = [0; 8];
        let cpu = sources.stat.lines().find_map(|l| l.strip_prefix("cpu "));
        let numbers = cpu.unwrap_or_default().split_ascii_whitespace();
        for (to, from) in ticks.iter_mut().zip(numbers) {
            *to = from.parse().unwrap_or(0);
        }
        let (stat, vmstat) = (|w| after(sources.stat, w), |w| after(sources.vmstat, w));
        // `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`
        let total = |text: &str| text.lines().next()?.rsplit_once("total=")?.1.parse().ok();
        // `cpu0 0 0 0 0 0 0 RUN DELAY SLICES`; what comes before has changed over the versions.
        let delay = |text: &str| -> Option<u64> {
            let of = |line: &str| line.split_ascii_whitespace().rev().nth(1)?.parse::<u64>().ok();
            text.lines().filter(|l| l.starts_with("cpu")).map(of).sum()
        };
        Self {
            ticks,
            interrupts: stat("intr").unwrap_or(0),
            switches: stat("ctxt").unwrap_or(0),
            runnable: stat("procs_running").unwrap_or(0),
            blocked: stat("procs_blocked").unwrap_or(0),
            read_kib: vmstat("pgpgin").unwrap_or(0),
            written_kib: vmstat("pgpgout").unwrap_or(0),
            faults: vmstat("pgfault").unwrap_or(0),
            pressure: sources.pressure.map(|text| text.and_then(total)),
            run_delay: sources.schedstat.and_then(delay),
            contentions: None,
        }
    }

    /// What happened from `before` to `self`, in `length` seconds.
    #[must_use]
    pub fn since(&self, before: &Self, until_s: f64, length: f64) -> Second {
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / length;
        let counted =
            |now: Option<u64>, then: Option<u64>| now.zip(then).map(|(now, then)| rate(now, then));
        let ticks = std::array::from_fn(|i| self.ticks[i].saturating_sub(before.ticks[i]));
        // Microseconds a second, in percent. A stall that began earlier may be counted all at once.
        let pressure =
            |i: usize| Some((counted(self.pressure[i], before.pressure[i])? / 1e4).min(100.0));
        Second {
            until_s,
            runnable: self.runnable,
            blocked: self.blocked,
            read_kib: rate(self.read_kib, before.read_kib),
            written_kib: rate(self.written_kib, before.written_kib),
            interrupts: rate(self.interrupts, before.interrupts),
            switches: rate(self.switches, before.switches),
            faults: rate(self.faults, before.faults),
            shares: shares(ticks),
            cpu_pressure: pressure(0),
            io_pressure: pressure(1),
            memory_pressure: pressure(2),
            run_delay: counted(self.run_delay, before.run_delay).map(|ns| ns / 1e9),
            contentions: counted(self.contentions, before.contentions),
        }
    }
}

/// The counters of another machine at a moment: its `/proc/stat` and `/proc/vmstat`, or those lines of them that count.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Seconds since the first one.
    pub at_s: f64,
    /// `/proc/stat`.
    pub stat: &'a str,
    /// `/proc/vmstat`.
    pub vmstat: &'a str,
}

/// What that machine did from each reading to the next, and from the first to the last as one line.
#[must_use]
pub fn between(readings: &[Reading<'_>]) -> Option<(Second, Vec<Second>)> {
    let counters = |r: &Reading<'_>| {
        let (pressure, schedstat) = ([None; 3], None);
        Counters::of(&Sources { stat: r.stat, vmstat: r.vmstat, pressure, schedstat })
    };
    let since = |before: &Reading<'_>, now: &Reading<'_>| {
        let length = (now.at_s - before.at_s).max(1e-6);
        counters(now).since(&counters(before), now.at_s, length)
    };
    let whole = since(readings.first()?, readings.last()?);
    let seconds = readings.windows(2).map(|pair| since(&pair[0], &pair[1])).collect();
    Some((whole, seconds))
}

/// What the machine does during this time, in which the calling thread sleeps.
#[must_use]
pub fn watched(length: Duration) -> Second {
    let (before, began) = (Counters::now(None), Instant::now());
    std::thread::sleep(length);
    let took = began.elapsed().as_secs_f64().max(1e-6);
    Counters::now(None).since(&before, took, took)
}

/// What one run of a benchmark saw of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// The whole run as one line.
    pub whole: Second,
    /// Its seconds.
    pub seconds: Vec<Second>,
    /// The kernel's statistics of its locks during the run, where it has them.
    pub lock_stat: Option<String>,
}

/// A thread that reads the counters each second until it is stopped.
#[derive(Debug)]
pub(crate) struct Recorder {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Watched>,
}

impl Recorder {
    /// It has read its first counters then: what that costs is not a part of the run.
    pub(crate) fn start() -> Self {
        let (stop, asked) = mpsc::channel();
        let (ready, begun) = mpsc::channel();
        let thread = std::thread::spawn(move || record(&asked, &ready));
        // An error means that it failed; `stop` copes with that.
        let _ = begun.recv();
        Self { stop, thread }
    }

    pub(crate) fn stop(self) -> Watched {
        drop(self.stop);
        // It does not panic; without it, the run is worth as much.
        self.thread.join().unwrap_or_default()
    }
}

fn record(asked: &mpsc::Receiver<()>, ready: &mpsc::Sender<()>) -> Watched {
    let contention = Contention::watch();
    let contention = contention.as_ref();
    let lock_stat = LockStat::begin(Path::new("/"));
    let began = Instant::now();
    let first = Counters::now(contention);
    // Nobody but `start` listens, and it waits.
    let _ = ready.send(());
    let (mut before, mut at, mut seconds) = (first, Duration::ZERO, Vec::new());
    let s = |d: Duration| d.as_secs_f64();
    loop {
        let whole = u32::try_from(seconds.len() + 1).unwrap_or(u32::MAX);
        let next = SECOND.saturating_mul(whole).saturating_sub(began.elapsed());
        let over = asked.recv_timeout(next) == Err(RecvTimeoutError::Disconnected);
        let (now, until) = (Counters::now(contention), began.elapsed());
        let length = until.saturating_sub(at);
        if !over || length >= SHORTEST || seconds.is_empty() {
            seconds.push(now.since(&before, s(until), s(length).max(1e-6)));
        }
        (before, at) = (now, until);
        if over {
            let whole = now.since(&first, s(until), s(until).max(1e-6));
            let lock_stat = lock_stat.and_then(|l| l.text());
            return Watched { whole, seconds, lock_stat };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 10 50 800 30 5 5 0 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 1000 0 3\n\
                        ctxt 5000\nprocs_running 3\nprocs_blocked 1\n";

    #[test]
    fn a_second_is_the_difference_of_two_readings() {
        let before = Counters::of(&Sources {
            stat: STAT,
            vmstat: "pgpgin 10\npgpgout 20\npgfault 30\npgfault_x 1\n",
            pressure: [Some("some avg10=0.00 total=1000000\nfull avg10=0 total=7\n"), None, None],
            schedstat: Some(
                "version 17\ntimestamp 1\ncpu0 0 0 0 0 0 0 9 1000 4\ncpu1 0 0 0 0 0 0 9 500 4\n",
            ),
        });
        // 200 ticks later: 40 user, 20 nice, 30 system, 10 irq, 60 idle, 20 iowait, 20 stolen.
        let after = Counters::of(&Sources {
            stat: "cpu  140 30 80 860 50 15 5 20 0 0\nintr 3000 1\nctxt 9000\nprocs_running 5\nprocs_blocked 0\n",
            vmstat: "pgpgin 110\npgpgout 20\npgfault 1030\n",
            pressure: [Some("some avg10=0.00 total=1250000\n"), None, None],
            schedstat: Some(
                "version 17\ncpu0 0 0 0 0 0 0 9 1000001000 4\ncpu1 0 0 0 0 0 0 9 500 4\n",
            ),
        });
        let second = after.since(&before, 2.0, 2.0);
        let expected = Second {
            until_s: 2.0,
            runnable: 5,
            blocked: 0,
            read_kib: 50.0,
            written_kib: 0.0,
            interrupts: 1000.0,
            switches: 2000.0,
            faults: 500.0,
            shares: Some(Shares {
                user: 30.0,
                system: 20.0,
                idle: 30.0,
                iowait: 10.0,
                steal: 10.0,
            }),
            // 250 ms of 2 s.
            cpu_pressure: Some(12.5),
            io_pressure: None,
            memory_pressure: None,
            // 1 s of delay in 2 s.
            run_delay: Some(0.5),
            contentions: None,
        };
        assert_eq!(second, expected);
        let json = serde_json::to_string(&second).unwrap();
        assert!(json.contains("\"iowait\":10.0"), "{json}");
        assert_eq!(serde_json::from_str::<Second>(&json).unwrap(), second);
    }

    #[test]
    fn another_machine_is_told_from_its_files() {
        let reading = |at_s, stat| Reading { at_s, stat, vmstat: "" };
        let readings = [
            reading(0.0, "cpu 0 0 0 0 0 0 0 0\nctxt 100\n"),
            reading(1.0, "cpu 60 0 0 30 0 0 0 10\nctxt 300\n"),
            reading(3.0, "cpu 60 0 0 230 0 0 0 10\nctxt 500\n"),
        ];
        let (whole, seconds) = between(&readings).unwrap();
        let told = |s: &Second| (s.switches, s.shares.as_ref().unwrap().steal);
        assert_eq!(seconds.iter().map(told).collect::<Vec<_>>(), [(200.0, 10.0), (100.0, 0.0)]);
        // 10 of 300 ticks.
        assert!((told(&whole).1 - 100.0 / 30.0).abs() < 1e-9, "{whole:?}");
        assert!(between(&[]).is_none());
    }

    #[test]
    fn without_a_tick_nothing_is_known_of_the_shares() {
        let counters =
            Counters::of(&Sources { stat: STAT, vmstat: "", pressure: [None; 3], schedstat: None });
        let second = counters.since(&counters, 0.003, 0.003);
        assert_eq!(second.shares, None, "not 0 % of everything");
        let json = serde_json::to_string(&second).unwrap();
        assert!(!json.contains("idle"), "{json}");
        assert_eq!(serde_json::from_str::<Second>(&json).unwrap(), second);
    }

    #[test]
    fn a_run_of_a_second_and_a_half_has_two_lines() {
        let recorder = Recorder::start();
        std::thread::sleep(Duration::from_millis(1500));
        let watched = recorder.stop();
        let ends: Vec<f64> = watched.seconds.iter().map(|s| s.until_s).collect();
        // A busy machine may make it longer.
        assert!(ends.len() >= 2 && ends[0] >= 1.0 && ends[1] >= 1.5, "{ends:?}");
        for line in watched.seconds.iter().chain([&watched.whole]) {
            let Some(s) = line.shares else { panic!("no tick in {} s", line.until_s) };
            let sum = s.user + s.system + s.idle + s.iowait + s.steal;
            assert!((sum - 100.0).abs() < 1e-6, "{line:?}");
        }
    }
}
