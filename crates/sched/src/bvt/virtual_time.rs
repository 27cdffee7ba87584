//! Virtual times: the cost of running, the lead of one vCPU over another, and that lead in real
//! time.

use super::Bvt;
use crate::ids::{PcpuId, VcpuId};
use crate::scheduler::Context;
use crate::time::Nanos;

/// Minimum charging unit.
const MCU: Nanos = Nanos::us(100);
/// With `as_is`, once SVT reaches this, all virtual times of the pCPU decrease by `RESET_BY`.
const RESET_AT: i64 = 0xf000_0000;
const RESET_BY: i64 = 0xe000_0000;

impl Bvt {
    /// A virtual time, cut to the original's 32 bits with `as_is`.
    fn wrap(&self, virtual_time: i64) -> i64 {
        if self.as_is { virtual_time & 0xffff_ffff } else { virtual_time }
    }

    pub(super) fn evt(&self, v: VcpuId, avt: i64) -> i64 {
        let vcpu = &self.vcpus[v.index()];
        self.wrap(avt - if vcpu.warped { vcpu.share.warp_value } else { 0 })
    }

    /// The `avt` that the running vCPU `v` has reached at `now`.
    pub(super) fn avt_at(&self, now: Nanos, v: VcpuId) -> i64 {
        let vcpu = &self.vcpus[v.index()];
        let units = (now - vcpu.charged + MCU - Nanos(1)) / MCU;
        self.wrap(vcpu.avt + units * vcpu.share.advance)
    }

    /// How long a vCPU with this advance may run: until it has made up `lag`, plus the allowance.
    pub(super) fn stretch(&self, lag: i64, advance: i64) -> Nanos {
        let units = lag / advance;
        self.allowance + if self.as_is { Nanos(units) } else { units * MCU }
    }

    /// With `as_is`, lowers the virtual times of the pCPU before they overflow. O(vCPUs), but rare.
    pub(super) fn reset(&mut self, cx: &Context<'_>, p: PcpuId) {
        if !self.as_is || self.pcpus[p.index()].svt < RESET_AT {
            return;
        }
        self.pcpus[p.index()].svt -= RESET_BY;
        for i in 0..self.vcpus.len() {
            if cx.home(VcpuId(i as u32)) == p {
                self.vcpus[i].avt = self.wrap(self.vcpus[i].avt - RESET_BY);
            }
        }
    }
}
