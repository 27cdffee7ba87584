//! The results directory: the only thing that outlives the server. Its files have names that the server chooses.

use crate::problem::Problem;
use overspin_record::output::Output;
use overspin_runs::record::Record;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Most results of a directory: whoever wants more can start another one.
const MOST: usize = 1000;

/// A directory of records.
#[derive(Debug)]
pub(crate) struct Kept {
    dir: PathBuf,
    /// Held while a name is chosen and its file is written.
    writing: Mutex<()>,
}

impl Kept {
    /// This directory, which is made if it is not there.
    pub(crate) fn new(dir: &Path) -> Result<Self, Problem> {
        fs::create_dir_all(dir).map_err(|error| {
            Problem::new(
                format!("cannot make the folder `{}`: {error}", dir.display()),
                "name another one",
            )
        })?;
        Ok(Self { dir: dir.to_owned(), writing: Mutex::default() })
    }

    /// The records in it, by their names.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        // A link would lead elsewhere.
        let own = files.filter(|file| file.file_type().is_ok_and(|kind| kind.is_file()));
        let paths = own.map(|file| file.path());
        let mut records: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .take(MOST)
            .collect();
        records.sort();
        records
    }

    /// Keeps a record under a name that begins with these letters; returns the file.
    pub(crate) fn keep(&self, name: &str, record: &Record) -> Result<PathBuf, Problem> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.files().len() >= MOST {
            return Err(Problem::new(
                format!("`{}` has {MOST} results, and takes no more", self.dir.display()),
                "remove some, or start with another --out",
            ));
        }
        let free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
        let mut names = (1..=2 * MOST).map(|number| self.dir.join(format!("{name}-{number}.json")));
        let Some(path) = names.find(free) else {
            return Err(Problem::new(format!("too many files are called `{name}`"), "remove some"));
        };
        let failed =
            |error: overspin_record::output::OutputError| Problem::new(&error, error.remedy());
        let output = Output::create(&path).map_err(failed)?;
        output.finish_with(&record.to_json()).map_err(failed)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_runs::record::Kind;

    #[test]
    fn results_have_names_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::new(&dir.path().join("new")).unwrap();
        assert_eq!(kept.files(), Vec::<PathBuf>::new());
        let record = Record::new(Kind::Run, "r");
        let first = kept.keep("r", &record).unwrap();
        assert!(
            first.ends_with("new/r-1.json")
                && kept.keep("r", &record).unwrap().ends_with("r-2.json")
        );
        assert_eq!(fs::read_to_string(&first).unwrap(), record.to_json());
        // What lies there otherwise is neither overwritten nor offered.
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("new/r-3.json")).unwrap();
        fs::write(dir.path().join("new/other.txt"), "").unwrap();
        assert!(kept.keep("r", &record).unwrap().ends_with("r-4.json"));
        let names: Vec<_> =
            kept.files().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["r-1.json", "r-2.json", "r-4.json"]);
    }
}
