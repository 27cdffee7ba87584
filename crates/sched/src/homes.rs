//! Homes for schedulers that keep one queue per pCPU and never move a vCPU on their own.

use crate::ids::{PcpuId, VcpuId};
use crate::machine::Machine;
use alloc::vec;
use alloc::vec::Vec;

/// How many vCPUs live on each pCPU, runnable or not.
#[derive(Clone, Debug)]
pub(crate) struct Homes {
    population: Vec<u32>,
}

impl Homes {
    pub(crate) fn new(pcpus: u32) -> Self {
        Self { population: vec![0; pcpus as usize] }
    }

    pub(crate) fn add(&mut self, p: PcpuId) {
        self.population[p.index()] += 1;
    }

    pub(crate) fn remove(&mut self, p: PcpuId) {
        self.population[p.index()] -= 1;
    }

    /// The least populated pCPU on which `v` may run. Among equals, it is the first from the home
    /// of `v` on, in index order around the machine. O(pCPUs).
    pub(crate) fn least_populated(&self, machine: &Machine, v: VcpuId) -> PcpuId {
        let (home, hard) = (machine.home(v), machine.affinity(v).hard());
        let around = (home.0..machine.pcpus()).chain(0..home.0).map(PcpuId);
        let allowed = around.filter(|p| hard.contains(*p));
        allowed.min_by_key(|p| self.population[p.index()]).unwrap_or(home)
    }

    /// The home of `v` if it may run there, else as [`Self::least_populated`].
    pub(crate) fn stay(&self, machine: &Machine, v: VcpuId) -> PcpuId {
        let home = machine.home(v);
        let stays = machine.affinity(v).hard().contains(home);
        if stays { home } else { self.least_populated(machine, v) }
    }
}
