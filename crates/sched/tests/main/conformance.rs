//! Every scheduler passes the conformance suite, and the suite finds seeded bugs.

use overspin_sched::conformance::{Failure, Report, Suite};
use overspin_sched::*;

/// The bounds that the suite checks at the end of a run: the time within which every computing vCPU
/// runs, and how long a pCPU may idle beside work. For at most 20 vCPUs on one pCPU.
fn promises(name: &str) -> (Option<Nanos>, Option<Nanos>) {
    match name {
        // 20 slices of 30 ms, and half as much again for debts; an idle pCPU looks for work only
        // when told.
        "credit" | "credit-2016" | "credit-2013" => (Some(Nanos::ms(1_000)), None),
        // An idle pCPU looks for work at the end of each slice, too.
        "credit-2008" => (Some(Nanos::ms(1_000)), Some(Nanos::ms(30))),
        // An epoch is 10 ms of credit for each; a vCPU may wait for the end of two. A pCPU takes
        // work only from its own runqueue until the load is balanced.
        "credit2" => (Some(Nanos::ms(600)), None),
        // A quantum of 10 ms for each.
        "rr" => (Some(Nanos::ms(250)), Some(Nanos::ZERO)),
        _ => (None, None),
    }
}

/// How many seeds to try: the environment variable `OVERSPIN_SEEDS`, or 15.
fn seeds() -> std::ops::Range<u64> {
    let wanted = std::env::var("OVERSPIN_SEEDS").ok();
    0..wanted.and_then(|n| n.parse().ok()).unwrap_or(15)
}

fn suite(name: &str, seed: u64) -> Suite {
    let (runs_within, idles_at_most) = promises(name);
    Suite { runs_within, idles_at_most, ..Suite::new(seed) }
}

#[test]
fn every_scheduler_keeps_the_contract() {
    for info in schedulers() {
        let mut switches = 0;
        for seed in seeds() {
            let result =
                suite(info.name, seed).run(|| make(info.name, &Params::default()).unwrap());
            let report = result.unwrap_or_else(|failure| panic!("{}: {failure}", info.name));
            assert!(report.calls > 500, "{}: {report:?}", info.name);
            switches += report.switches;
        }
        assert!(switches > 500, "{} did hardly anything: {switches} switches", info.name);
    }
}

/// Quotas in small and large slices, with and without returns, for all vCPUs of a domain.
#[test]
fn linux_hosts_keep_the_contract_with_any_quota() {
    for name in ["cfs", "eevdf", "eevdf-6.18"] {
        for (i, slice) in
            [Nanos::us(100), Nanos::MS, Nanos::ms(5), Nanos::ms(50)].iter().enumerate()
        {
            let params = Params::default()
                .with("bandwidth_slice", ParamValue::Time(*slice))
                .with("bandwidth_period", ParamValue::Time(Nanos::ms([10, 100][i % 2])))
                .with("bandwidth_return", ParamValue::Flag(i < 3));
            for seed in seeds() {
                let result = suite(name, seed).run(|| make(name, &params).unwrap());
                result.unwrap_or_else(|failure| panic!("{name}, {slice:?}: {failure}"));
            }
        }
    }
}

/// All arrangements of runqueues of credit2, with and without `as_is` and the options for threads of a core.
#[test]
fn credit2_keeps_the_contract_with_any_parameters() {
    for (i, word) in ["cpu", "core", "socket", "node", "all"].iter().enumerate() {
        let params = Params::default()
            .with("runqueue", ParamValue::Word((*word).into()))
            .with("as_is", ParamValue::Flag(i % 2 == 0))
            .with("max_pcpus_per_runqueue", ParamValue::Number(1 + 2 * i as i64))
            .with("smt_power_savings", ParamValue::Flag(i % 2 == 1))
            .with("smt_charge", ParamValue::Number([1000, 455, 620][i % 3]))
            .with("smt_space", ParamValue::Flag(i != 2));
        for seed in 100..130 {
            // One runqueue for all pCPUs lets none idle beside work.
            let idles_at_most = (*word == "all").then_some(Nanos::ZERO);
            let suite = Suite { idles_at_most, ..Suite::new(seed) };
            let result = suite.run(|| make("credit2", &params).unwrap());
            result.unwrap_or_else(|failure| panic!("{word}: {failure}"));
        }
    }
}

/// A mistake in the scheduler below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    IgnoresAffinity,
    PicksAnywhere,
    QueuesTwice,
    KeepsSleepers,
    LosesWhatLeaves,
    ForgetsHome,
    NeverTells,
    NeverEnds,
    Drifts,
    SetsSlices,
}

/// First come, first served, with a quantum; correct except for its bug.
#[derive(Debug)]
struct Fifo {
    bug: Bug,
    queue: Vec<VcpuId>,
    /// Only `Bug::Drifts` uses this: a state that outlives the object.
    drift: Nanos,
}

impl Fifo {
    fn tell(&self, cx: &mut Context<'_>, v: VcpuId) {
        if self.bug != Bug::NeverTells {
            let idle = cx.affinity(v).hard().iter().find(|p| cx.current(*p).is_none());
            idle.into_iter().for_each(|p| cx.resched(p));
        }
    }
}

impl Scheduler for Fifo {
    fn name(&self) -> &'static str {
        "fifo with a bug"
    }

    fn start(&mut self, _cx: &mut Context<'_>) {}

    fn create_domain(&mut self, _d: DomainId, _params: DomainParams) {}

    fn set_domain(&mut self, _cx: &mut Context<'_>, _d: DomainId, _params: DomainParams) {}

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let p = self.pick(cx, v);
        cx.set_home(v, p);
    }

    fn remove(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if self.bug == Bug::QueuesTwice || !self.queue.contains(&v) && !cx.is_current(v) {
            self.queue.push(v);
            self.tell(cx, v);
        }
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_current(v) {
            let p = cx.home(v);
            cx.resched(p);
        } else if self.bug != Bug::KeepsSleepers {
            self.queue.retain(|x| *x != v);
        }
    }

    fn yield_now(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        match self.bug {
            Bug::PicksAnywhere => PcpuId(0),
            _ => cx.affinity(v).hard().toc(cx.home(v)).unwrap_or(PcpuId(0)),
        }
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let current = cx.current(p);
        if let Some(v) = current.filter(|v| cx.is_runnable(*v) && self.bug != Bug::LosesWhatLeaves)
        {
            self.queue.push(v);
        }
        let fits = |v: &VcpuId| {
            let allowed = cx.affinity(*v).hard().contains(p) || self.bug == Bug::IgnoresAffinity;
            allowed && (!cx.is_running(*v) || current == Some(*v))
        };
        let next = self.queue.iter().position(fits).map(|i| self.queue.remove(i));
        if let Some(v) = next.filter(|_| self.bug != Bug::ForgetsHome) {
            cx.set_home(v, p);
        }
        if self.bug == Bug::NeverEnds {
            cx.resched(p);
        }
        if self.bug == Bug::SetsSlices {
            cx.set_timer(TimerId::Slice(p), cx.now() + Nanos::MS);
        }
        let quantum =
            if self.bug == Bug::Drifts { Nanos::ms(10) + self.drift } else { Nanos::ms(10) };
        Decision { next, slice: next.map(|_| quantum) }
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

/// The first failure among some seeds, or else the report of the last run.
fn first_failure(bug: Bug) -> Result<Report, Failure> {
    let made = std::cell::Cell::new(0);
    let mut last = Report { calls: 0, switches: 0, digest: 0 };
    for seed in 0..20 {
        let suite = Suite {
            runs_within: Some(Nanos::ms(400)),
            idles_at_most: Some(Nanos::ZERO),
            ..Suite::new(seed)
        };
        last = suite.run(|| {
            made.set(made.get() + 1);
            Box::new(Fifo { bug, queue: Vec::new(), drift: Nanos(made.get()) })
        })?;
    }
    Ok(last)
}

#[test]
fn seeded_bugs_are_found() {
    first_failure(Bug::None).unwrap_or_else(|failure| panic!("{failure}"));
    for (bug, rule) in [
        (Bug::IgnoresAffinity, "T8: a pass put"),
        (Bug::PicksAnywhere, "T8: pick put"),
        (Bug::QueuesTwice, "I6: a second wake-up"),
        (Bug::KeepsSleepers, "is queued and not runnable"),
        (Bug::LosesWhatLeaves, "T6: "),
        (Bug::ForgetsHome, "whose home is"),
        (Bug::NeverTells, "T2: "),
        (Bug::NeverEnds, "passes at one instant"),
        (Bug::Drifts, "T9: "),
        (Bug::SetsSlices, "set its slice timer"),
    ] {
        let failure = first_failure(bug).expect_err(&format!("{bug:?} went unnoticed"));
        let text = failure.to_string();
        // A lost vCPU starves or leaves a pCPU idle; the suite reports what it sees first.
        let lost = bug == Bug::LosesWhatLeaves || bug == Bug::NeverTells;
        let found = text.contains(rule) || lost && (text.contains("T2: ") || text.contains("T6: "));
        assert!(found, "{bug:?}: {text}");
        assert!(text.contains(&format!("seed {}", failure.seed)), "{text}");
    }
}
