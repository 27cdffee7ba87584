//! A program that is measured: its time, its resource usage, its output; ended if the user stops the measurement.

use crate::scratch::Scratch;
use crate::{Cancel, Failed};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
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
    group: u32,
    scratch: Arc<Scratch>,
    began: Instant,
    end: mpsc::Receiver<(Instant, libc::c_int, libc::rusage)>,
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
    scratch.guard(&mut command)?;
    let cannot = |e: std::io::Error| {
        Failed::needs(format!("cannot run `{words}`: {e}"), "check that it can be executed")
    };
    let (mut hears, tells) = std::io::pipe().map_err(cannot)?;
    // The program begins where the child executes it. A fork takes a part of a millisecond, and on a busy machine many.
    // SAFETY: POSIX allows both calls in a signal handler, and so between fork and exec.
    unsafe { command.pre_exec(move || (&tells).write_all(&monotonic().to_ne_bytes())) };
    let child = command.spawn().map_err(cannot)?;
    let mut at = [0; size_of::<i64>()];
    // Without the child's word, it has begun now.
    let since = match hears.read_exact(&mut at) {
        Ok(()) => u64::try_from(monotonic() - i64::from_ne_bytes(at)).unwrap_or(0),
        Err(_) => 0,
    };
    let began = Instant::now().checked_sub(Duration::from_nanos(since));
    let began = began.unwrap_or_else(Instant::now);
    let group = child.id();
    let (tell, end) = mpsc::channel();
    // A thread that waits sees the end when it happens; looking now and then would add to the elapsed time.
    std::thread::spawn(move || {
        let (status, usage) = wait(group);
        // If nobody listens any more, the process has at least been waited for.
        let _ = tell.send((Instant::now(), status, usage));
    });
    let scratch = Arc::clone(scratch);
    Ok(Running { words, group, scratch, began, end, output, counted: (0, 0), over: false })
}

/// Nanoseconds of the clock that [`Instant`] reads.
fn monotonic() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a variable that the call fills.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Waits for a child.
fn wait(pid: u32) -> (libc::c_int, libc::rusage) {
    let mut status = 0;
    // SAFETY: all zeros is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to variables that live longer than the call.
        let result = unsafe { libc::wait4(pid.cast_signed(), &raw mut status, 0, &raw mut usage) };
        let again =
            result < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
        if !again {
            return (status, usage);
        }
    }
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
        let (at, status, usage) = loop {
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
            elapsed_s: at.duration_since(self.began).as_secs_f64(),
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
        // Processes that the first one left behind.
        // SAFETY: as above, but for the short time since: numbers of processes are not given again so soon.
        unsafe { libc::kill(-self.group.cast_signed(), libc::SIGKILL) };
        self.over = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        self.scratch.ended(self.group);
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
