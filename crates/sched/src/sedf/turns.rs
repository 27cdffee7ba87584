//! The end of a turn: charging, and queueing the vCPU again.

use super::{PENALTY, Sedf};
use crate::ids::{PcpuId, VcpuId};
use crate::scheduler::Context;
use crate::time::Nanos;

impl Sedf {
    /// Ends a turn of `v` in extra time from queue `q`.
    pub(super) fn end_extra(&mut self, cx: &Context<'_>, p: PcpuId, v: VcpuId, q: usize) {
        self.dequeue_extra(p, q, v);
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.extra = None;
        vcpu.used = Nanos::ZERO;
        let ran = cx.now() - vcpu.started;
        let mut paid = 0;
        let again = if q == PENALTY {
            vcpu.lost = (vcpu.lost - ran).max(Nanos::ZERO);
            if vcpu.lost > Nanos::ZERO {
                // The score reflects the time still lost; there is no price on top.
                vcpu.score[q] = (vcpu.share.period.0 << 10) / vcpu.lost.0;
            }
            vcpu.lost > Nanos::ZERO
        } else {
            paid = vcpu.score[q];
            let share = &vcpu.share;
            vcpu.score[q] = match share.extraweight {
                // A vCPU without a slice has the score of the least weight.
                0 if share.slice == Nanos::ZERO => 1 << 17,
                0 => (share.period.0 << 10) / share.slice.0,
                weight => (1 << 17) / weight,
            };
            share.extratime
        };
        if !cx.is_runnable(v) {
            self.dequeue_all(p, v);
        } else if again {
            self.enqueue_extra(p, q, v, paid);
        }
    }

    /// Ends a turn of `v` in guaranteed time.
    pub(super) fn end_guaranteed(&mut self, cx: &Context<'_>, p: PcpuId, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.used += cx.now() - vcpu.started;
        let share = &vcpu.share;
        let used_up = vcpu.used >= share.slice;
        if !used_up && cx.is_runnable(v) {
            return;
        }
        self.dequeue(p, v);
        if used_up {
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.used -= vcpu.share.slice;
            vcpu.deadline += vcpu.share.period;
        }
        if cx.is_runnable(v) {
            self.enqueue(cx.now(), p, v);
        } else {
            self.dequeue_all(p, v);
        }
    }
}
