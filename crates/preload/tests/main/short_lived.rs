//! Mutexes that come and go: the records of the library follow them, at once and without a trace.
//!
//! short_lived.c prints the same without the library. Locks with spinning waiters get few rounds.

use crate::common::{compile, finish, some, succeeds, with_lock};

/// A lock that sleeps, one that hands over in order, one with a queue, and one with a large state.
const LOCKS: [(&str, &str); 4] =
    [("mutex", "300"), ("ticket", "20"), ("mcs", "20"), ("lock-byte-aligned", "20")];

/// Runs a part of the program with and without the library.
fn comes_out(part: &str) {
    comes_out_with(part, &LOCKS);
}

fn comes_out_with(part: &str, locks: &[(&str, &str)]) {
    let Some(program) = compile("cc", "short_lived.c") else { return };
    for &(lock, rounds) in locks {
        let expected = succeeds(with_lock(&program, None).args([part, rounds]));
        let output = succeeds(with_lock(&program, Some(lock)).args([part, rounds]));
        assert_eq!(output.stdout, expected.stdout, "{lock}");
        assert_eq!(output.stderr, b"", "{lock}");
    }
}

#[test]
fn mutexes_at_the_same_addresses_are_handed_from_thread_to_thread() {
    comes_out("handing");
}

#[test]
fn a_process_with_many_short_lived_mutexes_may_fork() {
    comes_out("forks");
}

#[test]
fn a_copy_of_a_mutex_outlives_the_record_of_the_original() {
    comes_out("copies");
}

#[test]
fn mutexes_without_contention_have_no_records() {
    comes_out("uncontended");
}

#[test]
fn records_of_a_few_mutexes_share_no_cache_line() {
    comes_out("apart");
}

/// A thread stands still between the release of a mutex and that of its lock, while the memory of tens of thousands of
/// records goes back to the kernel. If its record's did too, `ticket` would lose count, and the next locker would hang.
#[test]
fn a_late_releaser_keeps_the_memory_of_its_lock() {
    comes_out_with("late", &some(&LOCKS, 2));
}

/// A record takes 56 bytes with the lock `mutex`, 40 to 48 with most others, and 192 with a lock that has a cache line to
/// itself: 32 bytes of record in a line, then the lock's, then its token's. The table adds 4 to 8 bytes, and pages that are not
/// full some more.
#[test]
fn a_live_mutex_takes_little_memory_and_gives_it_back() {
    let Some(program) = compile("cc", "short_lived.c") else { return };
    for (lock, most) in [("mutex", "64"), ("ticket", "64"), ("mcs", "64"), ("futex", "64")] {
        let output = succeeds(with_lock(&program, Some(lock)).args(["memory", "1", most]));
        assert_eq!(output.stdout, b"memory\n", "{lock}");
    }
    // The program can tell: this is more than nothing.
    let output = finish(with_lock(&program, Some("mutex")).args(["memory", "1", "40"]));
    assert_eq!(output.status.code(), Some(1));
}

/// With statistics each mutex has an account of its own, and the accounts of ended ones add up.
#[test]
fn statistics_count_mutexes_that_have_ended() {
    let Some(program) = compile("cc", "short_lived.c") else { return };
    let output =
        succeeds(with_lock(&program, Some("mutex")).env("OVERSPIN_STATS", "1").arg("copies"));
    let told = String::from_utf8(output.stderr).unwrap();
    // The originals and the copies: one acquisition each, and one at the end of a wait.
    assert!(told.contains(": 320000 mutexes, 640000 acquisitions, 0 contended"), "{told}");
    assert!(told.contains("0000 ended)"), "{told}");
}
