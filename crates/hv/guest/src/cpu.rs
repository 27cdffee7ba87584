//! The vCPU that executes this code: its page, its clock, its hypercalls.

use crate::local::Local;
use crate::upcall;
use core::arch::asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use overspin_guest_abi::{NEVER, SharedInfo, VcpuPage, event, port};

/// The word of a vCPU's page that has the address of what runs there.
const CURRENT: usize = 7;
/// The word with the CPU time up to which the task that runs there was charged.
const CHARGED: usize = 8;

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

/// The page of this vCPU. Code of user mode masks upcalls before it uses it.
#[inline(always)]
pub fn page() -> &'static VcpuPage {
    let page: *const VcpuPage;
    // SAFETY: the host points `fs` at this vCPU's page, whose first word is its address. It never changes. `readonly`: code
    // that other tasks may run behind, as a call of the kernel, reads it again.
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

/// What the running code has of its own.
#[inline(always)]
pub fn current() -> &'static Local {
    let local: *const Local;
    // SAFETY: the kernel has put the address of a living value there. One instruction reads it, so code that moves to
    // another vCPU reads the same value before and after.
    unsafe {
        asm!("mov {0}, fs:[{1}]", out(reg) local, const offset_of!(VcpuPage, own) + 8 * CURRENT,
            options(nostack, preserves_flags, readonly, pure));
        &*local
    }
}

/// From now on this vCPU executes the code that has `local` of its own.
pub fn set_current(local: *const Local) {
    page().own[CURRENT].store(local as u64, Ordering::Relaxed);
}

/// Masks upcalls. Returns whether they were masked.
///
/// Code that may lose its vCPU at any time may call this. If it does so between the instructions, it was not masked there,
/// and is not masked where it goes on.
#[inline(always)]
pub fn mask() -> bool {
    let was: u32;
    // SAFETY: it writes one word of the page, which is an atomic.
    unsafe {
        asm!("mov {0:e}, fs:[{1}]", "mov dword ptr fs:[{1}], 1", out(reg) was,
            const offset_of!(VcpuPage, masked), options(nostack, preserves_flags));
    }
    was != 0
}

/// The pending events of this vCPU that want an upcall.
#[inline(always)]
pub fn wanted() -> u32 {
    let page = page();
    page.pending.load(Ordering::SeqCst) & page.upcalls.load(Ordering::Relaxed)
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
    cpu_time_of(page())
}

/// CPU time of the vCPU with this page, in nanoseconds.
pub fn cpu_time_of(page: &VcpuPage) -> u64 {
    // The host writes these words only while the vCPU is off its pCPU. If it was preempted between two of these
    // reads, the number of its dispatches differs, or the time of the last change.
    loop {
        let before = page.dispatches.load(Ordering::Relaxed);
        let since = page.state_since.load(Ordering::Relaxed);
        let past = page.times[0].load(Ordering::Relaxed);
        let runs = page.state.load(Ordering::Relaxed) == 0;
        let now = now();
        if page.dispatches.load(Ordering::Relaxed) == before
            && page.state_since.load(Ordering::Relaxed) == since
        {
            return past + if runs { now.saturating_sub(since) } else { 0 };
        }
    }
}

/// The CPU time of a vCPU up to which the task that runs there was charged.
pub fn charged(page: &VcpuPage) -> &AtomicU64 {
    &page.own[CHARGED]
}

/// CPU time of the running task in nanoseconds.
pub fn task_time() -> u64 {
    let masked = mask();
    let rest = cpu_time().saturating_sub(charged(page()).load(Ordering::Relaxed));
    let time = current().cpu.load(Ordering::Relaxed) + rest;
    upcall::restore(masked);
    time
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
