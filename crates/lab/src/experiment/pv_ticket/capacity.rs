//! How many CPUs the locks serve: by making their records.

use overspin_locks::{LockVisitor, RawLock, Tuning, with_lock};
use overspin_native::Threads;

/// The most CPUs, of a number and of one more, that a lock lets its records be made for.
struct Serves(usize);

impl LockVisitor<Threads> for Serves {
    type Output = [bool; 2];
    fn visit<L: RawLock<Threads> + 'static>(self) -> [bool; 2] {
        [self.0, self.0 + 1].map(|cpus| L::shared(cpus, Tuning::DEFAULT).is_ok())
    }
}

/// Whether a lock serves `cpus` CPUs and not one more; `None` if there is no such lock.
pub(super) fn is(lock: &str, cpus: usize) -> Option<bool> {
    with_lock(lock, Serves(cpus)).map(|serves| serves == [true, false])
}
