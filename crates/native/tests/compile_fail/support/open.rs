//! A lock that does nothing.
use overspin_locks::{CapacityError, LockInfo, RawLock, Tuning};
use overspin_native::Threads;

#[derive(Debug)]
pub struct Open;

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
