//! Where a vCPU may run (hard affinity) and where it prefers to run (soft affinity).

use crate::cpuset::CpuSet;
use crate::error::SchedError;
use crate::ids::PcpuId;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// An affinity as a caller states it: lists of pCPU indices, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    hard: Option<Vec<u32>>,
    soft: Option<Vec<u32>>,
}

impl Affinity {
    /// May run anywhere, without preference.
    pub fn any() -> Self {
        Self::default()
    }

    /// May run only on these pCPUs.
    pub fn hard(pcpus: impl IntoIterator<Item = u32>) -> Self {
        Self { hard: Some(pcpus.into_iter().collect()), soft: None }
    }

    /// May run anywhere, and prefers these pCPUs.
    pub fn soft(pcpus: impl IntoIterator<Item = u32>) -> Self {
        Self { hard: None, soft: Some(pcpus.into_iter().collect()) }
    }

    /// Adds a preference for these pCPUs.
    #[must_use]
    pub fn with_soft(self, pcpus: impl IntoIterator<Item = u32>) -> Self {
        Self { soft: Some(pcpus.into_iter().collect()), ..self }
    }

    /// Checks the affinity against a machine of `pcpus` pCPUs and restricts it to `pool`. All vCPUs that may
    /// run anywhere share the set of the pool, because a private set of a thousand pCPUs is seldom in the
    /// processor's cache.
    ///
    /// # Errors
    /// [`SchedError::NoSuchPcpu`], [`SchedError::EmptyAffinity`].
    pub(crate) fn resolve(
        &self,
        pool: &Arc<CpuSet>,
        pcpus: u32,
    ) -> Result<AffinityMask, SchedError> {
        let mask = |list: &Option<Vec<u32>>| {
            let Some(list) = list else { return Ok(Arc::clone(pool)) };
            let mut set = CpuSet::empty(pcpus);
            for &pcpu in list {
                if pcpu >= pcpus {
                    return Err(SchedError::NoSuchPcpu { pcpu, pcpus });
                }
                set.insert(PcpuId(pcpu));
            }
            set.intersect_with(pool);
            Ok(Arc::new(set))
        };
        let (hard, mut soft) = (mask(&self.hard)?, mask(&self.soft)?);
        if hard.is_empty() {
            return Err(SchedError::EmptyAffinity);
        }
        // A soft affinity that covers the whole pool is not useful either: `hard` lies in the pool.
        let useful = !hard.is_subset(&soft) && hard.intersects(&soft);
        let soft = useful.then(|| {
            Arc::make_mut(&mut soft).intersect_with(&hard);
            soft
        });
        Ok(AffinityMask { pinned: hard.len() == 1, hard, soft })
    }
}

/// An affinity as a scheduler sees it: restricted to its pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffinityMask {
    hard: Arc<CpuSet>,
    soft: Option<Arc<CpuSet>>,
    pinned: bool,
}

impl AffinityMask {
    /// Where the vCPU may run; never empty.
    pub fn hard(&self) -> &CpuSet {
        &self.hard
    }

    /// The preferred part of [`Self::hard`], if it is a proper and non-empty part. The originals call this
    /// useful soft affinity. None means no preference.
    pub fn soft(&self) -> Option<&CpuSet> {
        self.soft.as_deref()
    }

    /// Whether exactly one pCPU is allowed.
    pub fn is_pinned(&self) -> bool {
        self.pinned
    }

    /// The masks to try in turn: first the preferred pCPUs, then all allowed pCPUs.
    pub fn steps(&self) -> impl Iterator<Item = &CpuSet> {
        self.soft().into_iter().chain(core::iter::once(self.hard()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_proper_part_is_useful_soft_affinity() {
        let soft = |a: Affinity| a.resolve(&CpuSet::all(4).into(), 4).unwrap().soft().is_some();
        assert!(soft(Affinity::soft([1])));
        assert!(soft(Affinity::hard([0, 1]).with_soft([1, 2])));
        assert!(!soft(Affinity::hard([0, 1]).with_soft([0, 1, 2])), "prefers all it may have");
        assert!(!soft(Affinity::hard([0, 1]).with_soft([2, 3])), "prefers what it may not have");
        assert!(!soft(Affinity::any()));
    }

    #[test]
    fn bad_affinities_are_refused() {
        let error = Affinity::hard([4]).resolve(&CpuSet::all(4).into(), 4);
        assert_eq!(error, Err(SchedError::NoSuchPcpu { pcpu: 4, pcpus: 4 }));
        let error = Affinity::hard([]).resolve(&CpuSet::all(4).into(), 4);
        assert_eq!(error, Err(SchedError::EmptyAffinity));
    }
}
