//! A process between us and a program, to which everything comes that the program leaves behind.
//!
//! A child that begins a session of its own, as a daemon does, is in no group that we know. When its parent ends, the
//! kernel gives it to init, and nobody can tell whose it was. So a keeper stands between: a subreaper (`prctl(2)`),
//! to which the kernel gives all orphans below it.
//!
//! ```text
//!   overspin -- keeper -- program -- its children
//!      ^          |  \
//!      '-- pipe --'   orphans
//! ```
//!
//! The program tells the pipe when it begins, and the keeper tells when the program ends and what it used. The keeper
//! ends when nothing is left below it. It lives on if we are killed: then the guardian ends what is below it.

use std::io::{self, PipeReader, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What the pipe carries, shorter than a pipe's atomic write.
#[derive(Clone, Copy)]
#[repr(C)]
struct Message {
    /// Nanoseconds of the clock that never jumps.
    at: i64,
    /// The program's number when it begins, its status when it ends.
    value: i64,
    /// What it used; all zeros when it begins.
    usage: libc::rusage,
}

/// The end of a program.
pub(crate) struct End {
    /// Nanoseconds since it began.
    pub(crate) elapsed_ns: u64,
    /// As `wait4(2)` tells it.
    pub(crate) status: libc::c_int,
    /// Its usage, and that of all processes that it waited for.
    pub(crate) usage: libc::rusage,
}

/// The near end of the pipe.
#[derive(Debug)]
pub(crate) struct Reports {
    pipe: PipeReader,
    began_at: i64,
}

impl Reports {
    fn next(&mut self) -> io::Result<Message> {
        let mut bytes = [0; size_of::<Message>()];
        self.pipe.read_exact(&mut bytes)?;
        // SAFETY: a message consists of integers, so that all bytes are valid; there are as many as it has.
        Ok(unsafe { bytes.as_ptr().cast::<Message>().read_unaligned() })
    }

    /// The number of the program, which is that of its process group, as soon as it has begun. The command that was
    /// started must be dropped before: it holds the far end.
    pub(crate) fn begun(&mut self) -> io::Result<u32> {
        let message = self.next()?;
        self.began_at = message.at;
        u32::try_from(message.value).map_err(io::Error::other)
    }

    /// Waits for the end of the program.
    pub(crate) fn ended(&mut self) -> io::Result<End> {
        let Message { at, value, usage } = self.next()?;
        let elapsed_ns = u64::try_from(at - self.began_at).unwrap_or(0);
        Ok(End { elapsed_ns, status: value as libc::c_int, usage })
    }
}

/// Puts a keeper between us and the program, which gets a process group of its own. The child of `command` is then the
/// keeper. `begins` is called in the program, just before it is executed; it may call only what POSIX allows in a
/// signal handler.
pub(crate) fn keep(
    command: &mut Command,
    begins: impl Fn() -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<Reports> {
    let (pipe, far_end) = io::pipe()?;
    let far_end = OwnedFd::from(far_end);
    // Signals for our group, as Ctrl-C, are not for the keeper, and those for the program's group are not either.
    command.process_group(0);
    let in_child = move || {
        split(far_end.as_raw_fd())?;
        begins()?;
        let at = monotonic();
        // SAFETY: it only asks.
        let value = i64::from(unsafe { libc::getpid() });
        tell(far_end.as_raw_fd(), &Message { at, value, usage: no_usage() });
        Ok(())
    };
    // SAFETY: what it calls is allowed in a signal handler; of `fork`, see `split`.
    unsafe { command.pre_exec(in_child) };
    Ok(Reports { pipe, began_at: 0 })
}

/// Becomes the keeper, and returns in a new process that is to become the program.
fn split(pipe: RawFd) -> io::Result<()> {
    // SAFETY: no memory is involved. This process has a single thread, and the C library made its own locks free when
    // it forked, so that it can fork again.
    let program = unsafe {
        // Whoever started us may ignore this signal, and then nobody could wait for a child.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        // It holds for this process and not for those that it forks.
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::fork()
    };
    match program {
        ..0 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: no memory is involved.
            unsafe { libc::setpgid(0, 0) };
            Ok(())
        }
        program => live(program, pipe),
    }
}

/// The life of the keeper. It calls only what POSIX allows in a signal handler.
fn live(program: libc::pid_t, pipe: RawFd) -> ! {
    // SAFETY: sets of signals that the calls fill, and a string that ends with a zero.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        // Not "overspin": `pkill -9 overspin` is for that one.
        libc::prctl(libc::PR_SET_NAME, c"keeper".as_ptr());
    }
    // Above all the guardian's pipe, which must end with us, and what the program reads and writes.
    close_all_but(pipe);
    let mut failed = 0;
    loop {
        let mut status = 0;
        let mut usage = no_usage();
        // SAFETY: both pointers are to variables that live longer than the call.
        let ended = unsafe { libc::wait4(-1, &raw mut status, 0, &raw mut usage) };
        if ended == program {
            failed = i32::from(status != 0);
            tell(pipe, &Message { at: monotonic(), value: status.into(), usage });
        } else if ended < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
            // SAFETY: nothing that this process shares with us is touched at its end.
            unsafe { libc::_exit(failed) };
        }
    }
}

fn close_all_but(one: RawFd) {
    let one = one.cast_unsigned();
    let close = |from: u32, to: u32| {
        // SAFETY: the keeper uses no file but `one`.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
        // Kernels before 5.9 do not have it; numbers above this one are rare there.
        if closed < 0 {
            for file in from..=to.min(1 << 16) {
                // SAFETY: as above.
                unsafe { libc::close(file.cast_signed()) };
            }
        }
    };
    if let Some(below) = one.checked_sub(1) {
        close(0, below);
    }
    close(one + 1, u32::MAX);
}

fn tell(pipe: RawFd, message: &Message) {
    // If nobody reads any more, there is nobody else to tell.
    // SAFETY: bytes that live longer than the call.
    unsafe { libc::write(pipe, (&raw const *message).cast(), size_of::<Message>()) };
}

fn no_usage() -> libc::rusage {
    // SAFETY: all zeros is a valid value.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Nanoseconds of the clock that never jumps. Async-signal-safe.
fn monotonic() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a variable that the call fills.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
