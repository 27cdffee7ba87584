//! A lock in place of a program's pthread mutexes, through the preload library.

use crate::Failed;
use crate::program;
use overspin_native::preload as loading;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The word for no lock: the C library's own mutex.
pub const NONE: &str = "none";

/// The preload library, and the locks to compare.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    /// Names; [`NONE`] stands for the program as it is. Empty means only that, unnamed.
    pub names: Vec<String>,
    /// The preload library; needed if a lock is named.
    pub library: Option<PathBuf>,
}

impl Locks {
    /// The names of the variants; an empty name if the user named no lock.
    pub(crate) fn variants(&self) -> Vec<String> {
        if self.names.is_empty() { vec![String::new()] } else { self.names.clone() }
    }

    /// A place of this variant: `mutex.clients-4`, or `clients-4` if the user named no lock.
    pub(crate) fn place(variant: &str, rest: &str) -> String {
        if variant.is_empty() { rest.to_owned() } else { format!("{variant}.{rest}") }
    }

    /// Gives the lock of `variant` to the program.
    ///
    /// # Errors
    /// If there is no preload library.
    pub(crate) fn apply(&self, variant: &str, command: &mut Command) -> Result<(), Failed> {
        if variant.is_empty() {
            return Ok(());
        }
        if variant == NONE {
            command.env_remove("LD_PRELOAD").env_remove("OVERSPIN_LOCK");
            return Ok(());
        }
        let Some(library) = &self.library else {
            return Err(Failed::needs("there is no preload library", "build or install it"));
        };
        command.env("LD_PRELOAD", before_others(library, std::env::var_os("LD_PRELOAD")));
        command.env("OVERSPIN_LOCK", variant);
        Ok(())
    }

    /// Preloads the variant into a program that counts its acquisitions; see [`acquisitions`].
    pub(crate) fn apply_counting(
        &self,
        variant: &str,
        command: &mut Command,
    ) -> Result<(), Failed> {
        self.apply(variant, command)?;
        if !variant.is_empty() && variant != NONE {
            command.env("OVERSPIN_STATS", "1");
        }
        Ok(())
    }
}

/// The value of LD_PRELOAD: the library, then whatever it had before.
#[must_use]
pub fn before_others(library: &Path, others: Option<OsString>) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// The acquisitions that the preload library counted in all processes that wrote to this text:
/// `mutex in process 12: 3 mutexes, 456 acquisitions, 7 contended`.
#[must_use]
pub fn acquisitions(text: &str) -> u64 {
    let of = |line: &str| -> Option<u64> {
        let (_, counts) = line.split_once(" in process ")?;
        let counts = counts.strip_suffix(" contended")?;
        counts.split(", ").find_map(|c| c.strip_suffix(" acquisitions"))?.parse().ok()
    };
    text.lines().filter_map(of).sum()
}

/// A doubt about comparing locks with this program, found before the first run: the loader gives it no library.
pub(crate) fn doubt(locks: &Locks, program: &str) -> Option<String> {
    let named = locks.names.iter().any(|n| n != NONE);
    let path = program::find(program).filter(|_| named)?;
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let obstacle = loading::obstacle(&path, folders.as_bytes())?;
    let (what, remedy) = (obstacle.what(), obstacle.remedy());
    Some(format!("`{program}` runs without these locks: it, or its interpreter, {what}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_libraries_are_kept() {
        let library = Path::new("/a.so");
        assert_eq!(before_others(library, None), "/a.so");
        assert_eq!(before_others(library, Some("".into())), "/a.so");
        assert_eq!(before_others(library, Some("/b.so".into())), "/a.so:/b.so");
    }

    #[test]
    fn acquisitions_of_all_processes() {
        let text = "x\nmutex in process 12: 3 mutexes, 456 acquisitions, 7 contended\n\
                    acquisitions  contended mutex               first locked at\n\
                    mutex in process 13: 1 mutexes, 4 acquisitions, 0 contended\n";
        assert_eq!(acquisitions(text), 460);
        assert_eq!(acquisitions(""), 0);
    }

    #[test]
    fn places_of_variants() {
        assert_eq!(Locks::default().variants(), [""]);
        assert_eq!(Locks::place("", "clients-4"), "clients-4");
        assert_eq!(Locks::place("mutex", "clients-4"), "mutex.clients-4");
    }
}
