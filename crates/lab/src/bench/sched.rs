//! The cost of a scheduling decision: every scheduler on a small and on a large host, without the simulator
//! around it.

use super::{BenchResult, Limit, REPETITIONS};
use overspin_runs::catalog;
use overspin_runs::schedbench::{BenchFile, Machine, simulate};
use overspin_sched::{
    Action, Affinity, DomainParams, Hypervisor, Nanos, Params, PcpuId, SchedError, TimerId,
    Topology, VcpuId, make,
};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// pCPUs and vCPUs.
const SIZES: [(u32, u32); 2] = [(4, 16), (256, 4_096)];
/// Decisions in a repetition, unless they take too long.
const DECISIONS: u32 = 200_000;
/// Decisions between two looks at the clock, and how long a repetition may take.
const BATCH: u32 = 1_000;
const LONGEST: Duration = Duration::from_millis(100);
/// Nanoseconds that a decision of credit and credit2 may take at the small size.
const MOST: f64 = 150.0;
/// Time between two decisions of a pCPU.
const STEP: Nanos = Nanos::us(250);
/// Seconds that a 10 s run of 16a+16b may take.
const RUN: f64 = 0.2;

/// A host whose vCPUs run, sleep and wake. pCPUs decide in turn; at every fourth decision the running vCPU
/// goes to sleep, and once more than an eighth sleep, the first sleeper wakes.
struct Driver {
    hypervisor: Hypervisor,
    pcpus: u32,
    now: Nanos,
    /// When each tick, each slice and the accounting are due.
    timers: Vec<Nanos>,
    asleep: VecDeque<VcpuId>,
    may_sleep: usize,
    out: Vec<Action>,
}

impl Driver {
    fn new(scheduler: &str, pcpus: u32, vcpus: u32) -> Result<Self, SchedError> {
        let topology = Topology { sockets: 1, cores_per_socket: pcpus, threads_per_core: 1 };
        let mut driver = Self {
            hypervisor: Hypervisor::new(topology, make(scheduler, &Params::default())?),
            pcpus,
            now: Nanos::ZERO,
            timers: vec![Nanos::MAX; 2 * pcpus as usize + 1],
            asleep: VecDeque::new(),
            may_sleep: vcpus as usize / 8,
            out: Vec::new(),
        };
        driver.hypervisor.start(Nanos::ZERO, &mut driver.out);
        for _ in 0..vcpus / 4 {
            let domain = driver.hypervisor.create_domain(DomainParams { weight: 256, cap: 0 })?;
            for _ in 0..4 {
                let out = &mut driver.out;
                let v = driver.hypervisor.create_vcpu(driver.now, domain, Affinity::any(), out)?;
                driver.hypervisor.up(driver.now, v, out);
                driver.act();
            }
        }
        Ok(driver)
    }

    fn slot(&self, timer: TimerId) -> usize {
        match timer {
            TimerId::Tick(p) => p.0 as usize,
            TimerId::Slice(p) => (self.pcpus + p.0) as usize,
            TimerId::Accounting => 2 * self.pcpus as usize,
        }
    }

    /// Records timers. No pCPU is interrupted: each decides when its turn comes.
    fn act(&mut self) {
        let mut actions = std::mem::take(&mut self.out);
        for action in actions.drain(..) {
            match action {
                Action::SetTimer { timer, at } => {
                    let slot = self.slot(timer);
                    self.timers[slot] = at;
                }
                Action::StopTimer { timer } => {
                    let slot = self.slot(timer);
                    self.timers[slot] = Nanos::MAX;
                }
                Action::Resched(_) | Action::Throttle { .. } => {}
            }
        }
        self.out = actions;
    }

    fn fire(&mut self, timer: TimerId) {
        let slot = self.slot(timer);
        if self.timers[slot] <= self.now {
            self.timers[slot] = Nanos::MAX;
            self.hypervisor.timer(self.now, timer, &mut self.out);
            self.act();
        }
    }

    fn decide(&mut self, i: u32) {
        let p = PcpuId(i % self.pcpus);
        self.now += (STEP / i64::from(self.pcpus)).max(Nanos(1));
        self.hypervisor.set_executing(p);
        self.fire(TimerId::Accounting);
        self.fire(TimerId::Tick(p));
        self.fire(TimerId::Slice(p));
        if i % 4 == 3
            && let Some(v) = self.hypervisor.current(p)
        {
            self.hypervisor.block(self.now, v, &mut self.out);
            self.asleep.push_back(v);
        }
        if self.asleep.len() > self.may_sleep
            && let Some(v) = self.asleep.pop_front()
        {
            self.hypervisor.unblock(self.now, v, &mut self.out);
        }
        let switch = self.hypervisor.schedule(self.now, p, &mut self.out);
        if switch.prev != switch.next {
            self.hypervisor.context_saved(self.now, p, &mut self.out);
        }
        self.act();
    }
}

/// Nanoseconds that a decision takes.
fn repetition(driver: &mut Driver) -> f64 {
    let (begin, mut decided) = (Instant::now(), 0);
    while decided < DECISIONS && begin.elapsed() < LONGEST {
        (decided..decided + BATCH).for_each(|i| driver.decide(i));
        decided += BATCH;
    }
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(decided)
}

/// Benchmarks of the schedulers. `plan` and `machine` are those of the 2016 experiment. `progress` gets the repetitions
/// done and to do.
///
/// # Errors
/// If a scheduler or the plan is invalid, which would be a fault of this program.
pub fn sched(
    (plan, machine): (&BenchFile, &Machine),
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<BenchResult>, Box<dyn std::error::Error>> {
    let mut cases = Vec::new();
    for info in catalog::names().schedulers().iter() {
        for (pcpus, vcpus) in SIZES {
            cases.push((
                info.name,
                pcpus,
                vcpus,
                Driver::new(info.name, pcpus, vcpus)?,
                Vec::new(),
            ));
        }
    }
    let rounds = REPETITIONS * (cases.len() + 1);
    let (mut done, mut runs) = (0, Vec::new());
    for _ in 0..REPETITIONS {
        for (_, _, _, driver, samples) in &mut cases {
            samples.push(repetition(driver));
            done += 1;
            progress(done, rounds);
        }
        runs.push(schedbench_run(plan, machine)?);
        done += 1;
        progress(done, rounds);
    }
    let mut results: Vec<BenchResult> = cases
        .into_iter()
        .map(|(name, pcpus, vcpus, _, samples)| {
            let limit = match name {
                "credit" | "credit2" if pcpus == SIZES[0].0 => Limit::AtMost(MOST),
                _ => Limit::None,
            };
            let name = format!("{name}, {pcpus} pCPUs x {vcpus} vCPUs: a decision");
            BenchResult::of(name, samples, "ns", limit)
        })
        .collect();
    let name = "schedbench 16a+16b, 10 s, longest of credit and credit2";
    results.push(BenchResult::of(name.into(), runs, "s", Limit::AtMost(RUN)));
    Ok(results)
}

/// Wall seconds of the slower of the plan's 16a+16b runs.
fn schedbench_run(plan: &BenchFile, machine: &Machine) -> Result<f64, Box<dyn std::error::Error>> {
    let mut slowest: f64 = 0.0;
    for run in plan.runs.iter().filter(|r| r.label.starts_with("A 16")) {
        let begin = Instant::now();
        simulate(plan, run, machine, 1, None)?;
        slowest = slowest.max(begin.elapsed().as_secs_f64());
    }
    Ok(slowest)
}
