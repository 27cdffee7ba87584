//! Pools: pCPUs and domains that move between schedulers while they run, and moves that are
//! refused.

use crate::common::Asked;
use overspin_sched::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A world around pools in which the test decides when passes and switches happen.
struct World {
    pools: Pools,
    now: Nanos,
    asked: Asked,
    switching: BTreeSet<PcpuId>,
    vcpus: Vec<VcpuId>,
    domains: Vec<DomainId>,
    ids: Vec<PoolId>,
    log: Vec<String>,
}

fn scheduler(name: &str) -> Box<dyn Scheduler> {
    make(name, &Params::default()).unwrap()
}

impl World {
    /// Creates pool 0 with all pCPUs, and further pools without any.
    fn new(topology: Topology, names: &[&str]) -> Self {
        let mut world = Self {
            pools: Pools::new(topology, scheduler(names[0])),
            now: Nanos::ZERO,
            asked: Asked::default(),
            switching: BTreeSet::new(),
            vcpus: Vec::new(),
            domains: Vec::new(),
            ids: vec![PoolId(0)],
            log: Vec::new(),
        };
        world.call(|pools, now, out| pools.start(now, out));
        for name in &names[1..] {
            let id = world.call(|pools, now, out| pools.create_pool(now, scheduler(name), out));
            world.ids.push(id);
        }
        world
    }

    fn call<R>(&mut self, call: impl FnOnce(&mut Pools, Nanos, &mut Vec<Action>) -> R) -> R {
        let mut actions = Vec::new();
        let result = call(&mut self.pools, self.now, &mut actions);
        for action in actions {
            self.log.push(format!("{} {action:?}", self.now));
            self.asked.note(action);
        }
        result
    }

    fn domain(&mut self, pool: PoolId, vcpus: u32) -> DomainId {
        let d = self.pools.create_domain(pool, DomainParams::default()).unwrap();
        self.domains.push(d);
        for _ in 0..vcpus {
            let any = Affinity::any();
            let v = self.call(|pools, now, out| pools.create_vcpu(now, d, any, out));
            if let Ok(v) = v {
                self.vcpus.push(v);
                self.on(v, |h, now, v, out| h.up(now, v, out));
                self.settle();
            }
        }
        d
    }

    fn on(
        &mut self,
        v: VcpuId,
        call: impl FnOnce(&mut Hypervisor, Nanos, VcpuId, &mut Vec<Action>),
    ) {
        self.call(|pools, now, out| pools.on_vcpu(v, out, |h, v, out| call(h, now, v, out)));
    }

    fn pass(&mut self, p: PcpuId) {
        self.asked.resched.remove(&p);
        let switch = self.call(|pools, now, out| pools.schedule(now, p, out));
        self.log.push(format!("{} {p:?} {switch:?}", self.now));
        if switch.prev != switch.next {
            self.switching.insert(p);
        }
    }

    fn saved(&mut self, p: PcpuId) {
        self.switching.remove(&p);
        self.call(|pools, now, out| pools.context_saved(now, p, out));
    }

    /// Makes all passes and finishes all switches that are due.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            while let Some(p) = self.switching.first().copied() {
                self.saved(p);
            }
            let Some(p) = self.asked.resched.first().copied() else {
                return self.pools.is_valid().unwrap();
            };
            self.pass(p);
        }
        panic!("10,000 passes at one instant, and no end");
    }

    fn due(&mut self) {
        for _ in 0..10_000 {
            let Some(timer) = self.asked.due(self.now) else { return };
            self.call(|pools, now, out| pools.timer(now, timer, out));
        }
        panic!("10,000 timers at one instant, and no end");
    }

    fn run_to(&mut self, t: Nanos) {
        self.settle();
        while let Some(at) = self.asked.next().filter(|at| *at <= t) {
            self.now = self.now.max(at);
            self.due();
            self.settle();
        }
        self.now = t;
    }

    fn running(&self, v: VcpuId) -> Nanos {
        let (pool, local) = self.pools.local(v);
        self.pools.hypervisor(pool).unwrap().run_times(local, self.now).running
    }

    fn move_pcpu(&mut self, p: u32, to: PoolId) -> Result<(), SchedError> {
        self.call(|pools, now, out| pools.move_pcpu(now, PcpuId(p), to, out))
    }

    fn move_domain(&mut self, d: DomainId, to: PoolId) -> Result<(), SchedError> {
        self.call(|pools, now, out| pools.move_domain(now, d, to, out))
    }
}

#[test]
fn a_pcpu_and_a_domain_move_while_they_run() {
    for info in schedulers() {
        let mut w = World::new(Topology::flat(3), &["credit", info.name]);
        let (a, b) = (w.domain(PoolId(0), 1), w.domain(PoolId(0), 2));
        w.run_to(Nanos::ms(20));
        assert_eq!(w.running(w.vcpus[0]), Nanos::ms(20), "three vCPUs on three pCPUs");
        w.move_pcpu(2, PoolId(1)).unwrap();
        assert_eq!(w.pools.pool_of(PcpuId(2)), (PoolId(0), Some(PoolId(1))), "it runs a vCPU");
        w.settle();
        assert_eq!(w.pools.pool_of(PcpuId(2)), (PoolId(1), None));
        w.move_domain(a, PoolId(1)).unwrap();
        w.settle();
        assert_eq!(w.pools.pool_of_domain(a), (PoolId(1), None));
        assert_eq!(w.pools.local(w.vcpus[0]).0, PoolId(1));
        w.run_to(Nanos::ms(40));
        let before: Vec<_> = w.vcpus.clone().iter().map(|v| w.running(*v)).collect();
        w.run_to(Nanos::ms(1040));
        for (v, before) in w.vcpus.clone().iter().zip(before) {
            assert_eq!(w.pools.local(*v).0 == PoolId(1), *v == w.vcpus[0]);
            let ran = w.running(*v) - before;
            // A reservation limits run time; all other schedulers give a lone vCPU all of its pCPU.
            if info.work_conserving || *v != w.vcpus[0] {
                assert_eq!(ran, Nanos::ms(1000), "{}: {v:?} has a pCPU of its own", info.name);
            }
        }
        assert_eq!(w.pools.pool_of_domain(b), (PoolId(0), None));
    }
}

#[test]
fn load_in_one_pool_never_touches_another() {
    let mut w = World::new(Topology::flat(4), &["credit", "credit2"]);
    w.move_pcpu(3, PoolId(1)).unwrap();
    w.settle();
    let quiet = w.domain(PoolId(1), 1);
    w.domain(PoolId(0), 12);
    w.run_to(Nanos::ms(3000));
    assert_eq!(w.pools.pool_of_domain(quiet).0, PoolId(1));
    assert_eq!(w.running(w.vcpus[0]), Nanos::ms(3000));
    let others: Nanos = w.vcpus[1..].iter().map(|v| w.running(*v)).sum();
    assert_eq!(others, 3 * Nanos::ms(3000), "12 hogs fill their three pCPUs");
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let mut w = World::new(Topology::flat(3), &["credit", "credit2"]);
    let text = |r: Result<(), SchedError>| r.unwrap_err().to_string();
    assert_eq!(text(w.move_pcpu(0, PoolId(1))), "pCPU 0, the boot pCPU, stays in pool 0");
    assert_eq!(text(w.move_pcpu(1, PoolId(7))), "there is no pool 7");
    assert!(w.move_pcpu(9, PoolId(1)).is_err());
    let d = w.domain(PoolId(0), 2);
    assert_eq!(text(w.move_domain(d, PoolId(1))), "pool 1 has no pCPU; give it one first");
    w.move_pcpu(2, PoolId(1)).unwrap();
    w.settle();
    w.move_domain(d, PoolId(1)).unwrap();
    assert_eq!(text(w.move_domain(d, PoolId(0))), "domain 0 is on its way to another pool");
    assert!(w.call(|p, now, out| p.create_vcpu(now, d, Affinity::any(), out)).is_err());
    let last = "pCPU 2 is the last pCPU of a pool with domains; move the domains first";
    assert_eq!(text(w.move_pcpu(2, PoolId(0))), last, "the domain is not there yet");
    w.settle();
    assert_eq!(text(w.move_pcpu(2, PoolId(0))), last);
    let destroy = |w: &mut World, id| w.call(|p, _, out| p.destroy_pool(PoolId(id), out));
    assert_eq!(text(destroy(&mut w, 0)), "pool 0 cannot be destroyed");
    assert_eq!(
        text(destroy(&mut w, 1)),
        "1 pCPUs and 1 domains are in pool 1 or on their way; move them first"
    );
    // An affinity to no pCPU of the pool, and one that keeps a pCPU from leaving.
    let v = w.vcpus[0];
    let set = |w: &mut World, pcpus: Vec<u32>| {
        let affinity = Affinity::hard(pcpus);
        w.call(|p, now, out| p.on_vcpu(v, out, |h, v, out| h.set_affinity(now, v, affinity, out)))
    };
    assert_eq!(set(&mut w, vec![0, 1]), Err(SchedError::EmptyAffinity));
    w.move_pcpu(1, PoolId(1)).unwrap();
    w.settle();
    set(&mut w, vec![1]).unwrap();
    w.settle();
    assert_eq!(
        text(w.move_pcpu(1, PoolId(0))),
        "vCPU 0 may run on no other pCPU of the pool than 1; change its affinity first"
    );
    // A cap over 100 % for each vCPU.
    let params = DomainParams { weight: 256, cap: 201 };
    let cap =
        w.call(|p, now, out| p.on_domain(d, out, |h, d, out| h.set_domain(now, d, params, out)));
    assert!(text(cap).starts_with("cap = 201 is not legal"));
    // An empty pool can be destroyed.
    w.move_domain(d, PoolId(0)).unwrap();
    w.settle();
    for p in [1, 2] {
        w.move_pcpu(p, PoolId(0)).unwrap();
        w.settle();
    }
    destroy(&mut w, 1).unwrap();
    assert_eq!(text(w.move_pcpu(2, PoolId(1))), "there is no pool 1");
    w.run_to(Nanos::ms(100));
    assert!(
        w.running(w.vcpus[0]) > Nanos::ms(50) && w.running(w.vcpus[1]) > Nanos::ms(50),
        "they run on"
    );
}

/// Runstates and pauses move with the vCPU.
#[test]
fn a_moved_vcpu_keeps_its_times_and_pauses() {
    let mut w = World::new(Topology::flat(2), &["credit", "rr"]);
    w.move_pcpu(1, PoolId(1)).unwrap();
    w.settle();
    let d = w.domain(PoolId(0), 2);
    let (a, b) = (w.vcpus[0], w.vcpus[1]);
    w.run_to(Nanos::ms(5));
    w.on(a, |h, now, v, out| h.pause(now, v, out));
    w.settle();
    w.run_to(Nanos::ms(10));
    let before = [w.running(a), w.running(b)];
    w.move_domain(d, PoolId(1)).unwrap();
    w.settle();
    assert_eq!([w.running(a), w.running(b)], before);
    w.run_to(Nanos::ms(20));
    assert_eq!([w.running(a), w.running(b)], [before[0], before[1] + Nanos::ms(10)], "A is paused");
    let (pool, local) = w.pools.local(a);
    let times = w.pools.hypervisor(pool).unwrap().run_times(local, w.now);
    assert_eq!(times.total(), Nanos::ms(20), "I2 over both pools");
    w.on(a, |h, now, v, out| h.unpause(now, v, out));
    w.run_to(Nanos::ms(100));
    assert_eq!(w.running(a) + w.running(b), before[0] + before[1] + Nanos::ms(90));
}

/// A domain comes to a pool of pCPUs 1 to 3, where two hogs share 1. Xen gives its vCPUs the pCPUs 1, 2, 3 in turn, and lets
/// the scheduler choose from there. The domain is paused, so 2 and 3 idle all the time, and the first vCPU goes from 1 to
/// 2, where the second goes, too. (A new vCPU begins after the home of the one before: these would get 2, 3, and 2.)
#[test]
fn vcpus_that_come_to_a_pool_take_its_pcpus_in_turn() {
    let mut w = World::new(Topology::flat(4), &["credit", "credit"]);
    for p in 1..4 {
        w.move_pcpu(p, PoolId(1)).unwrap();
        w.settle();
    }
    w.domain(PoolId(1), 2);
    for v in w.vcpus.clone() {
        let there = Affinity::hard([1]);
        w.on(v, |h, now, v, out| h.set_affinity(now, v, there, out).unwrap());
        w.settle();
    }
    let d = w.domain(PoolId(0), 3);
    w.move_domain(d, PoolId(1)).unwrap();
    w.settle();
    let homes = w.vcpus[2..].iter().map(|v| {
        let (pool, local) = w.pools.local(*v);
        w.pools.hypervisor(pool).unwrap().machine().home(local).0
    });
    assert_eq!(homes.collect::<Vec<_>>(), [2, 2, 3]);
}

/// A call that the world or an administrator may make. Indices are taken modulo the number of
/// existing items.
#[derive(Clone, Debug)]
enum Op {
    Block(usize),
    Unblock(usize),
    Pause(usize),
    Unpause(usize),
    Pass(usize),
    Saved(usize),
    Time(u32),
    Affinity(usize, u32),
    MovePcpu(usize, usize),
    MoveDomain(usize, usize),
    NewVcpu(usize),
    Remove(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let i = || 0..64usize;
    prop_oneof![
        4 => i().prop_map(Op::Block),
        4 => i().prop_map(Op::Unblock),
        1 => i().prop_map(Op::Pause),
        1 => i().prop_map(Op::Unpause),
        16 => i().prop_map(Op::Pass),
        12 => i().prop_map(Op::Saved),
        8 => (0..20_000u32).prop_map(Op::Time),
        1 => (i(), any::<u32>()).prop_map(|(v, mask)| Op::Affinity(v, mask)),
        4 => (i(), i()).prop_map(|(p, to)| Op::MovePcpu(p, to)),
        3 => (i(), i()).prop_map(|(d, to)| Op::MoveDomain(d, to)),
        1 => i().prop_map(Op::NewVcpu),
        1 => i().prop_map(Op::Remove),
    ]
}

fn nth<T: Copy>(all: impl IntoIterator<Item = T>, i: usize) -> Option<T> {
    let all: Vec<T> = all.into_iter().collect();
    all.get(i % all.len().max(1)).copied()
}

impl World {
    fn step(&mut self, op: &Op) {
        let pcpus = self.pcpus();
        match *op {
            Op::Block(i) => {
                let runs = |p: &PcpuId| !self.switching.contains(p);
                let current = (0..pcpus).map(PcpuId).filter(runs).filter_map(|p| {
                    let (pool, _) = self.pools.pool_of(p);
                    Some((pool, self.pools.hypervisor(pool)?.current(p)?))
                });
                let Some((pool, local)) = nth(current, i) else { return };
                let v = self.vcpus.iter().copied().find(|v| self.pools.local(*v) == (pool, local));
                self.on(v.unwrap(), |h, now, v, out| h.block(now, v, out));
            }
            Op::Unblock(i) => {
                let v = nth(self.vcpus.clone(), i).unwrap();
                self.on(v, |h, now, v, out| {
                    h.unblock(now, v, out);
                });
            }
            Op::Pause(i) => {
                let v = nth(self.vcpus.clone(), i).unwrap();
                self.on(v, |h, now, v, out| h.pause(now, v, out));
            }
            Op::Unpause(i) => {
                let v = nth(self.vcpus.clone(), i).unwrap();
                self.on(v, |h, now, v, out| h.unpause(now, v, out));
            }
            Op::Pass(i) => {
                if let Some(p) = nth(self.asked.resched.difference(&self.switching).copied(), i) {
                    self.pass(p);
                }
            }
            Op::Saved(i) => {
                if let Some(p) = nth(self.switching.iter().copied(), i) {
                    self.saved(p);
                }
            }
            Op::Time(us) => {
                let next = self.asked.next().unwrap_or(Nanos::MAX);
                self.now = (self.now + i64::from(us) * Nanos::US).min(next.max(self.now));
                self.due();
            }
            Op::Affinity(i, mask) => {
                let v = nth(self.vcpus.clone(), i).unwrap();
                let affinity = Affinity::hard((0..pcpus).filter(|p| mask >> p & 1 == 1));
                self.on(v, |h, now, v, out| {
                    // Refused if the mask misses the pool.
                    let _ = h.set_affinity(now, v, affinity, out);
                });
            }
            Op::MovePcpu(p, to) => {
                let to = nth(self.ids.clone(), to).unwrap();
                let _ = self.move_pcpu(p as u32 % pcpus, to);
            }
            Op::MoveDomain(d, to) => {
                let to = nth(self.ids.clone(), to).unwrap();
                let d = nth(self.domains.clone(), d).unwrap();
                let _ = self.move_domain(d, to);
            }
            Op::NewVcpu(i) => {
                let d = nth(self.domains.clone(), i).unwrap();
                if self.vcpus.len() < 20
                    && let Ok(v) =
                        self.call(|p, now, out| p.create_vcpu(now, d, Affinity::any(), out))
                {
                    self.vcpus.push(v);
                    self.on(v, |h, now, v, out| h.up(now, v, out));
                }
            }
            Op::Remove(i) => {
                let v = nth(self.vcpus.clone(), i).unwrap();
                self.on(v, |h, now, v, out| {
                    // Refused while it is on a pCPU.
                    let _ = h.remove_vcpu(now, v, out);
                });
            }
        }
        self.pools.is_valid().unwrap_or_else(|broken| panic!("after {op:?}: {broken}"));
    }

    fn pcpus(&self) -> u32 {
        self.pools.hypervisor(PoolId(0)).unwrap().machine().pcpus()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// T8 and T9: whatever moves, and whenever, each pool keeps its invariants, no vCPU runs on a
    /// pCPU of another pool, and every requested move is complete once all passes are made.
    #[test]
    fn random_moves_keep_every_invariant_and_repeat_exactly(
        names in proptest::collection::vec(
            proptest::sample::select(schedulers().iter().map(|s| s.name).collect::<Vec<_>>()),
            2..=3,
        ),
        topology in (1..=2u32, 1..=3u32, 1..=2u32).prop_map(|(sockets, cores_per_socket, threads_per_core)| {
            Topology { sockets, cores_per_socket, threads_per_core }
        }),
        ops in proptest::collection::vec(op(), 1..200),
    ) {
        let run = || {
            let mut w = World::new(topology, &names);
            for _ in 0..3 {
                w.domain(PoolId(0), 2);
            }
            ops.iter().for_each(|op| w.step(op));
            w.settle();
            for p in (0..w.pcpus()).map(PcpuId) {
                assert_eq!(w.pools.pool_of(p).1, None, "{p:?} has arrived");
            }
            for d in &w.domains {
                assert_eq!(w.pools.pool_of_domain(*d).1, None, "{d:?} has arrived");
            }
            w.log
        };
        prop_assert_eq!(run(), run());
    }
}
