//! Forks. The child has one thread, and a copy of what the others have left in memory.
//!
//! | When | What happens | Why |
//! |---|---|---|
//! | before | the table and the arena are closed | so that nobody is half-way through them when they are copied |
//! | after, in the parent | both are opened | |
//! | after, in the child | the arena is opened | what follows needs memory |
//! | | numbers and seats of other threads are free | those threads do not exist |
//! | | all locks are replaced by free ones, with records of their own | the old ones know the other threads as waiters and holders |
//!
//! The mutexes themselves stay as they are. One that the forking thread holds it can release, as the C
//! library has it; it has no lock to release then. One that another thread holds stays held.
//!
//! A thread that comes to the closed table with a new mutex does not wait: it uses the mutex as it is
//! ([`Gate::with_unless_closed`](crate::gate::Gate::with_unless_closed)).

use overspin_native::forget_other_threads;

use crate::{arena, bypass, shadow};

/// Has the C library call the functions below around each fork. False if it has no memory for that.
pub(crate) fn watch() -> bool {
    let before: unsafe extern "C" fn() = before;
    let parent: unsafe extern "C" fn() = after_in_parent;
    let child: unsafe extern "C" fn() = after_in_child;
    // SAFETY: the functions live as long as the process: the library is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) == 0 }
}

extern "C" fn before() {
    shadow::close();
    arena::close();
}

extern "C" fn after_in_parent() {
    arena::open();
    shadow::open();
}

extern "C" fn after_in_child() {
    arena::open();
    forget_other_threads();
    bypass::forget_other_threads();
    shadow::open();
    shadow::renew_locks();
}
