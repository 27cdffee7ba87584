//! Hostile guests without KVM: random hypercalls and random pages.

use crate::common::{domain, scenario, with};
use overspin_hv::fuzz::Hostile;
use overspin_scenario::{NotificationProtocol, Picos, PreemptionNotification};
use overspin_workload::{BurnWait, LockLoop};

/// Calls of one test. The ignored test makes ten million.
const CALLS: u64 = 200_000;

fn calls(count: u64) {
    let (mut stopped, mut made) = (0, 0);
    for round in 0_u64.. {
        let scheduler = ["credit", "credit2", "round-robin", "eevdf"][round as usize % 4];
        let guests = vec![
            domain("locks", 3, "pv-ticket", with::<LockLoop>("{}")),
            domain("hogs", 2, "ticket", BurnWait::default()),
            domain("one", 1, "mcs", with::<LockLoop>("{}")),
        ];
        let mut all = scenario(2, scheduler, Picos::ms(1000), guests);
        let protocol =
            [NotificationProtocol::Upcall, NotificationProtocol::Deferral][round as usize % 2];
        all.host.preemption_notification =
            Some(PreemptionNotification { protocol, ..Default::default() });
        let mut hostile = Hostile::new(&all, round);
        // A guest that makes a mistake is stopped soon. So there are many short lives.
        for _ in 0..2_000 {
            hostile.step();
        }
        stopped += hostile.stopped();
        made += hostile.calls();
        if made >= count {
            println!("{made} calls of {} hypervisors stopped {stopped} domains", round + 1);
            break;
        }
    }
    assert!(stopped > 0, "no guest was ever stopped");
}

#[test]
fn random_calls_harm_nobody_else() {
    calls(CALLS);
}

#[test]
#[ignore = "ten million calls take minutes: run it after a change of the hypercalls"]
fn ten_million_random_calls_harm_nobody_else() {
    calls(10_000_000);
}

#[test]
fn bytes_of_a_fuzzer_are_calls() {
    let mut hostile = Hostile::of_two_guests(1);
    let mut random = overspin_workload::Random::new(7);
    for _ in 0..5_000 {
        let bytes = u128::from(random.bits()) << 64 | u128::from(random.bits());
        hostile.call_of(bytes.to_le_bytes());
    }
    assert!(hostile.stopped() > 0, "random bytes are not all legal");
}
