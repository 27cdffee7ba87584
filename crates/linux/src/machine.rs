//! A machine of QEMU that boots a kernel.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use overspin_native::world::Share;

use crate::program::{failed, last_lines};
use crate::talk::{HOST, PORT};
use crate::{Guard, LinuxError, STOCK, STOCK_FAIR};

/// How often to look whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A panic ends the machine instead of leaving it there. Without a disk the kernel waits for one for ever, while its own tests
/// run. It does not check its timer, as under KVM: it would count ticks for some milliseconds of its processor's time, and panic if
/// QEMU had no CPU of a busy host meanwhile.
const PARAMETERS: &str = "console=ttyS0 panic=-1 root=/dev/vda rootwait no_timer_check";

/// Built into the kernel, its judges of locks would start at each boot.
pub const NO_JUDGES: &str = "locktorture.torture_type=none rcutorture.torture_type=none";

/// What a kernel without a disk says when all its drivers and CPUs are there.
pub(crate) const NO_DISK: &str = "Waiting for root device";

/// What carries out the instructions of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// The processor, under the kernel's hypervisor.
    Kvm,
    /// QEMU itself, with a thread for each vCPU: the host's kernel deschedules them as it does vCPUs of KVM.
    Emulation,
}

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The kernel, as `vmlinux`.
    pub kernel: PathBuf,
    /// What it is told.
    pub parameters: String,
    /// Number of vCPUs.
    pub vcpus: u32,
    /// CPUs of the host on which the vCPUs run, as `taskset -c` reads them; none: all.
    pub cpus: Option<String>,
    /// Memory in MiB.
    pub memory: u32,
    /// What runs it.
    pub accelerator: Accelerator,
    /// Time goes on with the guest's instructions, not with the host's clock: what else the host does changes nothing. One
    /// thread then runs all vCPUs in turn, as one CPU would.
    pub by_instructions: bool,
    /// What it gets of the host's CPUs; nothing: what is left.
    pub share: Option<Share>,
    /// The kernel does not see that it is a guest: then its own lock is the queue that serves in order.
    pub looks_bare: bool,
    /// The socket at which QEMU's monitor listens, if it does.
    pub monitor: Option<PathBuf>,
}

/// The host's root, which a guest only reads.
const OF_HOST: &str = "local,path=/,security_model=none,readonly=on,multidevs=remap";

/// Files that programs in a guest see. They only read them.
#[derive(Clone, Copy, Debug)]
pub enum Files<'a> {
    /// Those of a disk: ext4.
    Disk(&'a Path),
    /// Those of this host, all of them.
    OfHost,
    /// None: only its kernel works.
    None,
}

/// What a guest with our first process has besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Devices<'a> {
    /// Its initial file system.
    pub(crate) init: &'a Path,
    /// Files for programs.
    pub(crate) files: Files<'a>,
    /// The socket behind its virtio port.
    pub(crate) port: &'a Path,
}

impl Machine {
    /// A machine on all CPUs, by the host's clock, whose kernel is told nothing.
    #[must_use]
    pub fn new(kernel: PathBuf, vcpus: u32, memory: u32, accelerator: Accelerator) -> Self {
        Self {
            kernel,
            parameters: String::new(),
            vcpus,
            cpus: None,
            memory,
            accelerator,
            by_instructions: false,
            share: None,
            looks_bare: false,
            monitor: None,
        }
    }

    /// Its kernel takes this lock: one of [`LOCKS`](crate::LOCKS), or one of its own.
    #[must_use]
    pub fn with_lock(mut self, lock: &str) -> Self {
        self.looks_bare = lock == STOCK_FAIR;
        let name = if self.looks_bare { STOCK } else { lock };
        self.parameters = format!("{NO_JUDGES} overspin_lock={name}");
        self
    }

    fn command(&self, devices: Option<&Devices<'_>>) -> Command {
        const QEMU: &str = "qemu-system-x86_64";
        let mut qemu = match &self.cpus {
            None => Command::new(QEMU),
            Some(cpus) => {
                let mut taskset = Command::new("taskset");
                taskset.args(["-c", cpus, QEMU]);
                taskset
            }
        };
        let cpu = match self.accelerator {
            Accelerator::Kvm if !self.by_instructions => "host",
            _ => "max",
        };
        let hides = if self.looks_bare { ",-hypervisor" } else { "" };
        qemu.args(["-cpu", &format!("{cpu}{hides}"), "-accel"]);
        match self.accelerator {
            _ if self.by_instructions => qemu
                .args(["tcg,thread=single", "-icount", "shift=3,sleep=off"])
                .args(["-rtc", "base=2026-01-01,clock=vm"]),
            Accelerator::Kvm => qemu.arg("kvm"),
            Accelerator::Emulation => qemu.arg("tcg,thread=multi"),
        };
        qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
            // Threads are named for their vCPUs.
            .args(["-name", "overspin,debug-threads=on"])
            .args(["-smp", &self.vcpus.to_string(), "-m", &self.memory.to_string()])
            .args(["-serial", "stdio", "-monitor"])
            .arg(self.monitor.as_deref().map_or("none".into(), |socket| {
                format!("unix:{},server=on,wait=off", escaped(socket))
            }))
            .arg("-kernel")
            .arg(&self.kernel)
            .args(["-append", &format!("{PARAMETERS} {}", self.parameters)]);
        if let Some(devices) = devices {
            qemu.arg("-initrd").arg(devices.init);
            qemu.args(["-device", "virtio-serial-pci", "-chardev"])
                .arg(format!("socket,id=port,path={}", escaped(devices.port)))
                .args(["-device", &format!("virtserialport,chardev=port,name={PORT}")]);
            match devices.files {
                Files::Disk(disk) => qemu
                    .arg("-drive")
                    .arg(format!("if=none,id=disk,format=raw,readonly=on,file={}", escaped(disk)))
                    .args(["-device", "virtio-blk-pci,drive=disk"]),
                Files::OfHost => qemu.args(["-virtfs", &format!("{OF_HOST},mount_tag={HOST}")]),
                Files::None => &mut qemu,
            };
        }
        qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        qemu
    }

    /// Starts it. `guard` sees the command before it is started, and may add what ends QEMU if this process is killed.
    ///
    /// # Errors
    /// If QEMU cannot be started.
    pub(crate) fn start(
        &self,
        devices: Option<&Devices<'_>>,
        guard: Guard<'_>,
    ) -> Result<Running, LinuxError> {
        let mut command = self.command(devices);
        guard(&mut command).map_err(|said| failed(&command, said))?;
        let mut child = command.spawn().map_err(|e| failed(&command, e.to_string()))?;
        let console = Arc::new(Mutex::new(String::new()));
        let (to, lines) = channel();
        // Lines are only heard by `run`.
        let to = devices.is_none().then_some(to);
        if let Some(errors) = child.stderr.take() {
            keep(errors, Arc::clone(&console), None);
        }
        if let Some(output) = child.stdout.take() {
            keep(output, Arc::clone(&console), to);
        }
        Ok(Running { qemu: Mutex::new(child), console, lines })
    }

    /// Boots the machine, and calls `hear` with each line of its console until that returns false, the machine ends, `limit` has
    /// passed, or `stop` says so. Returns the whole console. `guard` is as for [`Guest::boot`](crate::guest::Guest::boot).
    ///
    /// # Errors
    /// If QEMU cannot be started.
    pub fn run(
        &self,
        limit: Duration,
        guard: Guard<'_>,
        hear: &mut dyn FnMut(&str) -> bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<String, LinuxError> {
        let running = self.start(None, guard)?;
        let begun = Instant::now();
        while begun.elapsed() < limit && !stop() {
            match running.lines().recv_timeout(LOOK) {
                Ok(line) if !hear(&line) => break,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(running.console())
    }
}

/// A path in an option of QEMU, where a comma ends a value.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Reads lines on a thread of its own, keeps them, and hands them on.
fn keep(from: impl Read + Send + 'static, console: Arc<Mutex<String>>, to: Option<Sender<String>>) {
    /// A guest that prints without end must not fill the memory.
    const KEPT: usize = 1 << 20;
    thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            {
                let mut console = console.lock().unwrap_or_else(PoisonError::into_inner);
                if console.len() + line.len() > KEPT {
                    console.clear();
                }
                *console += &line;
                console.push('\n');
            }
            if let Some(to) = &to {
                // Whoever asked may be gone; the console is kept all the same.
                let _ = to.send(line);
            }
        }
    });
}

/// A machine that runs. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    qemu: Mutex<Child>,
    console: Arc<Mutex<String>>,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child().id()
    }

    /// Lines of its console, as they come.
    pub(crate) fn lines(&self) -> &Receiver<String> {
        &self.lines
    }

    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.child().try_wait(), Ok(None))
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.qemu.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its console so far.
    pub(crate) fn console(&self) -> String {
        self.console.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The line in which its kernel says that it panics.
    pub(crate) fn panic(&self) -> Option<String> {
        self.console().lines().find(|line| line.contains("Kernel panic")).map(str::to_owned)
    }

    /// An error that shows the end of the console.
    pub(crate) fn said(&self, what: &str) -> LinuxError {
        // Its last lines may still be on their way.
        thread::sleep(LOOK);
        LinuxError::Console { what: what.into(), console: last_lines(&self.console()) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut child = self.child();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// What carries out a guest's instructions here: KVM, or a reason why not. It is found by booting `kernel`, and kept in the
/// folder `cache` until this machine boots again or the kernel changes.
///
/// # Errors
/// If QEMU cannot be started at all.
pub fn accelerator(
    kernel: &Path,
    cache: &Path,
    guard: Guard<'_>,
) -> Result<(Accelerator, Option<String>), LinuxError> {
    const KVM: &str = "KVM";
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let changed = fs::metadata(kernel).and_then(|found| found.modified());
    let key = format!("{} {changed:?}", boot.trim());
    let path = cache.join("accelerator");
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let found = match kept.split_once('\n') {
        Some((known, KVM)) if known == key => return Ok((Accelerator::Kvm, None)),
        Some((known, why)) if known == key => {
            return Ok((Accelerator::Emulation, Some(why.to_owned())));
        }
        _ => tried(kernel, guard)?,
    };
    let (_, why) = &found;
    // It is found again if it cannot be kept.
    let _ = fs::write(&path, format!("{key}\n{}", why.as_deref().unwrap_or(KVM)));
    Ok(found)
}

/// A reason of [`accelerator`] without what QEMU said.
pub(crate) fn in_brief(why: &str) -> &str {
    why.split_once(": ").map_or(why, |(brief, _)| brief)
}

fn tried(kernel: &Path, guard: Guard<'_>) -> Result<(Accelerator, Option<String>), LinuxError> {
    /// A kernel that runs prints its first line within a tenth of this.
    const LIMIT: Duration = Duration::from_secs(4);
    if let Err(error) = File::options().read(true).write(true).open("/dev/kvm") {
        return Ok((Accelerator::Emulation, Some(format!("/dev/kvm: {error}"))));
    }
    let machine = Machine {
        parameters: NO_JUDGES.into(),
        ..Machine::new(kernel.to_owned(), 1, 256, Accelerator::Kvm)
    };
    // It is there once it waits for a disk, which it does not have.
    let mut there = false;
    let mut hear = |line: &str| {
        there |= line.contains(NO_DISK);
        !there
    };
    let console = machine.run(LIMIT, guard, &mut hear, &|| false)?;
    if there {
        return Ok((Accelerator::Kvm, None));
    }
    let how_far = match console.lines().count() {
        0 => "a kernel prints nothing".into(),
        _ => format!(
            "a kernel stops after: {}",
            last_lines(console.lines().next_back().unwrap_or(""))
        ),
    };
    let seconds = LIMIT.as_secs();
    Ok((
        Accelerator::Emulation,
        Some(format!("KVM carries no kernel here: within {seconds} s {how_far}")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_comma_is_one_value() {
        assert_eq!(escaped(Path::new("/a,b/c")), "/a,,b/c");
    }

    #[test]
    fn what_carries_kernels_is_kept_until_the_kernel_changes() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("vmlinux");
        fs::write(&kernel, "").unwrap();
        let guard = |_: &mut Command| Err("nothing may start".to_owned());
        let key = || {
            let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
            format!("{} {:?}", boot.trim(), fs::metadata(&kernel).and_then(|f| f.modified()))
        };
        let kept = folder.path().join("accelerator");
        fs::write(&kept, format!("{}\nno luck", key())).unwrap();
        let (accelerator, why) = super::accelerator(&kernel, folder.path(), &guard).unwrap();
        assert_eq!((accelerator, why.as_deref()), (Accelerator::Emulation, Some("no luck")));
        fs::write(&kept, format!("{}\nKVM", key())).unwrap();
        assert_eq!(super::accelerator(&kernel, folder.path(), &guard).unwrap().0, Accelerator::Kvm);
        fs::write(&kept, "of another boot\nKVM").unwrap();
        let again = super::accelerator(&kernel, folder.path(), &guard);
        // It is tried: without /dev/kvm there is nothing to start.
        assert!(again.is_err() || again.is_ok_and(|(found, _)| found == Accelerator::Emulation));
    }
}
