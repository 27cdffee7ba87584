//! What can be wrong with what a caller asks for. Each message names the key and its legal values.

use crate::ids::{DomainId, VcpuId};
use alloc::string::String;
use core::fmt;

/// A request that was refused. State is as it was before the call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchedError {
    /// A parameter is outside its legal range.
    Param {
        /// Name of the parameter.
        key: &'static str,
        /// What was given, in the unit that `legal` states.
        value: i64,
        /// The legal values, with their unit.
        legal: &'static str,
    },
    /// No scheduler has this name.
    UnknownScheduler {
        /// What was asked for.
        name: String,
        /// All names there are, separated by commas.
        known: String,
    },
    /// A named parameter is of the wrong kind or outside its legal range.
    IllegalParam {
        /// Name of the parameter.
        key: String,
        /// What was given.
        value: String,
        /// The legal values, with their unit.
        legal: String,
    },
    /// The scheduler has no such parameter.
    UnknownParam {
        /// Name of the parameter.
        key: String,
        /// Name of the scheduler.
        scheduler: String,
        /// The parameters that it has, separated by commas.
        known: String,
    },
    /// No domain has this id.
    UnknownDomain(DomainId),
    /// No vCPU has this id.
    UnknownVcpu(VcpuId),
    /// An affinity names a pCPU that does not exist.
    NoSuchPcpu {
        /// The index given.
        pcpu: u32,
        /// Number of pCPUs; legal are 0 to one less.
        pcpus: u32,
    },
    /// A hard affinity without any pCPU.
    EmptyAffinity,
    /// The vCPU is on a pCPU; pause it and wait until it has left.
    VcpuRuns(VcpuId),
}

impl fmt::Display for SchedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param { key, value, legal } => {
                write!(f, "{key} = {value} is not legal; legal values: {legal}")
            }
            Self::UnknownScheduler { name, known } => {
                write!(f, "there is no scheduler `{name}`; there are: {known}")
            }
            Self::IllegalParam { key, value, legal } => {
                write!(f, "{key} = {value} is not legal; legal values: {legal}")
            }
            Self::UnknownParam { key, scheduler, known } => {
                write!(f, "`{scheduler}` has no parameter `{key}`; it has: {known}")
            }
            Self::UnknownDomain(d) => write!(f, "there is no domain {}", d.0),
            Self::UnknownVcpu(v) => write!(f, "there is no vCPU {}", v.0),
            Self::NoSuchPcpu { pcpu, pcpus } => {
                write!(f, "affinity names pCPU {pcpu}; legal values: 0..{pcpus}")
            }
            Self::EmptyAffinity => {
                write!(f, "hard affinity is empty; it needs at least one pCPU")
            }
            Self::VcpuRuns(v) => write!(f, "vCPU {} is still on a pCPU", v.0),
        }
    }
}

impl core::error::Error for SchedError {}
