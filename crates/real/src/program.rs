//! A program that is measured: its time, its resource usage, its output; ended if the user stops the measurement.

use crate::keeper::End;
use crate::left_behind;
use crate::scratch::Scratch;
use crate::{Cancel, Failed};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a waiting measurement looks whether the user stopped it.
const LOOK: Duration = Duration::from_millis(50);
/// How long a program may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often lines of its output are counted.
const COUNT: Duration = Duration::from_secs(1);
/// At most so much output is kept, from its end.
const MOST_OUTPUT: u64 = 1 << 20;
/// Lines of output that an error shows.
const LAST_LINES: usize = 8;

/// What a program and all the processes that it waited for used, as the kernel counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Time from its start to its end, in seconds.
    pub elapsed_s: f64,
    /// User time, in seconds.
    pub user_s: f64,
    /// System time, in seconds.
    pub system_s: f64,
    /// Involuntary context switches.
    pub preempted: u64,
    /// Voluntary context switches.
    pub slept: u64,
}

impl Usage {
    /// CPU time in whole percent of the elapsed time, truncated, as `time(1)` prints it.
    #[must_use]
    pub fn percent(&self) -> f64 {
        if self.elapsed_s > 0.0 {
            (100.0 * (self.user_s + self.system_s) / self.elapsed_s).floor()
        } else {
            0.0
        }
    }
}

/// A program that has ended well.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What it used.
    pub usage: Usage,
    /// What it printed on standard output.
    pub stdout: String,
    /// What it printed on standard error.
    pub stderr: String,
}

/// Whether there is such a program in PATH, or at this path.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let executable = |path: PathBuf| {
        use std::os::unix::fs::PermissionsExt;
        let is = path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
        is.then_some(path)
    };
    if name.contains('/') {
        return executable(name.into());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).find_map(|dir| executable(dir.join(name)))
}

/// The path of a program, or an error that says what the program is for and how to get it.
pub(crate) fn need(name: &str, purpose: &str, package: &str) -> Result<PathBuf, Failed> {
    find(name).ok_or_else(|| {
        Failed::needs(
            format!("there is no program `{name}`, which {purpose}"),
            format!("install it, for example with `apt-get install {package}`"),
        )
    })
}

/// A command in words, for messages and logs.
fn words(command: &Command) -> String {
    let all = std::iter::once(command.get_program()).chain(command.get_args());
    all.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// A running program with a process group of its own.
#[derive(Debug)]
pub(crate) struct Running {
    words: String,
    program: String,
    group: u32,
    keeper: u32,
    scratch: Arc<Scratch>,
    end: mpsc::Receiver<End>,
    /// Ends when nothing of the program is left.
    waits: JoinHandle<()>,
    output: [File; 2],
    /// Bytes of standard output in which lines were counted, and their number.
    counted: (u64, usize),
    over: bool,
}

/// Starts a program. It reads nothing. Its output goes to unnamed files: nobody must read while it runs, and a pipe
/// would hold it up.
pub(crate) fn start(mut command: Command, scratch: &Arc<Scratch>) -> Result<Running, Failed> {
    let words = words(&command);
    let file = || {
        tempfile::tempfile_in(scratch.path())
            .map_err(|e| Failed::io("write into", scratch.path(), &e))
    };
    let output = [file()?, file()?];
    let copy = |file: &File| file.try_clone().map_err(|e| Failed::io("use", scratch.path(), &e));
    command.stdin(Stdio::null()).stdout(copy(&output[0])?).stderr(copy(&output[1])?);
    let mut reports = scratch.keep(&mut command)?;
    let cannot = |e: std::io::Error| {
        Failed::needs(format!("cannot run `{words}`: {e}"), "check that it can be executed")
    };
    let mut keeper = command.spawn().map_err(cannot)?;
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let program = name.to_string_lossy().into_owned();
    drop(command);
    let group = reports.begun().map_err(cannot)?;
    let keeper_id = keeper.id();
    let (tell, end) = mpsc::channel();
    let waits = std::thread::spawn(move || {
        if let Ok(end) = reports.ended() {
            // If nobody listens any more, the keeper is at least waited for.
            let _ = tell.send(end);
        }
        drop(tell);
        let _ = keeper.wait();
    });
    Ok(Running {
        words,
        program,
        group,
        keeper: keeper_id,
        scratch: Arc::clone(scratch),
        end,
        waits,
        output,
        counted: (0, 0),
        over: false,
    })
}

impl Running {
    /// Whether it is over already.
    pub(crate) fn is_over(&mut self) -> bool {
        if !self.over
            && let Ok(end) = self.end.try_recv()
        {
            let (tell, receiver) = mpsc::channel();
            // It is read again by `finish`.
            let _ = tell.send(end);
            self.end = receiver;
            self.over = true;
        }
        self.over
    }

    /// Waits for its end. A program that ends with an error is an error, which shows its last words.
    pub(crate) fn finish(self, cancel: Cancel) -> Result<Ended, Failed> {
        self.finish_counting(cancel, &|_| {})
    }

    /// Waits for its end, and tells now and then how many lines it has printed.
    pub(crate) fn finish_counting(
        mut self,
        cancel: Cancel,
        tell: &dyn Fn(usize),
    ) -> Result<Ended, Failed> {
        let mut counted = Instant::now();
        let End { elapsed_ns, status, usage } = loop {
            match self.end.recv_timeout(LOOK) {
                Ok(end) => break end,
                Err(RecvTimeoutError::Timeout) if cancel() => return Err(Failed::Stopped),
                Err(RecvTimeoutError::Timeout) if counted.elapsed() >= COUNT => {
                    counted = Instant::now();
                    tell(self.lines());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let cause = format!("lost the process of `{}`", self.words);
                    return Err(Failed::needs(cause, "run it again"));
                }
            }
        };
        self.over = true;
        let status = ExitStatus::from_raw(status);
        let [stdout, stderr] = self.texts();
        if !status.success() {
            // Ctrl-C may end the program before we look at the flag.
            if cancel() {
                return Err(Failed::Stopped);
            }
            return Err(self.failure(status, &stdout, &stderr));
        }
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
        let usage = Usage {
            elapsed_s: Duration::from_nanos(elapsed_ns).as_secs_f64(),
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            preempted: usage.ru_nivcsw.cast_unsigned(),
            slept: usage.ru_nvcsw.cast_unsigned(),
        };
        Ok(Ended { usage, stdout, stderr })
    }

    /// What it printed so far, or all of it.
    pub(crate) fn texts(&self) -> [String; 2] {
        self.output.each_ref().map(|file| tail(file).unwrap_or_default())
    }

    /// Lines of its standard output so far.
    fn lines(&mut self) -> usize {
        let mut part = [0; 1 << 16];
        let (at, lines) = &mut self.counted;
        while let Ok(read @ 1..) = self.output[0].read_at(&mut part, *at) {
            *at += read as u64;
            *lines += part[..read].iter().filter(|byte| **byte == b'\n').count();
        }
        *lines
    }

    fn failure(&self, status: ExitStatus, stdout: &str, stderr: &str) -> Failed {
        Failed::needs(
            format!("`{}` failed ({status}); {}", self.words, last_words(stdout, stderr)),
            "run this command by hand to see why",
        )
    }

    /// Asks it to end, waits a while, then ends it.
    pub(crate) fn stop(&mut self) {
        if self.over {
            return;
        }
        for signal in [libc::SIGINT, libc::SIGKILL] {
            // SAFETY: no memory is involved. The group is still ours: its first process has not been waited for.
            unsafe { libc::kill(-self.group.cast_signed(), signal) };
            if self.end.recv_timeout(PATIENCE).is_ok() {
                break;
            }
        }
        // Of its group, nothing is to go on.
        // SAFETY: as above, but for the short time since: numbers of processes are not given again so soon.
        unsafe { libc::kill(-self.group.cast_signed(), libc::SIGKILL) };
        self.over = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        let gone = || self.waits.is_finished();
        let left = left_behind::end(&self.program, self.keeper, gone);
        self.scratch.note_left_behind(left);
        // What would not end is the guardian's, at the end of all.
        if gone() {
            self.scratch.ended(self.keeper);
        }
    }
}

/// The last lines that a program printed, in words that follow "it failed; ".
pub(crate) fn last_words(stdout: &str, stderr: &str) -> String {
    let last = |text: &str| -> Option<String> {
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        (!last.is_empty()).then(|| last.iter().map(|line| format!("\n  {line}")).collect())
    };
    match (last(stderr), last(stdout)) {
        (None, None) => "it printed nothing".into(),
        (Some(lines), None) => format!("it ended its standard error with:{lines}"),
        (None, Some(lines)) => format!("it ended its standard output with:{lines}"),
        (Some(errors), Some(lines)) => {
            format!(
                "it ended its standard error with:{errors}\nand its standard output with:{lines}"
            )
        }
    }
}

/// The last part of a file, as text. The program writes where the position is, which it shares with us, so that this
/// must not move it.
fn tail(file: &File) -> std::io::Result<String> {
    let length = file.metadata()?.len();
    let from = length.saturating_sub(MOST_OUTPUT);
    let mut bytes = vec![0; usize::try_from(length - from).unwrap_or(0)];
    file.read_exact_at(&mut bytes, from)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Runs a program to its end.
pub(crate) fn run(
    command: Command,
    scratch: &Arc<Scratch>,
    cancel: Cancel,
) -> Result<Ended, Failed> {
    start(command, scratch)?.finish(cancel)
}

/// Bytes that are free for us on the disk of a folder; `None` if the system does not tell.
#[must_use]
pub fn free_bytes(path: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: all zeros is a valid value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a C string, and a variable that the kernel fills.
    let result = unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) };
    (result == 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_time_and_usage() {
        let scratch = Arc::new(Scratch::new(None).unwrap());
        let ended = run(sh("echo out; echo err >&2; sleep 0.3"), &scratch, &|| false).unwrap();
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("out\n", "err\n"));
        let Usage { elapsed_s, slept, .. } = ended.usage;
        assert!((0.3..10.0).contains(&elapsed_s), "{elapsed_s}");
        assert!(slept > 0, "it slept");
        let half = Usage { elapsed_s: 2.0, user_s: 0.7, system_s: 0.31, ..Usage::default() };
        assert_eq!(half.percent(), 50.0, "50.5 %, truncated");
    }

    #[test]
    fn a_failure_shows_the_last_words() {
        let scratch = Arc::new(Scratch::new(None).unwrap());
        let error = run(sh("echo no such thing >&2; exit 7"), &scratch, &|| false).unwrap_err();
        assert!(error.to_string().contains("no such thing"), "{error}");
        assert!(error.to_string().contains("exit status: 7"), "{error}");
        let both = "seq 20; echo no such thing >&2; exit 7";
        let error = run(sh(both), &scratch, &|| false).unwrap_err().to_string();
        let said = "it ended its standard error with:\n  no such thing\nand its standard output with:\n  13\n";
        assert!(error.contains(said) && error.ends_with("\n  20"), "{error}");
        let error = run(sh("exit 7"), &scratch, &|| false).unwrap_err();
        assert!(error.to_string().ends_with("(exit status: 7); it printed nothing"), "{error}");
        let error = run(Command::new("/no/such/program"), &scratch, &|| false).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }

    #[test]
    fn lines_are_counted_while_it_runs() {
        let scratch = Arc::new(Scratch::new(None).unwrap());
        let seen = std::cell::RefCell::new(Vec::new());
        let begun = start(sh("seq 1000; sleep 2.5; echo last"), &scratch).unwrap();
        let ended = begun.finish_counting(&|| false, &|n| seen.borrow_mut().push(n)).unwrap();
        assert!(seen.borrow().contains(&1000), "{seen:?}");
        assert!(ended.stdout.ends_with("\n1000\nlast\n"), "counting has not moved anything");
    }

    #[test]
    fn the_user_stops_it_with_all_its_children() {
        let scratch = Arc::new(Scratch::new(None).unwrap());
        let marker = scratch.path().join("child");
        let script = format!("sh -c 'echo $$ > {}; sleep 1000' & wait", marker.display());
        let asked = std::cell::Cell::new(0);
        let cancel = || {
            asked.set(asked.get() + 1);
            asked.get() > 2 && std::fs::read_to_string(&marker).is_ok_and(|t| t.ends_with('\n'))
        };
        let began = Instant::now();
        assert!(matches!(run(sh(&script), &scratch, &cancel), Err(Failed::Stopped)));
        assert!(began.elapsed() < PATIENCE, "SIGINT was enough");
        let child: i32 = std::fs::read_to_string(&marker).unwrap().trim().parse().unwrap();
        // SAFETY: signal 0 only asks.
        let lives = || unsafe { libc::kill(child, 0) } == 0;
        let zombie = || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            stat.contains(") Z ")
        };
        for _ in 0..100 {
            if !lives() || zombie() {
                return;
            }
            std::thread::sleep(LOOK);
        }
        panic!("the child of the program lives");
    }

    #[test]
    fn programs_are_found() {
        assert!(find("sh").is_some() && find("/bin/sh").is_some());
        assert!(find("no-such-program").is_none() && find("/etc/passwd").is_none());
        let error = need("no-such-program", "is needed", "nothing").unwrap_err();
        assert!(error.to_string().contains("no-such-program"), "{error}");
        assert!(free_bytes(Path::new("/")).is_some_and(|bytes| bytes > 0));
    }
}
