//! A guest that runs our first process: it does what the host asks for, and says what came out.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use overspin_native::world::ControlGroup;
use overspin_real::scratch::Scratch;

use crate::machine::{Devices, Files, Machine, Running};
use crate::program::file;
use crate::talk::{Ask, Say};
use crate::{LinuxError, guard_of};

/// How often to look whether to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Time for an emulated kernel to boot, on a busy host and with a lock that waits for its turn.
const BOOT: Duration = Duration::from_secs(120);
/// Longest answer of a guest in bytes. A guest may send what never ends.
const LONGEST: u64 = 256 << 20;

/// See the [module](self). It ends when this is dropped.
#[derive(Debug)]
pub struct Guest {
    running: Running,
    from: BufReader<UnixStream>,
    to: UnixStream,
    /// Goes after QEMU.
    _group: Option<ControlGroup>,
}

/// Time of a vCPU's thread on the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VcpuTime {
    /// On a CPU, in seconds.
    pub ran_s: f64,
    /// Ready, and without a CPU, in seconds.
    pub waited_s: f64,
}

/// Why a guest gave no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// The time was over.
    TooLong,
    /// The caller was asked to stop.
    Stopped,
    /// Anything else.
    Error(LinuxError),
}

impl From<LinuxError> for NoAnswer {
    fn from(error: LinuxError) -> Self {
        Self::Error(error)
    }
}

impl Guest {
    /// Boots a guest, with the initial file system `init` and files for programs, and waits until it is up. It ends with
    /// `scratch`. `folder` is for the socket; a path to a socket is short.
    ///
    /// # Errors
    /// If QEMU cannot be started, or gets no share of the CPUs; if the guest is not up within two minutes.
    pub fn boot(
        machine: &Machine,
        init: &Path,
        files: Files<'_>,
        folder: &Path,
        scratch: &Scratch,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, NoAnswer> {
        let socket = folder.join("guest");
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).map_err(|cause| file(&socket, cause))?;
        let devices = Devices { init, files, port: &socket };
        let group = machine.share.map(ControlGroup::new).transpose().map_err(LinuxError::Share)?;
        if let Some(group) = &group {
            scratch.ends_with_group(group.dir());
        }
        let guarded = guard_of(scratch);
        let guard = |command: &mut Command| {
            guarded(command)?;
            group.as_ref().map_or(Ok(()), |group| group.admit(command)).map_err(|e| e.to_string())
        };
        let running = machine.start(Some(&devices), &guard)?;
        // QEMU connects before it boots.
        listener.set_nonblocking(true).map_err(|cause| file(&socket, cause))?;
        let begun = Instant::now();
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(_) if running.is_alive() && begun.elapsed() < BOOT && !stop() => {
                    std::thread::sleep(LOOK / 10);
                }
                Err(_) if stop() => return Err(NoAnswer::Stopped),
                Err(_) => return Err(running.said("QEMU ended before it booted").into()),
            }
        };
        let both = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(LOOK)));
        both.map_err(|cause| file(&socket, cause))?;
        let to = stream.try_clone().map_err(|cause| file(&socket, cause))?;
        let mut guest = Self { running, from: BufReader::new(stream), to, _group: group };
        match guest.hear(BOOT.saturating_sub(begun.elapsed()), &mut |_| {}, stop) {
            Ok(Say::Ready) => Ok(guest),
            Ok(other) => Err(guest.running.said(&format!("the guest began with {other:?}")).into()),
            Err(NoAnswer::TooLong) => {
                Err(guest.running.said("the guest is not up after two minutes").into())
            }
            Err(other) => Err(other),
        }
    }

    /// Asks for something, hands each line that a program prints to `line`, and returns the answer.
    ///
    /// # Errors
    /// If there is no answer within `limit`, `stop` says so, the guest cannot do it, or it has ended.
    pub fn ask(
        &mut self,
        ask: &Ask,
        limit: Duration,
        line: &mut dyn FnMut(&str),
        stop: &dyn Fn() -> bool,
    ) -> Result<Say, NoAnswer> {
        let mut text = serde_json::to_string(ask).unwrap_or_default();
        text.push('\n');
        if let Err(error) = self.to.write_all(text.as_bytes()) {
            return Err(self.running.said(&format!("the guest does not listen: {error}")).into());
        }
        match self.hear(limit, line, stop)? {
            Say::Failed(why) => Err(LinuxError::Guest(why).into()),
            said => Ok(said),
        }
    }

    /// Asks for something whose answer is bytes.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(crate) fn bytes(&mut self, ask: &Ask, limit: Duration) -> Result<Vec<u8>, NoAnswer> {
        let said = self.ask(ask, limit, &mut |_| {}, &|| false)?;
        let Say::Bytes(length) = said else {
            return Err(self
                .running
                .said(&format!("the guest sends no bytes, and says {said:?}"))
                .into());
        };
        if length > LONGEST {
            let said = format!("the guest wants to send {length} bytes, and the most is {LONGEST}");
            return Err(self.running.said(&said).into());
        }
        let begun = Instant::now();
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < length {
            let left = length - bytes.len() as u64;
            // What was read before is kept.
            match self.from.by_ref().take(left).read_to_end(&mut bytes) {
                Ok(0) => return Err(self.running.said("the guest has ended").into()),
                Ok(_) => {}
                Err(e) if is_pause(&e) && begun.elapsed() < limit => {}
                Err(e) if is_pause(&e) => return Err(NoAnswer::TooLong),
                Err(e) => {
                    return Err(self.running.said(&format!("the guest has ended: {e}")).into());
                }
            }
        }
        Ok(bytes)
    }

    fn hear(
        &mut self,
        limit: Duration,
        line: &mut dyn FnMut(&str),
        stop: &dyn Fn() -> bool,
    ) -> Result<Say, NoAnswer> {
        let begun = Instant::now();
        let mut bytes = Vec::new();
        loop {
            // An answer of which a part was read is read to its end: the next one would begin in its middle.
            if stop() && bytes.is_empty() {
                return Err(NoAnswer::Stopped);
            }
            if begun.elapsed() > limit {
                return Err(NoAnswer::TooLong);
            }
            let left = LONGEST.saturating_sub(bytes.len() as u64);
            if left == 0 {
                let said = format!("the guest says more than {LONGEST} bytes without an end");
                return Err(self.running.said(&said).into());
            }
            match self.from.by_ref().take(left).read_until(b'\n', &mut bytes) {
                Ok(0) => return Err(self.running.said("the guest has ended").into()),
                Ok(_) if bytes.ends_with(b"\n") => {
                    let said = serde_json::from_slice(&bytes).map_err(|e| {
                        let text = String::from_utf8_lossy(&bytes);
                        self.running.said(&format!("the guest says what is no answer: {text}: {e}"))
                    })?;
                    bytes.clear();
                    match said {
                        Say::Line(printed) => line(&printed),
                        said => return Ok(said),
                    }
                }
                Ok(_) => {}
                // What was read before is kept.
                Err(e) if is_pause(&e) => {
                    if let Some(panic) = self.running.panic() {
                        return Err(self
                            .running
                            .said(&format!("the guest's kernel panics: {panic}"))
                            .into());
                    }
                }
                Err(e) => {
                    return Err(self.running.said(&format!("the guest has ended: {e}")).into());
                }
            }
        }
    }

    /// The number of its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// What the threads of its vCPUs have used of the host's CPUs so far.
    #[must_use]
    pub fn vcpu_times(&self) -> Vec<VcpuTime> {
        vcpu_times(self.running.id())
    }
}

/// Whether there was nothing to read, for now.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Times of the threads of QEMU that are named for vCPUs, in their order.
fn vcpu_times(qemu: u32) -> Vec<VcpuTime> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let of = |thread: &VcpuThread| {
        let [ran, waited, _] = thread.account;
        VcpuTime { ran_s: seconds(ran), waited_s: seconds(waited) }
    };
    vcpu_threads(qemu).iter().map(of).collect()
}

/// A thread of QEMU that is named for a vCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VcpuThread {
    /// Its number.
    pub(crate) id: u32,
    /// Nanoseconds on a CPU, nanoseconds ready without one, and how often it began to run.
    pub(crate) account: [u64; 3],
}

/// The threads of the vCPUs, in their order.
pub(crate) fn vcpu_threads(qemu: u32) -> Vec<VcpuThread> {
    let mut found = Vec::new();
    let threads = fs::read_dir(format!("/proc/{qemu}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        let text = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let name = text("comm");
        let vcpu = name.trim().strip_prefix("CPU ").and_then(|rest| rest.split('/').next());
        let id = thread.file_name().to_str().and_then(|id| id.parse().ok());
        let Some((vcpu, id)) = vcpu.and_then(|v| v.parse::<u32>().ok()).zip(id) else { continue };
        let times = text("schedstat");
        let mut times = times.split_whitespace().map(|word| word.parse().unwrap_or(0));
        let account = [(); 3].map(|()| times.next().unwrap_or(0));
        found.push((vcpu, VcpuThread { id, account }));
    }
    found.sort_by_key(|(vcpu, _)| *vcpu);
    found.into_iter().map(|(_, thread)| thread).collect()
}
