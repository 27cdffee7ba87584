//! A recording of `overspin exec --record`.

use overspin_histogram::bucket;
use overspin_located::LocatedError;
use serde::Deserialize;

/// The format that this program reads.
const SCHEMA: &str = "overspin-recording/1";

/// A recording. Times are in nanoseconds.
#[derive(Clone, Debug, Deserialize)]
pub struct Recording {
    schema: String,
    /// The lock in place of the program's mutexes.
    pub lock: String,
    /// The program's name.
    pub program: String,
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
}

/// Durations in buckets, in ascending order. A bucket is its least duration, how many there are, and their sum. Its width
/// is not stated: the first recordings have four buckets for each power of two, later ones 128.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Histogram {
    /// The buckets that are not empty.
    pub buckets: Vec<(u64, u64, u64)>,
}

impl Recording {
    /// The number of the mutex whose sections and waits took most time.
    #[must_use]
    pub fn hottest(&self) -> usize {
        let time = |m: &Mutex| m.section.sum().saturating_add(m.wait.sum());
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

/// Reads the text of a recording, which messages call `path`.
///
/// # Errors
/// If it is none.
pub fn read(path: &str, text: &str) -> Result<Recording, LocatedError> {
    let help = "give the file that `overspin exec --record FILE` wrote when its program ended";
    let error = |span: std::ops::Range<usize>, message: String| {
        Err(LocatedError::at(path, text, span, "", message, help))
    };
    if text.trim().is_empty() {
        let message =
            "the recording is empty: the program did not end by `exit` or by returning from `main`";
        return error(0..0, message.into());
    }
    let recording: Recording = match serde_json::from_str(text) {
        Ok(recording) => recording,
        Err(e) => {
            let line: usize =
                text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum();
            let at = line + e.column().saturating_sub(1);
            return error(at..at + 1, format!("this is no recording: {e}"));
        }
    };
    if recording.schema != SCHEMA {
        let message =
            format!("the schema is `{}`, and this program reads `{SCHEMA}`", recording.schema);
        return error(0..1, message);
    }
    if recording.mutexes.is_empty() {
        let message = "no mutex was locked through the library, so there is nothing to fit";
        return error(0..1, message.into());
    }
    Ok(recording)
}
