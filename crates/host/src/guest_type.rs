//! Which guests are paravirtual, and which are virtualised by hardware.
//!
//! Xen has both. KVM has the latter only, and so has VMware in this model. The type decides whether the processor's
//! pause-loop exits reach a guest. A hypercall, a kick and an interrupt cost the same in both types, because no source at
//! hand has figures of both on one machine.

use alloc::format;
use overspin_scenario::{Domain, Fault, GuestType, Host, Scenario};
use overspin_sched::Schedulers;

/// The type of a domain: what it says, else what its host has by default.
#[must_use]
pub fn guest_type(host: &Host, domain: &Domain, schedulers: &Schedulers) -> GuestType {
    let by_default = || {
        if host.pause_loop_exiting.is_none() && has_pv_guests(host, domain, schedulers) {
            GuestType::Pv
        } else {
            GuestType::Hvm
        }
    };
    domain.guest_type.unwrap_or_else(by_default)
}

/// The scenario with the type of each domain.
#[must_use]
pub fn with_guest_types(scenario: &Scenario, schedulers: &Schedulers) -> Scenario {
    let mut all = scenario.clone();
    for domain in &mut all.domains {
        domain.guest_type = Some(guest_type(&scenario.host, domain, schedulers));
    }
    all
}

/// Checks that the hypervisor has guests of these types, and that pause-loop exits can reach one.
///
/// # Errors
/// The number of a domain, and what is wrong with it.
pub fn check(scenario: &Scenario, schedulers: &Schedulers) -> Result<(), (usize, Fault)> {
    let host = &scenario.host;
    let is_pv = |d: &Domain| d.guest_type == Some(GuestType::Pv);
    for (i, domain) in scenario.domains.iter().enumerate().filter(|(_, d)| is_pv(d)) {
        if !has_pv_guests(host, domain, schedulers) {
            let scheduler = host.scheduler_of(domain);
            let message = format!("the hypervisor of scheduler `{scheduler}` has no `pv` guests");
            let help = "legal: \"hvm\"; for \"pv\", choose a scheduler of Xen";
            return Err((i, Fault::new("type", message, help)));
        }
    }
    if host.pause_loop_exiting.is_some() && scenario.domains.iter().all(is_pv) {
        let message =
            "the host has `pause_loop_exiting`, and no guest that exits: `pv` guests do not";
        let help = "legal with it: \"hvm\", for one guest at least; or leave out [host.pause_loop_exiting]";
        return Err((0, Fault::new("type", message, help)));
    }
    Ok(())
}

/// Whether the hypervisor of the domain's scheduler has paravirtual guests. An unknown scheduler is reported elsewhere.
fn has_pv_guests(host: &Host, domain: &Domain, schedulers: &Schedulers) -> bool {
    schedulers.find(host.scheduler_of(domain)).is_ok_and(|info| info.pv_guests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use overspin_scenario::{PauseLoopExiting, Picos, Pool, Workloads};

    fn scenario(scheduler: &str, exits: bool, types: &[Option<GuestType>]) -> Scenario {
        let exits = exits.then(PauseLoopExiting::default);
        let host =
            Host { scheduler: scheduler.into(), pause_loop_exiting: exits, ..Host::default() };
        let domain = |t: &Option<GuestType>| Domain {
            guest_type: *t,
            ..Domain::new("d", 1, "ticket", Workloads(vec![]))
        };
        Scenario::new("s", host, types.iter().map(domain).collect(), Picos::sec(1))
    }

    fn types(scenario: &Scenario) -> Vec<Option<GuestType>> {
        let all = with_guest_types(scenario, &Schedulers::builtin());
        all.domains.iter().map(|d| d.guest_type).collect()
    }

    const PV: Option<GuestType> = Some(GuestType::Pv);
    const HVM: Option<GuestType> = Some(GuestType::Hvm);

    #[test]
    fn the_default_follows_the_hypervisor() {
        let default = |scheduler, exits| types(&scenario(scheduler, exits, &[None, HVM]));
        for xen in ["credit", "credit-2008", "credit2", "rtds", "null", "bvt", "sedf"] {
            assert_eq!(default(xen, false), [PV, HVM], "{xen}");
            assert_eq!(default(xen, true), [HVM, HVM], "{xen}, whose guests exit");
        }
        for other in ["cfs", "eevdf", "eevdf-6.18", "cosched", "cosched-strict"] {
            assert_eq!(default(other, false), [HVM, HVM], "{other}");
        }
    }

    #[test]
    fn the_scheduler_is_that_of_the_pool() {
        let mut two = scenario("eevdf", false, &[None, None]);
        two.host.pools = vec![Pool {
            name: "xen".into(),
            cpus: vec![],
            scheduler: "credit".into(),
            params: overspin_scenario::Settings::new(),
        }];
        two.domains[1].pool = 1;
        assert_eq!(types(&two), [HVM, PV]);
    }

    #[test]
    fn guests_that_cannot_be_are_refused() {
        let fault = |scenario: &Scenario| check(scenario, &Schedulers::builtin()).err();
        let (i, no_pv) = fault(&scenario("eevdf", false, &[HVM, PV])).unwrap();
        assert_eq!((i, no_pv.key.as_str()), (1, "type"));
        assert!(no_pv.message.contains("eevdf") && no_pv.help.contains("hvm"), "{no_pv}");
        let (_, no_exits) = fault(&scenario("credit2", true, &[PV, PV])).unwrap();
        assert!(no_exits.message.contains("pause_loop_exiting"), "{no_exits}");
        assert!(no_exits.help.contains("hvm") && no_exits.help.contains("leave out"), "{no_exits}");
        for fine in [&[PV, HVM][..], &[PV, None], &[None]] {
            assert_eq!(fault(&scenario("credit2", true, fine)), None, "{fine:?}");
        }
        assert_eq!(fault(&scenario("credit2", false, &[PV, HVM])), None);
    }
}
