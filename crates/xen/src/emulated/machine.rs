//! The emulated machine: starts QEMU with Xen, and hears its dom0.

use super::packages::file;
use super::unpacked::{Unpacked, bytes};
use super::{EmulatedError, dom0};
use flate2::read::GzDecoder;
use overspin_linux::Guard;
use overspin_xl::{GuestType, Job, Message};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Memory of the dom0 in MiB: its file system has a kernel of 65 MB.
const DOM0_MEMORY: u32 = 700;
/// Memory for Xen itself, and for what each guest takes besides its own.
const XEN_MEMORY: u32 = 256;
const EACH_MEMORY: u32 = 8;
/// The dom0 has a pCPU of its own, so that its work takes no time of the guests.
const DOM0_CPUS: u32 = 1;
/// What a CPU must have for Debian's programs, beyond the emulator's plainest one.
const CPU: &str = "qemu64,+ssse3,+sse4.1,+sse4.2";
/// What it needs in addition for guests that are not paravirtual: AMD's virtualisation with nested page tables, which QEMU
/// emulates.
const VIRTUALISATION: &str = ",+svm,+npt";
/// How often to look whether to stop.
const LOOK: Duration = Duration::from_millis(100);
/// The file of Xen's console.
const CONSOLE: &str = "console.txt";
/// Lines of the console that an error shows.
const LAST_LINES: usize = 5;

/// The emulated machine's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// An instruction takes 2 to this power of nanoseconds, on one pCPU after another. Idle time is skipped.
    Instructions(u8),
    /// This machine's time. Each pCPU is a thread.
    Host,
}

/// An emulated machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its software.
    pub unpacked: Unpacked,
    /// Its time.
    pub clock: Clock,
    /// The scheduler of Xen's own pool.
    pub scheduler: String,
    /// Its guests do not work but switch themselves off, and their consoles are what comes out.
    pub watch: bool,
    /// The type of its guests.
    pub guest_type: GuestType,
    /// The kernel of guests, as an ELF file, with all that the worker needs built in; none: the dom0's.
    pub guest_kernel: Option<PathBuf>,
}

/// Boots the machine and makes the runs, whose pools have the pCPUs from 1 on. `hear` is told of each message. Stops
/// early if `stop` says so. Files, Xen's console among them, go into `folder`. `guard` sees the emulator's command before
/// it is started, and may add what ends the emulator if this process is killed.
///
/// # Errors
/// If the machine cannot be started, or stops before its end.
pub fn run(
    machine: &Machine,
    jobs: &[Job],
    folder: &Path,
    guard: Guard<'_>,
    hear: &mut dyn FnMut(Message),
    stop: &dyn Fn() -> bool,
) -> Result<(), EmulatedError> {
    let mut qemu = Qemu(start(machine, jobs, folder, guard)?);
    let (to, heard) = channel();
    if let Some(output) = qemu.0.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                // A line that is no message is the firmware's or the kernel's.
                if let Ok(message) = serde_json::from_slice::<Message>(&line) {
                    let _ = to.send(message);
                }
            }
        });
    }
    loop {
        if stop() {
            return Ok(());
        }
        match heard.recv_timeout(LOOK) {
            Ok(Message::End) => return Ok(()),
            Ok(Message::Failed { job: None, message }) => return Err(EmulatedError::Dom0(message)),
            Ok(message) => hear(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let text = fs::read(folder.join(CONSOLE)).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
                let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
                return Err(EmulatedError::Died { console: last.join(" / ") });
            }
        }
    }
}

/// Memory in MiB of a machine that makes these runs, one after the other.
#[must_use]
pub fn memory_for(jobs: &[Job]) -> u32 {
    let guests = |job: &Job| {
        let each = job.guests.iter().map(|guest| guest.memory.saturating_add(EACH_MEMORY));
        each.fold(DOM0_MEMORY + XEN_MEMORY, u32::saturating_add)
    };
    jobs.iter().map(guests).max().unwrap_or(DOM0_MEMORY + XEN_MEMORY)
}

/// QEMU, which ends when this is dropped.
struct Qemu(Child);

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(
    machine: &Machine,
    jobs: &[Job],
    folder: &Path,
    guard: Guard<'_>,
) -> Result<Child, EmulatedError> {
    let write = |name: &str, data: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, data).map_err(|cause| file(&path, cause))
    };
    let unpacked = &machine.unpacked;
    let mut xen = Vec::new();
    GzDecoder::new(&*bytes(&unpacked.xen)?)
        .read_to_end(&mut xen)
        .map_err(|cause| file(&unpacked.xen, cause))?;
    // QEMU divides lists of files at commas and spaces: it is given these names without their folder.
    write("xen", &xen)?;
    write("vmlinuz", &bytes(&unpacked.linux)?)?;
    let cpus = jobs.iter().map(|job| job.pool.cpus.len()).max().unwrap_or(0) as u32;
    // The vCPUs of a guest spin for each other. If they do so on several pCPUs, `pause` lets the next pCPU have its turn.
    let spin = jobs.iter().flat_map(|job| &job.guests).any(|guest| guest.vcpus > 1);
    let without_pauses = spin && cpus == 1 && matches!(machine.clock, Clock::Instructions(_));
    write("dom0.cpio", &dom0::initramfs(machine, jobs, without_pauses)?)?;
    let cpus = cpus + DOM0_CPUS;
    let memory = memory_for(jobs);
    let xen_line = format!(
        "dom0_mem={DOM0_MEMORY}M dom0_max_vcpus={DOM0_CPUS} dom0_vcpus_pin sched={} console=com1 com1=115200,8n1 \
         loglvl=warning guest_loglvl=warning",
        machine.scheduler
    );
    let cpu = match machine.guest_type {
        GuestType::Pv => CPU.to_owned(),
        GuestType::Pvh => format!("{CPU}{VIRTUALISATION}"),
    };
    let mut qemu = unpacked.qemu();
    match machine.clock {
        Clock::Instructions(shift) => qemu.args([
            "-accel",
            "tcg,thread=single",
            "-icount",
            &format!("shift={shift},sleep=off"),
            // Nothing of this machine's time is in the other one.
            "-rtc",
            "base=2020-01-01T00:00:00,clock=vm",
        ]),
        Clock::Host => qemu.args(["-accel", "tcg,thread=multi"]),
    };
    qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
        .args(["-cpu", &cpu, "-smp", &cpus.to_string(), "-m", &memory.to_string()])
        .args(["-monitor", "none", "-serial", &format!("file:{CONSOLE}"), "-serial", "stdio"])
        .args(["-kernel", "xen", "-append", &xen_line])
        .args(["-initrd", "vmlinuz console=hvc0 quiet overspin.dom0,dom0.cpio"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let failed = |said| EmulatedError::Program { command: "qemu-system-x86_64".into(), said };
    guard(&mut qemu).map_err(failed)?;
    qemu.spawn().map_err(|e| failed(e.to_string()))
}
