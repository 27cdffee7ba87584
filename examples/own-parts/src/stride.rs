//! A scheduler from outside the tree: stride scheduling (Waldspurger and Weihl, MIT/LCS/TM-528, 1995).
//!
//! Each vCPU has a *pass*: its run time divided by its weight. The vCPU with the least pass runs, for a
//! quantum. One queue serves all pCPUs. A vCPU that wakes starts at the largest pass dispatched so far,
//! so that sleeping earns nothing.

use overspin_sched::{
    Context, Decision, DomainId, DomainParams, Machine, Nanos, ParamInfo, Params, PcpuId,
    Scheduler, SchedulerInfo, TimerId, VcpuId,
};

/// Its parameter: one declaration for files, lists and the scheduler itself.
pub const QUANTUM: ParamInfo = ParamInfo::time(
    "quantum",
    (Nanos::us(100), Nanos::SEC),
    Nanos::ms(5),
    "A vCPU gives way after running this long.",
);

/// The entry in the registry: all that lists, scenarios and worlds need to know.
pub const STRIDE: SchedulerInfo =
    SchedulerInfo::new("stride", &|params| Ok(Box::new(Stride::new(params))))
        .aliases(&["waldspurger"])
        .brief("the vCPU that has run least by weight runs next, for a quantum")
        .source("Waldspurger and Weihl, MIT/LCS/TM-528, 1995")
        .work_conserving(true)
        .weights(true)
        .params(&[QUANTUM]);

#[derive(Debug)]
pub struct Stride {
    quantum: Nanos,
    /// Weight of each domain.
    weights: Vec<u32>,
    /// Pass of each vCPU: ns at weight 1, times 65536.
    pass: Vec<u64>,
    /// The time up to which each vCPU is charged.
    charged: Vec<Nanos>,
    queue: Vec<VcpuId>,
    /// The largest pass dispatched so far. A vCPU that has slept begins here.
    clock: u64,
}

fn i(v: VcpuId) -> usize {
    v.0 as usize
}

impl Stride {
    pub fn new(params: &Params) -> Self {
        Self {
            quantum: QUANTUM.time_in(params),
            weights: Vec::new(),
            pass: Vec::new(),
            charged: Vec::new(),
            queue: Vec::new(),
            clock: 0,
        }
    }

    fn charge(&mut self, cx: &Context<'_>, v: VcpuId) {
        let ran = (cx.now() - self.charged[i(v)]).max(Nanos::ZERO).0 as u64;
        let weight = self.weights[cx.domain_of(v).0 as usize];
        self.pass[i(v)] += (ran << 16) / u64::from(weight);
        self.charged[i(v)] = cx.now();
    }

    /// Asks an idle pCPU that may run `v` to reschedule, if there is one.
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
