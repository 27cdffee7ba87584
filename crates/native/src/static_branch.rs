//! Whether waiters of the paravirtual ticket locks may sleep, as a branch that is patched into the code.
//!
//! On bare hardware the release is then the addition and a no-operation of 5 bytes, as in the kernels
//! that had this lock; a load and a branch otherwise.

use static_keys::{define_static_key_false, static_branch_unlikely};

define_static_key_false!(PARAVIRTUAL);

#[inline(always)]
pub(crate) fn is_paravirtual() -> bool {
    static_branch_unlikely!(PARAVIRTUAL)
}

/// Lets waiters of the paravirtual ticket locks sleep, or not. They may not until this is called.
///
/// # Safety
/// No other thread may run: the code that it runs may be the code that is patched, and a thread that
/// sleeps in a lock would not be woken by a release that is told that nobody sleeps.
pub unsafe fn set_paravirtual(on: bool) {
    static_keys::global_init();
    // SAFETY: initialised above; the caller promises that nothing runs beside this.
    unsafe {
        if on {
            PARAVIRTUAL.enable();
        } else {
            PARAVIRTUAL.disable();
        }
    }
}
