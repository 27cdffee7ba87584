//! A machine of QEMU that boots a kernel.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::program::{failed, last_lines};
use crate::{Guard, LinuxError};

/// How often to look whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A panic ends the machine instead of leaving it there. Without a disk the kernel waits for one for ever, while its own tests
/// run.
const PARAMETERS: &str = "console=ttyS0 panic=-1 root=/dev/vda rootwait";

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
    /// Memory in MiB.
    pub memory: u32,
    /// What runs it.
    pub accelerator: Accelerator,
}

impl Machine {
    fn command(&self) -> Command {
        let mut qemu = Command::new("qemu-system-x86_64");
        match self.accelerator {
            Accelerator::Kvm => qemu.args(["-accel", "kvm", "-cpu", "host"]),
            Accelerator::Emulation => qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max"]),
        };
        qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
            .args(["-smp", &self.vcpus.to_string(), "-m", &self.memory.to_string()])
            .args(["-monitor", "none", "-serial", "stdio"])
            .arg("-kernel")
            .arg(&self.kernel)
            .args(["-append", &format!("{PARAMETERS} {}", self.parameters)])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        qemu
    }

    /// Boots the machine, and calls `hear` with each line of its console until that returns false, the machine ends, `limit` has
    /// passed, or `stop` says so. Returns the whole console. `guard` sees the command before it is started, and may add what ends
    /// QEMU if this process is killed.
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
        let mut command = self.command();
        guard(&mut command).map_err(|said| failed(&command, said))?;
        let child = command.spawn().map_err(|e| failed(&command, e.to_string()))?;
        let mut qemu = Qemu(child);
        let (to, heard) = channel();
        if let Some(output) = qemu.0.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                    if to.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                        return;
                    }
                }
            });
        }
        let mut console = String::new();
        let begun = Instant::now();
        while begun.elapsed() < limit && !stop() {
            match heard.recv_timeout(LOOK) {
                Ok(line) => {
                    console += &line;
                    console.push('\n');
                    if !hear(&line) {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(console)
    }
}

/// QEMU, which ends when this is dropped.
struct Qemu(Child);

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What carries out a guest's instructions here, found by booting `kernel`: KVM, or a reason why not.
///
/// # Errors
/// If QEMU cannot be started at all.
pub fn accelerator(
    kernel: &Path,
    guard: Guard<'_>,
) -> Result<(Accelerator, Option<String>), LinuxError> {
    /// A kernel that runs prints its first line within a tenth of this.
    const LIMIT: Duration = Duration::from_secs(4);
    if let Err(error) = File::options().read(true).write(true).open("/dev/kvm") {
        return Ok((Accelerator::Emulation, Some(format!("/dev/kvm: {error}"))));
    }
    let machine = Machine {
        kernel: kernel.to_owned(),
        parameters: "locktorture.torture_type=none rcutorture.torture_type=none".into(),
        vcpus: 1,
        memory: 256,
        accelerator: Accelerator::Kvm,
    };
    // It is there once it waits for a disk, which it does not have.
    let mut there = false;
    let mut hear = |line: &str| {
        there |= line.contains("Waiting for root device");
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
