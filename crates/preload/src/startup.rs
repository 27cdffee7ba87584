//! Start-up: reads the requests of the environment, once in a process.
//!
//! | When | What happens |
//! |---|---|
//! | the library is loaded | [`AT_LOAD`] runs among the constructors |
//! | another library's constructor locks a mutex earlier | that `lock` starts this library first; see [`start_once`] |
//! | a thread comes while another one starts | it uses the plain mutex: nothing is active yet |
//!
//! **Order.** [`shards::start`] comes last, because it makes the library active. A mutex that gets a lock before the
//! fork handlers are registered would be stuck in the child of a fork.
//!
//! **All or nothing.** If anything that the library needs is missing, the program keeps its own mutexes, and a
//! message says so. Only an unknown lock name ends the program: it would otherwise run with other mutexes than
//! requested, and be measured wrongly.

use std::env;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::system::{keep_standard_error, say};
use crate::{
    becoming, condition, ending, fork, mutex, real, record, shards, stats, tally, watched,
};

/// Starts this library at the first call.
#[cold]
pub(crate) fn start_once() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    // The load first: in a program that asks for nothing, every `lock` comes here.
    if !STARTED.load(Relaxed) && !STARTED.swap(true, Relaxed) {
        start();
    }
}

fn start() {
    let Some(name) = env::var_os("OVERSPIN_LOCK") else { return };
    let Some(kind) = name.to_str().and_then(watched::kind) else {
        say(format_args!("OVERSPIN_LOCK: there is no lock {name:?}; see `overspin list locks`"));
        // SAFETY: it has no preconditions.
        unsafe { libc::_exit(2) }
    };
    if !mutex::layout_is_as_expected() {
        say(format_args!("unknown mutex layout in this C library; mutexes stay as they are"));
        return;
    }
    // Creates the key by which threads return their numbers while few keys exist: the first keys need no memory.
    let _ = overspin_native::try_thread_id();
    // Early, so that in the child our locks work again before the program's own handlers use them.
    if !fork::watch() {
        say(format_args!("no memory to watch for forks; mutexes stay as they are"));
        return;
    }
    keep_standard_error();
    tally::attach();
    becoming::start();
    if env::var_os("OVERSPIN_STATS").is_some_and(|value| value == "1") {
        stats::start();
    }
    record::start();
    ending::start();
    // Without what they need, waits are the C library's.
    if real::has(c"sem_clockwait") {
        condition::find_layout();
    }
    shards::start(kind);
}

extern "C" fn at_load() {
    start_once();
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;
