//! The inside of glibc's condition variable: its attributes.
//!
//! Two bits say by which clock waits end, and whether processes share the variable. Their place has changed between
//! versions of the C library, so [`find_layout`] looks for it at start: it compares variables that the C library
//! has initialised in different ways.

use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};

use libc::{clockid_t, pthread_cond_t, pthread_condattr_t};

use crate::real;

const WORDS: usize = size_of::<pthread_cond_t>() / size_of::<u32>();
type Words = [u32; WORDS];

/// The word of both bits. Beyond the end: unknown.
static WORD: AtomicUsize = AtomicUsize::new(usize::MAX);
static MONOTONIC: AtomicU32 = AtomicU32::new(0);
static SHARED: AtomicU32 = AtomicU32::new(0);

/// A variable with attributes that `set` has chosen.
fn initialised(set: impl FnOnce(*mut pthread_condattr_t)) -> Words {
    let mut attributes = MaybeUninit::<pthread_condattr_t>::uninit();
    let mut words: Words = [0; WORDS];
    // SAFETY: the attributes are initialised before they are used. `words` has the size of a variable, and its alignment
    // suffices for the words that the C library writes at initialisation; no thread ever uses this one.
    unsafe {
        libc::pthread_condattr_init(attributes.as_mut_ptr());
        set(attributes.as_mut_ptr());
        let mut variable = MaybeUninit::<pthread_cond_t>::zeroed();
        real::cond_init(variable.as_mut_ptr(), attributes.as_ptr());
        words.copy_from_slice(&*variable.as_ptr().cast::<Words>());
        libc::pthread_condattr_destroy(attributes.as_mut_ptr());
    }
    words
}

/// Finds the bits. If this C library has another layout, no variable is ours.
pub(crate) fn find_layout() {
    // SAFETY: the attributes are initialised; see `initialised`.
    let monotonic = initialised(|a| unsafe {
        libc::pthread_condattr_setclock(a, libc::CLOCK_MONOTONIC);
    });
    // SAFETY: as above.
    let shared = initialised(|a| unsafe {
        libc::pthread_condattr_setpshared(a, libc::PTHREAD_PROCESS_SHARED);
    });
    // Static initialisers are all zeros.
    if initialised(|_| {}) != [0; WORDS] {
        return;
    }
    let only = |words: &Words| {
        let mut set = words.iter().enumerate().filter(|(_, word)| **word != 0);
        set.next()
            .filter(|(_, word)| word.is_power_of_two() && set.next().is_none())
            .map(|(i, word)| (i, *word))
    };
    let (Some((i, monotonic)), Some((j, shared))) = (only(&monotonic), only(&shared)) else {
        return;
    };
    if i != j || monotonic == shared {
        return;
    }
    MONOTONIC.store(monotonic, Relaxed);
    SHARED.store(shared, Relaxed);
    WORD.store(i, Relaxed);
}

/// The clock of a variable that belongs to this process alone; `None` for others, or if the layout is unknown.
///
/// # Safety
/// `condition` points to an initialised variable.
pub(crate) unsafe fn private_clock(condition: *mut pthread_cond_t) -> Option<clockid_t> {
    let word = WORD.load(Relaxed);
    if word >= WORDS {
        return None;
    }
    // SAFETY: the word is inside the variable, which is aligned for pointers. Other threads change it atomically.
    let bits = unsafe { AtomicU32::from_ptr(condition.cast::<u32>().add(word)) }.load(Relaxed);
    let has = |bit: &AtomicU32| bits & bit.load(Relaxed) != 0;
    match (has(&SHARED), has(&MONOTONIC)) {
        (true, _) => None,
        (false, true) => Some(libc::CLOCK_MONOTONIC),
        (false, false) => Some(libc::CLOCK_REALTIME),
    }
}
