//! The pending events: a binary heap ordered by (time, class, insertion).
//!
//! Operations are cancelled by epoch: whoever armed one bumps its own epoch, and an event that comes
//! with an old one is dropped. Timers are [`Timer`]s. Cost per event is logarithmic in the number
//! pending.

use overspin_scenario::Picos;
use overspin_sched::TimerId;
use std::cell::Cell;

/// What an event means. vCPUs and pCPUs are numbered over the whole host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A timer that the hypervisor's scheduler set.
    Scheduler { timer: TimerId },
    /// A guest's one-shot timer.
    GuestTimer { vcpu: u32 },
    /// The operation that a running vCPU is in ends, or what it spins on may have changed.
    Operation { vcpu: u32, epoch: u32 },
    /// An interprocessor interrupt reaches a vCPU that ran when it was sent.
    Interrupt { vcpu: u32 },
    /// The administrator does something: an event of the scenario.
    Change { index: u32 },
    /// A vCPU comes up.
    Boot { vcpu: u32 },
    /// A pCPU has finished switching to its next vCPU.
    Switched { pcpu: u32 },
    /// A pCPU enters its scheduler.
    Softirq { pcpu: u32, epoch: u32 },
    /// Look how much of each socket is used.
    Governor,
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
            Event::Scheduler { timer: TimerId::Tick(_) } => 0,
            Event::Scheduler { timer: TimerId::Accounting } => 1,
            Event::Scheduler { .. } => 2,
            Event::GuestTimer { .. } => 3,
            Event::Operation { .. }
            | Event::Interrupt { .. }
            | Event::Change { .. }
            | Event::Boot { .. }
            | Event::Switched { .. }
            | Event::Governor => 4,
            Event::Softirq { .. } => 5,
            Event::Watchdog => 6,
            Event::Limit => 7,
        }
    }
}

/// A timer that is set far more often than it fires.
///
/// Setting it later than before, or stopping it, leaves the pending event where it is; when that
/// comes it is pushed again to the time that is wanted by then. So the queue holds about one event
/// a timer, instead of one for each time that it was set.
#[derive(Debug)]
pub(crate) struct Timer {
    /// When it is to fire; `Picos::MAX` if it is stopped.
    due: Cell<Picos>,
    /// Time of the pending event that counts; others are leftovers. `Picos::MAX` if there is none.
    armed: Cell<Picos>,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Self { due: Cell::new(Picos::MAX), armed: Cell::new(Picos::MAX) }
    }

    /// When it is to fire; `Picos::MAX` if it is stopped.
    pub(crate) fn due(&self) -> Picos {
        self.due.get()
    }

    /// Sets it, or stops it with `Picos::MAX`; returns the time of the event to push, if any.
    pub(crate) fn set(&self, at: Picos) -> Option<Picos> {
        self.due.set(at);
        (at < self.armed.get()).then(|| {
            self.armed.set(at);
            at
        })
    }

    /// Its event has come at `now`. Returns whether it fires; otherwise the time of the event to
    /// push, if any.
    pub(crate) fn event(&self, now: Picos) -> Result<(), Option<Picos>> {
        if self.armed.get() != now {
            return Err(None);
        }
        self.armed.set(Picos::MAX);
        if self.due.get() <= now {
            self.due.set(Picos::MAX);
            return Ok(());
        }
        Err(self.set(self.due.get()))
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

/// The queue: two heaps. Operations and switches come and go by the million within microseconds,
/// timers are many and far away; apart, the first heap stays as small as the number of running vCPUs.
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
        // Scheduler timers due at one instant go in the order of their pCPUs.
        let place = match event {
            Event::Scheduler { timer: TimerId::Tick(p) | TimerId::Slice(p) } => u64::from(p.0),
            _ => {
                self.inserted += 1;
                self.inserted
            }
        };
        let order = (event.class() << CLASS_SHIFT) | place;
        let entry = Entry { key: u128::from(at) << 64 | u128::from(order), event };
        let heap = match event {
            Event::Scheduler { .. } | Event::GuestTimer { .. } | Event::Limit => &mut self.far,
            _ => &mut self.near,
        };
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
        let tick = Event::Scheduler { timer: TimerId::Tick(PcpuId(0)) };
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
    fn a_timer_fires_once_at_the_time_wanted_last() {
        let t = Timer::new();
        assert_eq!(t.set(30), Some(30));
        // Later and later: the event at 30 stays, and moves on when it comes.
        assert_eq!(t.set(40), None);
        assert_eq!(t.set(50), None);
        assert_eq!(t.event(30), Err(Some(50)));
        // Earlier: a new event; the one at 50 is a leftover.
        assert_eq!(t.set(45), Some(45));
        assert_eq!(t.event(45), Ok(()));
        assert_eq!(t.event(50), Err(None));
        // Stopped before it fires.
        assert_eq!(t.set(60), Some(60));
        assert_eq!(t.set(Picos::MAX), None);
        assert_eq!(t.event(60), Err(None));
        assert_eq!(t.set(70), Some(70));
        assert_eq!(t.event(70), Ok(()));
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
