//! Waits for the mutexes of a program under `overspin exec --stats`, which its processes count in memory that they share.

use overspin_native::preload::{RUN, Waits};
use std::fs::{self, File};
use std::path::Path;

/// Processes whose environment is looked at. The first ones suffice: a run hands its memory to all.
const ASKED: usize = 16;

/// What is known of the program's mutexes.
#[derive(Debug)]
pub(super) enum Mutexes {
    /// The memory of the run.
    Counted(File),
    /// It runs under `overspin exec`, without `--stats`.
    Uncounted,
    /// It does not run under `overspin exec`, as far as its environment tells.
    Own,
    /// Its environment, or its memory, may not be read.
    Denied,
}

impl Mutexes {
    pub(super) fn find(root: &Path, processes: impl Iterator<Item = u32>) -> Self {
        let mut best = Self::Own;
        for process in processes.take(ASKED) {
            match Self::of(root, process) {
                Self::Counted(file) => return Self::Counted(file),
                Self::Own => {}
                other => best = other,
            }
        }
        best
    }

    fn of(root: &Path, process: u32) -> Self {
        let proc = root.join("proc");
        let environment = match fs::read(proc.join(format!("{process}/environ"))) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => return Self::Denied,
            // It has ended.
            Err(_) => return Self::Own,
        };
        let value = |name: &str| {
            let mut all = environment.split(|byte| *byte == 0);
            let found = all.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
            found.and_then(|value| std::str::from_utf8(value).ok())
        };
        let run = value(RUN).and_then(|run| run.split_once(':'));
        let Some((first, number)) = run else { return Self::Own };
        if value("OVERSPIN_STATS").is_none() {
            return Self::Uncounted;
        }
        // A process may have closed the file, or the first one may have ended.
        let own = process.to_string();
        let files = [first, &own].map(|of| File::open(proc.join(of).join("fd").join(number)));
        let counted = files.into_iter().flatten().find(|file| Waits::read(file).is_ok());
        counted.map_or(Self::Denied, Self::Counted)
    }

    pub(super) fn waits(&self) -> Option<Waits> {
        match self {
            Self::Counted(file) => Waits::read(file).ok(),
            _ => None,
        }
    }
}
