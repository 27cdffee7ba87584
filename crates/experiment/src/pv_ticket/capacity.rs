//! Finds how many CPUs the locks serve, by making their records.

use overspin_locks::{LockVisitor, RawLock, Tuning, with_lock};
use overspin_native::Threads;

/// More CPUs than any machine has, yet few enough that the records of all fit into memory.
const MOST: u32 = 1 << 16;

/// The capacity of a lock.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    /// The lock.
    pub(super) lock: String,
    /// The most CPUs.
    pub(super) cpus: u32,
}

/// Asks a lock whether its records can be made for this many CPUs.
struct Serves(u32);

impl LockVisitor<Threads> for Serves {
    type Output = bool;
    fn visit<L: RawLock<Threads> + 'static>(self) -> bool {
        L::shared(self.0 as usize, Tuning::DEFAULT).is_ok()
    }
}

/// The most CPUs that a lock serves; `None` if the lock has no such limit, or if there is no lock of this
/// name.
pub(super) fn of(lock: &str) -> Option<Capacity> {
    let serves = |cpus| with_lock(lock, Serves(cpus));
    // A lock that serves a number of CPUs serves fewer, too.
    let (mut some, mut too_many) = (0, MOST + 1);
    if serves(MOST)? {
        return None;
    }
    while too_many - some > 1 {
        let middle = u32::midpoint(some, too_many);
        if serves(middle)? {
            some = middle;
        } else {
            too_many = middle;
        }
    }
    Some(Capacity { lock: lock.to_owned(), cpus: some })
}
