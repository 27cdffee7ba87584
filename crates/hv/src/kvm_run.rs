//! The page that the kernel shares with us for each vCPU, the call that runs a vCPU, and the signal that stops it.
//!
//! # How a vCPU is stopped
//! A signal ends `KVM_RUN`. But a signal that arrives just before the call would be handled, and the call would
//! then run the guest as if nothing had happened. So the handler also sets the byte `immediate_exit` of the page,
//! which makes the call return at once. The handler finds the page through a variable of its thread, in which
//! [`RunPage::run`] publishes it.
//!
//! ```text
//!   Entry::prepare   kicked = false
//!     (the caller looks whether it has something else to do)
//!   Entry::run       page published, immediate_exit = 0
//!     signal ------> kicked is true: the call is left out
//!     look at kicked
//!     signal ------> immediate_exit = 1: the call returns at once
//!     KVM_RUN
//!     signal ------> the call is interrupted
//!   Entry::run       page withdrawn
//! ```
//!
//! A signal before `prepare` needs no notice, since the caller's look comes after it. A signal at any later moment
//! prevents or ends the call. So whoever sends one after having changed what the caller looks at can be sure that
//! the caller looks again.
//!
//! The handler runs on the thread whose variables it uses. So relaxed atomics and compiler fences suffice.

use kvm_bindings::{
    KVM_EXIT_FAIL_ENTRY, KVM_EXIT_HLT, KVM_EXIT_INTERNAL_ERROR, KVM_EXIT_INTR, KVM_EXIT_IO,
    KVM_EXIT_IO_OUT, KVM_EXIT_MMIO, KVM_EXIT_SHUTDOWN, KVM_SYNC_X86_REGS, kvm_regs, kvm_run,
};
use kvm_ioctls::VcpuFd;
use std::cell::Cell;
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering, compiler_fence};

/// `_IO(0xAE, 0x80)`.
const KVM_RUN: libc::c_ulong = 0xae80;

thread_local! {
    /// What the signal handler of this thread touches.
    static ENTRY: Entry = const { Entry {
        immediate_exit: AtomicPtr::new(std::ptr::null_mut()),
        kicked: AtomicBool::new(false),
        came: AtomicBool::new(false),
    } };
}

struct Entry {
    /// `immediate_exit` of the vCPU that is about to run; null: none.
    immediate_exit: AtomicPtr<u8>,
    /// A signal came since `prepare`.
    kicked: AtomicBool,
    /// A signal came since `take_came`.
    came: AtomicBool,
}

/// Why a vCPU stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It wrote to an I/O port.
    Out {
        /// The port.
        port: u16,
        /// Number of bytes written at once.
        size: u8,
        /// Number of writes: more than one for a string instruction.
        count: u32,
        /// The first value.
        value: u32,
    },
    /// A signal.
    Interrupted,
    /// It did what a guest must not do.
    Fault(String),
}

/// The shared page of a vCPU.
#[derive(Debug)]
pub(crate) struct RunPage {
    start: NonNull<u8>,
    len: usize,
    /// The page is not for several threads at a time; the vCPU that owns it may move.
    _unshared: std::marker::PhantomData<Cell<u8>>,
}

// SAFETY: the mapping belongs to the process; whichever thread owns this value uses it alone.
unsafe impl Send for RunPage {}

impl RunPage {
    /// Maps the page of a vCPU; `len` is `KVM_GET_VCPU_MMAP_SIZE`.
    ///
    /// # Errors
    /// If the system has no room for it.
    pub(crate) fn map(vcpu: &VcpuFd, len: usize) -> io::Result<Self> {
        assert!(len >= size_of::<kvm_run>(), "the kernel's page is smaller than its structure");
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, vcpu.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let page = Self { start, len, _unshared: std::marker::PhantomData };
        // The kernel copies the registers to the page at each exit, which is cheaper than a call.
        page.set(offset_of!(kvm_run, kvm_valid_regs), u64::from(KVM_SYNC_X86_REGS));
        Ok(page)
    }

    /// Reads a field. The kernel writes fields only inside `KVM_RUN`.
    fn get<T: Copy>(&self, offset: usize) -> T {
        assert!(offset + size_of::<T>() <= self.len);
        // SAFETY: it is inside the mapping, and only integers are read, for which any bytes are a value.
        unsafe { self.start.as_ptr().add(offset).cast::<T>().read_unaligned() }
    }

    fn set<T: Copy>(&self, offset: usize, value: T) {
        assert!(offset + size_of::<T>() <= self.len);
        // SAFETY: it is inside the mapping, to which no reference exists but that to `immediate_exit`.
        unsafe { self.start.as_ptr().add(offset).cast::<T>().write_unaligned(value) };
    }

    fn immediate_exit(&self) -> &AtomicU8 {
        let offset = offset_of!(kvm_run, immediate_exit);
        // SAFETY: it is inside the mapping; every access of ours to this byte is through this atomic.
        unsafe { AtomicU8::from_ptr(self.start.as_ptr().add(offset)) }
    }

    /// The registers at the last exit.
    pub(crate) fn regs(&self) -> kvm_regs {
        self.get(offset_of!(kvm_run, s))
    }

    /// Sets the registers for the next entry.
    pub(crate) fn set_regs(&mut self, regs: kvm_regs) {
        self.set(offset_of!(kvm_run, s), regs);
        self.set(offset_of!(kvm_run, kvm_dirty_regs), u64::from(KVM_SYNC_X86_REGS));
    }

    /// Completes the instruction of the last exit, without running the guest: an I/O instruction is complete, and
    /// the registers are those after it, only when the vCPU enters again.
    pub(crate) fn complete(&mut self, vcpu: &VcpuFd) {
        self.immediate_exit().store(1, Ordering::Relaxed);
        // The call ends with EINTR, as asked; anything else shows at the next entry.
        let _ = self.enter(vcpu);
        self.immediate_exit().store(0, Ordering::Relaxed);
    }

    fn enter(&mut self, vcpu: &VcpuFd) -> io::Result<()> {
        // SAFETY: the descriptor is that of a vCPU; the call changes nothing but the vCPU, its memory and the page.
        match unsafe { libc::ioctl(vcpu.as_raw_fd(), KVM_RUN, 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Runs the vCPU until it exits, or until a signal comes that has come since [`prepare`].
    pub(crate) fn run(&mut self, vcpu: &VcpuFd) -> Exit {
        let byte = self.immediate_exit();
        byte.store(0, Ordering::Relaxed);
        let byte: *mut u8 = byte.as_ptr();
        let kicked = ENTRY.with(|entry| {
            entry.immediate_exit.store(byte, Ordering::Relaxed);
            // The handler sees the page, or this sees that the handler has run.
            compiler_fence(Ordering::SeqCst);
            entry.kicked.load(Ordering::Relaxed)
        });
        let result =
            if kicked { Ok(Exit::Interrupted) } else { self.enter(vcpu).map(|()| self.exit()) };
        ENTRY.with(|entry| entry.immediate_exit.store(std::ptr::null_mut(), Ordering::Relaxed));
        match result {
            Ok(exit) => exit,
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => Exit::Interrupted,
                _ => Exit::Fault(format!("the kernel could not run it: {error}")),
            },
        }
    }

    /// The exit that the page states.
    fn exit(&self) -> Exit {
        let detail = offset_of!(kvm_run, __bindgen_anon_1);
        match self.get::<u32>(offset_of!(kvm_run, exit_reason)) {
            KVM_EXIT_INTR => Exit::Interrupted,
            KVM_EXIT_IO => {
                // direction: u8, size: u8, port: u16, count: u32, data_offset: u64
                let (direction, size) = (self.get::<u8>(detail), self.get::<u8>(detail + 1));
                let (port, count) = (self.get::<u16>(detail + 2), self.get::<u32>(detail + 4));
                if u32::from(direction) != KVM_EXIT_IO_OUT {
                    return Exit::Fault(format!("it read from the I/O port {port:#x}"));
                }
                let data = usize::try_from(self.get::<u64>(detail + 8)).unwrap_or(usize::MAX);
                let value = match size {
                    4 if data <= self.len - 4 => self.get::<u32>(data),
                    _ => 0,
                };
                Exit::Out { port, size, count, value }
            }
            KVM_EXIT_SHUTDOWN => {
                let rip = self.regs().rip;
                Exit::Fault(format!("it caused an exception at {rip:#x} and handles none"))
            }
            KVM_EXIT_HLT => Exit::Fault("it executed HLT".into()),
            KVM_EXIT_MMIO => {
                let at = self.get::<u64>(detail);
                Exit::Fault(format!("it accessed the address {at:#x}, where there is no memory"))
            }
            KVM_EXIT_FAIL_ENTRY => Exit::Fault("the processor refused its state".into()),
            KVM_EXIT_INTERNAL_ERROR => {
                let what = self.get::<u32>(detail);
                Exit::Fault(format!("the kernel could not emulate it (suberror {what})"))
            }
            other => Exit::Fault(format!("it exited for reason {other}")),
        }
    }
}

impl Drop for RunPage {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and the handler has no pointer to it outside `run`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// From now on a signal keeps this thread from its next [`RunPage::run`].
pub(crate) fn prepare() {
    ENTRY.with(|entry| entry.kicked.store(false, Ordering::Relaxed));
    compiler_fence(Ordering::SeqCst);
}

/// Whether a signal came to this thread since the last call. It may have been that of the thread's timer.
pub(crate) fn take_came() -> bool {
    ENTRY.with(|entry| entry.came.swap(false, Ordering::Relaxed))
}

/// The signal that stops a vCPU.
pub(crate) fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 6
}

extern "C" fn handler(_: libc::c_int) {
    ENTRY.with(|entry| {
        entry.came.store(true, Ordering::Relaxed);
        entry.kicked.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let byte = entry.immediate_exit.load(Ordering::Relaxed);
        if !byte.is_null() {
            // SAFETY: `run` has published a byte of a page that it borrows, and withdraws it before it returns;
            // the handler runs on the same thread, and so within `run`.
            unsafe { AtomicU8::from_ptr(byte) }.store(1, Ordering::Relaxed);
        }
    });
}

/// Installs the handler, once in a process.
pub(crate) fn install_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all bytes zero is a value of the structure; the handler only uses atomics of its thread, which
        // need no allocation. SA_RESTART spares other code of this process: KVM_RUN ends all the same.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(signal(), &raw const action, std::ptr::null_mut());
        }
    });
}
