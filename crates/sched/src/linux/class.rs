//! What the two classes share: what is known of a vCPU, the queue of a pCPU, and the rules that a
//! class decides.

use crate::ids::VcpuId;
use crate::time::Nanos;
use alloc::collections::BTreeSet;
use alloc::string::String;
use core::fmt::Debug;

/// Weight of a thread of nice 0.
pub(super) const NICE_0: i64 = 1024;
/// Weight of a domain that stands for nice 0.
pub(super) const DOMAIN_WEIGHT: i64 = 256;

/// What a class knows about a vCPU. Virtual times, which are integers, are ns at nice 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Entity {
    pub weight: i64,
    pub vruntime: i64,
    /// Run time since it was picked.
    pub ran: Nanos,
    /// Its virtual deadline, and that with which it was picked (`eevdf`).
    pub deadline: i64,
    pub picked: i64,
    /// What it was owed when it left the queue (`eevdf`).
    pub lag: i64,
    /// Where it is queued: its key, and the order of arrival among equals.
    pub key: Option<(i64, u64)>,
}

impl Entity {
    /// How far `time` of running takes it in virtual time.
    pub fn virtual_time(&self, time: Nanos) -> i64 {
        time.0 * NICE_0 / self.weight
    }
}

/// How a vCPU comes to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    New,
    Woken,
    Moved,
}

/// The queue of a pCPU. What runs there counts, but is not in the tree.
#[derive(Debug, Default)]
pub(super) struct RunQueue<S> {
    pub tree: BTreeSet<((i64, u64), VcpuId)>,
    pub arrivals: u64,
    pub current: Option<VcpuId>,
    /// Up to when `current` is charged.
    pub charged: Nanos,
    /// Sum of the weights.
    pub load: i64,
    pub class: S,
}

impl<S> RunQueue<S> {
    /// Number of vCPUs, the running one included.
    pub fn count(&self) -> i64 {
        self.tree.len() as i64 + i64::from(self.current.is_some())
    }

    pub fn first(&self) -> Option<VcpuId> {
        self.tree.first().map(|(_, v)| *v)
    }

    /// Puts `v` into the tree, behind its equals. O(log n).
    pub fn link(&mut self, entity: &mut Entity, v: VcpuId, key: i64) {
        self.arrivals += 1;
        entity.key = Some((key, self.arrivals));
        self.tree.insert(((key, self.arrivals), v));
    }

    pub fn unlink(&mut self, entity: &mut Entity, v: VcpuId) {
        if let Some(key) = entity.key.take() {
            self.tree.remove(&(key, v));
        }
    }
}

/// A way to order the vCPUs of one pCPU.
pub(super) trait Class: Debug + Send {
    /// What it keeps for each pCPU.
    type Queue: Debug + Default + Send;

    fn name(&self) -> &'static str;

    /// Called once with the number of pCPUs, on which time constants depend.
    fn start(&mut self, pcpus: u32);

    /// What the tree is ordered by.
    fn key(&self, entity: &Entity) -> i64;

    /// What virtual times of this queue are relative to when they are taken to another.
    fn base(&self, queue: &RunQueue<Self::Queue>) -> i64;

    /// `queue.current` ran for `time`. Returns whether it must give way.
    fn charge(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        time: Nanos,
    ) -> bool;

    /// Gives `v`, which joins the queue and is not in its sums yet, its virtual times there.
    fn place(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        v: VcpuId,
        arrival: Arrival,
    );

    /// `v` is not in the sums or the tree of the queue any more from here on.
    fn left(&self, queue: &mut RunQueue<Self::Queue>, entities: &mut [Entity], v: VcpuId);

    /// Changes the weight of `v`, which is on the queue; its sums follow, but for `load`.
    fn reweigh(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        v: VcpuId,
        weight: i64,
    );

    /// Chooses among the tree and `candidate`, the running vCPU if it may go on.
    fn pick(
        &self,
        queue: &RunQueue<Self::Queue>,
        entities: &[Entity],
        candidate: Option<VcpuId>,
    ) -> Option<VcpuId>;

    /// `v` was picked.
    fn picked(&self, queue: &mut RunQueue<Self::Queue>, v: VcpuId);

    /// Whether a tick, which has charged, ends the turn of `current`.
    fn tick(&self, queue: &RunQueue<Self::Queue>, entities: &[Entity], current: VcpuId) -> bool;

    /// Whether `new`, which woke and is queued, preempts `current`.
    fn preempts(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &[Entity],
        current: VcpuId,
        new: VcpuId,
    ) -> bool;

    /// `current` gives way.
    fn yield_now(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        current: VcpuId,
    );

    /// `v`, which is queued, should be picked next if that is not unfair.
    fn favour(&self, queue: &mut RunQueue<Self::Queue>, v: VcpuId);

    /// Checks the state of one queue.
    fn check(&self, queue: &RunQueue<Self::Queue>, entities: &[Entity]) -> Result<(), String>;
}

/// By how much time constants grow with the number of pCPUs.
pub(super) fn scale(pcpus: u32) -> i64 {
    1 + i64::from(pcpus.min(8).ilog2())
}
