//! A queue node goes back to the thread that took it.
use overspin_native::locks;

fn main() {
    let mutex = locks::Mcs::new(0);
    let guard = mutex.lock();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(guard));
    });
}
