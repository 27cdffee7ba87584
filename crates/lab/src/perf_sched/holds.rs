//! Spin locks: from waits to critical sections.
//!
//! A recording has only the waits for a lock, and no section. But if a second task was already waiting when the first
//! one got the lock, the second one gets it when the first one's section is over. So the time from one end to the next
//! is the length of a section, with the hand-over. A section behind which nobody waited is taken for the median of
//! its lock. The section of a holder that did not wait itself is not in the recording at all.

use std::collections::BTreeMap;

/// The locks of a recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds {
    /// Their addresses.
    pub names: Vec<String>,
    by_name: BTreeMap<String, usize>,
    /// The lock that each task waits for, and since when.
    waits: BTreeMap<usize, (usize, u64)>,
    /// The last task that got each lock after a wait, the place of that in its steps, and when it was.
    last: BTreeMap<usize, (usize, usize, u64)>,
    /// Lengths of sections that the recording shows, by task and step.
    known: BTreeMap<(usize, usize), u64>,
    /// Lengths of sections by lock.
    of_lock: BTreeMap<usize, Vec<u64>>,
    /// Waits for spin locks that became sections.
    pub taken: u64,
    /// Waits for locks whose waiters sleep, and for locks that readers share.
    pub others: u64,
    /// Waits in interrupts.
    pub in_interrupts: u64,
}

impl Holds {
    /// A task begins to wait.
    pub(super) fn begins(&mut self, task: usize, name: &str, flags: &str, now: u64) {
        if flags != "SPIN" && flags != "SPIN|WRITE" {
            self.others += 1;
            return;
        }
        let next = self.names.len();
        let lock = *self.by_name.entry(name.to_owned()).or_insert(next);
        if lock == next {
            self.names.push(name.to_owned());
        }
        self.waits.insert(task, (lock, now));
    }

    /// A task has got the lock; the acquisition becomes step `step`. Returns the lock and the length of the wait.
    pub(super) fn ends(
        &mut self,
        task: usize,
        name: &str,
        step: usize,
        now: u64,
    ) -> Option<(usize, u64)> {
        let lock = *self.by_name.get(name)?;
        let (_, since) = self.waits.get(&task).copied().filter(|(waited, _)| *waited == lock)?;
        self.waits.remove(&task);
        if let Some((before, its_step, got)) = self.last.insert(lock, (task, step, now))
            && since < got
        {
            self.known.insert((before, its_step), now - got);
            self.of_lock.entry(lock).or_default().push(now - got);
        }
        self.taken += 1;
        Some((lock, now - since))
    }

    /// A task leaves its CPU: no spinning task does.
    pub(super) fn leaves(&mut self, task: usize) {
        self.waits.remove(&task);
    }

    /// The length of the section at this step; `None` if nothing shows how long sections of this lock are.
    pub(super) fn length(&self, task: usize, step: usize, lock: usize) -> Option<u64> {
        let median = || {
            let mut all = self.of_lock.get(&lock)?.clone();
            all.sort_unstable();
            all.get(all.len() / 2).copied()
        };
        self.known.get(&(task, step)).copied().or_else(median)
    }

    /// Number of sections whose length the recording shows.
    pub(super) fn shown(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_when_the_next_waiter_gets_the_lock() {
        let mut holds = Holds::default();
        // An unseen holder has the lock until 10. Tasks 0, 1 and 2 wait meanwhile.
        holds.begins(0, "0xa", "SPIN", 1);
        holds.begins(1, "0xa", "SPIN", 2);
        holds.begins(2, "0xa", "SPIN", 3);
        holds.begins(3, "0xb", "MUTEX", 4);
        assert_eq!(holds.ends(0, "0xa", 7, 10), Some((0, 9)));
        assert_eq!(holds.ends(1, "0xa", 5, 14), Some((0, 12)));
        assert_eq!(holds.ends(2, "0xa", 6, 20), Some((0, 17)));
        assert_eq!(holds.ends(3, "0xb", 1, 20), None);
        // A wait behind a holder that did not wait.
        holds.begins(0, "0xa", "SPIN", 30);
        assert_eq!(holds.ends(0, "0xa", 9, 31), Some((0, 1)));
        assert_eq!(holds.length(0, 7, 0), Some(4));
        assert_eq!(holds.length(1, 5, 0), Some(6));
        // Nobody waited behind these: the upper median of 4 and 6.
        assert_eq!(holds.length(2, 6, 0), Some(6));
        assert_eq!(holds.length(0, 9, 0), Some(6));
        assert_eq!(holds.length(0, 0, 1), None);
        assert_eq!((holds.taken, holds.others, holds.shown()), (4, 1, 2));
    }
}
