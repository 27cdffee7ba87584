//! A mutex moves its data between threads.
use std::rc::Rc;

use overspin_native::locks;

fn main() {
    let mutex = locks::Ticket::new(Rc::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| drop(mutex.lock()));
    });
}
