//! Upcalls: the host makes a vCPU with a pending event continue here.
//!
//! Each guest wants one for the notice of a preemption, and for calls of other vCPUs. A guest whose tasks share vCPUs also wants one for ticks, timers and
//! ready tasks; elsewhere these only wake a vCPU that sleeps.

use crate::cpu;
use core::arch::global_asm;
use core::sync::atomic::Ordering;
use overspin_guest_abi::{event, port};

// Compiled code may use any register that a call does not preserve, and SSE; its stack is aligned. `rbp` keeps the
// old stack pointer meanwhile. The frame of the host lies above: the flags, and the address to return to, below
// the red zone.
global_asm!(
    ".globl overspin_upcall",
    "overspin_upcall:",
    "push rax",
    "push rcx",
    "push rdx",
    "push rsi",
    "push rdi",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push rbp",
    "mov rbp, rsp",
    "sub rsp, 512",
    "and rsp, -64",
    "fxsave [rsp]",
    "cld",
    "call {handle}",
    "fxrstor [rsp]",
    "mov rsp, rbp",
    "pop rbp",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdi",
    "pop rsi",
    "pop rdx",
    "pop rcx",
    "pop rax",
    "popfq",
    "ret 128",
    handle = sym handle,
);

unsafe extern "C" {
    safe fn overspin_upcall();
}

/// Tells the host where upcalls of this vCPU go, and which events want them.
pub fn enable(events: u32) {
    cpu::page().upcalls.store(events, Ordering::Relaxed);
    cpu::page().handler.store(overspin_upcall as *const () as u64, Ordering::Relaxed);
}

/// Handles the pending events, and lets new ones come. An upcall that comes between the last look and the return
/// nests, which is harmless: it uses some more of the stack.
extern "C" fn handle() {
    interrupts();
    unmask();
}

/// Lets upcalls come again if they could come before `masked` was returned by [`cpu::mask`].
#[inline(always)]
pub fn restore(masked: bool) {
    if !masked {
        unmask();
    }
}

/// Lets upcalls come again, and handles the events that came meanwhile.
#[inline(always)]
pub fn unmask() {
    cpu::page().masked.store(0, Ordering::SeqCst);
    // The host looks at `masked` only when it enters this vCPU. So an event that came while it was masked has to be handled
    // here. If the task moves to another vCPU before this look, an upcall has handled the events of both.
    while cpu::wanted() != 0 {
        late();
    }
}

#[cold]
fn late() {
    cpu::mask();
    interrupts();
    cpu::page().masked.store(0, Ordering::SeqCst);
}

/// Handles the pending events. Upcalls are masked. Other tasks may run before this returns, if the code below is of user
/// mode.
fn interrupts() {
    if cpu::page().pending.load(Ordering::SeqCst) & event::NOTICE != 0 {
        give_up_if_asked();
    }
    if let Some(world) = crate::world() {
        world.interrupts();
    }
}

/// Gives the pCPU up if the host has asked for it and no lock is held.
pub fn give_up_if_asked() {
    let page = cpu::page();
    page.pending.fetch_and(!event::NOTICE, Ordering::AcqRel);
    if page.notice.load(Ordering::Relaxed) != 0 && page.held.load(Ordering::Relaxed) == 0 {
        cpu::hypercall(port::GIVE_UP, 0);
    }
}
