//! A folder and child processes that never outlive us.
//!
//! A guardian, a shell in a process group of its own, reads what we start from a pipe. When the pipe ends, it ends
//! the processes and removes the folder. The pipe ends when a [`Scratch`] is dropped, and also when this process is
//! killed, because the kernel then closes it. So there is one way to clean up, which every run takes.
//!
//! A program tells the guardian of itself between fork and exec. So there is no moment in which it runs and nobody
//! would end it. What it leaves behind stays below its keeper (`keeper.rs`), where the guardian finds it.

use crate::Failed;
use crate::keeper::{self, Reports};
use crate::left_behind::{self, LeftBehind};
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the end of a [`Scratch`] waits for its guardian. A tree of a hundred thousand files takes longer on a slow
/// disk; the guardian goes on alone.
const WAITS: Duration = Duration::from_secs(3);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(5);
/// Folders that guardians still removed when their [`Scratch`] ended.
static LEFT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Folders of this process that guardians of their own still remove.
#[must_use]
pub fn still_removed() -> Vec<PathBuf> {
    let left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.iter().filter(|folder| folder.exists()).cloned().collect()
}

/// What the guardian does. Its argument is the folder. It gives programs 5 s to end by themselves after SIGINT, which
/// is how a database is asked to stop at once but in order. What has left the group of its program, as daemons do, has
/// 2 s after SIGTERM. A kernel's tree of 84,000 files is removed in 4 s, where a single `rm` takes 20 s.
const GUARDIAN: &str = r#"
kept= groups=
while read -r word child group; do
    case $word in
    began) kept="$kept $child:$group" ;;
    ended) rest=
        for k in $kept; do [ "${k%:*}" = "$child" ] || rest="$rest $k"; done
        kept=$rest ;;
    group) groups="$groups$child${group:+ $group}
" ;;
    esac
done
for k in $kept; do kill -s INT -- "-${k#*:}"; done 2>/dev/null
tries=50
for k in $kept; do
    while [ $tries -gt 0 ] && kill -s 0 -- "-${k#*:}" 2>/dev/null; do sleep 0.1; tries=$((tries - 1)); done
    kill -s KILL -- "-${k#*:}" 2>/dev/null
done
# The processes below the keepers. Zombies have nothing below them.
below() {
    all=
    for file in /proc/[0-9]*/status; do
        while read -r key value _; do
            case $key in
            State:) state=$value ;;
            Pid:) process=$value ;;
            PPid:) [ "$state" = Z ] || all="$all $process:$value"
                break ;;
            esac
        done < "$file"
    done 2>/dev/null
    known=' ' found= grows=1
    for k in $kept; do known="$known${k%:*} "; done
    while [ -n "$grows" ]; do
        grows=
        for pair in $all; do
            case $known in *" ${pair%:*} "*) continue ;; esac
            case $known in *" ${pair#*:} "*) known="$known${pair%:*} " found="$found ${pair%:*}" grows=1 ;; esac
        done
    done
    echo "$found"
}
for signal in TERM KILL; do
    tries=20
    while [ -n "$kept" ] && [ $tries -gt 0 ]; do
        found=$(below)
        [ -n "$found" ] || break 2
        kill -s $signal $found 2>/dev/null
        sleep 0.1; tries=$((tries - 1))
    done
done
# A control group can be removed once its last process is gone.
printf %s "$groups" | while read -r group; do
    tries=20
    while [ -d "$group" ] && ! rmdir -- "$group" 2>/dev/null && [ $tries -gt 0 ]; do sleep 0.1; tries=$((tries - 1)); done
done
# Disks that are told of each free block (the mount option discard) do that for one file after the other, but for many at
# once. Only in the tree of sources, in which no other user can put a link in place of a folder.
find "$1/tree" -mindepth 2 -maxdepth 2 -print0 | xargs -0 -n 8 -P 8 rm -rf --
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
    left_behind: Mutex<Vec<LeftBehind>>,
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
        Ok(Self { path, guardian, told, left_behind: Mutex::default() })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes `command` a program that ends with this folder, whatever happens to this process. It gets a process group
    /// of its own, and all signals as a program expects them: a script's `&` and nohup start us with SIGINT or SIGHUP
    /// ignored, a program inherits that, and then it could not be asked to end. Start it soon: as long as `command`
    /// lives, the guardian waits.
    ///
    /// # Errors
    /// If this process has no room for another open file.
    pub fn guard(&self, command: &mut Command) -> Result<(), Failed> {
        let pipe = self.pipe()?;
        command.process_group(0);
        // SAFETY: between fork and exec, `begin` makes only calls that POSIX allows in a signal handler.
        unsafe { command.pre_exec(move || begin(pipe.as_ref(), libc::getpid())) };
        Ok(())
    }

    /// The same for a program that has a keeper (`keeper.rs`), which is then the child.
    ///
    /// # Errors
    /// As [`Self::guard`].
    pub(crate) fn keep(&self, command: &mut Command) -> Result<Reports, Failed> {
        let pipe = self.pipe()?;
        // SAFETY: it only asks.
        let begins = move || begin(pipe.as_ref(), unsafe { libc::getppid() });
        keeper::keep(command, begins).map_err(|e| Failed::io("hear of", &self.path, &e))
    }

    /// What the guardian reads from.
    fn pipe(&self) -> Result<Option<OwnedFd>, Failed> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let pipe = told.as_ref().map(|pipe| pipe.as_fd().try_clone_to_owned()).transpose();
        pipe.map_err(|e| Failed::io("tell the guardian of", &self.path, &e))
    }

    /// This child has ended; its number may soon belong to others.
    pub fn ended(&self, child: u32) {
        self.tell(&format!("ended {child}\n"));
    }

    fn tell(&self, line: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = told.as_mut() {
            // Without a guardian, the processes still end with their benchmark.
            let _ = pipe.write_all(line.as_bytes());
        }
    }

    /// This control group, whose folder it is, ends with the processes in it if nobody has removed it before.
    pub fn ends_with_group(&self, folder: &Path) {
        self.tell(&format!("group {}\n", folder.display()));
    }

    /// Notes what a program left behind.
    pub(crate) fn note_left_behind(&self, more: Vec<LeftBehind>) {
        self.left_behind.lock().unwrap_or_else(PoisonError::into_inner).extend(more);
    }

    /// What programs have left behind so far.
    pub(crate) fn left_behind(&self) -> Vec<LeftBehind> {
        self.left_behind.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// In the program, before it begins: tells the guardian of our child, which is its keeper or itself, and of its group, and
/// resets the signals.
fn begin(pipe: Option<&OwnedFd>, child: libc::pid_t) -> io::Result<()> {
    let mut line = [0; 48];
    let mut at = line.len();
    let mut before = |text: &[u8]| {
        at -= text.len();
        line[at..at + text.len()].copy_from_slice(text);
    };
    before(b"\n");
    // SAFETY: it only asks.
    for number in [unsafe { libc::getpid() }, child] {
        let mut number = number.cast_unsigned();
        while number > 0 {
            before(&[b'0' + (number % 10) as u8]);
            number /= 10;
        }
        before(b" ");
    }
    before(b"began");
    if let Some(pipe) = pipe {
        // Without a guardian, the program still ends with its benchmark, and the pipe's signal must not end it now.
        // SAFETY: a signal of ours, and bytes that live longer than the call. The line is shorter than a pipe's
        // atomic write.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            libc::write(pipe.as_raw_fd(), line[at..].as_ptr().cast(), line.len() - at);
        }
    }
    for signal in 1..=libc::SIGRTMAX() {
        // It fails for the two that nobody can change, and for the C library's own.
        // SAFETY: the default needs no memory.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.told.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        left_behind::tell_at_end(self.left_behind());
        // The folder is gone when the guardian has ended.
        let began = Instant::now();
        while matches!(self.guardian.try_wait(), Ok(None)) {
            if began.elapsed() >= WAITS {
                let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
                return left.push(self.path.clone());
            }
            std::thread::sleep(LOOK);
        }
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
        let sleeper = || {
            let mut command = Command::new("sleep");
            scratch.guard(command.arg("1000")).unwrap();
            command.spawn().unwrap()
        };
        // A group that has ended is not touched: its number stands for another one here.
        let (mut sleeper, mut other) = (sleeper(), sleeper());
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
    fn a_control_group_ends_with_its_processes() {
        let scratch = Scratch::new(None).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        // Any folder is removed as the kernel's are: only when nothing is in it.
        let of = |name: &str| elsewhere.path().join(name);
        for name in ["of ours", "full", "of others"] {
            std::fs::create_dir(of(name)).unwrap();
        }
        std::fs::write(of("full").join("a"), "").unwrap();
        for name in ["of ours", "gone", "full"] {
            scratch.ends_with_group(&of(name));
        }
        drop(scratch);
        assert!(!of("of ours").exists());
        overspin_testing::until("the guardian ends", || still_removed().is_empty());
        assert!(of("full").exists() && of("of others").exists());
    }

    /// The signals that this process, or a program, ignores, as the kernel lists them. Two of them, 32 and 33, are the C
    /// library's own, which nobody sends.
    fn ignored(status: &str) -> u64 {
        let line = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap() & !(0b11 << 31)
    }

    #[test]
    fn a_program_has_all_signals_though_we_ignore_some() {
        // SAFETY: nothing else in this test program uses it, and no default action is missed.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        assert_ne!(ignored(&std::fs::read_to_string("/proc/self/status").unwrap()), 0);
        let scratch = Scratch::new(None).unwrap();
        let mut command = Command::new("cat");
        scratch.guard(command.arg("/proc/self/status")).unwrap();
        let output = command.output().unwrap();
        assert_eq!(ignored(&String::from_utf8(output.stdout).unwrap()), 0);
    }

    #[test]
    fn the_end_does_not_wait_for_a_guardian_that_takes_long() {
        let scratch = Scratch::new(None).unwrap();
        let path = scratch.path().to_owned();
        // It ignores SIGINT, so that the guardian waits before it removes the folder.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' INT; echo; sleep 1000"]).stdout(Stdio::piped());
        scratch.guard(&mut command).unwrap();
        let mut stubborn = command.spawn().unwrap();
        drop(command);
        let mut said = [0];
        std::io::Read::read_exact(stubborn.stdout.as_mut().unwrap(), &mut said).unwrap();
        let waiter = std::thread::spawn(move || stubborn.wait().unwrap());
        let began = Instant::now();
        drop(scratch);
        assert!(began.elapsed() < WAITS * 2, "{:?}", began.elapsed());
        assert!(still_removed().contains(&path), "it is named");
        overspin_testing::until("the guardian has done its work", || !path.exists());
        assert!(!still_removed().contains(&path));
        waiter.join().unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_told() {
        let error = Scratch::new(Some(Path::new("/proc/none"))).unwrap_err();
        assert!(error.to_string().contains("/proc/none"), "{error}");
        assert!(error.remedy().contains("--scratch"), "{}", error.remedy());
    }
}
