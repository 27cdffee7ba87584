//! The promises of the simulated [`Platform`] to locks. The probe is a user's lock that runs the test's
//! code on each of two vCPUs of a guest, as a task with interrupts on.

use crate::common::{domain, host, lock_loop, scenario};
use overspin_locks::{
    AtomicCell, Budget, CapacityError, LockInfo, Platform, RawLock, Tuning, lock_byte,
};
use overspin_scenario::{Ending, Outcome, Picos, SEC};
use overspin_sim::{SimPlatform as P, Simulator};
use overspin_workload::LockLoop;
use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;

type Byte = <P as Platform>::U8;
type Word = <P as Platform>::U32;

thread_local! {
    static CODE: Cell<fn(&Probe)> = const { Cell::new(|_| ()) };
}

/// A byte lock for the kernel's own use. Taken as the workload's lock, it runs the test's code.
#[derive(Debug)]
struct Probe {
    lock: Byte,
    flag: Word,
}

impl RawLock<P> for Probe {
    const INFO: LockInfo = LockInfo { name: "probe", ..lock_byte::INFO };
    type Shared = ();
    type Token = ();

    fn shared(_: usize, _: Tuning) -> Result<(), CapacityError> {
        Ok(())
    }
    fn new() -> Self {
        Self { lock: Byte::new(0), flag: Word::new(0) }
    }
    /// Only the workload takes its lock with interrupts on.
    fn lock(&self, (): &()) {
        CODE.get()(self);
        let _held = self.lock_irqsave(&());
        P::irq_restore(true);
    }
    fn lock_irqsave(&self, (): &()) -> ((), bool) {
        let state = P::irq_save();
        while self.lock.swap(1, SeqCst) != 0 {
            let _ = self.lock.spin_until(|lock| lock == 0, Budget::Forever);
        }
        ((), state)
    }
    fn try_lock(&self, (): &()) -> Option<()> {
        (self.lock.swap(1, SeqCst) == 0).then_some(())
    }
    fn unlock(&self, (): &(), (): ()) {
        self.lock.store(0, SeqCst);
    }
    fn is_locked(&self, (): &()) -> bool {
        self.lock.load(SeqCst) != 0
    }
    fn is_contended(&self, (): &()) -> bool {
        false
    }
}

/// Runs `code` once on each of two vCPUs with ticks at 1000 Hz and a pCPU each.
fn on_two_vcpus(code: fn(&Probe)) -> Outcome {
    CODE.set(code);
    let work = LockLoop { irqs_off: false, count: 1, ..lock_loop(Picos::ZERO, Picos::ZERO) };
    let guest = domain(2, Probe::INFO.name, work);
    let scenario = scenario(host(2, "null"), vec![guest], 60 * SEC);
    let outcome =
        overspin_host::run(&Simulator::new().with_lock::<Probe>(), &scenario, 1, &mut (), &())
            .expect("a legal scenario");
    assert_eq!(outcome.ending, Ending::Finished);
    outcome
}

/// A millisecond in nanoseconds.
const MS: u64 = 1_000_000;

fn wait_until(time: u64) {
    while P::now() < time {
        P::relax();
    }
}

#[test]
fn a_kick_before_the_poll_makes_it_return_at_once() {
    on_two_vcpus(|_| {
        P::irq_save();
        P::latch_clear();
        P::kick(P::cpu_id());
        let before = P::now();
        P::poll();
        // A hypercall, 500 ns, and no sleep.
        assert_eq!(P::now() - before, 500);
        assert!(P::latch_test(), "the poll leaves the latch alone");
        P::irq_restore(true);
    });
}

#[test]
fn with_interrupts_off_only_a_kick_ends_a_poll() {
    let outcome = on_two_vcpus(|_| {
        if P::cpu_id() == 0 {
            P::irq_save();
            P::latch_clear();
            P::poll();
            assert!(P::latch_test() && P::now() >= 10 * MS, "woken at {} ns", P::now());
            P::irq_restore(true);
        } else {
            wait_until(10 * MS);
            P::kick(0);
        }
    });
    // It slept all the time: ten ticks came, and it took one at the end.
    let v = &outcome.domains[0].vcpus[0];
    assert!(v.blocked > Picos::ms(9) && v.ticks <= 3, "{v:?}");
}

#[test]
fn with_interrupts_on_a_tick_ends_a_poll() {
    on_two_vcpus(|_| {
        P::latch_clear();
        P::poll();
        assert!(!P::latch_test() && P::now() < 2 * MS, "woken at {} ns", P::now());
    });
}

#[test]
fn a_spin_uses_up_its_budget_of_iterations() {
    on_two_vcpus(|probe| {
        P::irq_save();
        let before = P::now();
        assert_eq!(probe.flag.spin_until(|flag| flag == 7, Budget::Iterations(1000)), Err(0));
        // 20 ns an iteration.
        assert_eq!(P::now() - before, 20_000);
        let mut left = 300;
        assert_eq!(probe.flag.spin_until_within(|flag| flag == 7, &mut left), Err(0));
        assert_eq!((left, P::now() - before), (0, 26_000));
        assert_eq!(probe.flag.spin_until(|flag| flag == 7, Budget::Iterations(0)), Err(0));
        assert_eq!(P::now() - before, 26_000);
        P::irq_restore(true);
    });
}

#[test]
fn a_spin_sees_a_write_and_keeps_the_rest_of_its_budget() {
    on_two_vcpus(|probe| {
        if P::cpu_id() == 0 {
            P::irq_save();
            wait_until(MS);
            let mut left = 1000;
            assert_eq!(probe.flag.spin_until_within(|flag| flag == 1, &mut left), Ok(1));
            // The write comes after 10 us, 500 iterations, and is visible two transfers later.
            assert!((490..=500).contains(&left), "{left}");
            P::irq_restore(true);
        } else {
            P::irq_save();
            wait_until(MS + 10_000);
            probe.flag.store(1, SeqCst);
            P::irq_restore(true);
        }
    });
}

#[test]
fn a_wait_sleeps_only_while_the_cell_holds_the_value() {
    let outcome = on_two_vcpus(|probe| {
        if P::cpu_id() == 0 {
            let before = P::now();
            P::wait(&probe.flag, 5);
            assert!(P::now() - before < 1_000, "the cell holds 0: no sleep");
            P::irq_save();
            P::wait(&probe.flag, 0);
            assert_eq!(probe.flag.load(SeqCst), 1);
            assert!(P::now() >= 10 * MS);
            P::irq_restore(true);
        } else {
            wait_until(10 * MS);
            probe.flag.store(1, SeqCst);
            P::wake_one(&raw const probe.flag);
        }
    });
    assert!(outcome.domains[0].vcpus[0].blocked > Picos::ms(9));
}

#[test]
fn interrupt_states_nest() {
    on_two_vcpus(|_| {
        let outer = P::irq_save();
        let inner = P::irq_save();
        assert!(P::irqs_were_on(outer) && !P::irqs_were_on(inner));
        P::irq_restore(inner);
        let level = P::ctx_level();
        let ticked = P::now() + 2 * MS;
        wait_until(ticked);
        // Two ticks are pending by now. They are taken here, which takes time.
        P::irq_restore(outer);
        assert!(P::now() > ticked + 1_000, "interrupts were off until now");
        assert_eq!((level, P::ctx_level()), (0, 0));
    });
}
