//! Another machine keeps a window of requests in flight, and the guest answers them. Each request is an
//! interrupt and then the work of a task.
//!
//! Neither the other machine nor the network is simulated. A request comes `round_trip` after the answer that
//! made room for it in the window, whatever the load; the first requests come together. So a guest that has
//! its CPU to itself answers in a second the lesser of `window / (round_trip + interrupt + service)` and `1 /
//! (interrupt + service)`: the first if it waits for requests, the second if requests wait for it. The effect
//! of a hypervisor shows as latency: the time from a request's arrival to its answer.
//!
//! A window of 1 is netperf's `TCP_RR`. A larger window resembles its burst mode, or a stream in which each
//! acknowledged segment lets another one go.

use crate::parameters::parameters;
use crate::{Env, Fault, Load, Mode, Program, Start, WorkloadInfo};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use overspin_scenario::{Parameters, Picos, defaults};

parameters! {
    Stream: pub(crate) KEYS at "[domain.workload] with kind = \"stream\"",
    "Answers to another machine that keeps a window of requests in flight: each is an interrupt and then \
     the work of a task." {
        window: u32 = integer(1, 100_000), Is("1"), "Requests in flight.";
        round_trip: Picos = COST, Is("100us"),
            "Time from an answer to the next request: the network and the other machine.";
        interrupt: Picos = COST, Is("5us"), "CPU time of the interrupt handler for a request.";
        service: Picos = COST, Is("20us"), "CPU time of the task for a request.";
        count: u64 = integer(0, u64::MAX), Is("0"), "Requests; 0 means until the limit.";
    }
}

defaults!(Stream {});

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<Stream>(
    "answers to a window of requests in flight: an interrupt and then a task for each",
    "netperf's TCP_RR, with and without bursts",
    &KEYS,
);

impl Parameters for Stream {
    const KIND: &'static str = "stream";
}

impl Load for Stream {
    fn check(&self) -> Result<(), Fault> {
        if self.round_trip > Picos::ZERO
            || self.interrupt > Picos::ZERO
            || self.service > Picos::ZERO
        {
            return Ok(());
        }
        let message = "a request takes no time: time would stand still";
        Err(Fault::new("service", message, "give `service`, `interrupt` or `round_trip` a time"))
    }

    fn is_endless(&self) -> bool {
        self.count == 0
    }

    fn has_devices(&self) -> bool {
        true
    }

    fn most_tasks(&self, _vcpus: u32) -> u64 {
        1
    }

    fn start(&self, _vcpus: u32) -> Vec<Start> {
        let w = self.clone();
        let program: Program = Box::new(move |env| w.serve(env));
        vec![Start { name: "stream".into(), vcpu: Some(0), program }]
    }
}

impl Stream {
    fn serve(&self, env: &dyn Env) {
        let arrived = env.semaphore(0);
        // When each request in flight comes or came, in the order of the answers.
        let mut due = VecDeque::new();
        let request = |due: &mut VecDeque<Picos>, after: Picos| {
            due.push_back(env.now() + after);
            env.interrupt_in(after, self.interrupt, arrived);
        };
        let mut left = if self.count == 0 { u64::MAX } else { self.count };
        // The other machine's clock is independent of this one's.
        let first = env.random(0).time_below(self.round_trip);
        let window = u64::from(self.window).min(left);
        (0..window).for_each(|_| request(&mut due, first));
        left -= window;
        while let Some(came) = due.pop_front() {
            env.down(arrived);
            env.compute(self.service, Mode::User);
            env.answered(came);
            if left > 0 {
                left -= u64::from(self.count > 0);
                request(&mut due, self.round_trip);
            }
        }
    }
}
