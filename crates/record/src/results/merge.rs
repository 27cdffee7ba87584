//! Parts of a sweep that several machines made, as one directory.

use super::error::ResultsError;
use super::journal::Finished;
use super::{Key, Manifest, Results};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Directories that have been merged; the runs that are in none of them have yet to be made.
#[derive(Debug)]
pub struct Merged {
    /// The directory with the runs of all.
    pub results: Results,
    /// What they are the result of.
    pub manifest: Manifest,
}

/// Merges the runs of `dirs` into `out`. Two directories may have the same run, if it is equal.
///
/// # Errors
/// If a directory cannot be read, if they are results of different things, or if `out` cannot be written.
pub fn merge(dirs: &[PathBuf], out: &Path) -> Result<Merged, ResultsError> {
    let mut first: Option<(&Path, Manifest)> = None;
    let mut runs: HashMap<Key, Finished> = HashMap::new();
    for dir in dirs {
        let no_results = || ResultsError::NoResults { dir: dir.display().to_string() };
        let manifest = Manifest::read(dir)?.ok_or_else(no_results)?;
        let part = |first: &Path, difference| ResultsError::NoPart {
            dir: dir.display().to_string(),
            first: first.display().to_string(),
            difference,
        };
        let (first_dir, whole) = first.get_or_insert_with(|| (dir, manifest.clone()));
        if let Some(difference) = manifest.difference(whole) {
            return Err(part(first_dir, difference));
        }
        whole.plan.seeds = whole.plan.seeds.max(manifest.plan.seeds);
        if whole.plan.list.len() < manifest.plan.list.len() {
            whole.plan.list.clone_from(&manifest.plan.list);
        }
        for finished in super::runs(dir, &manifest)? {
            let run = &finished.run;
            let Some(seed) = run.seed else { continue };
            let key = (run.point, seed);
            if let Some(other) = runs.get(&key) {
                if other.run.trace_hash != run.trace_hash {
                    let place = if run.place.is_empty() { "a run" } else { &run.place };
                    let what = format!("{place} with seed {seed} differs between them");
                    return Err(part(first_dir, what));
                }
            } else {
                runs.insert(key, finished);
            }
        }
    }
    let Some((_, manifest)) = first else {
        return Err(ResultsError::NoResults { dir: String::new() });
    };
    let mut results = Results::open(out, manifest.clone())?;
    let mut keys: Vec<Key> = runs.keys().copied().collect();
    keys.sort_unstable();
    for key in keys {
        if let Some(finished) = runs.remove(&key) {
            results.keep(&finished)?;
            results.kept.insert(key, finished);
        }
    }
    Ok(Merged { results, manifest })
}
