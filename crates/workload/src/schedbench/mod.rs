//! Schedbench's worker: how much work a vCPU gets done, and how late it wakes.
//!
//! A worker serves a queue of items in the order in which they are due. An item burns its operations and is
//! queued again: a `burnwait` item some time after its work is done, a `deadline` item one period after it
//! was due. Several items are thus several independent timers served by one loop, and an item that falls due
//! while another burns is late.

mod args;

pub use args::{WorkerArgs, WorkerError};

use crate::{Env, Fault, Load, Mode, Program, Start, WorkloadInfo, threads};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use overspin_scenario::keys::{Absent, Kind, Section, integer, key, time};
use overspin_scenario::{LONGEST, MS, Parameters, Picos, Tree, Value, WorkerReport};
use serde::{Deserialize, Serialize};

/// A schedbench worker: one loop on each vCPU that serves items in the order of their times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedbench {
    /// The items, all due at the start.
    pub items: Vec<BenchItem>,
    /// Time between two reports.
    pub report_interval: Picos,
}

/// Something that a schedbench worker does again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchItem {
    /// Its work, in thousands of operations.
    pub kops: u64,
    /// CPU time that this takes at full speed.
    pub burn: Picos,
    /// When it is due again.
    pub again: Again,
}

/// When an item is due again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Again {
    /// This long after its work is done.
    After(Picos),
    /// This long after it was due; its work must be done by then (its deadline).
    Every(Picos),
}

/// A file has the worker's command line, as in plans.
const KEYS: Section = Section {
    heading: "[domain.workload] with kind = \"schedbench\"",
    doc: "A schedbench worker on each vCPU: timers that burn and wait.",
    keys: &[
        key(
            "worker",
            Kind::Text,
            Absent::Required,
            "Its items, as in a plan: `burnwait KOPS WAIT_NS ...`, `deadline KOPS PERIOD_NS ...`.",
        ),
        key(
            "rate",
            integer(1, 1_000_000),
            Absent::Is("1000"),
            "Operations in a CPU second, in millions.",
        ),
        key("report_interval", time(MS, LONGEST), Absent::Is("1s"), "Time between two reports."),
    ],
};

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<Schedbench>(
    "schedbench's worker: timers that burn and wait, with throughput and lateness reported",
    "schedbench (2016)",
    &KEYS,
)
.lowered_by(lower);

impl Parameters for Schedbench {
    const KIND: &'static str = "schedbench";
}

/// Turns `worker` and `rate` into items.
fn lower(tree: &mut Tree) -> Result<(), Fault> {
    let (worker, rate) = (tree.remove("worker"), tree.remove("rate"));
    let text = worker.as_ref().and_then(Value::as_str).unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    let worker = WorkerArgs::parse(&words).map_err(|error| {
        let message = error.message;
        Fault::new("worker", message, "for example \"burnwait 70 200000 10 300000\"")
    })?;
    let rate = rate.as_ref().and_then(Value::as_u64).and_then(|r| u32::try_from(r).ok());
    let items = worker.workload(rate.unwrap_or(1)).items;
    if let Ok(items) = serde_json::to_value(items) {
        tree.insert("items".into(), items);
    }
    Ok(())
}

impl Load for Schedbench {
    fn check(&self) -> Result<(), Fault> {
        let fault = |message: String, help: &str| Err(Fault::new("worker", message, help));
        for item in &self.items {
            let (Again::After(wait) | Again::Every(wait)) = item.again;
            if let Some(time) = [item.burn, wait].into_iter().find(|time| *time > LONGEST) {
                let message = format!("an item takes {time}");
                return fault(message, "a time is at most 1000h");
            }
            // A deadline in the past would make the item due for ever without a sleep: a hog. If it also had
            // no work, time would stand still.
            if item.burn == Picos::ZERO {
                let message = "an item burns nothing: time would stand still".into();
                return fault(message, "give each item some work");
            }
        }
        Ok(())
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn most_tasks(&self, vcpus: u32) -> u64 {
        vcpus.into()
    }

    fn start(&self, vcpus: u32) -> Vec<Start> {
        threads::start("worker", 0, vcpus, |_| {
            let w = self.clone();
            let program: Program = Box::new(move |env| serve(&w, env));
            program
        })
    }
}

/// Once all machines are up, a tool starts their workers one after another, within this time.
const START_WITHIN: Picos = MS;

fn serve(w: &Schedbench, env: &dyn Env) {
    let told = env.all_up() + env.random(0).time_below(START_WITHIN);
    env.sleep(told.saturating_sub(env.now()));
    let start = env.now();
    // With few items, a scan is as fast as a heap, and it serves equal times in the order of the list.
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
            so_far.max_delta = Picos::ZERO;
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
