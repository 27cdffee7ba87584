//! Servers: how much run time a vCPU may use, and how much of it is left.

use super::params::{BUDGET, EXTRATIME, PERIOD};
use crate::error::SchedError;
use crate::params::{ParamValue, Params};
use crate::time::Nanos;
use alloc::format;

/// What a vCPU may use: `budget` ns of each `period` ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub period: Nanos,
    pub budget: Nanos,
    pub extratime: bool,
}

impl Default for Server {
    fn default() -> Self {
        let unset = Params::default();
        Self {
            period: PERIOD.time_in(&unset),
            budget: BUDGET.time_in(&unset),
            extratime: EXTRATIME.flag_in(&unset),
        }
    }
}

impl Server {
    /// Returns `self` with the values that `params` sets.
    pub fn with(self, params: &Params) -> Result<Self, SchedError> {
        let server = Self {
            period: params.time(PERIOD.key).unwrap_or(self.period),
            budget: params.time(BUDGET.key).unwrap_or(self.budget),
            extratime: params.flag(EXTRATIME.key).unwrap_or(self.extratime),
        };
        if server.budget > server.period {
            let (budget, period) = (server.budget, ParamValue::Time(server.period));
            let legal = format!("10 us to the period, {period}");
            return Err(SchedError::illegal(BUDGET.key, &ParamValue::Time(budget), &legal));
        }
        Ok(server)
    }
}

/// Position in the run queue: level, deadline, order of arrival.
pub(super) type Key = (u32, Nanos, u64);

#[derive(Clone, Debug)]
pub(super) struct Vcpu {
    pub server: Server,
    pub level: u32,
    pub deadline: Nanos,
    /// The remaining budget.
    pub left: Nanos,
    /// While the vCPU runs: the time up to which its run time is taken off the budget.
    pub burned: Nanos,
    pub queued: Option<Key>,
    /// On the depleted list.
    pub depleted: bool,
}

impl Vcpu {
    pub fn new(server: Server) -> Self {
        Self {
            server,
            level: 0,
            deadline: Nanos::ZERO,
            left: Nanos::ZERO,
            burned: Nanos::ZERO,
            queued: None,
            depleted: false,
        }
    }

    /// A smaller priority goes first.
    pub fn priority(&self) -> (u32, Nanos) {
        (self.level, self.deadline)
    }

    /// Begins a new period if the deadline has passed. Returns whether it has.
    pub fn update(&mut self, now: Nanos) -> bool {
        if now < self.deadline {
            return false;
        }
        let periods = (now - self.deadline) / self.server.period + 1;
        self.deadline += periods * self.server.period;
        self.left = self.server.budget;
        self.level = 0;
        self.burned = now;
        true
    }

    /// Takes the time since `burned` off the budget; the vCPU ran for all of it.
    pub fn burn(&mut self, now: Nanos) {
        self.left -= now - self.burned;
        self.burned = now;
        if self.left <= Nanos::ZERO {
            self.left = Nanos::ZERO;
            if self.server.extratime {
                self.level = self.level.saturating_add(1);
                self.left = self.server.budget;
            }
        }
    }
}
