//! The data is out of reach without the lock.
use overspin_native::locks;

fn main() {
    let mutex = locks::Ticket::new(0);
    let mut guard = mutex.lock();
    let data: &mut i32 = &mut guard;
    drop(guard);
    *data += 1;
}
