//! Schedbench's worker: how much work a vCPU gets done, and how late it wakes.
//!
//! A worker serves a queue of items in the order in which they are due. An item burns its
//! operations, and is queued again: a `burnwait` item some time after its work is done, an item
//! with a deadline one period after it was due. Several items are thus several independent timers
//! served by one loop, and an item that is due while another burns is late.

use crate::{Env, Mode, Program, WorkloadInfo};
use overspin_scenario::{Again, MS, Picos, Schedbench, WorkerReport};

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "schedbench",
    brief: "schedbench's worker: timers that burn and wait, with throughput and lateness reported",
    source: "schedbench (2016)",
};

pub(crate) fn start(w: &Schedbench, vcpus: u32) -> Vec<(String, Option<u32>, Program)> {
    (0..vcpus)
        .map(|i| {
            let w = w.clone();
            let program: Program = Box::new(move |env| serve(&w, env));
            (format!("worker{i}"), Some(i), program)
        })
        .collect()
}

/// Workers are told to start when all machines are up, one after another, by a tool that is in no hurry.
const START_WITHIN: Picos = MS;

fn serve(w: &Schedbench, env: &dyn Env) {
    let told = env.all_up() + env.random(0).below(START_WITHIN);
    env.sleep(told.saturating_sub(env.now()));
    let start = env.now();
    // Few items: a scan is as fast as a heap, and equal times are served in order of the list.
    let mut due: Vec<Picos> = vec![start; w.items.len()];
    let mut so_far = WorkerReport::default();
    let mut next_report = start;
    while let Some(first) = (0..due.len()).min_by_key(|i| due[*i]) {
        let item = &w.items[first];
        env.sleep(due[first].saturating_sub(env.now()));
        let now = env.now();
        so_far.max_delta = so_far.max_delta.max(now.saturating_sub(due[first]));
        if now >= next_report {
            env.report(WorkerReport { at: now, cpu_time: env.cpu_time(), ..so_far });
            so_far.max_delta = 0;
            next_report += w.report_interval;
        }
        env.compute(item.burn, Mode::User);
        env.item_done();
        so_far.kops += item.kops;
        let done = env.now();
        match item.again {
            Again::After(wait) => due[first] = done.saturating_add(wait),
            Again::Every(period) => {
                due[first] = due[first].saturating_add(period);
                so_far.deadlines += 1;
                so_far.missed += u64::from(done > due[first]);
            }
        }
    }
}
