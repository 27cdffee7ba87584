//! The event queue: a small heap for the next events, and a calendar for later ones.
//!
//! Most events are a few hundred nanoseconds away, and only a few of these are pending at a time. Timers
//! and the ends of long computations are many, and far away. One heap for all events would be deep, and
//! on a large host it would not fit the processor's cache. So time is cut into days. The events of today,
//! and any before, are in a heap. The events of each day ahead are in an unsorted list; when the day
//! begins, they move into the heap. Events beyond the calendar's last day wait in a heap of their own.
//! Days begin in order, and the heap sorts the events of a day, so the order is that of one heap.

use crate::events::{Event, KINDS};
use overspin_scenario::Picos;
use overspin_sched::TimerId;

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Picos,
    /// Class, insertion number, kind of event. Events of one class at equal times keep their order of
    /// insertion. Insertion numbers are unique within a class, so the kind never decides.
    order: u64,
    /// The rest of the event.
    what: u64,
}

/// A day is 2^24 ps, about 17 us: long for a lock operation, short for a timer.
const DAY_SHIFT: u32 = 24;
/// Number of days in the calendar: about 69 ms, more than the period of most ticks.
const DAYS: u64 = 4096;

impl Entry {
    #[inline(always)]
    fn new(at: Picos, place: u64, event: Event) -> Self {
        let (kind, what) = event.pack();
        Self { at, order: (event.class() << CLASS_SHIFT) | (place * KINDS) | kind, what }
    }

    /// The time and the order as one number, so that one comparison decides.
    #[inline(always)]
    fn key(&self) -> u128 {
        u128::from(self.at.0) << 64 | u128::from(self.order)
    }

    #[inline(always)]
    fn event(&self) -> Event {
        Event::unpack(self.order % KINDS, self.what)
    }

    fn day(&self) -> u64 {
        day(self.at)
    }
}

fn day(at: Picos) -> u64 {
    at.0 >> DAY_SHIFT
}

/// A heap with four children per node: half the depth of a binary heap, and siblings share cache lines.
#[derive(Debug, Default)]
struct Heap(Vec<Entry>);

const ARITY: usize = 4;
const CLASS_SHIFT: u32 = 60;

impl Heap {
    #[inline(always)]
    fn push(&mut self, entry: Entry) {
        let heap = &mut self.0;
        let mut hole = heap.len();
        heap.push(Entry { at: Picos::ZERO, order: 0, what: 0 });
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if entry.key() >= heap[parent].key() {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        // Written part by part, from registers: see `Event::pack`.
        let place = &mut heap[hole];
        (place.at, place.order, place.what) = (entry.at, entry.order, entry.what);
    }

    #[inline(always)]
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
            let at = match children.first_chunk() {
                Some(four) => least_of_four(four),
                None => match (0..children.len()).min_by_key(|i| children[*i].key()) {
                    Some(at) => at,
                    None => break,
                },
            };
            let child = children[at];
            if child.key() >= last.key() {
                break;
            }
            heap[hole] = child;
            hole = begin + at;
        }
        heap[hole] = last;
        Some(first)
    }
}

/// The index of the least entry. It has no branches, since the processor could not predict them.
#[inline(always)]
fn least_of_four(entries: &[Entry; ARITY]) -> usize {
    let of = |i: usize| entries[i].key();
    let a = usize::from(of(1) < of(0));
    let b = 2 + usize::from(of(3) < of(2));
    if of(b) < of(a) { b } else { a }
}

/// The events of one day ahead.
#[derive(Clone, Debug)]
struct Day {
    first: Picos,
    events: Vec<Entry>,
}

/// The event queue. See the [module](self).
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// Events due until the end of today.
    near: Heap,
    today: u64,
    /// The days `today + 1 .. today + DAYS`, indexed by day modulo `DAYS`.
    days: Vec<Day>,
    /// One bit per day of `days`: the day has events.
    booked: [u64; DAYS as usize / 64],
    /// Events due after the last of `days`.
    far: Heap,
    /// The earliest time in `days` and `far`; `Picos::MAX` if both are empty.
    later: Picos,
    inserted: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            near: Heap::default(),
            today: 0,
            days: vec![Day { first: Picos::MAX, events: Vec::new() }; DAYS as usize],
            booked: [0; DAYS as usize / 64],
            far: Heap::default(),
            later: Picos::MAX,
            inserted: 0,
        }
    }
}

impl EventQueue {
    /// Time of the next event; `Picos::MAX` if there is none.
    #[inline]
    pub(crate) fn next_time(&self) -> Picos {
        self.near.0.first().map_or(self.later, |e| e.at)
    }

    /// Adds an event. Takes constant time for a day of the calendar, else logarithmic time in the number of
    /// events in its heap.
    #[inline(always)]
    pub(crate) fn push(&mut self, at: Picos, event: Event) {
        // Scheduler timers due at one instant come in the order of their pCPUs.
        let place = match event {
            Event::Scheduler { timer: TimerId::Tick(p) | TimerId::Slice(p) } => u64::from(p.0),
            _ => {
                self.inserted += 1;
                self.inserted
            }
        };
        let Entry { at, order, what } = Entry::new(at, place, event);
        self.insert(at, order, what);
    }

    /// Takes a turn: the place among the events due at one instant that `event` would have if it were pushed
    /// now. Pushed later with [`push_in_turn`](Self::push_in_turn), it has the same place, as if it had been
    /// pushed now. `event` must not be a scheduler timer.
    pub(crate) fn turn(&mut self, event: Event) -> u64 {
        self.inserted += 1;
        Entry::new(Picos::ZERO, self.inserted, event).order
    }

    /// Adds an event whose turn was taken earlier. Takes as long as [`push`](Self::push).
    pub(crate) fn push_in_turn(&mut self, at: Picos, turn: u64, event: Event) {
        self.insert(at, turn, event.pack().1);
    }

    /// Whether `event` would be the next one if it were pushed now, due at `at`.
    pub(crate) fn would_be_next(&self, at: Picos, event: Event) -> bool {
        let after = |e: &Entry| (e.at, e.order >> CLASS_SHIFT) > (at, event.class());
        self.near.0.first().map_or(self.later > at, after)
    }

    /// Inserts an entry. Its parts are three arguments, because a structure would be passed through memory
    /// (see [`Event::pack`]).
    #[inline(never)]
    fn insert(&mut self, at: Picos, order: u64, what: u64) {
        let entry = Entry { at, order, what };
        if entry.day() <= self.today {
            self.near.push(entry);
        } else {
            self.later = self.later.min(entry.at);
            self.book(entry);
        }
    }

    /// Enters an event of a day ahead into the calendar, or into `far`.
    #[inline(never)]
    fn book(&mut self, entry: Entry) {
        if entry.day() - self.today < DAYS {
            let slot = (entry.day() % DAYS) as usize;
            let day = &mut self.days[slot];
            day.first = day.first.min(entry.at);
            day.events.push(entry);
            self.booked[slot / 64] |= 1 << (slot % 64);
        } else {
            self.far.push(entry);
        }
    }

    /// Goes on to the next day with events if today has none left. Returns whether today was over.
    #[inline]
    pub(crate) fn new_day(&mut self) -> bool {
        let over = self.near.0.is_empty();
        if over {
            self.begin_next_day();
        }
        over
    }

    /// The remaining events of today, in no particular order.
    pub(crate) fn today(&self) -> impl Iterator<Item = Event> + Clone + '_ {
        self.near.0.iter().map(|e| e.event())
    }

    /// Takes the next event, with its time and its turn. Takes logarithmic time in the number of events of
    /// its day.
    pub(crate) fn pop(&mut self) -> Option<(Picos, u64, Event)> {
        self.new_day();
        let entry = self.near.pop()?;
        Some((entry.at, entry.order, entry.event()))
    }

    /// Goes on to the next day with events, if there is one.
    #[cold]
    #[inline(never)]
    fn begin_next_day(&mut self) {
        if self.later == Picos::MAX {
            return;
        }
        self.today = day(self.later);
        // Take in the events that are now within the calendar's reach.
        while self.far.0.first().is_some_and(|e| e.day() - self.today < DAYS) {
            let entry = self.far.pop().expect("it has a first");
            if entry.day() == self.today { self.near.push(entry) } else { self.book(entry) }
        }
        let slot = (self.today % DAYS) as usize;
        let day = &mut self.days[slot];
        day.first = Picos::MAX;
        for entry in day.events.drain(..) {
            self.near.push(entry);
        }
        self.booked[slot / 64] &= !(1 << (slot % 64));
        let booked = self.next_booked().map(|slot| self.days[slot].first);
        let far = self.far.0.first().map(|e| e.at);
        self.later = booked.into_iter().chain(far).min().unwrap_or(Picos::MAX);
    }

    /// The index in `days` of the first day after today with events.
    fn next_booked(&self) -> Option<usize> {
        let first = ((self.today + 1) % DAYS) as usize;
        let words = self.booked.len();
        // The search looks at the word of `first` twice: first for the days from `first` on, and at the
        // end for the days before it, which come almost a calendar's length later.
        (0..=words).find_map(|i| {
            let word = (first / 64 + i) % words;
            let from_first = u64::MAX << (first % 64);
            let mask = match i {
                0 => from_first,
                _ if i == words => !from_first,
                _ => u64::MAX,
            };
            let bits = self.booked[word] & mask;
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_sched::PcpuId;

    fn pop(q: &mut EventQueue) -> Option<(Picos, Event)> {
        q.pop().map(|(at, _, event)| (at, event))
    }

    #[test]
    fn a_turn_that_was_taken_is_kept() {
        let mut q = EventQueue::default();
        let event = |vcpu| Event::Operation { vcpu, epoch: 0 };
        q.push(Picos(5), event(1));
        let turn = q.turn(event(2));
        q.push(Picos(5), event(3));
        assert!(!q.would_be_next(Picos(5), event(4)), "behind those of its instant");
        assert!(q.would_be_next(Picos(5), Event::GuestTimer { vcpu: 0 }), "another class");
        assert!(q.would_be_next(Picos(4), event(4)));
        q.push_in_turn(Picos(5), turn, event(2));
        let order: Vec<_> =
            std::iter::from_fn(|| pop(&mut q)).map(|(at, event)| (at.0, event)).collect();
        assert_eq!(order, [(5, event(1)), (5, event(2)), (5, event(3))]);
    }

    #[test]
    fn pops_in_order_of_time_class_and_insertion() {
        let mut q = EventQueue::default();
        let softirq = |pcpu| Event::Softirq { pcpu, epoch: 0 };
        let tick = Event::Scheduler { timer: TimerId::Tick(PcpuId(0)) };
        q.push(Picos(5), softirq(1));
        q.push(Picos(5), softirq(2));
        q.push(Picos(9), Event::Watchdog);
        q.push(Picos(5), tick);
        q.push(Picos(1), Event::Limit);
        let order: Vec<_> =
            std::iter::from_fn(|| pop(&mut q)).map(|(at, event)| (at.0, event)).collect();
        assert_eq!(
            order,
            [(1, Event::Limit), (5, tick), (5, softirq(1)), (5, softirq(2)), (9, Event::Watchdog)]
        );
    }

    /// Compares the queue with an unsorted list: times near and far, days apart and beyond the calendar, and
    /// in between pushes that are due at once.
    #[test]
    fn the_order_is_that_of_time_and_insertion() {
        let mut q = EventQueue::default();
        let mut model: Vec<(Picos, u32)> = Vec::new();
        let (mut x, mut now) = (12_345_u64, Picos::ZERO);
        for i in 0..20_000_u32 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let distance = (x >> 40) << [0, 4, 12, 16][(x >> 30) as usize % 4];
            let at = now + if x >> 61 == 0 { Picos::ZERO } else { Picos(distance) };
            q.push(at, Event::Boot { vcpu: i });
            model.push((at, i));
            if x >> 63 == 0 || i > 19_000 {
                let first = *model.iter().min().unwrap();
                model.retain(|e| *e != first);
                assert_eq!(q.next_time(), first.0);
                assert_eq!(pop(&mut q), Some((first.0, Event::Boot { vcpu: first.1 })));
                now = first.0;
            }
        }
        model.sort_unstable();
        for (at, vcpu) in model {
            assert_eq!(pop(&mut q), Some((at, Event::Boot { vcpu })));
        }
        assert_eq!((pop(&mut q), q.next_time()), (None, Picos::MAX));
    }
}
