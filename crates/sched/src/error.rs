//! Reasons to refuse a request. A message about a value names the key and its legal values.

use crate::ids::{DomainId, PcpuId, PoolId, VcpuId};
use alloc::string::String;
use core::fmt;

/// The reason why a request was refused. The refused call changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchedError {
    /// A parameter is outside its legal range.
    Param {
        /// Name of the parameter.
        key: &'static str,
        /// The given value, in the unit that `legal` states.
        value: i64,
        /// The legal values, with their unit.
        legal: String,
    },
    /// No scheduler has this name.
    UnknownScheduler {
        /// The requested name.
        name: String,
        /// The name or alias that was probably meant.
        near: Option<String>,
        /// All known names, separated by commas.
        known: String,
    },
    /// Another scheduler has this name already.
    NameTaken {
        /// The name or alias.
        name: &'static str,
    },
    /// A named parameter is of the wrong kind or outside its legal range.
    IllegalParam {
        /// Name of the parameter.
        key: String,
        /// The given value.
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
    /// No pCPU has this index.
    NoSuchPcpu {
        /// The index given.
        pcpu: u32,
        /// Number of pCPUs; legal indices are below it.
        pcpus: u32,
    },
    /// A hard affinity contains no pCPU of the pool.
    EmptyAffinity,
    /// The pCPU is not in the pool that it should leave.
    NotInPool(PcpuId),
    /// The pCPU is in the pool already, or still runs something for it.
    InPool(PcpuId),
    /// The last pCPU of a pool that has domains cannot leave it.
    LastPcpu(PcpuId),
    /// A vCPU may run on no other pCPU of the pool; change its affinity first.
    Stranded {
        /// The vCPU.
        vcpu: VcpuId,
        /// The pCPU that should leave.
        pcpu: PcpuId,
    },
    /// The boot pCPU always stays in pool 0.
    BootPcpu,
    /// The pCPU is on its way to another pool.
    PcpuMoves(PcpuId),
    /// No pool has this id.
    UnknownPool(PoolId),
    /// Pool 0 cannot be destroyed.
    FirstPool,
    /// A pool cannot be destroyed while pCPUs or domains are there or on their way.
    PoolInUse {
        /// The pool.
        pool: PoolId,
        /// pCPUs that are there or on their way.
        pcpus: u32,
        /// Domains that are there or on their way.
        domains: u32,
    },
    /// A pool without pCPUs cannot take a domain.
    PoolWithoutPcpus(PoolId),
    /// The domain is on its way to another pool.
    DomainMoves(DomainId),
    /// The vCPU is on a pCPU; pause it and wait until it has left.
    VcpuRuns(VcpuId),
}

impl fmt::Display for SchedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param { key, value, legal } => {
                write!(f, "{key} = {value} is not legal; legal values: {legal}")
            }
            Self::UnknownScheduler { name, near: None, known } => {
                write!(f, "there is no scheduler `{name}`; known schedulers: {known}")
            }
            Self::UnknownScheduler { name, near: Some(near), known } => write!(
                f,
                "there is no scheduler `{name}`; did you mean `{near}`? Known schedulers: {known}"
            ),
            Self::NameTaken { name } => {
                write!(f, "another scheduler is named `{name}`; give the new one another name")
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
                write!(f, "there is no pCPU {pcpu}; legal values: 0..{pcpus}")
            }
            Self::EmptyAffinity => {
                write!(f, "hard affinity is empty; it needs at least one pCPU of the pool")
            }
            Self::NotInPool(p) => write!(f, "pCPU {} is not in the pool", p.0),
            Self::InPool(p) => {
                write!(f, "pCPU {} is in the pool already, or has not left it yet", p.0)
            }
            Self::LastPcpu(p) => {
                write!(
                    f,
                    "pCPU {} is the last pCPU of a pool with domains; move the domains first",
                    p.0
                )
            }
            Self::Stranded { vcpu, pcpu } => write!(
                f,
                "vCPU {} may run on no other pCPU of the pool than {}; change its affinity first",
                vcpu.0, pcpu.0
            ),
            Self::BootPcpu => write!(f, "pCPU 0, the boot pCPU, stays in pool 0"),
            Self::PcpuMoves(p) => write!(f, "pCPU {} is on its way to another pool", p.0),
            Self::UnknownPool(pool) => write!(f, "there is no pool {}", pool.0),
            Self::FirstPool => write!(f, "pool 0 cannot be destroyed"),
            Self::PoolInUse { pool, pcpus, domains } => write!(
                f,
                "{pcpus} pCPUs and {domains} domains are in pool {} or on their way; move them first",
                pool.0
            ),
            Self::PoolWithoutPcpus(pool) => {
                write!(f, "pool {} has no pCPU; give it one first", pool.0)
            }
            Self::DomainMoves(d) => write!(f, "domain {} is on its way to another pool", d.0),
            Self::VcpuRuns(v) => write!(
                f,
                "vCPU {} is still on a pCPU; take it down and wait until it has left",
                v.0
            ),
        }
    }
}

impl core::error::Error for SchedError {}
