//! The share of a vCPU, and the shares that are computed from weights.

use super::params::{EXTRATIME, EXTRAWEIGHT, PERIOD, SLICE, WEIGHT};
use super::{Sedf, UTILISATION};
use crate::error::SchedError;
use crate::ids::VcpuId;
use crate::machine::Machine;
use crate::params::{ParamValue, Params};
use crate::scheduler::Context;
use crate::time::Nanos;
use alloc::format;
use alloc::vec;

/// Period of vCPUs that have a weight, or extra time only.
const WEIGHT_PERIOD: Nanos = Nanos::ms(100);
/// The part of each [`WEIGHT_PERIOD`] that is not given out by weight.
const WEIGHT_SAFETY: Nanos = Nanos::ms(5);

/// The shortest slice that can be set.
const SLICE_MIN: Nanos = Nanos::us(5);

/// The share of a vCPU: `slice` ns of each `period` ns, and extra time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub period: Nanos,
    pub slice: Nanos,
    pub extratime: bool,
    /// Share of the extra time relative to others. 0: by the utilisation `slice`/`period` instead;
    /// 100 % counts as much as 128.
    pub extraweight: i64,
    /// If not 0, period and slice are computed. All vCPUs with a weight share by it what the others
    /// leave of the pCPU.
    pub weight: i64,
}

impl Share {
    /// Extra time only.
    pub fn best_effort() -> Self {
        let unset = Params::default();
        Self {
            period: PERIOD.time_in(&unset),
            slice: SLICE.time_in(&unset),
            extratime: EXTRATIME.flag_in(&unset),
            extraweight: EXTRAWEIGHT.number_in(&unset),
            weight: WEIGHT.number_in(&unset),
        }
    }

    /// Returns `self` with the values that `params` sets. A period or a slice ends the computation
    /// by weight, and a weight begins it. An extra weight alone asks for extra time only.
    pub fn with(self, params: &Params) -> Result<Self, SchedError> {
        let (period, slice) = (params.time(PERIOD.key), params.time(SLICE.key));
        let (weight, extraweight) = (params.number(WEIGHT.key), params.number(EXTRAWEIGHT.key));
        let mut share = self;
        if let Some(weight) = weight.filter(|_| period.is_none() && slice.is_none()) {
            (share.weight, share.extraweight) = (weight, 0);
        } else if let Some(weight) = weight {
            let legal = "none together with period or slice, which it computes";
            return Err(SchedError::illegal(WEIGHT.key, &ParamValue::Number(weight), &legal));
        } else if period.is_some() || slice.is_some() {
            (share.weight, share.extraweight) = (0, 0);
        } else if extraweight.is_some() {
            share = Self::best_effort();
        }
        share.period = period.unwrap_or(share.period);
        share.slice = slice.unwrap_or(share.slice);
        share.extratime = params.flag(EXTRATIME.key).unwrap_or(share.extratime);
        share.extraweight = extraweight.unwrap_or(share.extraweight);
        let least = if share.extratime || share.weight > 0 { Nanos::ZERO } else { SLICE_MIN };
        let short = share.slice < least || (Nanos(1)..SLICE_MIN).contains(&share.slice);
        if share.weight == 0 && (short || share.slice > share.period) {
            let period = ParamValue::Time(share.period);
            let legal = format!("5 us to the period, {period}; with extratime also 0");
            return Err(SchedError::illegal(SLICE.key, &ParamValue::Time(share.slice), &legal));
        }
        Ok(share)
    }
}

impl Sedf {
    /// Computes period and slice of all vCPUs that have a weight, if there are any. By weight, they
    /// divide what the others leave of their pCPU, minus a safety margin.
    pub(super) fn share_by_weight(&mut self, machine: &Machine) {
        if self.vcpus.iter().all(|v| v.share.weight == 0) {
            return;
        }
        let mut weights = vec![0; self.pcpus.len()];
        let mut taken = vec![0; self.pcpus.len()];
        let home = |i: usize| machine.home(VcpuId(i as u32)).index();
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let share = &vcpu.share;
            weights[home(i)] += share.weight;
            if share.weight == 0 {
                taken[home(i)] += i128::from(WEIGHT_PERIOD.0) * i128::from(share.slice.0)
                    / i128::from(share.period.0);
            }
        }
        for (i, vcpu) in self.vcpus.iter_mut().enumerate() {
            let share = &mut vcpu.share;
            if share.weight > 0 {
                let left = i128::from((WEIGHT_PERIOD - WEIGHT_SAFETY).0) - taken[home(i)];
                let slice = i128::from(share.weight) * left / i128::from(weights[home(i)]);
                share.period = WEIGHT_PERIOD;
                share.slice = Nanos(slice.max(0) as i64);
            }
        }
    }

    /// Changes the share of `v` and its place in the queues. The time that it used of its slice
    /// still counts.
    pub(super) fn set_share(&mut self, cx: &mut Context<'_>, v: VcpuId, share: Share) {
        let home = cx.home(v);
        let queued = self.links.is_linked(v.0);
        if queued {
            self.dequeue(home, v);
        }
        self.vcpus[v.index()].share = share;
        self.share_by_weight(cx);
        if queued {
            self.enqueue(cx.now(), home, v);
            if share.extratime {
                self.enqueue_extra(home, UTILISATION, v, 0);
            } else {
                self.dequeue_extra(home, UTILISATION, v);
            }
            cx.resched(home);
        }
    }
}
