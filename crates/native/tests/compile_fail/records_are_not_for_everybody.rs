//! A token of one lock, given to another lock, would give away another thread's queue node: access to the
//! records of the process is `unsafe`.
use overspin_locks::{Mcs, RawLock};
use overspin_native::{Records, Threads};

fn main() {
    let (one, other) = (Mcs::<Threads>::new(), Mcs::<Threads>::new());
    let records = Mcs::<Threads>::system();
    let token = one.lock(records);
    other.unlock(records, token);
}
