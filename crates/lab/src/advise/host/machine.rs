//! This machine: processes with threads that are vCPUs, and where there are none, containers.
//!
//! A monitor names the threads of its vCPUs: `CPU 0/KVM` (QEMU, where libvirt asks it to), `fc_vcpu 0` (Firecracker), `vcpu0`
//! (Cloud Hypervisor), `crosvm_vcpu0`. Limits and weights are those of control groups, version 2.

use super::{HostFound, container};
use std::fs;
use std::path::{Path, PathBuf};

/// What names of threads of vCPUs begin with.
const VCPU_NAMES: [&str; 4] = ["CPU ", "fc_vcpu", "vcpu", "crosvm_vcpu"];
/// What folders of control groups of containers begin with, or the folder in which they lie.
const CONTAINERS: [&str; 5] = ["docker-", "cri-containerd-", "crio-", "libpod-", "nerdctl-"];
/// Deepest control group that is looked at: Kubernetes' are four deep.
const DEPTH: usize = 8;

pub(super) fn read(root: &Path, pcpus: u32, found: &mut HostFound) {
    let proc = root.join("proc");
    let processes = folders(&proc).into_iter().filter(|p| is_number(p));
    for process in processes {
        monitor(root, &process, found);
    }
    if found.guests.is_empty() {
        containers(&root.join("sys/fs/cgroup"), DEPTH, pcpus, found);
    }
    found.from.push("this machine".into());
}

fn is_number(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
}

/// The folders in a folder, in order of their names; none if it cannot be read.
fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    all.sort();
    all
}

fn text(file: impl AsRef<Path>) -> Option<String> {
    Some(String::from_utf8_lossy(&fs::read(file).ok()?).into_owned())
}

/// Adds a process if it has vCPUs.
fn monitor(root: &Path, process: &Path, found: &mut HostFound) {
    let command = text(process.join("cmdline")).unwrap_or_default();
    let arguments: Vec<&str> = command.split('\0').collect();
    let program = arguments.first().and_then(|p| p.rsplit('/').next()).unwrap_or_default();
    let threads = folders(&process.join("task"));
    let is_vcpu = |thread: &&PathBuf| {
        let name = text(thread.join("comm")).unwrap_or_default();
        VCPU_NAMES.iter().any(|begins| name.starts_with(begins))
    };
    let mut vcpus = threads.iter().filter(is_vcpu).count() as u32;
    if vcpus == 0 && program.starts_with("qemu-") {
        vcpus = smp(&arguments).unwrap_or(1);
    }
    if vcpus == 0 {
        return;
    }
    let name = name(&arguments).unwrap_or_else(|| {
        let number = process.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        format!("pid-{number}")
    });
    let group = text(process.join("cgroup")).unwrap_or_default();
    let group = group.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let groups = root.join("sys/fs/cgroup");
    let (weight, cap) = limits(&groups, &groups.join(group), vcpus);
    found.add(&name, vcpus, weight, cap);
}

/// The name that the command gives to the guest.
fn name(arguments: &[&str]) -> Option<String> {
    let after = |option: &str| {
        let at = arguments.iter().position(|a| *a == option)?;
        arguments.get(at + 1).copied()
    };
    let given = after("-name").or_else(|| after("--id"))?;
    let first = given.split(',').find_map(|part| part.strip_prefix("guest="));
    Some(first.unwrap_or_else(|| given.split(',').next().unwrap_or(given)).to_owned())
}

/// QEMU's `-smp 4` or `-smp cpus=4,sockets=2`.
fn smp(arguments: &[&str]) -> Option<u32> {
    let at = arguments.iter().position(|a| *a == "-smp")?;
    let given = arguments.get(at + 1)?;
    given.split(',').find_map(|part| part.strip_prefix("cpus=").unwrap_or(part).parse().ok())
}

/// The weight and the cap of a control group: the nearest weight that somebody set, and the least quota up to the root. For
/// a guest of libvirt, whose vCPUs have groups of their own, the quota is that of its vCPUs.
fn limits(groups: &Path, group: &Path, vcpus: u32) -> (u32, u32) {
    let quota = |of: &Path| {
        let text = text(of.join("cpu.max"))?;
        let (quota, period) = text.trim().split_once(' ')?;
        Some(100.0 * quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?.max(1.0))
    };
    let upwards = || group.ancestors().take_while(|of| of.starts_with(groups));
    let weight = upwards()
        .filter_map(|of| text(of.join("cpu.weight"))?.trim().parse::<f64>().ok())
        .find(|weight| *weight != 100.0);
    let each = group.parent().and_then(|of| quota(&of.join("vcpu0")));
    let each = each.map(|percent| percent * f64::from(vcpus));
    let cap = upwards().filter_map(quota).chain(each).reduce(f64::min);
    let weight = weight.map_or(256.0, |weight| (2.56 * weight).round());
    (weight as u32, cap.map_or(0.0, |cap| cap.round().max(1.0)) as u32)
}

/// Adds the control groups in `folder` that are containers with processes.
fn containers(folder: &Path, depth: usize, pcpus: u32, found: &mut HostFound) {
    for inner in folders(folder) {
        let name = inner.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        let parent = folder.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let is_container =
            CONTAINERS.iter().any(|begins| name.starts_with(begins)) || parent == "docker";
        let runs = text(inner.join("cgroup.procs")).is_some_and(|all| !all.trim().is_empty());
        if is_container && runs {
            let id = name.trim_end_matches(".scope").rsplit('-').next().unwrap_or(&name);
            let (weight, cap) = limits(folder, &inner, 1);
            let limit = (cap > 0).then(|| f64::from(cap) / 100.0);
            let short: String = id.chars().take(12).collect();
            container(found, &format!("container-{short}"), limit, weight, pcpus);
        } else if depth > 0 {
            containers(&inner, depth - 1, pcpus, found);
        }
    }
}
