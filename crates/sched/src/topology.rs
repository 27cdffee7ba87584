//! How hardware threads group into cores and sockets.
//!
//! Indices are contiguous, so that a core or a socket is a range and never a list. Each socket
//! counts as one NUMA node.

use crate::error::SchedError;
use crate::ids::PcpuId;
use alloc::format;
use core::ops::Range;

/// The shape of the machine. Thread `t` of core `c` of socket `s` is the pCPU with index
/// `(s * cores_per_socket + c) * threads_per_core + t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Sockets, at least 1.
    pub sockets: u32,
    /// Cores in each socket, at least 1.
    pub cores_per_socket: u32,
    /// Hardware threads of each core, at least 1.
    pub threads_per_core: u32,
}

impl Topology {
    /// The greatest number of pCPUs of a machine.
    pub const MAX_PCPUS: u32 = 1 << 16;

    /// One socket of `pcpus` cores with one hardware thread each.
    pub fn flat(pcpus: u32) -> Self {
        Self { sockets: 1, cores_per_socket: pcpus, threads_per_core: 1 }
    }

    /// Checks that each count is at least 1 and that the machine has at most [`Self::MAX_PCPUS`]
    /// pCPUs.
    ///
    /// # Errors
    /// [`SchedError::Param`] with the offending key and its legal values.
    pub fn check(&self) -> Result<(), SchedError> {
        let legal = || format!("1 to {}", Self::MAX_PCPUS);
        for (key, value) in [
            ("sockets", self.sockets),
            ("cores_per_socket", self.cores_per_socket),
            ("threads_per_core", self.threads_per_core),
        ] {
            if value == 0 || value > Self::MAX_PCPUS {
                return Err(SchedError::Param { key, value: value.into(), legal: legal() });
            }
        }
        let pcpus = u64::from(self.sockets)
            * u64::from(self.cores_per_socket)
            * u64::from(self.threads_per_core);
        if pcpus > Self::MAX_PCPUS.into() {
            let value = i64::try_from(pcpus).unwrap_or(i64::MAX);
            return Err(SchedError::Param { key: "pcpus", value, legal: legal() });
        }
        Ok(())
    }

    /// Number of pCPUs.
    pub fn pcpus(&self) -> u32 {
        self.sockets * self.cores_per_socket * self.threads_per_core
    }

    /// Index of the core of `p`, over the whole machine.
    pub fn core_of(&self, p: PcpuId) -> u32 {
        p.0 / self.threads_per_core
    }

    /// Index of the socket of `p`.
    pub fn socket_of(&self, p: PcpuId) -> u32 {
        p.0 / self.socket_size()
    }

    /// The threads of the core of `p`, `p` included.
    pub fn siblings(&self, p: PcpuId) -> Range<u32> {
        let first = self.core_of(p) * self.threads_per_core;
        first..first + self.threads_per_core
    }

    /// The threads of the socket of `p`, `p` included.
    pub fn socket_mates(&self, p: PcpuId) -> Range<u32> {
        self.socket(self.socket_of(p))
    }

    /// The threads of a socket.
    pub fn socket(&self, socket: u32) -> Range<u32> {
        let first = socket * self.socket_size();
        first..first + self.socket_size()
    }

    fn socket_size(&self) -> u32 {
        self.cores_per_socket * self.threads_per_core
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_contiguous_ranges() {
        let t = Topology { sockets: 2, cores_per_socket: 3, threads_per_core: 2 };
        assert_eq!(t.pcpus(), 12);
        assert_eq!(t.siblings(PcpuId(7)), 6..8);
        assert_eq!(t.socket_mates(PcpuId(7)), 6..12);
        assert_eq!((t.core_of(PcpuId(7)), t.socket_of(PcpuId(7))), (3, 1));
    }

    #[test]
    fn impossible_machines_are_refused() {
        assert!(Topology::flat(0).check().is_err());
        assert!(Topology::flat(1 << 17).check().is_err());
        let huge = Topology { sockets: 1 << 16, cores_per_socket: 1 << 16, threads_per_core: 2 };
        assert!(huge.check().is_err());
        assert!(Topology::flat(1000).check().is_ok());
    }
}
