//! A credit2 under test, without the layer around it, so that unit tests see its state.

use super::Credit2;
use super::profile::Profile;
use crate::ids::{Action, PcpuId, VcpuId};
use crate::machine::Machine;
use crate::scheduler::{Context, DomainParams, Scheduler};
use crate::time::Nanos;
use crate::{Affinity, Hypervisor, Topology};
use alloc::boxed::Box;
use alloc::vec::Vec;

pub(super) struct Bench {
    pub credit2: Credit2,
    pub machine: Machine,
    actions: Vec<Action>,
}

impl Bench {
    /// One domain, with vCPUs of these affinities, which are down.
    pub fn new(profile: &'static Profile, topology: Topology, affinities: &[Affinity]) -> Self {
        Self::with(profile, &crate::Params::default(), topology, affinities)
    }

    /// The same with these parameters.
    pub fn with(
        profile: &'static Profile,
        over: &crate::Params,
        topology: Topology,
        affinities: &[Affinity],
    ) -> Self {
        let new = || Credit2::new(profile, over).unwrap();
        // The layer makes the machine's records of the vCPUs; a second scheduler is under test.
        let mut layer = Hypervisor::new(topology, Box::new(new()));
        let mut actions = Vec::new();
        layer.start(Nanos::ZERO, &mut actions);
        let d = layer.create_domain(DomainParams::default()).unwrap();
        for affinity in affinities {
            layer.create_vcpu(Nanos::ZERO, d, affinity.clone(), &mut actions).unwrap();
        }
        let mut bench = Self { credit2: new(), machine: layer.machine().clone(), actions };
        bench.at(Nanos::ZERO, |credit2, cx| {
            credit2.start(cx);
            credit2.create_domain(d, DomainParams::default());
            (0..affinities.len()).for_each(|v| credit2.insert(cx, VcpuId(v as u32)));
        });
        bench
    }

    /// Calls the scheduler on pCPU 0 at `now`.
    pub fn at<R>(
        &mut self,
        now: Nanos,
        call: impl FnOnce(&mut Credit2, &mut Context<'_>) -> R,
    ) -> R {
        let (machine, actions) = (&mut self.machine, &mut self.actions);
        let mut cx = Context { now, executing: PcpuId(0), machine, actions };
        call(&mut self.credit2, &mut cx)
    }
}
