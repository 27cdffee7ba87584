//! Names that the precompiled `alloc` refers to. It was compiled for programs that unwind; this one aborts, so
//! nothing ever calls them.

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    crate::cpu::idle()
}

#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
