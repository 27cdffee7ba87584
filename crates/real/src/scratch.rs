//! A folder and child processes that never outlive us.
//!
//! A guardian, a shell in a process group of its own, reads what we start from a pipe. When the pipe ends, it ends
//! the processes and removes the folder. The pipe ends when a [`Scratch`] is dropped, and also when this process is
//! killed, because the kernel then closes it. So there is one way to clean up, which every run takes.

use crate::Failed;
use std::fmt::Write as _;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// What the guardian does. Its argument is the folder. It gives programs 10 s to end by themselves after SIGINT, which
/// is how a database is asked to stop at once but in order.
const GUARDIAN: &str = r#"
groups=
while read -r word group; do
    case $word in
    began) groups="$groups $group" ;;
    ended) rest=
        for g in $groups; do [ "$g" = "$group" ] || rest="$rest $g"; done
        groups=$rest ;;
    esac
done
for g in $groups; do kill -s INT -- "-$g"; done 2>/dev/null
tries=100
for g in $groups; do
    while [ $tries -gt 0 ] && kill -s 0 -- "-$g" 2>/dev/null; do sleep 0.1; tries=$((tries - 1)); done
    kill -s KILL -- "-$g" 2>/dev/null
done
rm -rf -- "$1"
"#;

/// Makes the folder `path`, with its guardian.
///
/// The guardian comes first: if this process is killed at any moment from here on, there is somebody to remove the
/// folder.
fn guarded(path: &Path) -> io::Result<Child> {
    let guardian = Command::new("/bin/sh")
        .args(["-c", GUARDIAN, "overspin-guardian"])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C reaches the processes of the terminal's group; the guardian must live on.
        .process_group(0)
        .spawn();
    let mut guardian = guardian.map_err(|e| {
        io::Error::other(Failed::needs(format!("cannot run /bin/sh: {e}"), "install a shell"))
    })?;
    // Others may look into it: a database may have to run as another user.
    if let Err(error) = DirBuilder::new().mode(0o755).create(path) {
        // What stands there already belongs to somebody else, so the guardian must not get to see its pipe end.
        let _ = guardian.kill();
        let _ = guardian.wait();
        return Err(error);
    }
    Ok(guardian)
}

/// The folder, and whatever was started for it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    guardian: Child,
    told: Mutex<Option<ChildStdin>>,
}

impl Scratch {
    /// A new folder in `parent`, or where temporary files belong.
    ///
    /// # Errors
    /// If it cannot be made, or there is no shell.
    pub fn new(parent: Option<&Path>) -> Result<Self, Failed> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        let parent = std::path::absolute(&parent).unwrap_or(parent);
        let made = tempfile::Builder::new().prefix("overspin-").make_in(&parent, guarded).map_err(
            |e| match e.downcast::<Failed>() {
                Ok(failed) => failed,
                Err(e) => Failed::io("make a folder in", &parent, &e),
            },
        )?;
        let (mut guardian, path) =
            made.keep().map_err(|e| Failed::io("keep", &parent, &e.error))?;
        let told = Mutex::new(guardian.stdin.take());
        Ok(Self { path, guardian, told })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// This process group shall end with us.
    pub(crate) fn began(&self, group: u32) {
        self.tell("began", group);
    }

    /// This process group has ended; its number may soon belong to others.
    pub(crate) fn ended(&self, group: u32) {
        self.tell("ended", group);
    }

    fn tell(&self, word: &str, group: u32) {
        let mut line = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(line, "{word} {group}");
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = told.as_mut() {
            // Without a guardian, the processes still end with their benchmark.
            let _ = pipe.write_all(line.as_bytes());
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.told.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        // The folder is gone when the guardian has ended.
        let _ = self.guardian.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_and_the_processes_end_with_it() {
        let scratch = Scratch::new(None).unwrap();
        let path = scratch.path().to_owned();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        let mut sleeper = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        scratch.began(sleeper.id());
        // A group that has ended is not touched: its number stands for another one here.
        let mut other = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        scratch.began(other.id());
        scratch.ended(other.id());
        // It waits for the sleeper, which must not be a zombie then.
        let waiter = std::thread::spawn(move || sleeper.wait().unwrap());
        drop(scratch);
        assert!(!path.exists());
        assert!(!waiter.join().unwrap().success());
        assert!(other.try_wait().unwrap().is_none(), "it lives");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_told() {
        let error = Scratch::new(Some(Path::new("/proc/none"))).unwrap_err();
        assert!(error.to_string().contains("/proc/none"), "{error}");
        assert!(error.remedy().contains("--scratch"), "{}", error.remedy());
    }
}
