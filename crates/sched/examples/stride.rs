//! A scheduler of one's own: stride scheduling (Waldspurger and Weihl, MIT/LCS/TM-528, 1995).
//!
//! Each vCPU has a *pass*: its run time divided by its weight. Whoever has the least runs, for a
//! quantum. One queue serves all pCPUs. A vCPU that wakes starts at the least pass that runs, so
//! that sleeping earns nothing. `cargo run -p overspin-sched --example stride` has it go through the
//! conformance suite, puts it beside the built-in schedulers, and shows how two weights share a pCPU.

use overspin_sched::conformance::Suite;
use overspin_sched::*;
use std::error::Error;

const QUANTUM: Nanos = 5_000_000;

/// What the registry says of it: all that lists, scenarios and worlds need to know.
const STRIDE: SchedulerInfo =
    SchedulerInfo::new("stride", |params| Ok(Box::new(Stride::new(params))))
        .aliases(&["waldspurger"])
        .brief("whoever has run least by weight runs next, for a quantum")
        .source("Waldspurger and Weihl, MIT/LCS/TM-528, 1995")
        .work_conserving(true)
        .weights(true)
        .params(&[ParamInfo {
            key: "quantum",
            kind: ParamKind::Time { min: 100_000, max: 1_000_000_000 },
            default: "5 ms",
            doc: "What runs gives way after this long.",
        }]);

#[derive(Debug)]
struct Stride {
    quantum: Nanos,
    /// Weight of each domain.
    weights: Vec<u32>,
    /// Pass of each vCPU: ns at weight 1, times 65536.
    pass: Vec<u64>,
    /// Up to when the time of each vCPU is charged.
    charged: Vec<Nanos>,
    queue: Vec<VcpuId>,
    /// The largest pass that was ever dispatched: where those who slept begin.
    clock: u64,
}

fn i(v: VcpuId) -> usize {
    v.0 as usize
}

impl Stride {
    fn new(params: &Params) -> Self {
        Self {
            quantum: params.time("quantum").unwrap_or(QUANTUM),
            weights: Vec::new(),
            pass: Vec::new(),
            charged: Vec::new(),
            queue: Vec::new(),
            clock: 0,
        }
    }

    fn charge(&mut self, cx: &Context<'_>, v: VcpuId) {
        let ran = (cx.now() - self.charged[i(v)]).max(0) as u64;
        let weight = self.weights[cx.domain_of(v).0 as usize];
        self.pass[i(v)] += (ran << 16) / u64::from(weight);
        self.charged[i(v)] = cx.now();
    }

    /// Tells an idle pCPU that may run `v`, if there is one.
    fn tell(&self, cx: &mut Context<'_>, v: VcpuId) {
        let idle = cx.affinity(v).hard().iter().find(|p| cx.current(*p).is_none());
        idle.into_iter().for_each(|p| cx.resched(p));
    }
}

impl Scheduler for Stride {
    fn name(&self) -> &'static str {
        STRIDE.name
    }

    fn start(&mut self, _cx: &mut Context<'_>) {}

    fn create_domain(&mut self, _d: DomainId, params: DomainParams) {
        self.weights.push(params.weight);
    }

    fn set_domain(&mut self, _cx: &mut Context<'_>, d: DomainId, params: DomainParams) {
        self.weights[d.0 as usize] = params.weight;
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.pass.push(self.clock);
        self.charged.push(cx.now());
        let p = self.pick(cx, v);
        cx.set_home(v, p);
    }

    fn remove(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if !cx.is_current(v) && !self.queue.contains(&v) {
            self.pass[i(v)] = self.pass[i(v)].max(self.clock);
            self.queue.push(v);
            self.tell(cx, v);
        }
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.queue.retain(|x| *x != v);
        if cx.is_current(v) {
            let p = cx.home(v);
            cx.resched(p);
        }
    }

    fn yield_now(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        cx.affinity(v).hard().toc(cx.home(v)).unwrap_or(cx.home(v))
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let current = cx.current(p);
        if let Some(v) = current {
            self.charge(cx, v);
            if cx.is_runnable(v) {
                self.queue.push(v);
            }
        }
        let fits = |v: &VcpuId| {
            cx.affinity(*v).hard().contains(p) && (current == Some(*v) || !cx.is_running(*v))
        };
        let next = self.queue.iter().copied().filter(fits).min_by_key(|v| self.pass[i(*v)]);
        if let Some(v) = next {
            self.queue.retain(|x| *x != v);
            self.clock = self.clock.max(self.pass[i(v)]);
            self.charged[i(v)] = cx.now();
            cx.set_home(v, p);
        }
        Decision { next, slice: next.map(|_| self.quantum) }
    }

    fn context_saved(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if self.queue.contains(&v) {
            self.tell(cx, v);
        }
    }

    fn timer(&mut self, _cx: &mut Context<'_>, _timer: TimerId) {}

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        let asleep = self.queue.iter().find(|v| !machine.is_runnable(**v));
        asleep.map_or(Ok(()), |v| Err(format!("{v:?} is queued and not runnable")))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    for seed in 0..20 {
        let suite = Suite { idles_at_most: Some(0), ..Suite::new(seed) };
        suite.run(|| Box::new(Stride::new(&Params::default())))?;
    }
    let schedulers = Schedulers::builtin().with(STRIDE)?;
    let stride = schedulers.find("waldspurger")?;
    println!("{}: {}", stride.name, stride.brief);
    if let Err(error) = schedulers.find("strude") {
        println!("{error}");
    }
    let params = Params::default().with("quantum", ParamValue::Time(QUANTUM));
    let mut h = Hypervisor::new(Topology::flat(1), schedulers.make("stride", &params)?);
    let (mut now, mut actions) = (0, Vec::new());
    h.start(now, &mut actions);
    let vcpus = [256, 768].map(|weight| {
        let d = h.create_domain(DomainParams { weight, cap: 0 }).expect("a legal weight");
        let v = h.create_vcpu(now, d, Affinity::any(), &mut actions).expect("a domain that exists");
        h.up(now, v, &mut actions);
        v
    });
    while now < 1_000_000_000 {
        // One pCPU, no timers but slices: each pass lasts a quantum.
        h.schedule(now, PcpuId(0), &mut actions);
        h.context_saved(now, PcpuId(0), &mut actions);
        now += QUANTUM;
    }
    let ran = vcpus.map(|v| h.run_times(v, now).running / 1_000_000);
    println!("in a second, weights 256 and 768 ran {} and {} ms", ran[0], ran[1]);
    Ok(())
}
