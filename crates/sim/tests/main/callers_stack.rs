//! Code from outside on the caller's stack: `overspin_sim::on_callers_stack`.

use crate::common::{domain, host, scenario};
use overspin_scenario::keys::Section;
use overspin_scenario::{Parameters, Picos, SEC, Workload};
use overspin_sim::{Simulator, on_callers_stack};
use overspin_workload::{Env, Kinds, Load, Mode, Start, WorkloadInfo};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Two tasks that do this at each of three steps.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Steps {
    what: u64,
}

const NOTHING: u64 = 0;
const DEEP: u64 = 1;
const FAIL: u64 = 2;
const RUN_ANOTHER: u64 = 3;

impl Parameters for Steps {
    const KIND: &'static str = "steps";
}

const KEYS: Section = Section { heading: "steps", doc: "Steps.", keys: &[] };
const INFO: WorkloadInfo = WorkloadInfo::of::<Steps>("steps", "a test", &KEYS);

impl Load for Steps {
    fn is_endless(&self) -> bool {
        false
    }

    fn most_tasks(&self, _vcpus: u32) -> u64 {
        2
    }

    fn start(&self, _vcpus: u32) -> Vec<Start> {
        let what = self.what;
        let one = |i: u32| Start {
            name: format!("steps{i}"),
            vcpu: Some(i),
            program: Box::new(move |env| run(env, i, what)),
        };
        (0..2).map(one).collect()
    }
}

fn run(env: &dyn Env, task: u32, what: u64) {
    for step in 0..3_u32 {
        env.compute(Picos::us(10), Mode::User);
        let answer = match what {
            NOTHING => step,
            // A task's own stack has 64 KiB.
            DEEP => {
                assert_eq!(on_callers_stack(|| deep(1 << 20)), 1);
                step
            }
            FAIL if task == 1 && step == 1 => {
                on_callers_stack(|| resume_unwind(Box::new("the end of this run")))
            }
            RUN_ANOTHER => on_callers_stack(move || {
                let inner = simulated(NOTHING);
                assert_eq!(inner.domains[0].tasks[0].items, 3);
                step
            }),
            _ => step,
        };
        assert_eq!(answer, step);
        env.item_done();
    }
}

/// Uses this many bytes of stack.
fn deep(bytes: usize) -> usize {
    let part = std::hint::black_box([1_u8; 4096]);
    if bytes <= part.len() { 1 } else { deep(bytes - part.len()) * usize::from(part[7]) }
}

fn simulated(what: u64) -> overspin_scenario::Outcome {
    let workload = Workload::from(Steps { what });
    let scenario = scenario(host(1, "rr"), vec![domain(2, "ticket", workload)], SEC);
    let simulator = Simulator::new().with_workloads(Kinds::builtin().with(INFO));
    overspin_host::run(&simulator, &scenario, 1, &mut (), &()).unwrap()
}

#[test]
fn it_has_room_for_megabytes_and_changes_nothing() {
    assert_eq!(simulated(DEEP), simulated(NOTHING));
    assert_eq!(on_callers_stack(|| deep(1 << 20)), 1, "outside a run it is a plain call");
}

/// The other task is suspended in the middle of its program, and is unwound as well.
#[test]
fn a_value_that_it_unwinds_with_reaches_the_caller_of_the_run() {
    let ended = catch_unwind(AssertUnwindSafe(|| simulated(FAIL))).unwrap_err();
    assert_eq!(ended.downcast_ref::<&str>(), Some(&"the end of this run"));
    assert_eq!(simulated(NOTHING), simulated(DEEP), "the thread can run another simulation");
}

#[test]
fn it_is_outside_and_may_run_another_simulation() {
    assert_eq!(simulated(RUN_ANOTHER), simulated(NOTHING));
}
