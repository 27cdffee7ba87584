//! What every lock must do, written once and run for each lock over real threads.
//!
//! A new lock is one line at the end of this file. What threads cannot show, an order that is
//! missing or an access after the release, is for the model checker in `tests/loom`.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::thread;

use overspin_check::threads::{StdPlatform, System};
use overspin_locks::{
    AtomicCell, Budget, CapacityError, Clh, Cna, FlexGuard, Futex, Hemlock, ISpinlock, LockByte,
    LockByteAligned, LockInfo, LockVisitor, Malthusian, Mcs, McsTp, PreemptableTicket, PvQspinlock,
    PvTicket, PvTicket2012, Qspinlock, QspinlockTas, RawLock, ShflLock, Ticket, TicketAligned,
    TicketBackoff, TicketSmall, Ttas, Tuning, Twa, XenPv, infos, with_lock,
};
use overspin_locks::{qspinlock as queued, ttas as backoff};

const CPUS: usize = 4;
const DEFAULT: Tuning = Tuning { spin_budget: None, nopvspin: false };
/// Sleep at once: the way to exercise the slow path of a lock that has one.
const NO_SPIN: Tuning = Tuning { spin_budget: Some(0), nopvspin: false };

/// Locks that cannot tell whether somebody waits.
const KEEPS_NO_RECORD: [&str; 2] = [backoff::INFO.name, queued::TAS_INFO.name];

/// In the critical section each CPU counts up, looks whether somebody else did, and counts back,
/// as the validation of Concurrency Kit does: an intruder is seen from both sides.
fn exclusion<L: RawLock<StdPlatform> + Sync>(tuning: Tuning)
where
    L::Shared: Sync,
{
    const ROUNDS: usize = 2_000;
    const DEPTH: usize = 8;
    let lock = L::new();
    let shared = L::shared(CPUS, tuning).unwrap();
    let inside = AtomicUsize::new(0);
    // Load and store apart, so that an intruder also loses updates.
    let total = AtomicUsize::new(0);
    System::new(CPUS).run_all(|_| {
        for _ in 0..ROUNDS {
            let token = lock.lock(&shared);
            for depth in 0..DEPTH {
                assert_eq!(inside.fetch_add(1, Relaxed), depth);
            }
            total.store(total.load(Relaxed) + 1, Relaxed);
            for depth in (0..DEPTH).rev() {
                assert_eq!(inside.fetch_sub(1, Relaxed), depth + 1);
            }
            lock.unlock(&shared, token);
        }
    });
    assert_eq!(total.into_inner(), CPUS * ROUNDS);
    assert_idle::<L>(&lock, &shared);
}

/// Half of the CPUs only try.
fn exclusion_with_tries<L: RawLock<StdPlatform> + Sync>(tuning: Tuning)
where
    L::Shared: Sync,
{
    const ROUNDS: usize = 2_000;
    let lock = L::new();
    let shared = L::shared(CPUS, tuning).unwrap();
    let inside = AtomicUsize::new(0);
    System::new(CPUS).run_all(|cpu| {
        for _ in 0..ROUNDS {
            let token =
                if cpu % 2 == 0 { Some(lock.lock(&shared)) } else { lock.try_lock(&shared) };
            if let Some(token) = token {
                assert_eq!(inside.fetch_add(1, Relaxed), 0);
                assert_eq!(inside.fetch_sub(1, Relaxed), 1);
                lock.unlock(&shared, token);
            }
        }
    });
    assert_idle::<L>(&lock, &shared);
}

/// `try_lock` succeeds on a free lock, fails on a held one, and `is_locked` agrees.
fn try_lock<L: RawLock<StdPlatform>>() {
    System::new(1).run(0, || {
        let lock = L::new();
        let shared = L::shared(1, DEFAULT).unwrap();
        assert_idle::<L>(&lock, &shared);
        // More often than any ticket of 8 bits has values.
        for _ in 0..1_000 {
            let token = lock.try_lock(&shared).expect("the lock is free");
            assert!(lock.is_locked(&shared));
            assert!(!lock.is_contended(&shared));
            assert!(lock.try_lock(&shared).is_none(), "the lock is held");
            lock.unlock(&shared, token);
            assert_idle::<L>(&lock, &shared);
        }
    });
}

/// `lock_irqsave` holds the lock and `unlock` gives it back.
fn irqsave<L: RawLock<StdPlatform>>() {
    System::new(1).run(0, || {
        let lock = L::new();
        let shared = L::shared(1, DEFAULT).unwrap();
        let (token, ()) = lock.lock_irqsave(&shared);
        assert!(lock.is_locked(&shared));
        lock.unlock(&shared, token);
        assert_idle::<L>(&lock, &shared);
    });
}

/// A CPU holds more locks at once than it has queue nodes, if the lock has any, and another wants
/// them all.
fn many_locks_held<L: RawLock<StdPlatform> + Sync>()
where
    L::Shared: Sync,
{
    const LOCKS: usize = 20;
    const ROUNDS: usize = 100;
    let locks: [L; LOCKS] = std::array::from_fn(|_| L::new());
    let shared = L::shared(2, NO_SPIN).unwrap();
    let inside = [const { AtomicUsize::new(0) }; LOCKS];
    System::new(2).run_all(|cpu| {
        for _ in 0..ROUNDS {
            let mut held = Vec::new();
            for (lock, inside) in locks.iter().zip(&inside) {
                let token = lock.lock(&shared);
                assert_eq!(inside.fetch_add(1, Relaxed), 0);
                held.push((lock, inside, token));
            }
            // In the order of acquisition, and in the opposite one.
            if cpu == 0 {
                held.reverse();
            }
            for (lock, inside, token) in held {
                assert_eq!(inside.fetch_sub(1, Relaxed), 1);
                lock.unlock(&shared, token);
            }
        }
    });
    locks.iter().for_each(|lock| assert_idle::<L>(lock, &shared));
}

/// With a holder and waiters that are known to wait, the lock says that it is contended; if it
/// promises so, it serves them in the order in which they came.
fn waiters<L: RawLock<StdPlatform> + Sync>(tuning: Tuning)
where
    L::Shared: Sync,
{
    let system = System::new(CPUS);
    let lock = L::new();
    let shared = L::shared(CPUS, tuning).unwrap();
    let served = Mutex::new(Vec::new());
    let token = system.run(0, || lock.lock(&shared));
    thread::scope(|scope| {
        for cpu in 1..CPUS {
            let (system, lock, shared, served) = (&system, &lock, &shared, &served);
            scope.spawn(move || {
                system.run(cpu, || {
                    let token = lock.lock(shared);
                    served.lock().unwrap().push(cpu);
                    lock.unlock(shared, token);
                });
            });
            system.await_waiting(cpu);
            assert_eq!(lock.is_contended(shared), !KEEPS_NO_RECORD.contains(&L::INFO.name));
        }
        system.run(0, || lock.unlock(&shared, token));
    });
    let mut served = served.into_inner().unwrap();
    if !L::INFO.fair {
        served.sort_unstable();
    }
    assert_eq!(served, (1..CPUS).collect::<Vec<_>>());
    assert_idle::<L>(&lock, &shared);
}

/// As many CPUs as promised, and not one more.
fn capacity<L: RawLock<StdPlatform>>() {
    let max = L::INFO.max_cpus;
    assert!(L::shared(max as usize, DEFAULT).is_ok());
    let cpus = max as usize + 1;
    assert_eq!(L::shared(cpus, DEFAULT).err(), Some(CapacityError { cpus, max }));
}

/// The size promised, and the registry knows the lock.
fn info<L: RawLock<StdPlatform>>() {
    assert_eq!(size_of::<L>(), L::INFO.size);
    assert!(infos().contains(&L::INFO));
}

fn assert_idle<L: RawLock<StdPlatform>>(lock: &L, shared: &L::Shared) {
    assert!(!lock.is_locked(shared));
    assert!(!lock.is_contended(shared));
}

/// One line per lock.
macro_rules! suite {
    ($($name:ident: $lock:ty;)+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn exclusion() {
                super::exclusion::<$lock>(DEFAULT);
            }

            #[test]
            fn exclusion_without_spinning() {
                super::exclusion::<$lock>(NO_SPIN);
            }

            #[test]
            fn exclusion_with_tries() {
                super::exclusion_with_tries::<$lock>(NO_SPIN);
            }

            #[test]
            fn try_lock() {
                super::try_lock::<$lock>();
            }

            #[test]
            fn irqsave() {
                super::irqsave::<$lock>();
            }

            #[test]
            fn many_locks_held() {
                super::many_locks_held::<$lock>();
            }

            #[test]
            fn waiters() {
                super::waiters::<$lock>(DEFAULT);
            }

            #[test]
            fn capacity() {
                super::capacity::<$lock>();
            }

            #[test]
            fn info() {
                super::info::<$lock>();
            }
        }
    )+};
}

suite! {
    lock_byte: LockByte<StdPlatform>;
    ticket_small: TicketSmall<StdPlatform>;
    ticket: Ticket<StdPlatform>;
    xen_pv: XenPv<StdPlatform>;
    mcs: Mcs<StdPlatform>;
    clh: Clh<StdPlatform>;
    mcs_tp: McsTp<StdPlatform>;
    malthusian: Malthusian<StdPlatform>;
    cna: Cna<StdPlatform>;
    twa: Twa<StdPlatform>;
    shfllock: ShflLock<StdPlatform>;
    hemlock: Hemlock<StdPlatform>;
    flexguard: FlexGuard<StdPlatform>;
    pv_ticket: PvTicket<StdPlatform>;
    pv_ticket_2012: PvTicket2012<StdPlatform>;
    futex: Futex<StdPlatform>;
    ttas: Ttas<StdPlatform>;
    qspinlock: Qspinlock<StdPlatform>;
    qspinlock_tas: QspinlockTas<StdPlatform>;
    pv_qspinlock: PvQspinlock<StdPlatform>;
    preemptable: PreemptableTicket<StdPlatform>;
    ispinlock: ISpinlock<StdPlatform>;
    ticket_backoff: TicketBackoff<StdPlatform>;
    lock_byte_aligned: LockByteAligned<StdPlatform>;
    ticket_aligned: TicketAligned<StdPlatform>;
}

struct InfoOf;

impl LockVisitor<StdPlatform> for InfoOf {
    type Output = LockInfo;

    fn visit<L: RawLock<StdPlatform> + 'static>(self) -> LockInfo {
        L::INFO
    }
}

#[test]
fn every_name_leads_to_its_lock() {
    for info in infos() {
        assert_eq!(with_lock::<StdPlatform, _>(info.name, InfoOf), Some(*info));
    }
    let byte = with_lock::<StdPlatform, _>("byte", InfoOf).map(|info| info.name);
    assert_eq!(byte, Some("lock-byte"));
    assert_eq!(with_lock::<StdPlatform, _>("mutex", InfoOf), None);
}

#[test]
fn names_are_unique() {
    for (index, info) in infos().iter().enumerate() {
        assert!(infos()[..index].iter().all(|other| other.name != info.name));
    }
}

#[test]
fn sizes_are_those_of_the_published_locks() {
    assert_eq!(size_of::<LockByte<StdPlatform>>(), 2);
    assert_eq!(size_of::<TicketSmall<StdPlatform>>(), 2);
    assert_eq!(size_of::<Ticket<StdPlatform>>(), 4);
    assert_eq!(size_of::<XenPv<StdPlatform>>(), 4);
}

#[test]
fn capacities_are_those_of_the_ticket_widths() {
    assert_eq!(TicketSmall::<StdPlatform>::INFO.max_cpus, 255);
    assert_eq!(Ticket::<StdPlatform>::INFO.max_cpus, 65_535);
}

#[test]
fn the_capacity_error_says_what_to_change() {
    let error = TicketSmall::<StdPlatform>::shared(300, DEFAULT).unwrap_err();
    assert_eq!(error.to_string(), "300 CPUs are too many: this lock serves at most 255");
}

#[test]
fn a_budget_is_a_number_of_evaluations() {
    for (budget, evaluations) in [(0, 1), (1, 1), (5, 5)] {
        let cell = <AtomicU8 as AtomicCell>::new(1);
        let seen = Cell::new(0);
        let never = |_| {
            seen.set(seen.get() + 1);
            false
        };
        assert_eq!(cell.spin_until(never, Budget::Iterations(budget)), Err(1));
        assert_eq!(seen.take(), evaluations);
        let mut left = budget;
        assert_eq!(cell.spin_until_within(never, &mut left), Err(1));
        assert_eq!((seen.get(), left), (evaluations, 0));
    }
}

#[test]
fn a_budget_lasts_over_several_spins() {
    let cell = <AtomicU8 as AtomicCell>::new(1);
    let mut left = 10;
    let seen = Cell::new(0);
    let third_time = |_| {
        seen.set(seen.get() + 1);
        seen.get() == 3
    };
    assert_eq!(cell.spin_until_within(third_time, &mut left), Ok(1));
    assert_eq!(left, 7);
    assert_eq!(cell.spin_until_within(|_| false, &mut left), Err(1));
    assert_eq!(left, 0);
}
