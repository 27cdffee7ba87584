//! Answers to the pings of another machine: an interrupt and a little work, at a rate.
//!
//! The other machine is not simulated. Its requests come by its clock or, if its `ping` leaves no time
//! between two requests, `round_trip` after each answer. The device is not simulated either: a request is a
//! timer interrupt of the guest.

use crate::parameters::parameters;
use crate::{Env, Fault, Load, Mode, Program, Start, WorkloadInfo};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use overspin_scenario::{Parameters, Picos, SEC};

parameters! {
    Ping: pub(crate) KEYS at "[domain.workload] with kind = \"ping\"",
    "Answers to the pings of another machine: interrupts at a rate." {
        rate: u32 = integer(0, 10_000_000), Required,
            "Requests a second that the other machine is told to send; 0 means none.";
        resolution: Picos = COST, Is("1ms"),
            "Its `ping` rounds the time between two requests down to a multiple of this; 0 means exact. \
             If that leaves 0, the next request comes `round_trip` after the answer to the last.";
        round_trip: Picos = COST, Is("100us"),
            "Time from an answer to the next request: the network and the other machine.";
        work: Picos = COST, Is("20us"), "CPU time from interrupt to answer.";
    }
}

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<Ping>(
    "answers to the pings of another machine: interrupts at a rate",
    "the I/O load of the preemption notification tests, xen-devel, May 2005; ping of iputils",
    &KEYS,
);

impl Parameters for Ping {
    const KIND: &'static str = "ping";
}

impl Load for Ping {
    fn check(&self) -> Result<(), Fault> {
        if self.rate == 0
            || self.work > Picos::ZERO
            || self.interval().unwrap_or(self.round_trip) > Picos::ZERO
        {
            return Ok(());
        }
        let message = "answers take no time: time would stand still";
        Err(Fault::new("work", message, "give `work` or `round_trip` a time"))
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn most_tasks(&self, _vcpus: u32) -> u64 {
        1
    }

    fn start(&self, _vcpus: u32) -> Vec<Start> {
        if self.rate == 0 {
            return Vec::new();
        }
        let w = self.clone();
        let program: Program = Box::new(move |env| w.run(env));
        vec![Start { name: "ping".into(), vcpu: Some(0), program }]
    }
}

impl Ping {
    /// Time between two requests; `None` if each request waits for the answer to the last, or if there are no
    /// requests.
    #[must_use]
    pub fn interval(&self) -> Option<Picos> {
        let asked = SEC.checked_div(self.rate.into())?;
        let cut =
            if self.resolution == Picos::ZERO { Picos::ZERO } else { asked % self.resolution };
        (asked > cut).then(|| asked - cut)
    }

    fn run(&self, env: &dyn Env) {
        let interval = self.interval();
        // The other machine's clock is independent of this one's.
        let mut due =
            env.now() + env.random(0).time_below(interval.unwrap_or(self.round_trip).max(Picos(1)));
        loop {
            env.sleep(due.saturating_sub(env.now()));
            env.compute(self.work, Mode::Kernel);
            env.item_done();
            due = match interval {
                Some(interval) => due + interval,
                None => env.now() + self.round_trip,
            };
        }
    }
}
