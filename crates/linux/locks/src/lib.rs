//! Overspin's locks as the only spinlock of a Linux kernel.
//!
//! The kernel's side is `../kernel/overspin.c`; it calls the functions at the end of this file, and supplies those at the
//! beginning. A lock is the kernel's own word of 4 bytes, which is 0 while it is free and new.
//!
//! Until [`overspin_choose`] runs, every lock is `lock-byte`: its word is 0 whenever it is free. So the kind may change at a
//! moment at which no lock is held and one CPU runs. Afterwards it never changes.
#![no_std]

mod platform;

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use overspin_locks::{Platform, RawLock, Tuning, WordLock};
use platform::Linux;

/// CPUs for which there are records.
pub const MAX_CPUS: usize = 64;

/// The number of the kind: its place in the list below. Relaxed everywhere: it is written once, before the other CPUs start.
static KIND: AtomicU32 = AtomicU32::new(0);
/// What all locks of the kind share.
static SHARED: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

macro_rules! kinds {
    ($dollar:tt $first:ident $($number:literal $lock:ident)+) => {
        /// Names of the kinds, by their numbers.
        const NAMES: &[&str] = &[
            <overspin_locks::$first<Linux> as RawLock<Linux>>::INFO.name,
            $(<overspin_locks::$lock<Linux> as RawLock<Linux>>::INFO.name),+
        ];

        $(const _: () = assert!(size_of::<overspin_locks::$lock<Linux>>() <= 4);)+

        /// Calls a function with the type of the kind at hand.
        macro_rules! with_kind {
            ($dollar visit:ident($dollar($dollar argument:expr),*)) => {
                match KIND.load(Ordering::Relaxed) {
                    $($number => $dollar visit::<overspin_locks::$lock<Linux>>($dollar($dollar argument),*),)+
                    _ => $dollar visit::<overspin_locks::$first<Linux>>($dollar($dollar argument),*),
                }
            };
        }
    };
}

kinds! { $
    LockByte
    1 Ttas
    2 TicketSmall
    3 Ticket
    4 TicketBackoff
    5 XenPv
    6 PvTicket2012Small
    7 PvTicket2012
    8 PvTicket
    9 Qspinlock
    10 QspinlockTas
    11 QspinlockUnfair
    12 PvQspinlock
}

fn lock<L: WordLock<Linux>>(word: &L, shared: &L::Shared) {
    // The word shows the token: see `WordLock`.
    let _ = word.lock(shared);
}

fn try_lock<L: WordLock<Linux>>(word: &L, shared: &L::Shared) -> bool {
    word.try_lock(shared).is_some()
}

fn unlock<L: WordLock<Linux>>(word: &L, shared: &L::Shared) {
    word.unlock(shared, word.token_of_holder());
}

fn is_locked<L: WordLock<Linux>>(word: &L, shared: &L::Shared) -> bool {
    word.is_locked(shared)
}

fn is_contended<L: WordLock<Linux>>(word: &L, shared: &L::Shared) -> bool {
    word.is_contended(shared)
}

/// The lock and what it shares with the others.
///
/// # Safety
/// `word` is a word of the kernel that is used as a lock, and `L` is the kind at hand.
#[inline(always)]
unsafe fn parts<'a, L: WordLock<Linux>>(word: *const u32) -> (&'a L, &'a L::Shared) {
    // SAFETY: the word has room for the lock, which is made of atomics, and 0 is its free state. `SHARED` is what `choose` has
    // kept; before it, the kind is `lock-byte`, which shares nothing, and any address serves for that.
    unsafe {
        let shared = SHARED.load(Ordering::Relaxed).cast::<L::Shared>();
        (&*word.cast::<L>(), shared.as_ref().unwrap_or(&*core::ptr::dangling()))
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $visit:ident -> $result:ty;)+) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `word` is a lock of the kernel.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(word: *const u32) -> $result {
            #[inline(always)]
            unsafe fn visit<L: WordLock<Linux>>(word: *const u32) -> $result {
                // SAFETY: the kind is the one at hand.
                let (lock, shared) = unsafe { parts::<L>(word) };
                $visit(lock, shared)
            }
            // SAFETY: promised by the caller.
            unsafe { with_kind!(visit(word)) }
        }
    )+};
}

operations! {
    /// `arch_spin_lock`.
    overspin_lock = lock -> ();
    /// `arch_spin_trylock`.
    overspin_trylock = try_lock -> bool;
    /// `arch_spin_unlock`.
    overspin_unlock = unlock -> ();
    /// `arch_spin_is_locked`.
    overspin_is_locked = is_locked -> bool;
    /// `arch_spin_is_contended`.
    overspin_is_contended = is_contended -> bool;
}

/// Chooses the kind by its name, of `length` bytes, for so many CPUs and with this spin budget (0: the lock's own). Returns
/// whether there is such a kind, and it serves so many CPUs; if not, nothing has changed.
///
/// # Safety
/// It is called once, while no lock is held and no other CPU runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overspin_choose(
    name: *const u8,
    length: usize,
    cpus: usize,
    budget: u32,
) -> bool {
    fn keep<L: WordLock<Linux>>(cpus: usize, tuning: Tuning) -> bool {
        let Ok(shared) = L::shared(cpus, tuning) else { return false };
        SHARED.store(platform::keep(shared).cast(), Ordering::Relaxed);
        true
    }
    // SAFETY: the caller's string.
    let name = unsafe { core::slice::from_raw_parts(name, length) };
    // Byte by byte, so that the compiler calls no `bcmp`: see `Linux::slots`.
    let is_named = |known: &&str| known.bytes().eq(name.iter().copied());
    let Some(kind) = NAMES.iter().position(is_named) else { return false };
    let spin_budget = (budget != 0).then_some(budget);
    if cpus > MAX_CPUS {
        return false;
    }
    KIND.store(kind as u32, Ordering::Relaxed);
    let kept = with_kind!(keep(cpus, Tuning { spin_budget, ..Tuning::DEFAULT }));
    if !kept {
        KIND.store(0, Ordering::Relaxed);
    }
    kept
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        Linux::relax();
    }
}
