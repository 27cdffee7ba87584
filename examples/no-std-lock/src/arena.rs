//! Memory for records of CPUs: a part of the kernel's own image, taken at boot and never given back.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Bytes. The nodes of MCS locks take 512 bytes for each CPU, once for all locks of a system: half of this for 64 CPUs.
const BYTES: usize = 64 << 10;

#[repr(align(128))]
struct Arena {
    memory: UnsafeCell<[MaybeUninit<u8>; BYTES]>,
    /// Bytes from the start that have an owner.
    used: AtomicUsize,
}

// SAFETY: each byte is handed out once, by the exchange in `reserve`.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena {
    memory: UnsafeCell::new([const { MaybeUninit::uninit() }; BYTES]),
    used: AtomicUsize::new(0),
};

impl Arena {
    /// Memory of this layout; `None` if there is not enough left.
    fn reserve(&self, layout: Layout) -> Option<*mut u8> {
        let start = self.memory.get().cast::<u8>();
        let aligned =
            |used: usize| used.checked_add(start.wrapping_add(used).align_offset(layout.align()));
        // Relaxed: the numbers alone matter. Whoever hands the memory to another CPU orders what is in it.
        let take = |used| aligned(used)?.checked_add(layout.size()).filter(|end| *end <= BYTES);
        let used = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(start.wrapping_add(aligned(used)?))
    }
}

/// Memory for `len` values, which nobody else gets.
///
/// # Panics
/// If the arena is too small. That shows at boot, when records are made.
fn memory_for<T>(len: usize) -> *mut T {
    let memory = Layout::array::<T>(len).ok().and_then(|layout| ARENA.reserve(layout));
    let Some(memory) = memory else {
        panic!("the arena of {BYTES} bytes is full: raise BYTES in arena.rs")
    };
    memory.cast()
}

/// Keeps `len` values for ever.
///
/// # Panics
/// As [`memory_for`].
pub(crate) fn keep_slice<T: 'static>(len: usize, mut init: impl FnMut(usize) -> T) -> &'static [T] {
    let first = memory_for::<T>(len);
    for i in 0..len {
        // SAFETY: the memory is aligned, has room for `len` values, and belongs to this call alone.
        unsafe { first.add(i).write(init(i)) };
    }
    // SAFETY: the values have been written above. The memory is part of a static, and nobody else gets it.
    unsafe { core::slice::from_raw_parts(first, len) }
}

/// Keeps a value for ever: a lock, for example, that all CPUs use.
///
/// # Panics
/// If the arena is too small.
pub fn keep<T: 'static>(value: T) -> &'static T {
    let place = memory_for::<T>(1);
    // SAFETY: the memory is aligned, has room for the value, and belongs to this call alone for ever.
    unsafe {
        place.write(value);
        &*place
    }
}
