//! A patched branch that tells whether waiters of the paravirtual ticket locks may sleep.
//!
//! On bare hardware the release is then the addition and a 5-byte no-operation, as in the kernels that
//! had this lock. Otherwise it has a load and a branch.

use static_keys::{define_static_key_false, static_branch_unlikely};

define_static_key_false!(PARAVIRTUAL);

#[inline(always)]
pub(crate) fn is_paravirtual() -> bool {
    static_branch_unlikely!(PARAVIRTUAL)
}

/// Sets whether waiters of the paravirtual ticket locks may sleep. They may not until this is called.
///
/// # Safety
/// No other thread may run. It might execute the code that is being patched. A thread that sleeps in a
/// lock would not be woken by a release that is told that there are no sleepers.
pub unsafe fn set_paravirtual(on: bool) {
    static_keys::global_init();
    // SAFETY: initialised above; the caller promises that no other thread runs.
    unsafe {
        if on {
            PARAVIRTUAL.enable();
        } else {
            PARAVIRTUAL.disable();
        }
    }
}
