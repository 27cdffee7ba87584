//! A lock that does nothing would hand the data to two threads. Safe code cannot make a mutex of it.
#![forbid(unsafe_code)]

use overspin_locks::{CapacityError, LockInfo, RawLock, Tuning};
use overspin_native::{LockMutex, Threads, native_lock};

#[derive(Debug)]
struct Open;

impl RawLock<Threads> for Open {
    const INFO: LockInfo = <overspin_locks::Ticket<Threads> as RawLock<Threads>>::INFO;
    type Shared = ();
    type Token = ();

    fn shared(_cpus: usize, _tuning: Tuning) -> Result<(), CapacityError> {
        Ok(())
    }
    fn new() -> Self {
        Self
    }
    fn lock(&self, _shared: &()) {}
    fn try_lock(&self, _shared: &()) -> Option<()> {
        Some(())
    }
    fn unlock(&self, _shared: &(), _token: ()) {}
    fn is_locked(&self, _shared: &()) -> bool {
        false
    }
    fn is_contended(&self, _shared: &()) -> bool {
        false
    }
}

native_lock!(Open);

fn main() {
    let mutex: LockMutex<Open, Vec<u64>> = LockMutex::new(vec![1]);
    let first = mutex.lock();
    let number = &first[0];
    mutex.lock().clear();
    println!("{number}");
}
