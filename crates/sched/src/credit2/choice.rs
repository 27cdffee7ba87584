//! The choice of the vCPU that a pCPU runs next. Source: schedulers specification §4.4 (candidate).

use super::Credit2;
use crate::ids::{PcpuId, VcpuId};
use crate::scheduler::Context;

impl Credit2 {
    /// The vCPU that `p` should run: the current one, unless a queued vCPU is better and allowed.
    /// May park vCPUs that find no budget. O(queue).
    pub(super) fn candidate(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Option<VcpuId> {
        let q = self.queue_of(p);
        let current = cx.current(p);
        let mut default = current.filter(|v| cx.is_runnable(*v));
        let yields = current.is_some_and(|v| core::mem::take(&mut self.vcpus[v.index()].yields));
        if let Some(v) = default {
            if !yields && cx.now() - cx.entry(v) < self.params.ratelimit {
                return default;
            }
            // A vCPU that prefers other pCPUs leaves if one of them is free.
            let soft = cx.affinity(v).soft().filter(|s| !self.profile.early && !s.contains(p));
            if soft.is_some_and(|soft| soft.intersects(&self.queues[q].free)) {
                default = None;
            }
        }
        let bar = default.map_or(self.params.idle_credit, |v| self.vcpus[v.index()].credit);
        let mut at = self.queues[q].queue.head();
        while let Some(x) = at {
            at = self.run_links.next(x);
            let v = VcpuId(x);
            let vcpu = &self.vcpus[v.index()];
            if !yields && vcpu.credit <= bar {
                break;
            }
            let told = vcpu.tickled_by;
            let another_comes = told.is_some_and(|t| t != p && self.queues[q].tickled.contains(t));
            let resist = self.params.migrate_resist;
            let resisted = cx.home(v) != p && bar.saturating_add(resist) > vcpu.credit;
            let allowed = cx.affinity(v).hard().contains(p);
            if allowed && !another_comes && !resisted && self.grab(cx, v) {
                return Some(v);
            }
        }
        default
    }
}
