//! The vCPU that executes this code: its page, its clock, its hypercalls.

use core::arch::asm;
use core::sync::atomic::{AtomicPtr, Ordering};
use overspin_guest_abi::{NEVER, SharedInfo, VcpuPage, event, port};

static INFO: AtomicPtr<SharedInfo> = AtomicPtr::new(core::ptr::null_mut());

/// Remembers where the domain's page is.
pub fn set_info(info: &'static SharedInfo) {
    // Every vCPU stores the same address before it uses it, so no order matters.
    INFO.store(core::ptr::from_ref(info).cast_mut(), Ordering::Relaxed);
}

/// What the domain was told.
pub fn info() -> &'static SharedInfo {
    // SAFETY: every vCPU has called `set_info` with a reference that lives for ever.
    unsafe { &*INFO.load(Ordering::Relaxed) }
}

/// The page of this vCPU.
#[inline(always)]
pub fn page() -> &'static VcpuPage {
    let page: *const VcpuPage;
    // SAFETY: the host points `fs` at this vCPU's page, whose first word is its address. It never changes.
    unsafe {
        asm!("mov {}, fs:0", out(reg) page, options(nostack, preserves_flags, readonly, pure));
        &*page
    }
}

/// The page of a vCPU of this domain.
pub fn page_of(id: usize) -> &'static VcpuPage {
    let first = info().pages.load(Ordering::Relaxed) as *const VcpuPage;
    assert!(id < info().vcpus.load(Ordering::Relaxed) as usize, "there is no vCPU {id}");
    // SAFETY: the host has put that many pages there.
    unsafe { &*first.add(id) }
}

/// The number of this vCPU.
#[inline(always)]
pub fn id() -> usize {
    page().id.load(Ordering::Relaxed) as usize
}

/// Calls the host.
#[inline(always)]
pub fn hypercall(port: u16, value: u32) {
    // SAFETY: a hypercall changes no register, and of memory only what is atomic.
    unsafe {
        asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags))
    };
}

/// Nanoseconds since the start of the run.
#[inline(always)]
pub fn now() -> u64 {
    let info = info();
    let since = tsc().wrapping_sub(info.tsc_base.load(Ordering::Relaxed));
    let scale = info.tsc_scale.load(Ordering::Relaxed);
    ((u128::from(since) * u128::from(scale)) >> 32) as u64
}

#[inline(always)]
fn tsc() -> u64 {
    // SAFETY: every x86-64 CPU has a time stamp counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// CPU time of this vCPU in nanoseconds.
pub fn cpu_time() -> u64 {
    let page = page();
    // The host writes these words only while this vCPU is off its pCPU. If it was preempted between two of these
    // reads, the number of its dispatches differs.
    loop {
        let before = page.dispatches.load(Ordering::Relaxed);
        let past = page.times[0].load(Ordering::Relaxed);
        let since = page.state_since.load(Ordering::Relaxed);
        let now = now();
        if page.dispatches.load(Ordering::Relaxed) == before {
            return past + now.saturating_sub(since);
        }
    }
}

/// Sleeps until an event is pending, at the latest at `deadline`.
pub fn block_until(deadline: u64) {
    page().deadline.store(deadline, Ordering::Relaxed);
    hypercall(port::BLOCK, 0);
    page().pending.fetch_and(!event::TIMER, Ordering::AcqRel);
}

/// Sleeps for ever: this vCPU has nothing to do any more.
pub fn idle() -> ! {
    loop {
        block_until(NEVER);
        page().pending.store(0, Ordering::Relaxed);
    }
}
