//! Locks that are one word, as a kernel in C uses them: a cleared word is a free lock, and the word shows the holder's token.

use overspin_locks::{Tuning, WordLock};
use overspin_native::Threads;
use std::mem::MaybeUninit;

/// Takes and releases a cleared word until its tickets have wrapped twice.
fn wraps<L: WordLock<Threads>>(acquisitions: u32) {
    let name = L::INFO.name;
    assert!(size_of::<L>() <= 4, "{name}");
    let shared = L::shared(4, Tuning::DEFAULT).unwrap();
    // SAFETY: these locks are made of atomic integers alone, for which all bits may be zero.
    let lock: L = unsafe { MaybeUninit::zeroed().assume_init() };
    assert!(!lock.is_locked(&shared), "{name}: zero is free");
    for i in 0..acquisitions {
        let token = if i % 2 == 0 {
            lock.lock(&shared)
        } else {
            lock.try_lock(&shared).unwrap_or_else(|| panic!("{name}: it is free"))
        };
        assert!(lock.is_locked(&shared), "{name}");
        assert!(lock.try_lock(&shared).is_none(), "{name}: it is held");
        let shown = lock.token_of_holder();
        assert_eq!(format!("{shown:?}"), format!("{token:?}"), "{name}, acquisition {i}");
        lock.unlock(&shared, shown);
        assert!(!lock.is_locked(&shared), "{name}");
    }
}

#[test]
fn a_cleared_word_is_free_and_shows_its_token() {
    use overspin_locks::*;
    // Eight and seven bits of a ticket wrap soon, sixteen and fifteen later.
    wraps::<TicketSmall<Threads>>(600);
    wraps::<PvTicket2012Small<Threads>>(600);
    wraps::<Ticket<Threads>>(140_000);
    wraps::<TicketBackoff<Threads>>(140_000);
    wraps::<PvTicket<Threads>>(140_000);
    wraps::<PvTicket2012<Threads>>(140_000);
    wraps::<LockByte<Threads>>(10);
    wraps::<Ttas<Threads>>(10);
    wraps::<XenPv<Threads>>(10);
    wraps::<Qspinlock<Threads>>(10);
    wraps::<QspinlockTas<Threads>>(10);
    wraps::<QspinlockUnfair<Threads>>(10);
    wraps::<PvQspinlock<Threads>>(10);
}
