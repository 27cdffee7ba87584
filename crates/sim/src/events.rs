//! The pending events: a binary heap ordered by (time, class, insertion).
//!
//! Cancellation is by epoch: whoever armed an event bumps its own epoch, and an event that comes
//! with an old one is dropped. Cost per event is logarithmic in the number pending.

use overspin_scenario::Picos;
use overspin_sched::TimerId;

/// What an event means. vCPUs and pCPUs are numbered over the whole host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A timer that the hypervisor's scheduler set.
    Scheduler { timer: TimerId, epoch: u32 },
    /// A guest's one-shot timer.
    GuestTimer { vcpu: u32, epoch: u32 },
    /// The operation that a running vCPU is in ends, or what it spins on may have changed.
    Operation { vcpu: u32, epoch: u32 },
    /// An interprocessor interrupt reaches a vCPU that ran when it was sent.
    Interrupt { vcpu: u32 },
    /// A vCPU comes up.
    Boot { vcpu: u32 },
    /// A pCPU has finished switching to its next vCPU.
    Switched { pcpu: u32 },
    /// A pCPU enters its scheduler.
    Softirq { pcpu: u32, epoch: u32 },
    /// Look for a deadlock.
    Watchdog,
    /// The simulated-time limit.
    Limit,
}

impl Event {
    /// Order among events due at the same instant (schedulers §1.4): scheduler timers by their own
    /// order, guest timers, operations and interrupts, then the scheduling passes they caused.
    fn class(self) -> u64 {
        match self {
            Event::Scheduler { timer: TimerId::Tick(_), .. } => 0,
            Event::Scheduler { timer: TimerId::Accounting, .. } => 1,
            Event::Scheduler { .. } => 2,
            Event::GuestTimer { .. } => 3,
            Event::Operation { .. }
            | Event::Interrupt { .. }
            | Event::Boot { .. }
            | Event::Switched { .. } => 4,
            Event::Softirq { .. } => 5,
            Event::Watchdog => 6,
            Event::Limit => 7,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Time in the upper half; class and insertion number in the lower: equal times keep their
    /// order of insertion within a class. One number, so that one comparison decides.
    key: u128,
    event: Event,
}

/// Four children a node: half the depth of a binary heap, and siblings share cache lines.
#[derive(Debug, Default)]
struct Heap(Vec<Entry>);

const ARITY: usize = 4;
const CLASS_SHIFT: u32 = 60;

impl Heap {
    fn first_key(&self) -> u128 {
        self.0.first().map_or(u128::MAX, |e| e.key)
    }

    fn push(&mut self, entry: Entry) {
        let heap = &mut self.0;
        let mut hole = heap.len();
        heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if entry.key >= heap[parent].key {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        heap[hole] = entry;
    }

    fn pop(&mut self) -> Option<Entry> {
        let heap = self.0.as_mut_slice();
        let first = *heap.first()?;
        let (&last, heap) = heap.split_last()?;
        let heap_len = heap.len();
        self.0.truncate(heap_len);
        let heap = self.0.as_mut_slice();
        if heap.is_empty() {
            return Some(first);
        }
        let mut hole = 0;
        loop {
            let begin = hole * ARITY + 1;
            let Some(children) = heap.get(begin..heap_len.min(begin + ARITY)) else { break };
            let Some((at, child)) = children.iter().enumerate().min_by_key(|(_, e)| e.key) else {
                break;
            };
            if child.key >= last.key {
                break;
            }
            heap[hole] = *child;
            hole = begin + at;
        }
        heap[hole] = last;
        Some(first)
    }
}

/// The queue: two heaps. Operations of vCPUs come and go by the million within microseconds, timers
/// are many and far away; apart, the first heap stays as small as the number of running vCPUs.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    near: Heap,
    far: Heap,
    inserted: u64,
}

impl EventQueue {
    /// Time of the next event; `Picos::MAX` if there is none.
    #[inline]
    pub(crate) fn next_time(&self) -> Picos {
        (self.near.first_key().min(self.far.first_key()) >> 64) as Picos
    }

    /// Adds an event. Logarithmic in the number pending.
    pub(crate) fn push(&mut self, at: Picos, event: Event) {
        self.inserted += 1;
        let order = (event.class() << CLASS_SHIFT) | self.inserted;
        let entry = Entry { key: u128::from(at) << 64 | u128::from(order), event };
        let heap = if let Event::Operation { .. } = event { &mut self.near } else { &mut self.far };
        heap.push(entry);
    }

    /// Takes the next event. Logarithmic in the number pending.
    pub(crate) fn pop(&mut self) -> Option<(Picos, Event)> {
        let near = self.near.first_key() < self.far.first_key();
        let entry = if near { self.near.pop() } else { self.far.pop() }?;
        Some(((entry.key >> 64) as Picos, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_sched::PcpuId;

    #[test]
    fn pops_in_order_of_time_class_and_insertion() {
        let mut q = EventQueue::default();
        let softirq = |pcpu| Event::Softirq { pcpu, epoch: 0 };
        let tick = Event::Scheduler { timer: TimerId::Tick(PcpuId(0)), epoch: 0 };
        q.push(5, softirq(1));
        q.push(5, softirq(2));
        q.push(9, Event::Watchdog);
        q.push(5, tick);
        q.push(1, Event::Limit);
        let order: Vec<_> = std::iter::from_fn(|| q.pop()).collect();
        assert_eq!(
            order,
            [(1, Event::Limit), (5, tick), (5, softirq(1)), (5, softirq(2)), (9, Event::Watchdog)]
        );
    }

    #[test]
    fn sorts_many() {
        let mut q = EventQueue::default();
        let mut x = 12_345_u64;
        for _ in 0..2000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            q.push(x >> 50, Event::Watchdog);
        }
        let times: Vec<_> = std::iter::from_fn(|| q.pop()).map(|e| e.0).collect();
        assert_eq!(times.len(), 2000);
        assert!(times.is_sorted());
    }
}
