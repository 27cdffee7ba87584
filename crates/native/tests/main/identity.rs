//! The names of threads across a thread's end and a fork. The test runs in its own process, because the names
//! are global to the process.

use crate::alone::in_own_process;
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use overspin_native::{
    forget_other_threads, kernel_thread_id, served_id, thread_id, thread_serial, try_thread_id,
};

#[test]
fn numbers_come_again_and_serials_do_not() {
    in_own_process("identity::numbers_come_again_and_serials_do_not", names);
}

fn names() {
    assert_eq!(thread_id(), 0);
    assert_eq!((served_id(1), served_id(0)), (Some(0), None));
    let serial = thread_serial();
    let mut serials = BTreeSet::from([serial]);
    for _ in 0..3 {
        let other = thread::spawn(|| (thread_id(), served_id(1), thread_serial(), thread_serial()));
        let (number, served, serial, again) = other.join().expect("no panic");
        assert_eq!((number, served), (1, None), "the number of the one before");
        assert_eq!(serial, again);
        assert!(serials.insert(serial), "a serial has one owner");
    }

    let (kernel, process) = (kernel_thread_id(), std::process::id());
    let (has_number, may_end) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(thread_id(), 1);
            has_number.wait();
            may_end.wait();
        });
        has_number.wait();
        // SAFETY: before it ends, the child only does what is below, which takes no lock that another thread may hold
        // at the moment of the fork.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let fine = in_child(kernel, serial);
            // SAFETY: it has no preconditions.
            unsafe { libc::_exit(if fine { 0 } else { 1 }) };
        }
        may_end.wait();
        let mut status = -1;
        // SAFETY: `status` is ours to write.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child says what is wrong by its exit code");
    });
    assert_eq!((kernel_thread_id(), std::process::id()), (kernel, process));
}

/// In the child the other thread's number is free, this thread keeps its number and serial, and the kernel's number
/// has changed.
fn in_child(kernel: i32, serial: u64) -> bool {
    extern "C" fn number(_: *mut libc::c_void) -> *mut libc::c_void {
        std::ptr::without_provenance_mut(thread_id())
    }
    forget_other_threads();
    let mut thread = 0;
    let mut result = std::ptr::null_mut();
    // SAFETY: each value is written before it is read, and the function uses no argument.
    let joined = unsafe {
        libc::pthread_create(&raw mut thread, std::ptr::null(), number, std::ptr::null_mut()) == 0
            && libc::pthread_join(thread, &raw mut result) == 0
    };
    joined
        && result.addr() == 1
        && try_thread_id() == Some(0)
        && thread_serial() == serial
        && kernel_thread_id() != kernel
        && u32::try_from(kernel_thread_id()) == Ok(std::process::id())
}
