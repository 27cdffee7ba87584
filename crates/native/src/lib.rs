#![doc = include_str!("../README.md")]
//!
//! # Where to look
//!
//! - [`Mutex`] for general use, and [`Mutexee`], on whose design `Mutex` builds;
//! - [`Condvar`]: threads sleep on it until another one says that something has changed;
//! - [`RwLock`]: readers and writers take turns;
//! - [`locks`]: `Mutex<T>` for every lock of the registry, for example [`locks::Ticket`];
//! - [`LockMutex`]: the same for a lock of your own ([`native_lock!`], [`NativeLock`]);
//! - [`Kind`]: a lock chosen by name at run time;
//! - [`Threads`]: the platform; a thread is a CPU and sleeps on a futex.
//!
//! # Panics, numbers and signals
//!
//! After a panic in a section, the next thread finds the data as the panic left it, as with parking_lot.
//!
//! A thread that uses a lock of [`locks`] has a dense number until it ends; see [`MAX_THREADS`]. A signal handler has the
//! number of its thread, and with it the queue node in which the thread may be waiting: therefore it must not take these
//! locks.
//!
//! # Safety
//! The unsafe code is system calls and the promises of [`lock_api::RawMutex`]. The promises rest on
//! [`NativeLock`], an unsafe trait: its implementer vouches for the mutual exclusion of a lock. The locks of the
//! registry have no unsafe code themselves and are model-checked.

#[cfg(not(target_os = "linux"))]
compile_error!("overspin-native rests on Linux futexes");

#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "bench")]
pub mod calibrate;
mod condvar;
mod futex;
mod identity;
#[cfg(feature = "bench")]
pub mod measure;
mod mutex;
mod named;
#[doc(hidden)]
pub mod preload;
mod raw;
mod rwlock;
mod sightings;
#[cfg(feature = "static-branch")]
mod static_branch;
mod threads;
mod waiters;
#[cfg(feature = "world")]
pub mod world;
mod yields;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use identity::{
    MAX_THREADS, forget_other_threads, kernel_thread_id, served_id, thread_id, thread_serial,
    try_thread_id, with_number_of,
};
pub use mutex::{Mutex, MutexGuard, Mutexee, RawMutex, RawMutexee};
pub use named::{Kind, NamedLock};
pub use raw::{Guard, LockMutex, NativeLock, Raw, Records, TUNING, locks, new_system};
pub use rwlock::{RawRwLock, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
#[cfg(feature = "static-branch")]
pub use static_branch::set_paravirtual;
pub use threads::Threads;

#[doc(hidden)]
pub use overspin_locks;
