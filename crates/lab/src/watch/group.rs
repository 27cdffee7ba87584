//! Control groups: their quotas of CPU time, and how often they were stopped for them. Both versions of the kernel's
//! interface are read.

use overspin_native::world::Throttling;
use std::fs;
use std::path::{Path, PathBuf};

/// Groups lie no deeper than this, as far as they are looked at.
const DEPTH: usize = 8;
/// Most groups with a quota that are read in every interval.
const MOST: usize = 64;

/// How often this group and all inside it were stopped, summed.
#[must_use]
pub fn throttling_within(folder: &Path) -> Option<Throttling> {
    let mut sum = None;
    visit(folder, DEPTH, &mut |group| {
        if let Some(of) = Throttling::of(group) {
            let all = sum.get_or_insert(Throttling::default());
            all.periods += of.periods;
            all.throttled += of.throttled;
            all.throttled_ns += of.throttled_ns;
        }
    });
    sum
}

/// The CPU time that a group may use, in CPUs; none if it has no limit.
#[must_use]
pub fn quota(folder: &Path) -> Option<f64> {
    let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        }
        None => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
    };
    let (quota, period) = (quota.trim().parse::<f64>().ok()?, period.trim().parse::<f64>().ok()?);
    // Version 1 says -1 for no limit.
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// The folders in which this machine may show its groups: version 1 has one for the controller, version 2 the root.
fn roots(root: &Path) -> impl Iterator<Item = PathBuf> {
    let folder = root.join("sys/fs/cgroup");
    ["cpu", "cpu,cpuacct", "unified", ""].into_iter().map(move |name| folder.join(name))
}

/// All groups of this machine that have a quota.
pub(super) fn with_quota(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let Some(folder) = roots(root).find(|folder| folder.is_dir()) else { return found };
    visit(&folder, DEPTH, &mut |group| {
        if found.len() < MOST && quota(group).is_some() {
            found.push(group.to_owned());
        }
    });
    found
}

/// The group of a process and those around it, of which each may have a quota. `cgroup` is the text of its file in `/proc`.
pub(super) fn around(root: &Path, cgroup: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for line in cgroup.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        if !controllers.is_empty() && !controllers.split(',').any(|name| name == "cpu") {
            continue;
        }
        for top in roots(root) {
            let group = top.join(path.trim_start_matches('/'));
            let levels = group.ancestors().take_while(|folder| folder.starts_with(&top));
            let limited = levels.filter(|folder| quota(folder).is_some());
            found.extend(limited.map(Path::to_owned).take(DEPTH));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The processes of a group and of those inside it.
pub(super) fn processes(folder: &Path) -> Vec<u32> {
    let mut found = Vec::new();
    visit(folder, DEPTH, &mut |group| {
        let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        found.extend(text.lines().filter_map(|line| line.trim().parse::<u32>().ok()));
    });
    found
}

/// The path of a group as its machine names it.
pub(super) fn name(root: &Path, folder: &Path) -> String {
    let inside = roots(root).find_map(|top| folder.strip_prefix(top).ok());
    format!("/{}", inside.unwrap_or(folder).display())
}

fn visit(folder: &Path, depth: usize, see: &mut dyn FnMut(&Path)) {
    see(folder);
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // Links are not followed: groups have none, and other folders may have circles.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            visit(&entry.path(), depth - 1, see);
        }
    }
}
