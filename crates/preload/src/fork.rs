//! Forks. The child has one thread, and a copy of the memory as the other threads left it.
//!
//! | When | What happens | Why |
//! |---|---|---|
//! | before | the tables and the arena are closed | no thread may be half-way through them during the copy |
//! | after, in the parent | both are opened | |
//! | after, in the child | the arena is opened | the next steps need memory |
//! | | numbers and seats of other threads are freed, and queues of waiters emptied | those threads do not exist |
//! | | the duplicate of standard error is closed | the child may be a daemon, and a reader of the output waits for its end |
//! | | all locks are replaced by free ones, with new records | the old ones know the other threads as waiters and holders |
//!
//! The mutexes themselves stay as they are. The forking thread can release a mutex that it holds, as with the C
//! library; it then has no lock to release. A mutex that another thread holds stays held.
//!
//! A thread that meets a closed table with a mutex without a lock does not wait: it uses the plain mutex
//! ([`ForkLock::with_unless_closed`](crate::fork_lock::ForkLock::with_unless_closed)).

use overspin_native::forget_other_threads;

use crate::system::let_standard_error_go;
use crate::{arena, bypass, shards, tally, waiters};

/// Registers the functions below as fork handlers of the C library. Returns false if there is no memory for that.
pub(crate) fn watch() -> bool {
    let before: unsafe extern "C" fn() = before;
    let parent: unsafe extern "C" fn() = after_in_parent;
    let child: unsafe extern "C" fn() = after_in_child;
    // SAFETY: the functions live as long as the process: the library is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) == 0 }
}

extern "C" fn before() {
    shards::close();
    arena::close();
}

extern "C" fn after_in_parent() {
    arena::open();
    shards::open();
}

extern "C" fn after_in_child() {
    arena::open();
    forget_other_threads();
    bypass::forget_other_threads();
    waiters::forget_other_threads();
    tally::begin_anew();
    let_standard_error_go();
    shards::open();
    shards::renew_locks();
}
