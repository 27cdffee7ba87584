//! A recording of `overspin exec --record`.

use overspin_histogram::bucket;
use overspin_located::LocatedError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The format that this program reads.
const SCHEMA: &str = "overspin-recording/1";

/// Fewer have no 99th percentile.
pub(super) const FEW_ACQUISITIONS: u64 = 100;
/// What a file holds while there is no recording yet.
const BEGUN: &str = "overspin-recording-begun/1";

/// A recording. Times are in nanoseconds.
#[derive(Clone, Debug, Deserialize)]
pub struct Recording {
    schema: String,
    /// The lock in place of the program's mutexes.
    pub lock: String,
    /// The name by which the program was called.
    pub program: String,
    /// The build IDs of the files that places name.
    #[serde(default)]
    pub build_ids: BTreeMap<String, String>,
    /// CPUs that it could use.
    pub cpus: u32,
    /// From its begin to its end.
    pub elapsed_ns: u64,
    /// CPU time of all its threads.
    pub cpu_ns: u64,
    /// Time of one reading of the clock, which every recorded time contains.
    pub clock_ns: u64,
    /// The mutexes that it locked, the most often locked one first.
    pub mutexes: Vec<Mutex>,
}

/// What happened at a mutex.
#[derive(Clone, Debug, Deserialize)]
pub struct Mutex {
    /// Its address; 0 for several mutexes that have ended.
    pub address: String,
    /// Number of mutexes.
    pub mutexes: u64,
    /// The place that locked it first.
    pub first_locked_at: String,
    /// Threads that locked it.
    pub threads: u32,
    /// Acquisitions.
    pub acquisitions: u64,
    /// Acquisitions that found it locked.
    pub contended: u64,
    /// First acquisition.
    pub from_ns: u64,
    /// Last acquisition.
    pub to_ns: u64,
    /// Times from acquisition to release.
    pub section: Histogram,
    /// Times from request to acquisition.
    pub wait: Histogram,
    /// Times from a thread's release to its next request.
    pub outside: Histogram,
    /// Some sections, with the thread's own account of them. The first recordings have none.
    #[serde(default)]
    pub section_looks: Looks,
    /// The same of times outside.
    #[serde(default)]
    pub outside_looks: Looks,
}

/// Durations of which the thread's own account is known, by powers of two: the least duration, how many, their sum, the CPU
/// time in them, in how many the thread slept, and how long those were less their CPU time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Looks(pub Vec<[u64; 6]>);

/// What threads did in the durations of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    /// Mean CPU time of a duration, in nanoseconds.
    pub cpu: f64,
    /// In so many of all durations the thread slept.
    pub sleeps: f64,
    /// Mean time asleep in one of these, in nanoseconds.
    pub asleep: f64,
}

impl Account {
    /// The account of all durations of `all`; `None` if `looks` says nothing.
    #[must_use]
    pub fn of(all: &Histogram, looks: &Looks) -> Option<Self> {
        let power = |ns: u64| ns.checked_ilog2().unwrap_or(0);
        let (mut cpu, mut sleeps, mut asleep, mut counted) = (0.0, 0.0, 0.0, 0.0);
        let usual = all.count() * 99 / 100;
        let mut seen = 0;
        for (_, n, sum) in &all.buckets {
            let mine = power(sum / (*n).max(1));
            let distance = |look: &&[u64; 6]| power(look[0]).abs_diff(mine);
            let look =
                looks.0.iter().filter(|look| look[1] > 0 && look[2] > 0).min_by_key(distance)?;
            seen += n;
            // Of the longest times, most of which a thread spends without a CPU, only what was looked at counts.
            if seen > usual && distance(&look) > 1 {
                continue;
            }
            let [_, looked, wall, on_cpu, slept, off] = look.map(|word| word as f64);
            cpu += *sum as f64 * on_cpu / wall;
            sleeps += *n as f64 * slept / looked;
            asleep += *sum as f64 * off / wall;
            counted += *n as f64;
        }
        (counted > 0.0).then(|| Self {
            cpu: cpu / counted,
            sleeps: sleeps / counted,
            asleep: if sleeps > 0.0 { asleep / sleeps } else { 0.0 },
        })
    }

    /// Mean time asleep of all durations.
    #[must_use]
    pub fn mean_asleep(&self) -> f64 {
        self.sleeps * self.asleep
    }
}

/// Durations in buckets, in ascending order. A bucket is its least duration, how many there are, and their sum. Its width
/// is not stated: the first recordings have four buckets for each power of two, later ones 128.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "Vec<(u64, u64, u64)>")]
pub struct Histogram {
    /// The buckets that are not empty.
    buckets: Vec<(u64, u64, u64)>,
}

/// More durations than any recording has, and few enough to count in percent.
const MOST_DURATIONS: u64 = 1 << 56;

impl TryFrom<Vec<(u64, u64, u64)>> for Histogram {
    type Error = &'static str;

    fn try_from(buckets: Vec<(u64, u64, u64)>) -> Result<Self, Self::Error> {
        let all = |of: fn(&(u64, u64, u64)) -> u64| {
            buckets.iter().try_fold(0_u64, |sum, bucket| sum.checked_add(of(bucket)))
        };
        let fits = all(|b| b.1).is_some_and(|n| n <= MOST_DURATIONS) && all(|b| b.2).is_some();
        if fits {
            Ok(Self { buckets })
        } else {
            Err("a histogram whose durations are too many or too long")
        }
    }
}

impl Recording {
    /// The number of the mutex that threads waited for longest; if they never waited, of the one that was held longest. A
    /// mutex that was locked a few times, as at the start, is taken only if there is no other: nothing follows from it.
    #[must_use]
    pub fn hottest(&self) -> usize {
        // A mutex that is held over sleeps, and that no other thread wants, is nobody's problem.
        let time = |m: &Mutex| (m.acquisitions >= FEW_ACQUISITIONS, m.wait.sum(), m.section.sum());
        let hottest = self.mutexes.iter().enumerate().max_by_key(|(_, m)| time(m));
        hottest.map_or(0, |(i, _)| i)
    }
}

impl Histogram {
    /// Number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, n, _)| n).sum()
    }

    /// Their sum.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.buckets.iter().map(|(.., sum)| sum).sum()
    }

    /// Their mean; 0 without any.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum() as f64 / self.count().max(1) as f64
    }

    /// The part of the durations that is longer than this.
    #[must_use]
    pub fn share_above(&self, ns: f64) -> f64 {
        let longer = self.buckets.iter().filter(|(_, n, sum)| *sum as f64 > ns * *n as f64);
        longer.map(|(_, n, _)| n).sum::<u64>() as f64 / self.count().max(1) as f64
    }

    /// The duration that all but one in `one_in` do not exceed; 0 without any. All durations of a bucket count as their mean.
    #[must_use]
    pub fn of_all_but(&self, one_in: u64) -> u64 {
        let mut all = overspin_histogram::Histogram::default();
        all.add(self.buckets.iter().map(|(_, n, sum)| (bucket(sum / (*n).max(1)), *n)));
        all.of_all_but(one_in, all.count())
    }

    /// The mean of the shortest 99 %. The longest ones are mostly times in which the thread had no CPU.
    #[must_use]
    pub fn usual(&self) -> f64 {
        let most = self.count() * 99 / 100;
        let (mut seen, mut total) = (0, 0.0);
        for (_, n, sum) in &self.buckets {
            let taken = (*n).min(most - seen);
            total += *sum as f64 * taken as f64 / (*n).max(1) as f64;
            seen += taken;
        }
        if seen == 0 { self.mean() } else { total / seen as f64 }
    }
}

/// The note in the file of a recording that has only begun.
#[derive(Debug, Deserialize)]
struct Begun {
    schema: String,
    state: String,
    process: u32,
    program: String,
    #[serde(default)]
    obstacle: Option<String>,
}

impl Begun {
    /// Why there is no recording, and what to do.
    fn reason(&self) -> (String, &'static str) {
        let Self { process, program, .. } = self;
        if let Some(what) = &self.obstacle {
            let message =
                format!("`{program}` was not recorded: it {what}, and the library was not loaded");
            return (
                message,
                "record another build of the program: docs/preload.md says which can be recorded",
            );
        }
        // The command line of a process that has ended is not there.
        if Path::new(&format!("/proc/{process}/exe")).exists() {
            let message = format!(
                "process {process}, `{program}`, still runs, and writes its recording at its end"
            );
            return (message, "end it, for a server with SIGTERM, and try again");
        }
        if self.state == "runs" {
            let message = format!(
                "`{program}` ended without a recording: by a signal that it does not handle, by becoming a program \
                 without the library, or by a system call of its own, as Go programs do"
            );
            let help = "let it end by `exit` or by returning from `main`; most servers do on SIGTERM or a command";
            return (message, help);
        }
        let message =
            format!("`{program}` ended before the library was loaded, or without LD_PRELOAD");
        (
            message,
            "run the program itself with `overspin exec`, not through one that cleans its environment",
        )
    }
}

/// The recordings of other processes of the same run, which lie beside `path`: what `overspin fit` could take instead.
#[must_use]
pub fn others(path: &Path) -> Vec<String> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = folder.unwrap_or(Path::new(".")).read_dir() else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_other = |other: &String| {
        let number = other.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let mut all: Vec<String> = names.filter(is_other).collect();
    all.sort();
    all
}

/// Reads the text of a recording, which messages call `path`. `others` are names of recordings beside it.
///
/// # Errors
/// If it is none.
pub fn read(path: &str, text: &str, others: &[String]) -> Result<Recording, LocatedError> {
    let instead = match others {
        [] => String::new(),
        [first] => format!("; or take {first}, which another process of the run recorded"),
        [first, ..] => {
            format!("; or take one of {}, as {first}, of other processes of the run", others.len())
        }
    };
    let error = |span: std::ops::Range<usize>, message: String, help: &str| {
        Err(LocatedError::at(path, text, span, "", message, format!("{help}{instead}")))
    };
    let help = "give the file that `overspin exec --record FILE` wrote when its program ended";
    if text.trim().is_empty() {
        let message = "the file is empty: no program was recorded into it, or its disk was full";
        return error(0..0, message.into(), help);
    }
    if let Ok(begun) = serde_json::from_str::<Begun>(text)
        && begun.schema == BEGUN
    {
        let (message, help) = begun.reason();
        return error(0..1, message, help);
    }
    let recording: Recording = match serde_json::from_str(text) {
        Ok(recording) => recording,
        Err(e) if e.is_eof() && text.contains(SCHEMA) => {
            let message = "the recording is cut off: its process was ended while it wrote, or its disk was full";
            return error(text.len() - 1..text.len(), message.into(), "record the program again");
        }
        Err(e) => {
            let line: usize =
                text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum();
            let at = line + e.column().saturating_sub(1);
            return error(at..at + 1, format!("this is no recording: {e}"), help);
        }
    };
    if recording.schema != SCHEMA {
        let message =
            format!("the schema is `{}`, and this program reads `{SCHEMA}`", recording.schema);
        return error(0..1, message, help);
    }
    if recording.mutexes.is_empty() {
        let message = format!(
            "`{}` locked no mutex through the library, so there is nothing to fit",
            recording.program
        );
        let help = "record a program whose threads share pthread mutexes: `overspin exec --stats` shows them";
        return error(0..1, message, help);
    }
    Ok(recording)
}
