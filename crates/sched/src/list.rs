//! Doubly linked lists over dense indices: O(1) insertion and removal without allocation.
//!
//! The links of all elements of one kind live in one [`Links`]; an element is on at most one of the
//! lists that share it. For instance, the run queues of all pCPUs share one.

use alloc::vec::Vec;

/// No element.
const NIL: u32 = u32::MAX;
/// Replaces a link of an element that is on no list.
const OFF: u32 = u32::MAX - 1;

/// The ends of one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { head: NIL, tail: NIL };

    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    pub(crate) fn head(&self) -> Option<u32> {
        some(self.head)
    }

    pub(crate) fn tail(&self) -> Option<u32> {
        some(self.tail)
    }
}

/// The links of all elements of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    /// (previous, next) of each element.
    of: Vec<(u32, u32)>,
}

fn some(x: u32) -> Option<u32> {
    (x < OFF).then_some(x)
}

impl Links {
    /// Adds an element, which is on no list.
    pub(crate) fn grow(&mut self) {
        self.of.push((OFF, OFF));
    }

    pub(crate) fn is_linked(&self, x: u32) -> bool {
        self.of[x as usize].1 != OFF
    }

    pub(crate) fn next(&self, x: u32) -> Option<u32> {
        some(self.of[x as usize].1)
    }

    pub(crate) fn previous(&self, x: u32) -> Option<u32> {
        some(self.of[x as usize].0)
    }

    /// Inserts `x` before `before`, or at the end if `before` is None. `x` must be on no list.
    pub(crate) fn insert_before(&mut self, list: &mut List, x: u32, before: Option<u32>) {
        debug_assert!(!self.is_linked(x), "an element is on one list at most");
        let next = before.unwrap_or(NIL);
        let previous = match before {
            Some(b) => core::mem::replace(&mut self.of[b as usize].0, x),
            None => core::mem::replace(&mut list.tail, x),
        };
        match some(previous) {
            Some(p) => self.of[p as usize].1 = x,
            None => list.head = x,
        }
        self.of[x as usize] = (previous, next);
    }

    pub(crate) fn push_front(&mut self, list: &mut List, x: u32) {
        self.insert_before(list, x, list.head());
    }

    /// Removes `x` from `list`. It must be on that list.
    pub(crate) fn remove(&mut self, list: &mut List, x: u32) {
        debug_assert!(self.is_linked(x), "an element to remove is on the list");
        let (previous, next) = core::mem::replace(&mut self.of[x as usize], (OFF, OFF));
        match some(previous) {
            Some(p) => self.of[p as usize].1 = next,
            None => list.head = next,
        }
        match some(next) {
            Some(n) => self.of[n as usize].0 = previous,
            None => list.tail = previous,
        }
    }

    /// The elements of `list`, in order.
    pub(crate) fn iter(&self, list: &List) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(list.head(), |x| self.next(*x))
    }

    /// The elements of `list`, from the last to the first.
    pub(crate) fn backwards(&self, list: &List) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(list.tail(), |x| self.previous(*x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_through_insertion_and_removal() {
        let mut links = Links::default();
        (0..5).for_each(|_| links.grow());
        let mut list = List::EMPTY;
        links.insert_before(&mut list, 0, None);
        links.insert_before(&mut list, 1, None);
        links.push_front(&mut list, 2);
        links.insert_before(&mut list, 3, Some(1));
        let order = |links: &Links, list: &List| links.iter(list).collect::<Vec<_>>();
        assert_eq!(order(&links, &list), [2, 0, 3, 1]);
        assert_eq!(links.backwards(&list).collect::<Vec<_>>(), [1, 3, 0, 2]);
        links.remove(&mut list, 2);
        links.remove(&mut list, 1);
        links.remove(&mut list, 0);
        assert_eq!(order(&links, &list), [3]);
        assert!(links.is_linked(3) && !links.is_linked(4) && !links.is_linked(0));
        links.remove(&mut list, 3);
        assert!(list.is_empty());
    }
}
