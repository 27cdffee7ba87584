//! The guest image of the micro-hypervisor: the project's own locks and workloads, in real vCPUs.
//!
//! It runs in ring 3, without an operating system, and everything it knows of the world is in two pages (see
//! `overspin_guest_abi`). vCPU 0 reads its job, makes locks and tasks, and starts the other vCPUs. Then each
//! vCPU runs tasks.
#![no_std]
#![no_main]

extern crate alloc;

mod bytes;
mod cpu;
mod env;
mod heap;
mod job;
mod kernel;
mod local;
mod locks;
mod platform;
mod switch;
mod touch;
mod trace;
mod unwind;
mod upcall;
mod waiting;

use core::arch::global_asm;
use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicPtr, Ordering};
use kernel::World;
use local::Local;
use overspin_guest_abi::{MAGIC, SharedInfo, event, port};
use overspin_locks::{Tuning, with_lock};
use overspin_workload::{Kinds, Loads};

#[global_allocator]
static HEAP: heap::Heap = heap::Heap::empty();

// The host has left the stack pointer at the end of the stack, and the address of the shared page in `rdi`.
global_asm!(".globl _start", "_start:", "xor ebp, ebp", "call {main}", "ud2", main = sym main);

static WORLD: AtomicPtr<World> = AtomicPtr::new(core::ptr::null_mut());

/// The guest, as soon as it exists.
#[inline(always)]
pub fn world() -> Option<&'static World> {
    // SAFETY: vCPU 0 has stored the address of a value that lives for ever.
    unsafe { WORLD.load(Ordering::Acquire).as_ref() }
}

extern "C" fn main(info: &'static SharedInfo) -> ! {
    assert!(info.magic.load(Ordering::Relaxed) == MAGIC, "this is no page of the host");
    cpu::set_info(info);
    cpu::set_current(&raw const BOOTS);
    upcall::enable(event::NOTICE | kernel::CALL);
    if cpu::id() == 0 {
        // The other vCPUs start after this, by a hypercall.
        WORLD.store(core::ptr::from_ref(begin(info)).cast_mut(), Ordering::Release);
        for vcpu in 1..info.vcpus.load(Ordering::Relaxed) {
            cpu::hypercall(port::VCPU_UP, vcpu);
        }
    }
    world().expect("vCPU 0 has made it before any other vCPU started").run()
}

/// What code has of its own before there are tasks.
static BOOTS: Local = Local::new(0, 0);

fn begin(info: &SharedInfo) -> &'static World {
    let (heap, len) = (info.heap.load(Ordering::Relaxed), info.heap_len.load(Ordering::Relaxed));
    // SAFETY: the host leaves this memory to the guest, and only vCPU 0 comes here, once.
    unsafe { HEAP.init(heap as *mut u8, len as usize) };
    let at = info.argument.load(Ordering::Relaxed) as *const u8;
    // SAFETY: the host has put the argument there, and does not change it.
    let text = unsafe {
        core::slice::from_raw_parts(at, info.argument_len.load(Ordering::Relaxed) as usize)
    };
    let job: job::Job = match serde_json::from_slice(text) {
        Ok(job) => job,
        Err(error) => panic!("the job cannot be read: {error}"),
    };
    let loads = match Loads::of(&job.domain, &Kinds::builtin()) {
        Ok(loads) => loads,
        Err(fault) => panic!("{fault}"),
    };
    let vcpus = job.domain.vcpus;
    let tuning = Tuning {
        spin_budget: job.domain.spin_budget,
        nopvspin: job.domain.nopvspin,
        ..Tuning::DEFAULT
    };
    let count = loads.lock_names().len();
    assert!(count <= trace::MOST_LOCKS, "{count} locks are too many");
    // In the memory of a lock of user mode, each task is a CPU of its own.
    let first = loads.start(vcpus);
    let tasks = if loads.locks_in_user_mode() { first.len() } else { 0 };
    let make = locks::Make { count, cpus: vcpus as usize + tasks, tuning };
    let locks = match with_lock(&job.lock, make) {
        Some(Ok(locks)) => locks,
        Some(Err(error)) => panic!("{error}"),
        None => panic!("no lock is called `{}`", job.lock),
    };
    World::new(job, locks, first)
}

/// The console: whole messages.
struct Console([u8; 256], usize);

impl Write for Console {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes() {
            if self.1 < self.0.len() {
                self.0[self.1] = byte;
                self.1 += 1;
            }
        }
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let mut console = Console([0; 256], 0);
    // What does not fit is cut off.
    let _ = write!(console, "{}", info.message());
    if let Some(at) = info.location() {
        let _ = write!(console, " ({}:{})", at.file(), at.line());
    }
    cpu::page().args[0].store(console.0.as_ptr() as u64, Ordering::Relaxed);
    cpu::hypercall(port::CONSOLE, console.1 as u32);
    cpu::hypercall(port::SHUTDOWN, 101);
    cpu::idle()
}
