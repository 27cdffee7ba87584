//! Shares of vCPUs, and warps with their limits.

use super::Bvt;
use super::params::{MCU_ADVANCE, UNWARP_TIME, WARP_LIMIT, WARP_VALUE, WARPBACK};
use crate::ids::{TimerId, VcpuId};
use crate::params::Params;
use crate::scheduler::Context;
use crate::time::Nanos;

/// The share and the warp of a vCPU. Virtual times are in units of the scheduler, limits in ns of
/// real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Virtual time for each MCU; at least 1.
    pub advance: i64,
    pub warpback: bool,
    pub warp_value: i64,
    pub warp_limit: Nanos,
    pub unwarp_time: Nanos,
}

impl Share {
    /// The share for a domain of this weight: an advance of 10 for weight 256, rounded to the
    /// nearest unit.
    pub fn of_weight(weight: u32, scale: i64) -> Self {
        let (weight, unset) = (i64::from(weight), Params::default());
        let advance = 256 * MCU_ADVANCE.number_in(&unset) * scale;
        Self {
            advance: ((advance + weight / 2) / weight).max(1),
            warpback: WARPBACK.flag_in(&unset),
            warp_value: WARP_VALUE.number_in(&unset) * scale,
            warp_limit: WARP_LIMIT.time_in(&unset),
            unwarp_time: UNWARP_TIME.time_in(&unset),
        }
    }

    /// Takes the values that are set in `params`.
    pub fn with(self, params: &Params, scale: i64) -> Self {
        Self {
            advance: params.number(MCU_ADVANCE.key).map_or(self.advance, |a| a * scale),
            warpback: params.flag(WARPBACK.key).unwrap_or(self.warpback),
            warp_value: params.number(WARP_VALUE.key).map_or(self.warp_value, |w| w * scale),
            warp_limit: params.time(WARP_LIMIT.key).unwrap_or(self.warp_limit),
            unwarp_time: params.time(UNWARP_TIME.key).unwrap_or(self.unwarp_time),
        }
    }
}

impl Bvt {
    pub(super) fn set_alarm(&mut self, v: VcpuId, at: Option<Nanos>) {
        if let Some(old) = core::mem::replace(&mut self.vcpus[v.index()].alarm, at) {
            self.alarms.remove(&(old, v));
        }
        if let Some(at) = at {
            self.alarms.insert((at, v));
        }
    }

    pub(super) fn arm(&mut self, cx: &mut Context<'_>) {
        let first = self.alarms.first().map(|(at, _)| *at);
        if self.timer != first {
            self.timer = first;
            match first {
                Some(at) => cx.set_timer(TimerId::Accounting, at),
                None => cx.stop_timer(TimerId::Accounting),
            }
        }
    }

    pub(super) fn set_share(&mut self, cx: &mut Context<'_>, v: VcpuId, share: Share) {
        if cx.is_current(v) {
            // The time that it has run so far is charged at the old rate.
            let avt = self.avt_at(cx.now(), v);
            let vcpu = &mut self.vcpus[v.index()];
            (vcpu.avt, vcpu.charged) = (avt, cx.now());
        }
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.share = share;
        vcpu.warped = share.warpback;
        self.set_alarm(v, None);
        if cx.is_current(v) && share.warpback && share.warp_limit > Nanos::ZERO {
            self.set_alarm(v, Some(cx.now() + share.warp_limit));
        }
        self.arm(cx);
    }

    /// Handles the timer: warps begin and end.
    pub(super) fn ring(&mut self, cx: &mut Context<'_>) {
        self.timer = None;
        while let Some(&(at, v)) = self.alarms.first()
            && at <= cx.now()
        {
            self.set_alarm(v, None);
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.warped = !vcpu.warped;
            let back = (!vcpu.warped && vcpu.share.unwarp_time > Nanos::ZERO)
                .then(|| cx.now() + vcpu.share.unwarp_time);
            self.set_alarm(v, back);
            // As in the original, a vCPU whose warp ends for a while runs to the end of its slice.
            if back.is_none() {
                cx.resched(cx.home(v));
            }
        }
        self.arm(cx);
    }
}
