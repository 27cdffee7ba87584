//! Preemption notification: a guest that counts, and one that faults pages, beside a domain that answers
//! pings at a rate. Runs are with and without windows before preemptions, and under other hosts.

mod measure;
mod report;
pub(crate) mod samples;

use super::Along;
use super::Kind;
use super::file::{self, Head};
use crate::{Found, Progress, ReproduceError, Settings, on_all_threads, raw};
use measure::{Measured, NotificationSample};
use overspin_claims::Vocabulary;
use overspin_located::LocatedError;
use overspin_runs::scenario_file::tree::Document;
use overspin_scenario::{
    Domain, NotificationProtocol, NotifiedGuests, PauseLoopExiting, Picos, PreemptionNotification,
    Scenario,
};
use overspin_workload::{BurnWait, Count, Pft, Ping};
use serde::{Deserialize, Serialize};

/// The work of the guest under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// Counts, on one vCPU.
    Count,
    /// Faults pages, on several.
    Pft,
}

/// The host's help for a vCPU that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Help {
    /// Nothing.
    None,
    /// An upcall to guests with several vCPUs before each preemption.
    Smp,
    /// An upcall to all guests.
    All,
    /// A window for guests with several vCPUs if they hold a lock.
    Deferral,
    /// A spinning vCPU exits, and its preempted sibling runs; under schedulers without directed yields, this
    /// is a plain yield.
    DirectedYield,
}

/// The load of the domain that preempts the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Answers pings requested at this rate; the pinging machine leaves whole units of its resolution between
    /// them.
    Pings(u32),
    /// Answers pings from a machine that keeps the rate exactly.
    ExactPings(u32),
    /// Computes all the time.
    Busy,
}

impl Load {
    fn rate(self) -> Option<u32> {
        match self {
            Load::Pings(rate) | Load::ExactPings(rate) => Some(rate),
            Load::Busy => None,
        }
    }
}

/// The parameters that the experiment varies.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Requested rates per second, ascending.
    pub rates: Vec<u32>,
    /// Schedulers in the comparison with today's hosts.
    pub hosts: Vec<String>,
    /// Rates of that comparison.
    pub host_rates: Vec<u32>,
}

/// One configuration.
#[derive(Clone, Debug)]
struct Case {
    test: Test,
    host: String,
    help: Help,
    load: Load,
}

/// An experiment on the costs and savings of windows before preemptions.
#[derive(Clone, Debug)]
pub struct Notification {
    /// The part that all kinds have. Its scenario has three domains: one each runs `count`, `pft` and `ping`;
    /// a run has one of the first two. Its host grants the windows of 2005.
    pub head: Head,
    /// The parameters that the experiment varies.
    pub sweep: Sweep,
    windows: PreemptionNotification,
}

impl Notification {
    pub(super) fn parse(document: &Document, text: &str) -> Result<Self, LocatedError> {
        let (head, sweep): (Head, Sweep) = file::read(document, text)?;
        let fail =
            |key: &str, message: String, help: &str| file::fail(document, key, message, help);
        for name in ["count", "pft", "ping"] {
            let runs = |d: &&Domain| d.workload.0.iter().any(|w| w.kind == name);
            if head.scenario.domains.iter().filter(runs).count() != 1 {
                let message = format!("`{name}` must run in exactly one domain");
                return fail(
                    "scenario.domain",
                    message,
                    "use one domain for each of count, pft and ping",
                );
            }
        }
        let Some(windows) = head.scenario.host.preemption_notification.clone() else {
            let message = "the host has no `preemption_notification`".into();
            return fail(
                "scenario.host",
                message,
                "set it: runs without notification drop it themselves",
            );
        };
        if !sweep.rates.is_sorted() || !sweep.rates.contains(&0) {
            let message = "`rates` must ascend, and contain 0".into();
            return fail("setup.rates", message, "the figures compare with a guest without pings");
        }
        for (i, host) in sweep.hosts.iter().enumerate() {
            if overspin_runs::catalog::scheduler(host).is_none() {
                let key = format!("setup.hosts.{i}");
                let message = format!("there is no scheduler `{host}`");
                return fail(&key, message, "see `overspin list schedulers`");
            }
        }
        Ok(Self { head, sweep, windows })
    }

    /// The scheduler of the published runs.
    fn published_host(&self) -> &str {
        &self.head.scenario.host.scheduler
    }

    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut add = |test, host: &str, help, load| {
            cases.push(Case { test, host: host.to_owned(), help, load });
        };
        let then = self.published_host();
        for rate in &self.sweep.rates {
            for help in [Help::None, Help::All, Help::Smp] {
                add(Test::Count, then, help, Load::Pings(*rate));
            }
            for help in [Help::None, Help::Smp] {
                add(Test::Pft, then, help, Load::Pings(*rate));
                add(Test::Pft, then, help, Load::ExactPings(*rate));
            }
            for help in [Help::None, Help::All] {
                add(Test::Count, then, help, Load::ExactPings(*rate));
            }
        }
        for host in &self.sweep.hosts {
            for help in report::HELPS {
                for load in self.host_loads() {
                    // The published host with the published protocol was run above.
                    if host != then || load == Load::Busy || !matches!(help, Help::None | Help::Smp)
                    {
                        add(Test::Pft, host, help, load);
                    }
                }
            }
        }
        cases
    }

    fn host_loads(&self) -> impl Iterator<Item = Load> {
        let low_and_high = self.sweep.host_rates.iter().map(|r| Load::ExactPings(*r));
        low_and_high.chain([Load::Busy])
    }

    /// The scenario of a case, at 1/scale of the length of `count`; `pft` always has its full length.
    fn scenario(&self, case: &Case, scale: u32) -> Scenario {
        let mut s = self.head.scenario.clone();
        s.domains.retain(|d| {
            (case.test == Test::Count || d.workload.get::<Count>().is_none())
                && (case.test == Test::Pft || d.workload.get::<Pft>().is_none())
        });
        for d in &mut s.domains {
            d.workload.edit(|count: &mut Count| count.to /= u64::from(scale));
            let is_ping = d.workload.edit(|ping: &mut Ping| match case.load {
                Load::Pings(rate) => ping.rate = rate,
                Load::ExactPings(rate) => (ping.rate, ping.resolution) = (rate, Picos::ZERO),
                Load::Busy => {}
            });
            if is_ping && case.load == Load::Busy {
                d.workload = BurnWait::default().into();
            }
        }
        s.host.scheduler.clone_from(&case.host);
        let with = |guests, protocol| {
            Some(PreemptionNotification { guests, protocol, ..self.windows.clone() })
        };
        s.host.preemption_notification = match case.help {
            Help::None | Help::DirectedYield => None,
            Help::Smp => with(NotifiedGuests::Smp, NotificationProtocol::Upcall),
            Help::All => with(NotifiedGuests::All, NotificationProtocol::Upcall),
            Help::Deferral => with(NotifiedGuests::Smp, NotificationProtocol::Deferral),
        };
        if case.help == Help::DirectedYield {
            s.host.pause_loop_exiting = Some(PauseLoopExiting::default());
            s.host.directed_yield = true;
        }
        s
    }
}

impl Kind for Notification {
    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    fn vocabulary(&self) -> Vocabulary {
        samples::vocabulary(self)
    }

    fn picture(&self) -> (&'static str, &'static str) {
        ("faults_per_wall_s [1/s]", "faults a wall second")
    }

    fn along(&self) -> &'static [Along] {
        const RATE: Along = Along {
            metrics: &[],
            only: &[],
            words: 5,
            x: 4,
            title: "requests of the other domain [1/s]",
            plots: &[1],
        };
        const PFT: Along = Along {
            metrics: &[("faults", "page faults")],
            only: &[(0, "pft"), (3, "pings")],
            ..RATE
        };
        const COUNT: Along = Along {
            metrics: &[("elapsed", "time to count")],
            only: &[(0, "count"), (3, "pings")],
            ..RATE
        };
        &[PFT, COUNT]
    }

    fn run(&self, settings: Settings<'_>, progress: Progress<'_>) -> Result<Found, ReproduceError> {
        let (scale, seeds) = (settings.scale(&self.head), settings.seeds(&self.head));
        let jobs: Vec<_> = self
            .cases()
            .into_iter()
            .flat_map(|c| seeds.iter().map(move |s| (c.clone(), *s)))
            .collect();
        let runs = on_all_threads(jobs, settings.threads, progress, |(case, seed)| {
            let scenario = self.scenario(&case, scale);
            let outcome = settings.simulate(&scenario, seed, || format!("{case:?}"))?;
            Ok(NotificationSample::of(&case, seed, scale, &outcome))
        })?;
        Ok(assemble(self, &runs))
    }
}

/// Assembles the results.
fn assemble(experiment: &Notification, runs: &[NotificationSample]) -> Found {
    let measured = Measured { experiment, runs };
    Found {
        limit_s: None,
        samples: samples::samples(runs),
        runs: raw(runs),
        details: report::blocks(&measured),
    }
}

#[cfg(test)]
mod tests;
