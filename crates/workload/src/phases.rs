//! Tasks that go through phases: run, sleep, wait for a timer, yield, as rt-app describes them.
//!
//! The timers follow rt-app's relative mode: the first period of each begins with the thread (its
//! `t_first`), not where the thread first meets the timer, so `run 9500us, timer 10ms` and
//! `timer 10ms, run 9500us` have the same period and phase. A period that is over when its timer is
//! met begins anew there.
//!
//! Rounds may be aligned to a tick, as programs are that mean to be asleep when one comes.

use crate::{Env, Mode, Program, Ticks, WorkloadInfo};
use overspin_scenario::{Align, Phases, Picos, Step};

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "phases",
    brief: "threads that run, sleep and wait for timers in phases that repeat",
    source: "rt-app",
};

pub(crate) fn start(w: &Phases, vcpus: u32) -> Vec<(String, Option<u32>, Program)> {
    let threads = if w.threads == 0 { vcpus } else { w.threads };
    (0..threads)
        .map(|i| {
            let w = w.clone();
            let program: Program = Box::new(move |env| walk(&w, env));
            (format!("task{i}"), Some(i % vcpus), program)
        })
        .collect()
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

/// Sleeps until the next tick, and for `start` on.
fn wait_for_tick(w: &Phases, env: &dyn Env) {
    let ticks = match w.align {
        Align::None => return,
        Align::GuestTick => Ticks::Guest,
        Align::HostTick => Ticks::Host,
    };
    // A host's tick may be stopped while its pCPU idles, but then nobody asks.
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
