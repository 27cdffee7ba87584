//! Actions of an administrator while the guests run.

use crate::keys::Absent::{Is, Means, Required};
use crate::keys::Kind::{self, Affinity, Text};
use crate::keys::{ANY, CAP, Section, WEIGHT, integer, key};
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

/// The keys of an event: they are not its fields, since each action is a key.
pub const EVENT: Section = Section {
    heading: "[[event]]",
    doc: "An action of the administrator while the guests run: exactly one of `weight`, `cap`, `affinity`, `pause`, \
     `unpause` and `pool`. An action that the hypervisor would refuse is an error of the scenario. Only a refusal \
     because something is still on its way to another pool occurs during the run, and is reported. vCPUs cannot be \
     plugged in or out; pause them, or begin with fewer.",
    keys: &[
        key(
            "at",
            ANY,
            Required,
            "Time of the event. Events of the same time happen in the order of the file.",
        ),
        key("domain", Text, Means("none, with `pcpu`"), "Name of the affected domain."),
        key(
            "vcpu",
            integer(0, 65_535),
            Means("all of the domain"),
            "Only this vCPU, from 0; with `affinity`, `pause` and `unpause`.",
        ),
        key("pcpu", integer(0, 65_535), Means("none"), "A pCPU that moves to another `pool`."),
        key("weight", WEIGHT, Means("as it is"), "New weight."),
        key(
            "cap",
            CAP,
            Means("as it is"),
            "New cap in percent of one pCPU, at most 100 x vcpus; 0 means no cap.",
        ),
        key("affinity", Affinity, Means("as it is"), "Where vCPUs may run, as for a domain."),
        key(
            "pause",
            Kind::Boolean,
            Is("false"),
            "The domain or vCPU does not run until it is unpaused; pauses nest.",
        ),
        key("unpause", Kind::Boolean, Is("false"), "Ends one pause."),
        key(
            "pool",
            Text,
            Means("as it is"),
            "The domain, or `pcpu`, moves to this pool. A domain has default weight, cap, parameters and affinity there. \
         A pCPU moves once its running vCPU has left it.",
        ),
    ],
};

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
