//! The world `linux`: scenarios whose guests are real Linux kernels, with the scenario's lock as their spinlock.
//!
//! Each domain is a machine of QEMU. Threads of its kernel do the sections of the workload `lock-loop` (`kernel.rs`), programs
//! do what has no locks (`programs.rs`); the kernel of this machine schedules the vCPUs. `docs/linux.md` says what it can do.
//!
//! ```text
//!   this process                               each guest
//!   boots all of them                          Ready
//!   Work(job), or Programs(scenario)           makes the threads, Done
//!   all are ready: Go                          the threads begin
//!   takes the accounts of the vCPUs' threads
//!   after the warm-up, and at the limit        Worked: all threads have ended
//!   Notes                                      what they noted of their acquisitions
//! ```

mod guests;
mod job;
mod kernel;
mod notes;
mod programs;
mod run;

use overspin_host::{Cancel, Ignored, Observer, Refused, Unhonoured, World};
use overspin_native::world::{INTEREST, cpus, refused_caps};
use overspin_scenario::{Outcome, Picos, Scenario};

use guests::{Made, refused_weights};
use job::{IGNORED, jobs};
use run::Run;

use crate::machine::in_brief;

/// The name of the world.
const NAME: &str = "linux";

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

impl World for Linux {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports(&self, scenario: &Scenario) -> Result<Vec<Unhonoured>, Refused> {
        jobs(scenario, 0)?;
        let mut ignored = Ignored::of(&IGNORED, scenario);
        ignored.extend(refused_caps(scenario));
        ignored.extend(refused_weights(scenario));
        Ok(ignored)
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
        cancel: &dyn Cancel,
    ) -> Result<Outcome, Refused> {
        let notes = if observer.interest().meets(INTEREST) { notes::MOST } else { 0 };
        let cpus = cpus(&scenario.host)?;
        let mut run = Run::new(scenario, seed, jobs(scenario, notes)?);
        let mut doubts = Vec::new();
        if scenario.limit > Picos::ZERO {
            let made = Made::here(scenario.domains.len())?;
            doubts.extend(made.why_emulated.as_ref().map(|why| {
                format!("QEMU emulates the guests, in which a lock costs many times what it costs here ({})", in_brief(why))
            }));
            run.make(&made, &cpus, cancel)?;
        }
        Ok(run.outcome(&cpus, doubts, observer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::{Domain, DomainOutcome, Host, SEC, Workloads};
    use overspin_workload::{BurnWait, LockLoop, Mode, Stream};

    pub(super) fn scenario(lock: &str, vcpus: u32, workload: impl Into<Workloads>) -> Scenario {
        let domain = Domain::new("d", vcpus, lock, workload);
        Scenario::new("s", Host::default(), vec![domain], SEC)
    }

    /// The outcome of a run of a second with these domains.
    pub(super) fn outcome(domains: Vec<DomainOutcome>, progress_step: Picos) -> Outcome {
        let scenario = scenario("ticket", 1, BurnWait::default());
        let run = Run::new(&scenario, 1, Vec::new());
        Outcome { domains, progress_step, ..run.outcome(&[], Vec::new(), &mut ()) }
    }

    fn refusal(scenario: &Scenario) -> String {
        Linux.supports(scenario).unwrap_err().to_string()
    }

    #[test]
    fn what_a_kernel_cannot_do_is_refused_with_what_it_can() {
        let work = LockLoop { irqs_off: true, ..LockLoop::default() };
        assert!(Linux.supports(&scenario("ticket", 4, work.clone())).is_ok());
        assert!(Linux.supports(&scenario("ticket", 4, BurnWait::default())).is_ok());
        let user = LockLoop { mode: Mode::User, irqs_off: false, ..work.clone() };
        let many = LockLoop { threads: 4097, ..work.clone() };
        for (scenario, words) in [
            (scenario("mcs", 4, work.clone()), &["domain `d`", "`mcs`", "ticket", "xen-pv"][..]),
            (scenario("ticket", 65, work.clone()), &["up to 64 vCPUs", "65"]),
            (scenario("ticket", 4, Stream::default()), &["stream", "`lock-loop`", "`sim`"]),
            (scenario("ticket", 4, user), &["write `mode = \"kernel\"`", "`threads`"]),
            (scenario("ticket", 4, many), &["4097 threads with 1 locks", "up to 4096"]),
        ] {
            let refusal = refusal(&scenario);
            words.iter().for_each(|word| assert!(refusal.contains(word), "{refusal}"));
        }
        let mut two = scenario("ticket", 4, work.clone());
        two.domains[0].workload.0.push(work.into());
        assert!(refusal(&two).contains("one workload"), "{}", refusal(&two));
        two.domains[0].workload.0.pop();
        two.domains[0].kernel.steal_governor = Some(overspin_scenario::StealGovernor::default());
        assert!(refusal(&two).contains("kernel.steal_governor"), "{}", refusal(&two));
        two.domains.clear();
        assert!(refusal(&two).contains("no domain"));
    }

    #[test]
    fn what_has_no_effect_is_named() {
        let mut scenario = scenario("xen-pv", 2, LockLoop::default());
        scenario.host = scenario.host.undisturbed();
        scenario.domains[0].cap = 50;
        scenario.domains[0].weight = 512;
        let mut ignored = Linux.supports(&scenario).unwrap();
        // Where there can be no groups, the reason is named.
        let refused = ignored.iter().find(|key| key.key == "domain.cap").cloned();
        assert_eq!(refused, refused_caps(&scenario));
        ignored.retain(|key| key.key != "domain.cap");
        let keys: Vec<&str> = ignored.iter().map(|key| key.key.as_str()).collect();
        let always = ["host.scheduler", "host.machine and host.costs"];
        assert_eq!(keys, [&always[..], &["domain.kernel"]].concat());
    }
}
