//! Actions of an administrator while the guests run.

use crate::{Picos, Scenario};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// An action of an administrator at a simulated time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The time of the action.
    pub at: Picos,
    /// The action.
    pub change: Change,
}

/// A change of a domain, of a vCPU, or of the contents of a pool. Domains are numbered as in the
/// scenario, vCPUs within their domain; pool 0 is the host's own, pool `k` the `k`-th of
/// `Host::pools`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Change {
    /// A new weight.
    Weight {
        /// The domain.
        domain: u32,
        /// The weight, 1 to 65535.
        weight: u32,
    },
    /// A new cap.
    Cap {
        /// The domain.
        domain: u32,
        /// The cap, in percent of one pCPU; 0 is no cap.
        cap: u32,
    },
    /// A new affinity of vCPUs.
    Affinity {
        /// The domain.
        domain: u32,
        /// Only this vCPU; `None`: all of them.
        vcpu: Option<u32>,
        /// A list of pCPUs for each of these vCPUs.
        affinity: Vec<Vec<u32>>,
    },
    /// The domain or vCPU does not run until it is unpaused. Pauses nest.
    Pause {
        /// The domain.
        domain: u32,
        /// Only this vCPU; `None`: the whole domain.
        vcpu: Option<u32>,
    },
    /// Ends one pause.
    Unpause {
        /// The domain.
        domain: u32,
        /// Only this vCPU; `None`: the whole domain.
        vcpu: Option<u32>,
    },
    /// The domain moves to another pool.
    MoveDomain {
        /// The domain.
        domain: u32,
        /// The new pool.
        pool: u32,
    },
    /// A pCPU moves to another pool.
    MovePcpu {
        /// The pCPU.
        pcpu: u32,
        /// The new pool.
        pool: u32,
    },
}

/// The result of an [`Event`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeOutcome {
    /// When it took place.
    pub at: Picos,
    /// What it was.
    pub change: Change,
    /// Why it was refused; `None` if it took place.
    pub refused: Option<String>,
}

impl Change {
    /// Describes the change in words, for reports.
    #[must_use]
    pub fn describe(&self, scenario: &Scenario) -> String {
        let domain = |d: u32| match scenario.domains.get(d as usize) {
            Some(domain) => domain.name.clone(),
            None => format!("domain {d}"),
        };
        let whose = |d: u32, vcpu: Option<u32>| match vcpu {
            Some(v) => format!("{}/v{v}", domain(d)),
            None => domain(d),
        };
        let pool = |p: u32| match p.checked_sub(1).map(|i| scenario.host.pools.get(i as usize)) {
            None => "the host's own pool".to_owned(),
            Some(Some(pool)) => format!("pool {}", pool.name),
            Some(None) => format!("pool {p}"),
        };
        match self {
            Change::Weight { domain: d, weight } => format!("{}: weight {weight}", domain(*d)),
            Change::Cap { domain: d, cap: 0 } => format!("{}: no cap", domain(*d)),
            Change::Cap { domain: d, cap } => format!("{}: cap {cap} %", domain(*d)),
            Change::Affinity { domain: d, vcpu, .. } => {
                format!("{}: other pCPUs", whose(*d, *vcpu))
            }
            Change::Pause { domain: d, vcpu } => format!("{}: paused", whose(*d, *vcpu)),
            Change::Unpause { domain: d, vcpu } => format!("{}: unpaused", whose(*d, *vcpu)),
            Change::MoveDomain { domain: d, pool: to } => {
                format!("{}: to {}", domain(*d), pool(*to))
            }
            Change::MovePcpu { pcpu, pool: to } => format!("pCPU {pcpu}: to {}", pool(*to)),
        }
    }
}
