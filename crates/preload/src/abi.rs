//! ABI: the functions of the C library that this library defines. [`passage`](crate::passage) implements them.
//!
//! - **Names and types are the C library's**, so that the dynamic linker binds the program's calls to them.
//! - **Caller.** With accounts, a new mutex notes the place that the program called from. Only the first instruction of the call can
//!   see that place, so the functions that acquire begin in assembly: they append the return address to the
//!   arguments, and jump on.
//! - **Two versions.** The C library has condition variables of 2002 and older ones, under the same names. All functions
//!   are defined here, so that a program's calls all reach the newer ones: both have the same size and initialiser.
//! - **Unwinding.** Only waits on condition variables are cancellation points. A cancelled thread unwinds through
//!   them, hence `C-unwind`. They have nothing to drop.
//! - **No panic leaves.** The other functions are `extern "C"`, which aborts instead.

use std::arch::naked_asm;
use std::ffi::c_int;

use libc::{clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};

use crate::passage::{clocklock_at, destroy, lock_from, timedlock_at, trylock_from, unlock};
use crate::real;
use crate::waiting::{Until, broadcast, signal, wait};

/// Defines a function of the C library that jumps to `$inner` with one more argument, the address from which it was
/// called.
macro_rules! with_caller {
    ($name:ident($($argument:ident: $type:ty),+), $x86:literal, $arm:literal, $inner:ident) => {
        /// The C library's function of that name.
        ///
        /// # Safety
        /// The rules of the C function.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),+) -> c_int {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(concat!("mov ", $x86, ", [rsp]"), "jmp {}", sym $inner);
            #[cfg(target_arch = "aarch64")]
            naked_asm!(concat!("mov ", $arm, ", x30"), "b {}", sym $inner);
        }
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("overspin-preload knows the calling conventions of x86-64 and AArch64 only");

with_caller!(pthread_mutex_lock(mutex: *mut pthread_mutex_t), "rsi", "x1", lock_from);
with_caller!(pthread_mutex_trylock(mutex: *mut pthread_mutex_t), "rsi", "x1", trylock_from);
with_caller!(
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec),
    "rdx", "x2", timedlock_at
);
with_caller!(
    pthread_mutex_clocklock(
        mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec
    ),
    "rcx", "x3", clocklock_at
);

/// The C library's function of that name.
///
/// # Safety
/// The rules of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { unlock(mutex) }
}

/// The C library's function of that name.
///
/// # Safety
/// The rules of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { destroy(mutex) }
}

/// Defines functions of the C library that call `$inner`.
macro_rules! condition_functions {
    ($($abi:literal fn $name:ident($($argument:ident: $type:ty),+) = $inner:expr;)+) => {$(
        /// The C library's function of that name.
        ///
        /// # Safety
        /// The rules of the C function.
        #[unsafe(no_mangle)]
        pub unsafe extern $abi fn $name($($argument: $type),+) -> c_int {
            // SAFETY: as the caller promises.
            unsafe { $inner }
        }
    )+};
}

condition_functions! {
    "C" fn pthread_cond_init(
        condition: *mut pthread_cond_t, attributes: *const pthread_condattr_t
    ) = real::cond_init(condition, attributes);
    "C" fn pthread_cond_destroy(condition: *mut pthread_cond_t) = real::cond_destroy(condition);
    "C" fn pthread_cond_signal(condition: *mut pthread_cond_t) = signal(condition);
    "C" fn pthread_cond_broadcast(condition: *mut pthread_cond_t) = broadcast(condition);
    "C-unwind" fn pthread_cond_wait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t
    ) = wait(condition, mutex, Until::Signal);
    "C-unwind" fn pthread_cond_timedwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec
    ) = wait(condition, mutex, Until::Time(until));
    "C-unwind" fn pthread_cond_clockwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
        until: *const timespec
    ) = wait(condition, mutex, Until::TimeOf(clock, until));
}
