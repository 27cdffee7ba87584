//! What can be wrong with what a caller asks for. Each message names the key and its legal values.

use crate::ids::{DomainId, PcpuId, PoolId, VcpuId};
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
        legal: String,
    },
    /// No scheduler has this name.
    UnknownScheduler {
        /// What was asked for.
        name: String,
        /// A name or alias that was probably meant.
        near: Option<String>,
        /// All names there are, separated by commas.
        known: String,
    },
    /// A name stands for another scheduler already.
    NameTaken {
        /// The name or alias.
        name: &'static str,
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
    /// A hard affinity without any pCPU of the pool.
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
        /// The pCPU that was to leave.
        pcpu: PcpuId,
    },
    /// The boot pCPU belongs to pool 0 for ever.
    BootPcpu,
    /// The pCPU is on its way to another pool.
    PcpuMoves(PcpuId),
    /// No pool has this id.
    UnknownPool(PoolId),
    /// Pool 0 cannot be destroyed.
    FirstPool,
    /// A pool that has pCPUs or domains, or is to get some, cannot be destroyed.
    PoolInUse {
        /// The pool.
        pool: PoolId,
        /// pCPUs that are there or on their way.
        pcpus: u32,
        /// Domains that are there or on their way.
        domains: u32,
    },
    /// A pool without pCPUs takes no domain.
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
                write!(f, "there is no scheduler `{name}`; there are: {known}")
            }
            Self::UnknownScheduler { name, near: Some(near), known } => write!(
                f,
                "there is no scheduler `{name}`; did you mean `{near}`? There are: {known}"
            ),
            Self::NameTaken { name } => {
                write!(f, "there is a scheduler `{name}` already; give the new one another name")
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
                write!(f, "hard affinity is empty; it needs at least one pCPU of the pool")
            }
            Self::NotInPool(p) => write!(f, "pCPU {} is not in the pool", p.0),
            Self::InPool(p) => write!(f, "pCPU {} is in the pool already", p.0),
            Self::LastPcpu(p) => {
                write!(f, "pCPU {} is the last of a pool with domains; move them first", p.0)
            }
            Self::Stranded { vcpu, pcpu } => write!(
                f,
                "vCPU {} may run on no pCPU of the pool but {}; change its affinity first",
                vcpu.0, pcpu.0
            ),
            Self::BootPcpu => write!(f, "pCPU 0, the boot pCPU, stays in pool 0"),
            Self::PcpuMoves(p) => write!(f, "pCPU {} is on its way to another pool", p.0),
            Self::UnknownPool(pool) => write!(f, "there is no pool {}", pool.0),
            Self::FirstPool => write!(f, "pool 0 cannot be destroyed"),
            Self::PoolInUse { pool, pcpus, domains } => write!(
                f,
                "pool {} has or gets {pcpus} pCPUs and {domains} domains; move them first",
                pool.0
            ),
            Self::PoolWithoutPcpus(pool) => {
                write!(f, "pool {} has no pCPU; give it one first", pool.0)
            }
            Self::DomainMoves(d) => write!(f, "domain {} is on its way to another pool", d.0),
            Self::VcpuRuns(v) => write!(f, "vCPU {} is still on a pCPU", v.0),
        }
    }
}

impl core::error::Error for SchedError {}
