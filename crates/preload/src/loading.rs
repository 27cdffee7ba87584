//! Libraries that the program loads with `RTLD_DEEPBIND`: their calls go past this library, signals among them.
//!
//! `dlopen` looks at its caller: whose search path it uses, and whose namespace. So this `dlopen` leaves its caller's
//! return address where it is, and jumps to the C library's.

use std::arch::naked_asm;
use std::ffi::{c_char, c_int, c_void};

use crate::real;
use crate::system::KeepErrno;
use crate::waiting::others_signal;

/// The C library's function of that name.
///
/// # Safety
/// The rules of the C function.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    // Both arguments are kept over the call; the stack is aligned to 16 bytes at it.
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "push rdi", "push rsi", "sub rsp, 8",
        "mov edi, esi",
        "call {before}",
        "add rsp, 8", "pop rsi", "pop rdi",
        "jmp rax",
        before = sym before,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x0, x1, [sp, #-32]!",
        "str x30, [sp, #16]",
        "mov w0, w1",
        "bl {before}",
        "mov x16, x0",
        "ldr x30, [sp, #16]",
        "ldp x0, x1, [sp], #32",
        "br x16",
        before = sym before,
    );
}

/// The address of the C library's `dlopen`, for a call with these flags.
extern "C" fn before(flags: c_int) -> *mut c_void {
    let _errno = KeepErrno::new();
    if flags & libc::RTLD_DEEPBIND != 0 {
        others_signal();
    }
    real::dlopen()
}
