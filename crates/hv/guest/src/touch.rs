//! Pages that nobody has touched: a write to one makes the host find memory for it.

use crate::cpu;
use core::sync::atomic::{AtomicU64, Ordering};
use overspin_guest_abi::port;

const PAGE: u64 = 4096;

/// Bytes of this vCPU's part that have been touched.
fn touched() -> &'static AtomicU64 {
    &cpu::page().own[6]
}

/// Writes to the next page of this vCPU's part. When all are used, the host takes them away, and the first one is
/// fresh again.
pub fn page() {
    let info = cpu::info();
    let len = info.touch_len.load(Ordering::Relaxed);
    let mut at = touched().load(Ordering::Relaxed);
    if at + PAGE > len {
        cpu::hypercall(port::FRESH, 0);
        at = 0;
        if len < PAGE {
            return;
        }
    }
    touched().store(at + PAGE, Ordering::Relaxed);
    let page = info.touch.load(Ordering::Relaxed) + cpu::id() as u64 * len + at;
    // SAFETY: the host leaves these pages to this vCPU, and this guest keeps nothing there.
    unsafe { (page as *mut u64).write_volatile(1) };
}
