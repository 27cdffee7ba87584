//! The locks on a machine that is made of threads: a thread is a CPU, and a flag of its own is its interrupt flag.

use no_std_lock::{
    Kernel, Machine, McsLock, McsNodes, Nodes, OverCapacity, SpinLock, TicketLock, TicketNodes,
    Vouched, keep,
};
use overspin_locks::{Mcs, Ticket};
use std::cell::Cell;
use std::thread;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static INTERRUPTS: Cell<bool> = const { Cell::new(true) };
}

#[derive(Debug)]
struct Threads;

// SAFETY: each thread of a test gives itself another number, and no handlers interrupt threads.
unsafe impl Machine for Threads {
    fn cpu() -> usize {
        CPU.get()
    }

    fn irq_save() -> bool {
        INTERRUPTS.replace(false)
    }

    fn irq_restore(on: bool) {
        INTERRUPTS.set(on);
    }
}

/// Two threads add to both halves of a pair. An overlap of two sections would lose additions.
fn counts<L: Vouched<Threads> + Sync>()
where
    L::Shared: Sync,
{
    // Few, because a spinning thread may wait for a time slice until the other one runs.
    const EACH: u64 = 1000;
    let nodes = Nodes::<Threads, L>::new(2).expect("two CPUs");
    let pair = SpinLock::new(&nodes, (0, 0));
    thread::scope(|scope| {
        for cpu in 0..2 {
            let pair = &pair;
            scope.spawn(move || {
                CPU.set(cpu);
                for _ in 0..EACH {
                    let mut held = pair.lock();
                    assert!(!INTERRUPTS.get(), "interrupts are off in a section");
                    assert_eq!(held.0, held.1, "the other thread is in its section");
                    held.0 += 1;
                    held.1 += 1;
                    drop(held);
                    assert!(INTERRUPTS.get(), "interrupts are on again after it");
                }
            });
        }
    });
    assert_eq!(*pair.lock(), (2 * EACH, 2 * EACH));
}

#[test]
fn a_ticket_lock_and_an_mcs_lock_admit_one_cpu_at_a_time() {
    counts::<Ticket<Kernel<Threads>>>();
    counts::<Mcs<Kernel<Threads>>>();
}

#[test]
fn a_try_for_a_held_lock_leaves_interrupts_as_they_were() {
    let nodes = TicketNodes::<Threads>::new(2).expect("two CPUs");
    let lock = TicketLock::new(&nodes, ());
    let held = lock.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            CPU.set(1);
            assert!(lock.try_lock().is_none());
            assert!(INTERRUPTS.get());
        });
    });
    drop(held);
    let tried = lock.try_lock().expect("it is free");
    assert!(!INTERRUPTS.get());
    drop(tried);
    assert!(INTERRUPTS.get());
}

#[test]
fn interrupts_come_back_with_the_first_of_nested_guards() {
    let nodes = McsNodes::<Threads>::new(1).expect("one CPU");
    let (outer, inner) = (McsLock::new(&nodes, 1), McsLock::new(&nodes, 2));
    let first = outer.lock();
    let second = inner.lock();
    assert_eq!((*first, *second), (1, 2));
    drop(second);
    assert!(!INTERRUPTS.get(), "the first lock is still held");
    drop(first);
    assert!(INTERRUPTS.get());
}

#[test]
fn more_cpus_than_the_system_has_are_refused() {
    let refused = McsNodes::<Threads>::new(65).expect_err("64 is the most");
    assert_eq!(refused, OverCapacity { asked: 65, most: 64 });
}

#[test]
fn locks_of_all_cpus_are_made_and_shared() {
    let nodes: &'static McsNodes<Threads> = keep(McsNodes::new(64).expect("as many as there are"));
    let lock: &'static McsLock<'static, Threads, u32> = keep(McsLock::new(nodes, 7));
    let there = thread::spawn(move || {
        CPU.set(63);
        *lock.lock()
    });
    assert_eq!(there.join().expect("the last CPU has nodes"), 7);
}

#[test]
fn what_is_kept_is_aligned_and_its_own() {
    #[repr(align(64))]
    struct Line(u8);
    let kept: Vec<&'static Line> = (0..3).map(|i| keep(Line(i))).collect();
    for (i, line) in kept.iter().enumerate() {
        assert_eq!(std::ptr::from_ref(*line).addr() % 64, 0);
        assert_eq!(usize::from(line.0), i);
    }
}

#[test]
fn a_full_arena_names_the_remedy() {
    let full = thread::spawn(|| keep([0_u8; 65 << 10]).len()).join().expect_err("more than all");
    let told = full.downcast::<String>().expect("a message");
    assert_eq!(*told, "the arena of 65536 bytes is full: raise BYTES in arena.rs");
}
