//! The platform of the locks inside Linux: what the kernel supplies, and memory for records of CPUs.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt::Debug;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence};

use overspin_locks::{CpuId, Platform};

use crate::MAX_CPUS;

// The kernel's side: `../kernel/overspin.c`.
unsafe extern "C" {
    safe fn overspin_cpu() -> u32;
    safe fn overspin_level() -> u32;
    safe fn overspin_irq_save() -> usize;
    safe fn overspin_irq_restore(flags: usize);
    safe fn overspin_irqs_were_on(flags: usize) -> bool;
    safe fn overspin_can_block() -> bool;
    safe fn overspin_preempted(cpu: u32) -> bool;
    safe fn overspin_clock() -> u64;
    /// Sleeps while the latch is 0, or returns at once.
    fn overspin_sleep(latch: *const AtomicU8);
    safe fn overspin_wake(cpu: u32);
}

/// A latch for each CPU: 1 if it was kicked.
static LATCHES: [AtomicU8; MAX_CPUS] = [const { AtomicU8::new(0) }; MAX_CPUS];

fn latch() -> &'static AtomicU8 {
    &LATCHES[overspin_cpu() as usize]
}

/// Bytes for records. The nodes of queue locks take 48 bytes for each context of a CPU.
const BYTES: usize = 64 << 10;

#[repr(align(128))]
struct Arena(UnsafeCell<[u8; BYTES]>);

// SAFETY: only `memory_for` hands it out, each byte once, while one CPU runs.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Memory for ever.
///
/// # Panics
/// If there is not enough: the kernel then hangs at boot, before it has chosen a lock.
fn memory_for<T>(len: usize) -> *mut T {
    let layout = Layout::array::<T>(len).unwrap_or(Layout::new::<[u8; BYTES]>());
    // Relaxed: one CPU runs.
    let start = USED.load(Ordering::Relaxed).next_multiple_of(layout.align());
    assert!(start + layout.size() <= BYTES, "the arena is full");
    USED.store(start + layout.size(), Ordering::Relaxed);
    // SAFETY: inside the arena.
    unsafe { ARENA.0.get().cast::<u8>().add(start).cast() }
}

/// Keeps a value for ever.
pub(crate) fn keep<T>(value: T) -> *mut T {
    let place = memory_for::<T>(1);
    // SAFETY: aligned, large enough, and this call's alone.
    unsafe { place.write(value) };
    place
}

/// A Linux kernel.
#[derive(Debug)]
pub(crate) struct Linux;

impl Platform for Linux {
    type U8 = AtomicU8;
    type U16 = AtomicU16;
    type U32 = AtomicU32;
    type Usize = AtomicUsize;
    type Slots<T: Debug + 'static> = &'static [T];
    type IrqState = usize;

    fn slots<T: Debug + 'static>(len: usize, mut init: impl FnMut(usize) -> T) -> &'static [T] {
        let first = memory_for::<T>(len);
        for i in 0..len {
            // Opaque: otherwise the compiler would call `memset` for zeros, through a table that the kernel has not.
            let value = core::hint::black_box(init(i));
            // SAFETY: aligned, room for `len` values, and this call's alone.
            unsafe { first.add(i).write(value) };
        }
        // SAFETY: written above; nobody else has the memory.
        unsafe { core::slice::from_raw_parts(first, len) }
    }

    #[inline(always)]
    fn cpu_id() -> CpuId {
        overspin_cpu() as CpuId
    }

    #[inline(always)]
    fn relax() {
        core::hint::spin_loop();
    }

    #[inline(always)]
    fn fence(order: Ordering) {
        fence(order);
    }

    fn irq_save() -> usize {
        overspin_irq_save()
    }

    fn irq_restore(flags: usize) {
        overspin_irq_restore(flags);
    }

    fn irqs_were_on(flags: usize) -> bool {
        overspin_irqs_were_on(flags)
    }

    fn latch_clear() {
        latch().store(0, Ordering::Relaxed);
    }

    fn latch_set() {
        latch().store(1, Ordering::Relaxed);
    }

    fn latch_test() -> bool {
        latch().load(Ordering::Relaxed) != 0
    }

    fn poll() {
        // SAFETY: the latch lives for ever.
        unsafe { overspin_sleep(latch()) };
    }

    fn kick(cpu: CpuId) {
        // Release: the trait asks for it. A latch that is set already has its kick on the way, or a CPU that is awake: without
        // this look each unlock would kick a registered CPU that does not run yet.
        if LATCHES[cpu].swap(1, Ordering::AcqRel) == 0 {
            overspin_wake(cpu as u32);
        }
    }

    fn wait(cell: &AtomicU32, value: u32) {
        // Of these locks only those wait here that have no record: they look again.
        if cell.load(Ordering::Relaxed) == value {
            core::hint::spin_loop();
        }
    }

    fn wake_one(_: *const AtomicU32) {}

    fn ctx_level() -> usize {
        overspin_level() as usize
    }

    fn preempted(cpu: CpuId) -> bool {
        overspin_preempted(cpu as u32)
    }

    fn now() -> u64 {
        overspin_clock()
    }

    fn can_block() -> bool {
        overspin_can_block()
    }
}
