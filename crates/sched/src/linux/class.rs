//! The common parts of the two classes: the state of a vCPU, the queue of a pCPU, and the decisions
//! of a class.

use crate::ids::VcpuId;
use crate::time::Nanos;
use alloc::collections::BTreeSet;
use alloc::string::String;
use core::fmt::Debug;

/// Weight of a thread of nice 0.
pub(super) const NICE_0: i64 = 1024;
/// The domain weight that corresponds to nice 0.
pub(super) const DOMAIN_WEIGHT: i64 = 256;

/// The state of a vCPU in its class. Virtual times are integers, in ns at nice 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Entity {
    pub weight: i64,
    pub vruntime: i64,
    /// Run time since it was picked.
    pub ran: Nanos,
    /// Its virtual deadline, and the virtual deadline with which it was picked (`eevdf`).
    pub deadline: i64,
    pub picked: i64,
    /// Its lag, the time owed to it, when it left the queue (`eevdf`).
    pub lag: i64,
    /// Its place in the order of pCPU use: greater than that of vCPUs which were picked or arrived before.
    pub recency: u64,
    /// Its place in the tree: its key, and the order of arrival among equals. None if it is not in
    /// it.
    pub key: Option<(i64, u64)>,
}

impl Entity {
    /// The virtual time that corresponds to `time` of running.
    pub fn virtual_time(&self, time: Nanos) -> i64 {
        time.0 * NICE_0 / self.weight
    }
}

/// How a vCPU arrives at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    New,
    Woken,
    Moved,
}

/// The queue of a pCPU. The running vCPU belongs to it, but is not in the tree.
#[derive(Debug, Default)]
pub(super) struct RunQueue<S> {
    pub tree: BTreeSet<((i64, u64), VcpuId)>,
    pub arrivals: u64,
    recency: u64,
    pub current: Option<VcpuId>,
    /// The time up to which `current` is charged.
    pub charged: Nanos,
    /// Sum of the weights.
    pub load: i64,
    pub class: S,
}

impl<S> RunQueue<S> {
    /// Number of vCPUs, including the running one.
    pub fn count(&self) -> i64 {
        self.tree.len() as i64 + i64::from(self.current.is_some())
    }

    pub fn first(&self) -> Option<VcpuId> {
        self.tree.first().map(|(_, v)| *v)
    }

    /// The last place in the order of pCPU use.
    pub fn next_recency(&mut self) -> u64 {
        self.recency += 1;
        self.recency
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
    /// The state of the class for each pCPU.
    type Queue: Debug + Default + Send;

    fn name(&self) -> &'static str;

    /// Called once with the number of pCPUs, on which time constants depend.
    fn start(&mut self, pcpus: u32);

    /// The key by which the tree is ordered.
    fn key(&self, entity: &Entity) -> i64;

    /// The origin of this queue's virtual times, for a vCPU that moves to another queue.
    fn base(&self, queue: &RunQueue<Self::Queue>) -> i64;

    /// Charges `queue.current` for `time`. Returns whether it must give way.
    fn charge(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        time: Nanos,
    ) -> bool;

    /// Sets the virtual times of `v`, which joins the queue and is not in its sums yet.
    fn place(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        v: VcpuId,
        arrival: Arrival,
    );

    /// Removes `v`, which has left the tree and the load of the queue, from the state of the class.
    fn left(&self, queue: &mut RunQueue<Self::Queue>, entities: &mut [Entity], v: VcpuId);

    /// Changes the weight of `v`, which is on the queue, and the sums of the queue except `load`.
    fn reweigh(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        v: VcpuId,
        weight: i64,
    );

    /// Whether a vCPU of the queue has had no more than its share. Always true if the class does not ask.
    fn is_eligible(&self, _queue: &RunQueue<Self::Queue>, _entity: &Entity) -> bool {
        true
    }

    /// Chooses among the tree and `candidate`, the running vCPU if it may go on.
    fn pick(
        &self,
        queue: &RunQueue<Self::Queue>,
        entities: &[Entity],
        candidate: Option<VcpuId>,
    ) -> Option<VcpuId>;

    /// Called when `v` was picked.
    fn picked(&self, queue: &mut RunQueue<Self::Queue>, v: VcpuId);

    /// Whether a tick ends the turn of `current`, which is charged up to now.
    fn tick(&self, queue: &RunQueue<Self::Queue>, entities: &[Entity], current: VcpuId) -> bool;

    /// Whether `new`, which woke and is queued, preempts `current`.
    fn preempts(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &[Entity],
        current: VcpuId,
        new: VcpuId,
    ) -> bool;

    /// Makes `current` give way.
    fn yield_now(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        current: VcpuId,
    );

    /// Whether a directed yield sets the yielder back ([`deboost`](Self::deboost)).
    fn deboosts(&self) -> bool {
        false
    }

    /// Sets `from`, the running vCPU, back because it yields to `to`, before it gives way. `is_here`: `to` waits on the same
    /// queue. Only called if the class [does so](Self::deboosts).
    fn deboost(
        &self,
        _queue: &mut RunQueue<Self::Queue>,
        _entities: &mut [Entity],
        _now: Nanos,
        (_from, _to, _is_here): (VcpuId, VcpuId, bool),
    ) {
    }

    /// Asks that `v`, which is queued, be picked next if that is not unfair.
    fn favour(&self, queue: &mut RunQueue<Self::Queue>, v: VcpuId);

    /// Puts `v` on the queue, whose running vCPU is charged.
    fn join(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        v: VcpuId,
        arrival: Arrival,
    ) {
        self.place(queue, entities, v, arrival);
        let entity = &mut entities[v.index()];
        entity.recency = queue.next_recency();
        queue.load += entity.weight;
        queue.link(entity, v, self.key(entity));
    }

    /// Takes `v`, queued or current, off the queue, which is charged.
    fn leave(&self, queue: &mut RunQueue<Self::Queue>, entities: &mut [Entity], v: VcpuId) {
        if queue.current == Some(v) {
            queue.current = None;
        }
        let entity = &mut entities[v.index()];
        queue.unlink(entity, v);
        queue.load -= entity.weight;
        self.left(queue, entities, v);
    }

    /// Chooses as [`pick`](Self::pick) does; `candidate` returns to the tree if another is chosen. Nobody is current then.
    fn choose(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        candidate: Option<VcpuId>,
    ) -> Option<VcpuId> {
        let next = self.pick(queue, entities, candidate);
        if let Some(v) = candidate.filter(|_| next != candidate) {
            let entity = &mut entities[v.index()];
            queue.link(entity, v, self.key(entity));
        }
        queue.current = None;
        next
    }

    /// Makes `next` current: it begins its turn.
    fn begin(
        &self,
        queue: &mut RunQueue<Self::Queue>,
        entities: &mut [Entity],
        next: Option<VcpuId>,
    ) {
        if let Some(v) = next {
            let entity = &mut entities[v.index()];
            queue.unlink(entity, v);
            entity.ran = Nanos::ZERO;
            entity.recency = queue.next_recency();
            entity.picked = entity.deadline;
            self.picked(queue, v);
        }
        queue.current = next;
    }

    /// Checks the state of one queue.
    fn check(&self, queue: &RunQueue<Self::Queue>, entities: &[Entity]) -> Result<(), String>;
}

/// The factor by which time constants grow with the number of pCPUs.
pub(super) fn scale(pcpus: u32) -> i64 {
    1 + i64::from(pcpus.min(8).ilog2())
}
