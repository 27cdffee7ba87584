//! A lock that does nothing would hand the data to two threads. Safe code cannot make a mutex of it.
#![forbid(unsafe_code)]

#[path = "support/open.rs"]
mod open;

use open::Open;
use overspin_native::{LockMutex, native_lock};

native_lock!(Open);

fn main() {
    let mutex: LockMutex<Open, Vec<u64>> = LockMutex::new(vec![1]);
    let first = mutex.lock();
    let number = &first[0];
    mutex.lock().clear();
    println!("{number}");
}
