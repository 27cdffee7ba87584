//! Locks that are one word: what a kernel in C can put where its own spinlock is.
//!
//! Such a kernel has 4 bytes for a lock, clears them to make one, and releases it by its address alone. So all zeros must be a
//! free lock, and the word must show the token of its holder.

use crate::{Platform, RawLock};

/// A lock of at most 4 bytes, for which all bits zero is free.
///
/// A test of `overspin-native` looks at both for each of these locks.
pub trait WordLock<P: Platform>: RawLock<P> {
    /// The token of the present acquisition. Only the holder may ask.
    fn token_of_holder(&self) -> Self::Token;
}

/// Of locks whose token is empty.
macro_rules! no_token {
    ($($lock:ident)+) => {$(
        impl<P: Platform> WordLock<P> for crate::$lock<P> {
            #[inline(always)]
            fn token_of_holder(&self) {}
        }
    )+};
}
no_token! { LockByte Ttas XenPv Qspinlock QspinlockTas QspinlockUnfair }

impl<P: Platform, V: crate::pv_qspinlock::Version> WordLock<P>
    for crate::pv_qspinlock::PvQspinlock<P, V>
{
    #[inline(always)]
    fn token_of_holder(&self) {}
}
