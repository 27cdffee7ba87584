//! Files that appear whole or not at all. A result is written to a temporary file beside its target and
//! renamed when it is complete. So a full disk or a killed run never leaves half a result under the target's
//! name. `-` is standard output. A target that exists and is not a regular file (a pipe, a device) is written
//! directly: renaming would replace it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Temporary files that are neither committed nor removed yet, for [`discard_all`].
static STAGED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn staged() -> MutexGuard<'static, Vec<PathBuf>> {
    // The list of names is consistent even after a panic.
    STAGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of all open outputs, for a process that is about to be ended by a signal.
/// After it, no output can be created or committed.
pub fn discard_all() {
    let staged = staged();
    for temporary in staged.iter() {
        // The file was just committed, or is gone: nobody remains to be told.
        let _ = fs::remove_file(temporary);
    }
    // The lock stays held: a file created later would be left behind.
    std::mem::forget(staged);
}

/// Why an output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{path}`: {cause}")]
pub struct OutputError {
    /// What was tried.
    pub action: &'static str,
    /// The target as the user named it.
    pub path: String,
    /// The error of the system.
    #[source]
    pub cause: io::Error,
}

impl OutputError {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self.cause.kind() {
            io::ErrorKind::NotFound => "create the directory first, or name another file",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "choose a place that you may write to"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space, or name a file on another disk"
            }
            io::ErrorKind::IsADirectory => "name a file, not a directory",
            _ => "name another file, or `-` for standard output",
        }
    }

    /// The reader of standard output went away, as `head` does. This is not worth a message.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        self.cause.kind() == io::ErrorKind::BrokenPipe
    }
}

#[derive(Debug)]
enum Target {
    Stdout(io::Stdout),
    Direct(File),
    Staged { file: File, temporary: PathBuf, target: PathBuf },
}

/// A destination for bytes. Nothing is visible under the target's name before [`Output::commit`]. Dropping it
/// without a commit removes what was written.
#[derive(Debug)]
pub struct Output {
    name: String,
    target: Option<BufWriter<Target>>,
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Direct(file) | Self::Staged { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Direct(file) | Self::Staged { file, .. } => file.flush(),
        }
    }
}

impl Output {
    /// Opens `path`, or standard output for `-`. Call it before the work that makes the result: a misspelt
    /// directory should not cost an hour of simulation.
    ///
    /// # Errors
    /// If the target cannot be created.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let name = path.display().to_string();
        let error = |cause| OutputError { action: "write to", path: name.clone(), cause };
        let target = if path == Path::new("-") {
            Target::Stdout(io::stdout())
        } else {
            // A link stays a link: its target is replaced.
            let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            match fs::metadata(&target) {
                Ok(m) if m.is_dir() => return Err(error(io::ErrorKind::IsADirectory.into())),
                Ok(m) if !m.is_file() => {
                    Target::Direct(OpenOptions::new().write(true).open(&target).map_err(error)?)
                }
                Ok(m) if m.permissions().readonly() => {
                    return Err(error(io::ErrorKind::PermissionDenied.into()));
                }
                _ => stage(target).map_err(error)?,
            }
        };
        Ok(Self { name, target: Some(BufWriter::with_capacity(1 << 16, target)) })
    }

    /// Whether this is standard output.
    #[must_use]
    pub fn is_stdout(&self) -> bool {
        self.target.as_ref().is_some_and(|t| matches!(t.get_ref(), Target::Stdout(_)))
    }

    /// Makes everything written visible under the target's name.
    ///
    /// # Errors
    /// If the last bytes cannot be written or the file cannot be renamed; then nothing is left behind.
    pub fn commit(mut self) -> Result<(), OutputError> {
        let Some(mut writer) = self.target.take() else { return Ok(()) };
        let result = writer.flush().and_then(|()| match writer.get_ref() {
            Target::Staged { file, temporary, target } => {
                // Some file systems report a full disk only here.
                file.sync_all()?;
                let mut staged = staged();
                fs::rename(temporary, target)?;
                staged.retain(|name| name != temporary);
                Ok(())
            }
            _ => Ok(()),
        });
        result.map_err(|cause| {
            discard(writer);
            self.error(cause)
        })
    }

    /// An error about this output.
    #[must_use]
    pub fn error(&self, cause: io::Error) -> OutputError {
        OutputError { action: "write to", path: self.name.clone(), cause }
    }

    /// Writes all of `text` and commits.
    ///
    /// # Errors
    /// As [`Output::commit`].
    pub fn finish_with(mut self, text: &str) -> Result<(), OutputError> {
        self.write_all(text.as_bytes()).map_err(|cause| self.error(cause))?;
        self.commit()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Some(target) => target.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(writer) = self.target.take() {
            discard(writer);
        }
    }
}

fn stage(target: PathBuf) -> io::Result<Target> {
    let name =
        target.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_string_lossy().into_owned();
    // The process id distinguishes two commands, the counter two outputs of one command.
    let mut staged = staged();
    for attempt in 0..100 {
        let temporary =
            target.with_file_name(format!(".{name}.{}-{attempt}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => {
                staged.push(temporary.clone());
                return Ok(Target::Staged { file, temporary, target });
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Discards the buffered and staged bytes.
fn discard(writer: BufWriter<Target>) {
    // `into_parts`, not drop: dropping a `BufWriter` would try to write the rest.
    let (target, _) = writer.into_parts();
    if let Target::Staged { temporary, .. } = target {
        // Errors are ignored: a leftover file is harmless, because its name is unique.
        let mut staged = staged();
        let _ = fs::remove_file(&temporary);
        staged.retain(|name| *name != temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn appears_only_on_commit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        fs::write(&path, "old").unwrap();
        let mut out = Output::create(&path).unwrap();
        out.write_all(b"new").unwrap();
        out.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        out.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(dir.path()), ["a.json"]);
    }

    #[test]
    fn nothing_is_left_without_a_commit() {
        let dir = tempfile::tempdir().unwrap();
        let mut out = Output::create(&dir.path().join("a.json")).unwrap();
        out.write_all(b"half").unwrap();
        drop(out);
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn a_missing_directory_is_reported_before_any_work() {
        let dir = tempfile::tempdir().unwrap();
        let error = Output::create(&dir.path().join("no/such/a.json")).unwrap_err();
        assert_eq!(error.cause.kind(), io::ErrorKind::NotFound);
        assert!(error.remedy().contains("directory"));
        assert_eq!(
            Output::create(dir.path()).unwrap_err().cause.kind(),
            io::ErrorKind::IsADirectory
        );
    }

    #[test]
    fn what_is_open_is_known_until_it_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let known = || staged().iter().filter(|name| name.starts_with(dir.path())).count();
        let kept = Output::create(&dir.path().join("a.json")).unwrap();
        let dropped = Output::create(&dir.path().join("b.json")).unwrap();
        assert_eq!(known(), 2);
        kept.commit().unwrap();
        drop(dropped);
        assert_eq!((known(), names(dir.path())), (0, vec!["a.json".to_owned()]));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_device_is_a_clean_error() {
        let mut out = Output::create(Path::new("/dev/full")).unwrap();
        out.write_all(b"fits the buffer").unwrap();
        let error = out.commit().unwrap_err();
        assert_eq!(error.cause.kind(), io::ErrorKind::StorageFull);
        assert!(Path::new("/dev/full").exists());
    }
}
