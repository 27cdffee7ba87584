//! A shared guard is a shared reference to the data.
use std::cell::Cell;

use overspin_native::locks;

fn main() {
    let mutex = locks::Ticket::new(Cell::new(0));
    let guard = mutex.lock();
    std::thread::scope(|scope| {
        scope.spawn(|| guard.set(1));
    });
}
