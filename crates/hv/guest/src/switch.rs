//! Stacks, and the switch from one to another.

use alloc::boxed::Box;
use alloc::vec;
use core::arch::global_asm;

/// Bytes of a task's stack. An upcall needs less than a tenth of it.
const SIZE: usize = 64 << 10;

// The registers that a call preserves are all that a switch has to keep: for its caller it is a call. The control
// words of floating point are never changed here.
global_asm!(
    ".globl overspin_switch",
    "overspin_switch:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi], rsp",
    "mov rsp, rsi",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    // The first switch to a stack returns here.
    ".globl overspin_stack_begins",
    "overspin_stack_begins:",
    "mov rdi, rbx",
    "call r12",
    "ud2",
);

unsafe extern "C" {
    fn overspin_switch(keep: *mut usize, to: usize);
    safe fn overspin_stack_begins();
}

/// Stores what brings the caller back in `keep`, and goes on with the stack that left `to`. Returns when somebody
/// switches to what is in `keep`, perhaps on another vCPU.
///
/// # Safety
/// `to` was stored by a switch, or made by [`Stack::begin_with`], and nobody has switched to it since. `keep` is valid for
/// a write.
#[inline(never)]
pub unsafe fn switch(keep: *mut usize, to: usize) {
    // SAFETY: the caller vouches for both.
    unsafe { overspin_switch(keep, to) }
}

/// A stack.
pub struct Stack(Box<[u128]>);

impl Default for Stack {
    fn default() -> Self {
        Self(vec![0; SIZE / size_of::<u128>()].into_boxed_slice())
    }
}

impl Stack {
    /// What to [`switch`] to so that `first` begins on this stack with `argument`.
    pub fn begin_with(&self, first: extern "C" fn(usize) -> !, argument: usize) -> usize {
        // As if `overspin_stack_begins` had called `overspin_switch`: r15, r14, r13, r12, rbx, rbp, the address to
        // return to. After that the stack is empty, and so it is aligned for the call.
        let words = [
            0,
            0,
            0,
            first as *const () as usize,
            argument,
            0,
            overspin_stack_begins as *const () as usize,
        ];
        let end = self.0.as_ptr_range().end as usize;
        let at = (end - size_of_val(&words)) as *mut [usize; 7];
        // SAFETY: it is inside the stack, which this value owns and nobody uses; words are aligned to words.
        unsafe { at.write(words) };
        at as usize
    }
}
