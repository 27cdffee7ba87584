//! The guest image of the micro-hypervisor: the project's own locks and workloads, in real vCPUs.
//!
//! It runs in ring 3, without an operating system, and everything it knows of the world is in two pages (see
//! `overspin_guest_abi`). vCPU 0 reads its job, makes locks and tasks, and starts the other vCPUs. Each vCPU runs
//! its one task, and then sleeps.
#![no_std]
#![no_main]

extern crate alloc;

mod bytes;
mod cpu;
mod env;
mod job;
mod locks;
mod platform;
mod trace;
mod unwind;
mod upcall;
mod waiting;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::arch::global_asm;
use core::cell::Cell;
use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use linked_list_allocator::LockedHeap;
use overspin_guest_abi::{MAGIC, SharedInfo, port};
use overspin_locks::{Tuning, with_lock};
use overspin_workload::{Kinds, Loads, Program};

#[global_allocator]
static HEAP: LockedHeap = LockedHeap::empty();

// The host has left the stack pointer at the end of the stack, and the address of the shared page in `rdi`.
global_asm!(".globl _start", "_start:", "xor ebp, ebp", "call {main}", "ud2", main = sym main);

/// What vCPU 0 has made for all.
struct World {
    job: job::Job,
    locks: Box<dyn locks::Bank>,
    /// The task of each vCPU, if it has one: its number, whether the domain waits for its end, its program. Each
    /// vCPU takes its own.
    tasks: Vec<Cell<Option<(usize, bool, Program)>>>,
    /// Tasks that have to end before the domain has done its work.
    left: AtomicU32,
}

static WORLD: AtomicPtr<World> = AtomicPtr::new(core::ptr::null_mut());

extern "C" fn main(info: &'static SharedInfo) -> ! {
    assert!(info.magic.load(Ordering::Relaxed) == MAGIC, "this is no page of the host");
    cpu::set_info(info);
    upcall::enable();
    if cpu::id() == 0 {
        let world = Box::into_raw(Box::new(begin(info)));
        // The other vCPUs start after this, by a hypercall.
        WORLD.store(world, Ordering::Release);
        for vcpu in 1..info.vcpus.load(Ordering::Relaxed) {
            cpu::hypercall(port::VCPU_UP, vcpu);
        }
    }
    // SAFETY: vCPU 0 has stored the address of a value that lives for ever, before any other vCPU started.
    let world = unsafe { &*WORLD.load(Ordering::Acquire) };
    if let Some((number, awaited, program)) = world.tasks[cpu::id()].take() {
        let task = env::Task { number, job: &world.job, locks: &*world.locks };
        program(&task);
        task.stats().ended.store(cpu::now() + 1, Ordering::Relaxed);
        if awaited && world.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            cpu::hypercall(port::SHUTDOWN, 0);
        }
    }
    cpu::idle()
}

fn begin(info: &SharedInfo) -> World {
    let (heap, len) = (info.heap.load(Ordering::Relaxed), info.heap_len.load(Ordering::Relaxed));
    // SAFETY: the host leaves this memory to the guest, and only vCPU 0 comes here, once.
    unsafe { HEAP.lock().init(heap as *mut u8, len as usize) };
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
    let make = locks::Make { count, vcpus: vcpus as usize, tuning };
    let locks = match with_lock(&job.lock, make) {
        Some(Ok(locks)) => locks,
        Some(Err(error)) => panic!("{error}"),
        None => panic!("no lock is called `{}`", job.lock),
    };
    let mut tasks: Vec<_> = (0..vcpus).map(|_| Cell::new(None)).collect();
    let mut left = 0;
    for (number, first) in loads.start(vcpus).into_iter().enumerate() {
        let vcpu = first.start.vcpu.map_or(number, |vcpu| vcpu as usize);
        left += u32::from(first.awaited);
        *tasks[vcpu].get_mut() = Some((number, first.awaited, first.start.program));
    }
    World { job, locks, tasks, left: AtomicU32::new(left) }
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
