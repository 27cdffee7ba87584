//! A lock algorithm before its platform is chosen.

use crate::{Platform, RawLock};

/// A lock algorithm before its platform is chosen. Each world takes from it the type for its own platform.
///
/// A lock is generic over its platform, and a type cannot be passed around before its platform is chosen. A
/// family can: it is one name for all the types. [`lock_family!`](crate::lock_family) makes one.
pub trait LockFamily: 'static {
    /// The lock on this platform.
    type On<P: Platform>: RawLock<P> + 'static;
}

/// Makes a [`LockFamily`] from a lock whose only parameter is its platform.
///
/// ```
/// overspin_locks::lock_family!(pub TicketFamily => overspin_locks::Ticket);
/// ```
#[macro_export]
macro_rules! lock_family {
    ($visibility:vis $family:ident => $lock:ident $(:: $more:ident)*) => {
        #[doc = concat!("The family of `", stringify!($lock $(:: $more)*), "`.")]
        #[derive(Clone, Copy, Debug)]
        $visibility struct $family;

        impl $crate::LockFamily for $family {
            type On<P: $crate::Platform> = $lock $(:: $more)*<P>;
        }
    };
}
