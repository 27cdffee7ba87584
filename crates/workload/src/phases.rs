//! Tasks that go through phases: run, sleep, wait for a timer, yield, as rt-app describes them.
//!
//! The timers follow rt-app's relative mode: the first period of each begins with the thread (its `t_first`),
//! not where the thread first meets the timer, so `run 9500us, timer 10ms` and `timer 10ms, run 9500us` have
//! the same period and phase. If a period is over when the thread meets its timer, a new period begins there.
//!
//! Rounds may be aligned to a tick, as in programs that want to be asleep when a tick comes.

use crate::{Env, Fault, Load, Mode, Program, Start, Ticks, WorkloadInfo, threads};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use overspin_scenario::keys::{Absent, Kind, Section, integer, key, time};
use overspin_scenario::{LONGEST, Parameters, Picos, Tree, Value, parse_time, words};
use serde::{Deserialize, Serialize};

/// Threads that run, sleep and wait for timers in phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Threads; 0 means one on each vCPU.
    pub threads: u32,
    /// Phases, in their order.
    pub phases: Vec<Phase>,
    /// How often each thread goes through all of them; 0 means until the limit.
    pub count: u64,
    /// Delay of each thread's start; with `align`, delay of each round through the phases after a tick.
    pub start: Picos,
    /// Which tick each round waits for.
    pub align: Align,
}

words! {
    Align, "A tick that a thread may align to." {
        None = "none", "None.";
        GuestTick = "guest-tick", "The tick of its vCPU's kernel.";
        HostTick = "host-tick",
            "The tick of the hypervisor's scheduler, on the pCPU that its vCPU is on.";
    }
}

/// Steps that a thread repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// How often.
    pub times: u32,
    /// The steps.
    pub steps: Vec<Step>,
}

/// A step of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Uses this much CPU time.
    Run(Picos),
    /// Sleeps for this long.
    Sleep(Picos),
    /// Sleeps until this long after the timer's last expiry, or not at all if that time is over. The first
    /// period begins with the thread's first round.
    Timer(Picos),
    /// A yield to the hypervisor: the thread's vCPU gives up its pCPU and stays runnable.
    Yield,
}

/// In a file, phases are texts.
const KEYS: Section = Section {
    heading: "[domain.workload] with kind = \"phases\"",
    doc: "Threads that run, sleep, wait for timers and yield in phases, as rt-app describes them.",
    keys: &[
        key("threads", integer(0, 100_000), Absent::Is("0"), "Threads; 0 means one on each vCPU."),
        key(
            "phases",
            Kind::Texts,
            Absent::Required,
            "Phases: `run 10ms, sleep 5ms`, `timer 16ms` (until 16 ms after its last expiry, at first \
             after the thread's start), `yield` (the vCPU gives up its pCPU and stays runnable). A \
             repeat count may come first: `5 x run 1ms, timer 10ms`.",
        ),
        key(
            "count",
            integer(0, u64::MAX),
            Absent::Is("0"),
            "How often each thread goes through all phases; 0 means until the limit.",
        ),
        key(
            "start",
            time(Picos::ZERO, LONGEST),
            Absent::Is("0"),
            "Delay of each thread's start; with `align`, delay of each round after its tick.",
        ),
        key(
            "align",
            Kind::Choice(Align::WORDS),
            Absent::Is("none"),
            "Before each round through all phases, a thread sleeps until the next tick of its kernel, or \
             of the host's scheduler on the pCPU that it is on.",
        ),
    ],
};

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<Phases>(
    "threads that run, sleep and wait for timers in phases that repeat",
    "rt-app",
    &KEYS,
)
.lowered_by(lower);

impl Parameters for Phases {
    const KIND: &'static str = "phases";
}

/// Turns texts into phases.
fn lower(tree: &mut Tree) -> Result<(), Fault> {
    let Some(Value::Array(texts)) = tree.get("phases") else { return Ok(()) };
    let one = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        phase(text).map_err(|message| {
            let message = format!("\"{text}\": {message}");
            Fault::new("phases", message, "for example \"run 10ms, sleep 5ms\" or \"5 x run 1ms\"")
        })
    };
    let phases: Vec<Phase> = texts.iter().map(one).collect::<Result<_, _>>()?;
    if let Ok(phases) = serde_json::to_value(phases) {
        tree.insert("phases".into(), phases);
    }
    Ok(())
}

/// A phase: `[N x] STEP TIME, STEP TIME, ...`.
fn phase(text: &str) -> Result<Phase, String> {
    let (times, steps) = match text.split_once(" x ") {
        Some((times, steps)) => {
            let times = times.trim();
            let n = times.parse::<u32>().ok().filter(|n| *n > 0);
            (n.ok_or(format!("`{times}` is not a repeat count"))?, steps)
        }
        None => (1, text),
    };
    let step = |text: &str| {
        let text = text.trim();
        if text == "yield" {
            return Ok(Step::Yield);
        }
        let (what, time) = text.split_once(' ').ok_or(format!("`{text}` has no time"))?;
        let time = parse_time(time)?;
        match what {
            "run" => Ok(Step::Run(time)),
            "sleep" => Ok(Step::Sleep(time)),
            "timer" if time > Picos::ZERO => Ok(Step::Timer(time)),
            "timer" => Err("a timer needs a period".to_owned()),
            _ => Err(format!("`{what}` is not a step; steps are run, sleep, timer, yield")),
        }
    };
    Ok(Phase { times, steps: steps.split(',').map(step).collect::<Result<_, _>>()? })
}

impl Load for Phases {
    fn check(&self) -> Result<(), Fault> {
        let steps = || self.phases.iter().filter(|p| p.times > 0).flat_map(|p| &p.steps);
        let fault = |message: String, help: &str| Err(Fault::new("phases", message, help));
        for step in steps() {
            if let Step::Run(time) | Step::Sleep(time) | Step::Timer(time) = *step
                && time > LONGEST
            {
                let message = format!("a step takes {time}");
                return fault(message, "a time is at most 1000h");
            }
        }
        let passes = |step: &Step| match *step {
            Step::Run(time) | Step::Sleep(time) | Step::Timer(time) => time > Picos::ZERO,
            Step::Yield => false,
        };
        if !steps().any(passes) {
            let message = "no step takes time: time would stand still".into();
            return fault(message, "add a run, a sleep or a timer");
        }
        Ok(())
    }

    fn is_endless(&self) -> bool {
        self.count == 0
    }

    fn most_tasks(&self, vcpus: u32) -> u64 {
        threads::number(self.threads, vcpus).into()
    }

    fn ticks(&self) -> Option<Ticks> {
        match self.align {
            Align::None => None,
            Align::GuestTick => Some(Ticks::Guest),
            Align::HostTick => Some(Ticks::Host),
        }
    }

    fn start(&self, vcpus: u32) -> Vec<Start> {
        threads::start("task", self.threads, vcpus, |_| {
            let w = self.clone();
            let program: Program = Box::new(move |env| walk(&w, env));
            program
        })
    }
}

fn walk(w: &Phases, env: &dyn Env) {
    if w.align == Align::None {
        env.sleep(w.start);
    }
    // When each period ends next; phases share the timers of equal periods.
    let mut timers = Vec::new();
    let mut first = None;
    let mut rounds = 0;
    while w.count == 0 || rounds < w.count {
        wait_for_tick(w, env);
        let first = *first.get_or_insert(env.now());
        for phase in &w.phases {
            for _ in 0..phase.times {
                for step in &phase.steps {
                    take(*step, first, &mut timers, env);
                }
            }
        }
        env.item_done();
        rounds += 1;
    }
}

/// Sleeps until `start` after the next tick.
fn wait_for_tick(w: &Phases, env: &dyn Env) {
    let Some(ticks) = w.ticks() else { return };
    // A host's tick may stop while its pCPU idles, but then no task asks.
    if let Some(tick) = env.next_tick(ticks) {
        env.sleep(tick.saturating_add(w.start).saturating_sub(env.now()));
    }
}

fn take(step: Step, first: Picos, timers: &mut Vec<(Picos, Picos)>, env: &dyn Env) {
    match step {
        Step::Run(work) => env.compute(work, Mode::User),
        Step::Sleep(time) => env.sleep(time),
        Step::Yield => env.yield_vcpu(),
        Step::Timer(period) => {
            let at = timers.iter().position(|(p, _)| *p == period).unwrap_or_else(|| {
                timers.push((period, first));
                timers.len() - 1
            });
            let now = env.now();
            // A thread that is late does not make up for it: the next period begins now.
            timers[at].1 = timers[at].1.saturating_add(period).max(now);
            env.sleep(timers[at].1 - now);
        }
    }
}
