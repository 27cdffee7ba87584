//! Tasks that go through phases: run, sleep, wait for a timer, as rt-app describes them.

use crate::{Env, Mode, Program, WorkloadInfo};
use overspin_scenario::{Phases, Step};

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
    // The end of the period of each timer; phases share the timers of equal periods.
    let mut due = Vec::new();
    let mut rounds = 0;
    while w.count == 0 || rounds < w.count {
        for phase in &w.phases {
            for _ in 0..phase.times {
                for step in &phase.steps {
                    take(*step, &mut due, env);
                }
            }
        }
        env.item_done();
        rounds += 1;
    }
}

fn take(step: Step, due: &mut Vec<(u64, u64)>, env: &dyn Env) {
    match step {
        Step::Run(work) => env.compute(work, Mode::User),
        Step::Sleep(time) => env.sleep(time),
        Step::Timer(period) => {
            let now = env.now();
            let at = match due.iter().position(|(p, _)| *p == period) {
                Some(at) => at,
                None => {
                    due.push((period, now));
                    due.len() - 1
                }
            };
            // Who is late does not make up for it: the next period begins now.
            due[at].1 = due[at].1.saturating_add(period).max(now);
            env.sleep(due[at].1 - now);
        }
    }
}
