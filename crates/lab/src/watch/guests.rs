//! What KVM counts of all guests of this machine, in debugfs.

use serde::Serialize;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Counters since the module was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Guests {
    /// Pause-loop exits after which KVM looked for another vCPU to run. KVM has no counter of the exits themselves.
    pub yields: u64,
    /// Those that found one.
    pub yielded: u64,
    /// Time for which CPUs polled for vCPUs that had halted.
    pub halt_polling_ns: u64,
}

impl Guests {
    /// Reads them, or says why not.
    ///
    /// # Errors
    /// If there is no KVM here, or it does not tell us.
    pub fn read(root: &Path) -> Result<Self, ErrorKind> {
        let folder = root.join("sys/kernel/debug/kvm");
        let value = |name: &str| {
            let text = fs::read_to_string(folder.join(name)).map_err(|e| e.kind())?;
            text.trim().parse::<u64>().map_err(|_| ErrorKind::InvalidData)
        };
        // Kernels before 5.10 do not count polls in nanoseconds.
        let polled = |name: &str| value(name).unwrap_or(0);
        Ok(Self {
            yields: value("directed_yield_attempted")?,
            yielded: value("directed_yield_successful").unwrap_or(0),
            halt_polling_ns: polled("halt_poll_success_ns") + polled("halt_poll_fail_ns"),
        })
    }

    /// What happened from `before` to `self`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            yields: self.yields.saturating_sub(before.yields),
            yielded: self.yielded.saturating_sub(before.yielded),
            halt_polling_ns: self.halt_polling_ns.saturating_sub(before.halt_polling_ns),
        }
    }
}
