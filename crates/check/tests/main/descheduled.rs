//! Compares the claims of each lock of the registry about descheduled CPUs with what happens.

use overspin_check::descheduled::{Away, crowd, holder_and_waiters, local_spin};
use overspin_locks::for_each_lock;

macro_rules! tests {
    ($($lock:ident)+) => {$(
        // The module has the name of the type, because a macro cannot derive another name from it.
        #[allow(non_snake_case)]
        mod $lock {
            type Lock = overspin_locks::$lock<super::Away>;

            #[test]
            fn holder_and_waiters() {
                super::holder_and_waiters::<Lock>();
            }

            #[test]
            fn local_spin() {
                super::local_spin::<Lock>();
            }
        }
    )+};
}

for_each_lock!(tests);

#[test]
fn waiters_of_a_byte_are_a_crowd() {
    assert_eq!(crowd::<overspin_locks::LockByte<Away>>(), 5);
}
