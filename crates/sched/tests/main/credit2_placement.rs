//! Where credit2 places vCPUs, as Xen does: pCPUs of a runqueue take turns.

use crate::common::Driver;
use overspin_sched::*;

/// Two runqueues, one a socket: pCPUs 0 and 1, pCPUs 2 and 3. Their turns begin after 0 and after 2.
const TWO_BY_TWO: Topology = Topology { sockets: 2, cores_per_socket: 2, threads_per_core: 1 };

fn two_by_two(params: &Params) -> Driver {
    Driver::new("credit2", params, TWO_BY_TWO)
}

fn home(d: &Driver, v: VcpuId) -> u32 {
    d.h.machine().home(v).0
}

/// In Xen the choice of a pCPU takes a turn, and the move to another runqueue that follows takes
/// another one, whatever was chosen. So a vCPU that comes to runqueue 1 when its last turn went to 2
/// is to go to 3, and goes to 2; the next new vCPU gets 3.
#[test]
fn a_move_to_another_runqueue_takes_two_turns() {
    let mut d = two_by_two(&Params::default());
    let v = d.domain_on(256, 0, [Affinity::hard([0, 1])])[0];
    assert_eq!(home(&d, v), 1);
    d.call(|h, now, out| h.set_affinity(now, v, Affinity::hard([2, 3]), out)).unwrap();
    assert_eq!(home(&d, v), 2);
    let next = d.domain_on(256, 0, [Affinity::hard([2, 3])])[0];
    assert_eq!(home(&d, next), 3);
}

/// In Xen the balancer's moves take turns too: one for a vCPU that waits, two for one that runs (a
/// choice and a move, as above). In both cases the last turn went to where the moved vCPU lives, so the
/// next new vCPU gets the other pCPU.
///
/// New vCPUs go to runqueue 0 and 1 in turn. The three on runqueue 0 compute, the two on runqueue 1 stay
/// down. The loads are forecast to be 1.5 and 1 at first, and become 3 and 0; the ends of epochs
/// move one vCPU when they differ by 1, after about 0.24 s.
#[test]
fn the_balancer_takes_turns() {
    let mut d = two_by_two(&Params::default());
    let all: Vec<_> = (0..5).map(|_| d.domain(256, 0, 1)[0]).collect();
    let homes: Vec<_> = all.iter().map(|v| home(&d, *v)).collect();
    assert_eq!(homes, [1, 3, 0, 2, 1]);
    let hogs = [all[0], all[2], all[4]];
    hogs.iter().for_each(|v| d.up(*v));
    let moved = loop {
        d.run_to(d.now + Nanos::MS);
        d.settle();
        if let Some(v) = hogs.iter().find(|v| home(&d, **v) >= 2) {
            break *v;
        }
        assert!(d.now < Nanos::ms(300), "nothing moved");
    };
    let next = d.domain_on(256, 0, [Affinity::hard([2, 3])])[0];
    assert_eq!(home(&d, next), 5 - home(&d, moved));
}

/// V prefers runqueue 1, and U comes after it without a preference. Both runqueues are without load, so
/// hard affinity would choose runqueue 0 for both. As meant, V takes the turn of runqueue 1, which is
/// 3, and U that of runqueue 0, which is 1. Xen looks up and notes the turns of runqueue 0 for both: V
/// gets the first pCPU of its preference after 0, which is 2, and U the first of runqueue 0 after 2, which
/// is 0.
#[test]
fn as_is_a_preference_takes_the_turn_of_another_runqueue() {
    let place = |as_is| {
        let mut d = two_by_two(&Params::default().with("as_is", ParamValue::Flag(as_is)));
        let v = d.domain_on(256, 0, [Affinity::soft([2, 3])])[0];
        let u = d.domain(256, 0, 1)[0];
        (home(&d, v), home(&d, u))
    };
    assert_eq!(place(false), (3, 1));
    assert_eq!(place(true), (2, 0));
}

/// A runqueue for each of two pCPUs; A and C share the first, where C must stay, and nothing is on the
/// second. Turns and credit are those of two hogs of equal weight (example D2): at 20.5 ms C has -0.5 ms
/// and A 0, so A is chosen and the epoch ends. Loads are 1.02 and 0, and moving A evens them out. Xen moves
/// it, though the pass has just chosen it, and tells its home, which is the passing pCPU: a second pass at
/// 20.5 finds that A is to leave, and C goes on. With `keep_chosen` A runs for its ratelimit, 1 ms, has
/// less credit (9) than C (9.5), and nothing moves.
#[test]
fn the_vcpu_just_chosen_may_move() {
    let run = |keep: bool| {
        let params = Params::default()
            .with("runqueue", ParamValue::Word("cpu".into()))
            .with("keep_chosen", ParamValue::Flag(keep));
        let mut d = Driver::new("credit2", &params, Topology::flat(2));
        let a = d.domain(256, 0, 1)[0];
        let c = d.domain_on(256, 0, [Affinity::hard([0])])[0];
        assert_eq!([a, c].map(|v| home(&d, v)), [0, 0]);
        d.up(a);
        d.up(c);
        d.run_to(Nanos::ms(22));
        (d.ran(0).last().copied(), d.ran(1))
    };
    assert_eq!(run(false), (Some((19.5, 22., 1)), vec![(20.5, 22., 0)]));
    assert_eq!(run(true), (Some((21.5, 22., 1)), vec![]));
}
