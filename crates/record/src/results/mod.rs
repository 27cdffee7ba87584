//! A result as a directory, written as runs end.
//!
//! | file | what it holds |
//! |---|---|
//! | `manifest.json` | what was asked for: the head of the record, without runs and samples; how and where it is made; whether it is finished |
//! | `runs.jsonl` | every finished run with its figures, a line each, appended as the run ends |
//! | `samples.parquet` | all samples in long form, when all runs have ended |
//!
//! A command that is killed loses the runs under way. The same command finds the others in `runs.jsonl` and goes
//! on. The manifest is there before the first run, so that a directory of another scenario or version is
//! refused at once. While a command writes, it holds a lock on `runs.jsonl`.

mod error;
mod journal;
mod manifest;
mod merge;
mod outcomes;
mod parquet;

pub use error::ResultsError;
pub use journal::{Finished, Kept};
pub use manifest::{MANIFEST, Manifest, Plan};
pub use merge::{Merged, merge};
pub use outcomes::Outcomes;

use crate::Record;
use crate::output::Output;
use error::io_error;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file of finished runs.
pub const JOURNAL: &str = "runs.jsonl";
/// The file of samples.
pub const SAMPLES: &str = "samples.parquet";

/// Identifies a run: its point, if it is of a sweep, and its seed.
type Key = (Option<u32>, u64);

/// An open results directory.
#[derive(Debug)]
pub struct Results {
    dir: PathBuf,
    manifest: Manifest,
    kept: HashMap<Key, Finished>,
    /// Locked as long as it is open.
    journal: Mutex<File>,
}

impl Results {
    /// Opens the directory for what `manifest` describes, and makes it if it is not there. Finds the runs that
    /// an earlier command kept.
    ///
    /// # Errors
    /// If the directory holds something else, is being written by another command, or cannot be written.
    pub fn open(dir: &Path, manifest: Manifest) -> Result<Self, ResultsError> {
        let found = prepare(dir)?;
        let journal = lock(dir)?;
        let kept = match found {
            Some(found) => {
                manifest.continues(&found, dir)?;
                journal::read(&dir.join(JOURNAL), &journal)?
            }
            None => Vec::new(),
        };
        let kept = kept.into_iter().filter_map(|f| Some(((f.run.point, f.run.seed?), f)));
        let this = Self {
            dir: dir.to_owned(),
            kept: kept.collect(),
            manifest: Manifest { finished: false, ..manifest },
            journal: Mutex::new(journal),
        };
        this.manifest.write(dir)?;
        Ok(this)
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The number of runs that were found.
    #[must_use]
    pub fn found(&self) -> usize {
        self.kept.len()
    }

    /// The run of this point with this seed, if an earlier command finished it.
    #[must_use]
    pub fn kept(&self, point: Option<u32>, seed: u64) -> Option<Finished> {
        self.kept.get(&(point, seed)).cloned()
    }

    /// Keeps a run that has ended. A run that was stopped from outside is not kept: it will be made again.
    /// Afterwards a killed process does not lose it; a machine that loses power may.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, finished: &Finished) -> Result<(), ResultsError> {
        if finished.was_stopped() {
            return Ok(());
        }
        let line = finished.line();
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        // One call for the whole line: two threads do not mix theirs, and a kill leaves at most its beginning.
        journal.write_all(line.as_bytes()).map_err(io_error("write to", &self.dir.join(JOURNAL)))
    }

    /// Writes the whole result. If a run was stopped or belongs to another shard, the directory stays
    /// unfinished, and the same command goes on with it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self, record: &Record, complete: bool) -> Result<(), ResultsError> {
        finish(&self.dir, &Manifest::of(record, self.manifest.plan.clone()), record, complete)
    }
}

/// Makes the directory, and reads its manifest.
fn prepare(dir: &Path) -> Result<Option<Manifest>, ResultsError> {
    fs::create_dir_all(dir).map_err(io_error("create", dir))?;
    let found = Manifest::read(dir)?;
    if found.is_none() {
        refuse_other_files(dir)?;
    }
    Ok(found)
}

/// Opens the file of finished runs, and locks it against other commands.
fn lock(dir: &Path) -> Result<File, ResultsError> {
    let path = dir.join(JOURNAL);
    let journal = OpenOptions::new().create(true).append(true).read(true).open(&path);
    let journal = journal.map_err(io_error("write to", &path))?;
    journal.try_lock().map_err(|e| match e {
        TryLockError::WouldBlock => ResultsError::InUse { dir: dir.display().to_string() },
        TryLockError::Error(cause) => io_error("lock", &path)(cause),
    })?;
    discard_temporaries(dir);
    Ok(journal)
}

fn finish(
    dir: &Path,
    manifest: &Manifest,
    record: &Record,
    complete: bool,
) -> Result<(), ResultsError> {
    if complete {
        // The file gets the final numbers of the runs, and its lines their order.
        let mut journal = Output::create(&dir.join(JOURNAL))?;
        for finished in journal::of_record(record) {
            // The manifest has the seconds of all runs.
            let finished = Finished { seconds: None, ..finished };
            journal.write_all(finished.line().as_bytes()).map_err(|cause| journal.error(cause))?;
        }
        journal.commit()?;
    }
    parquet::write(&dir.join(SAMPLES), record)?;
    Manifest { finished: complete, ..manifest.clone() }.write(dir)
}

/// A directory for the result of a command that measures as a whole, taken before the command measures.
#[derive(Debug)]
pub struct Claim {
    dir: PathBuf,
    /// Locked as long as it is open.
    journal: File,
    outcomes: Outcomes,
    /// What an earlier command kept that did not come to its end.
    earlier: Option<Record>,
    /// Whether the journal has runs of this result.
    begun: bool,
}

impl Claim {
    /// Takes the directory for this command; makes it if it is not there.
    ///
    /// # Errors
    /// If it holds the result of another command or version, is being written by another command, or cannot
    /// be written.
    pub fn new(dir: &Path, command: &str) -> Result<Self, ResultsError> {
        let found = prepare(dir)?;
        let journal = lock(dir)?;
        let mut earlier = None;
        if let Some(found) = found {
            found.is_of(command, dir)?;
            if !found.finished {
                // This cuts off the beginning of a line that a killed command left.
                journal::read(&dir.join(JOURNAL), &journal)?;
                earlier = Some(read(dir)?);
            }
        }
        let (begun, outcomes) = (earlier.is_some(), Outcomes::open(dir)?);
        Ok(Self { dir: dir.to_owned(), journal, outcomes, earlier, begun })
    }

    /// Takes what an earlier command kept that did not come to its end, if there is such.
    pub fn take_earlier(&mut self) -> Option<Record> {
        self.earlier.take()
    }

    /// Keeps runs that have ended: a record of them alone. The first ones take the place of a result that was finished;
    /// for them, `made` adds how the record is made.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn keep(
        &mut self,
        mut ended: Record,
        made: impl FnOnce(Record) -> Record,
    ) -> Result<(), ResultsError> {
        let path = self.dir.join(JOURNAL);
        let error = io_error("write to", &path);
        if !self.begun {
            // The old runs go first: the new manifest must never have them.
            self.journal.set_len(0).map_err(&error)?;
            ended = made(ended);
            let mut manifest = Manifest::of(&ended, Plan::default());
            if let Some(real) = &mut manifest.record.real {
                // Each run has its own.
                real.seconds.clear();
            }
            manifest.write(&self.dir)?;
            self.begun = true;
        }
        for finished in journal::of_record(&ended) {
            self.journal.write_all(finished.line().as_bytes()).map_err(&error)?;
        }
        Ok(())
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Single runs that the command has made so far.
    #[must_use]
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Writes the result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self, record: &Record) -> Result<(), ResultsError> {
        self.finish_part(record, true)
    }

    /// Writes the result. If it is not complete, the same command goes on with the runs that were kept.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish_part(self, record: &Record, complete: bool) -> Result<(), ResultsError> {
        finish(&self.dir, &Manifest::of(record, Plan::default()), record, complete)?;
        self.outcomes.remove();
        Ok(())
    }
}

/// Reads a results directory as a record, finished or not.
///
/// # Errors
/// If it is none, or a file of it is broken.
pub fn read(dir: &Path) -> Result<Record, ResultsError> {
    let manifest = Manifest::read(dir)?
        .ok_or_else(|| ResultsError::NoResults { dir: dir.display().to_string() })?;
    let runs = runs(dir, &manifest)?;
    let mut record = *manifest.record;
    if let Some(real) = record.real.as_mut().filter(|_| !manifest.finished) {
        real.seconds = runs.iter().filter_map(|f| f.seconds.clone()).collect();
    }
    for finished in runs {
        record.samples.extend(finished.samples());
        record.runs.push(finished.run);
    }
    Ok(record)
}

/// The runs that have ended, with their numbers and places.
fn runs(dir: &Path, manifest: &Manifest) -> Result<Vec<Finished>, ResultsError> {
    let path = dir.join(JOURNAL);
    let journal = File::open(&path).map_err(io_error("read", &path))?;
    let mut runs = journal::read(&path, &journal)?;
    if !manifest.finished {
        // Lines are in the order in which runs ended.
        runs.sort_by_key(|f| (f.run.point, f.run.seed));
        for (number, finished) in runs.iter_mut().enumerate() {
            finished.run.number = u32::try_from(number).unwrap_or(u32::MAX);
            let points = &manifest.record.points;
            if let Some(point) = finished.run.point {
                finished.run.place =
                    points.get(point as usize).map_or_else(String::new, |p| p.at.join("."));
            }
        }
    }
    Ok(runs)
}

/// A directory without a manifest must be empty, except for what a killed command may have left.
fn refuse_other_files(dir: &Path) -> Result<(), ResultsError> {
    for entry in fs::read_dir(dir).map_err(io_error("read", dir))? {
        let entry = entry.map_err(io_error("read", dir))?;
        let name = entry.file_name();
        let empty = || entry.metadata().is_ok_and(|m| m.len() == 0);
        let ours = name == outcomes::OUTCOMES || name == JOURNAL && empty();
        if !ours && !is_temporary(&name.to_string_lossy()) {
            return Err(ResultsError::NotEmpty {
                dir: dir.display().to_string(),
                file: name.to_string_lossy().into_owned(),
            });
        }
    }
    Ok(())
}

/// Whether a file is one of ours that never became complete; see [`Output`].
fn is_temporary(name: &str) -> bool {
    let inner = name.strip_prefix('.').and_then(|n| n.strip_suffix(".tmp"));
    inner.is_some_and(|n| {
        [MANIFEST, JOURNAL, SAMPLES, "report.html", "trace.pftrace"]
            .iter()
            .any(|file| n.starts_with(file))
    })
}

/// Removes what killed commands left; the lock says that none of them is at work.
fn discard_temporaries(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if is_temporary(&entry.file_name().to_string_lossy()) {
            // A file that cannot be removed is harmless: its name is unique.
            let _ = fs::remove_file(entry.path());
        }
    }
}
