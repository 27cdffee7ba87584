//! Equal vCPUs, with ties on purpose: do they get equal shares?

use super::Failure;
use super::world::World;
use crate::affinity::Affinity;
use crate::scheduler::{DomainParams, Scheduler};
use crate::time::Nanos;
use crate::topology::Topology;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Equal vCPUs that compute for ever. All have the default parameters, come up at one instant, and so
/// have equal weights, periods and deadlines: ties are the rule, as on real hosts. Random loads
/// rarely have any, and a scheduler that always breaks them in one way starves a vCPU.
///
/// ```
/// use overspin_sched::{Nanos, Params, Topology, conformance::Equals, make};
///
/// let five = Equals { vcpus: 5, ..Equals::on(Topology::flat(1)) };
/// let shares = five.run(make("rr", &Params::default()).unwrap())?;
/// // A quantum is 10 ms, so each vCPU has two turns in any 100 ms.
/// assert_eq!(shares.ran, [(Nanos::ms(20), Nanos::ms(20)); 5]);
/// # Ok::<(), overspin_sched::conformance::Failure>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Equals {
    /// The machine.
    pub topology: Topology,
    /// Number of vCPUs, each in a domain of its own.
    pub vcpus: u32,
    /// When they come up, in ns. Timers that begin at 0 may then be in phase with them, or not.
    pub start: Nanos,
    /// Time before the first window, in ns.
    pub warmup: Nanos,
    /// The length of a window, in ns. Windows begin at every millisecond.
    pub window: Nanos,
    /// Time after the warm-up in which windows lie, in ns.
    pub time: Nanos,
}

/// The run times of equal vCPUs in all windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// For each vCPU, its least and its greatest run time in any window, in ns.
    pub ran: Vec<(Nanos, Nanos)>,
    /// A window divided equally, in ns; at most the window.
    pub fair: Nanos,
}

impl Shares {
    /// How far the run time of any vCPU in any window is from an equal one, in ns.
    pub fn error(&self) -> Nanos {
        let off = |(least, most): &(Nanos, Nanos)| (self.fair - *least).max(*most - self.fair);
        self.ran.iter().map(off).max().unwrap_or_default()
    }
}

impl Equals {
    /// Three vCPUs for each two pCPUs, at 0; windows of 100 ms during 1 s after 1 s.
    pub fn on(topology: Topology) -> Self {
        let vcpus = topology.pcpus() * 3 / 2 + 1;
        let (warmup, window, time) = (Nanos::sec(1), Nanos::ms(100), Nanos::sec(1));
        Self { topology, vcpus, start: Nanos::ZERO, warmup, window, time }
    }

    /// Runs the vCPUs under a new scheduler. All other checks of the suite are made too.
    ///
    /// # Errors
    /// The first rule of the contract that was broken.
    ///
    /// # Panics
    /// If the scheduler does, or if [`Topology::check`] refuses the topology.
    pub fn run(&self, scheduler: Box<dyn Scheduler>) -> Result<Shares, Failure> {
        let mut world = World::empty(self.topology, 0, scheduler);
        let result = self.shares(&mut world);
        result.map_err(|broken| Failure { seed: 0, broken, calls: world.last_calls() })
    }

    fn shares(&self, world: &mut World) -> Result<Shares, String> {
        for _ in 0..self.vcpus {
            let created = world.h.create_domain(DomainParams::default());
            let d = created.map_err(|e| e.to_string())?;
            let any = Affinity::any();
            let v = world.call("create a vCPU", |h, now, out| h.create_vcpu(now, d, any, out));
            world.vcpus.extend(v);
        }
        world.advance(self.start)?;
        for v in world.vcpus.clone() {
            world.call("up", |h, now, out| h.up(now, v, out));
        }
        world.settle()?;
        world.advance(world.now + self.warmup)?;
        let fair = self.window * i64::from(self.topology.pcpus()) / i64::from(self.vcpus);
        let fair = fair.min(self.window);
        let ran = alloc::vec![(Nanos::MAX, Nanos::ZERO); self.vcpus as usize];
        let mut shares = Shares { ran, fair };
        // Run times up to each millisecond of the last window.
        let mut past: VecDeque<Vec<Nanos>> = VecDeque::new();
        let end = world.now + self.time;
        while world.now <= end {
            let now = world.now;
            let running = |v| world.h.run_times(v, now).running;
            let so_far: Vec<_> = world.vcpus.iter().map(|v| running(*v)).collect();
            if past.len() as i64 * Nanos::MS == self.window
                && let Some(before) = past.pop_front()
            {
                for ((now, before), (least, most)) in so_far.iter().zip(before).zip(&mut shares.ran)
                {
                    let ran = *now - before;
                    (*least, *most) = ((*least).min(ran), (*most).max(ran));
                }
            }
            past.push_back(so_far);
            world.advance(now + Nanos::MS)?;
        }
        Ok(shares)
    }
}
