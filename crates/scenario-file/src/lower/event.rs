//! Events: what the administrator does while the guests run.

use super::Result;
use super::domain::affinity;
use super::pools::pool_of;
use crate::reader::Reader;
use overspin_host::{Refused, admin};
use overspin_scenario::{Change, Domain, Event, Host, Scenario};
use overspin_sched::suggestion;

/// Keys of actions; an event has exactly one of them.
const ACTIONS: [&str; 6] = ["weight", "cap", "affinity", "pause", "unpause", "pool"];

/// Reads one event on this host with these domains.
pub(super) fn event(r: &Reader<'_>, host: &Host, domains: &[Domain]) -> Result<Event> {
    let r = &r.on(host.pcpus());
    Ok(Event { at: r.some("at")?, change: change(r, host, domains)? })
}

fn change(r: &Reader<'_>, host: &Host, domains: &[Domain]) -> Result<Change> {
    let action = action(r)?;
    if let Some(pcpu) = r.get("pcpu")? {
        let other = ["domain", "vcpu"].into_iter().find(|key| r.node(key).is_some());
        if let Some(key) = other.or((action != "pool").then_some(action)) {
            return Err(r.error(
                key,
                format!("`{key}` and `pcpu` do not go together"),
                "a pCPU can only go to another `pool`",
            ));
        }
        return Ok(Change::MovePcpu { pcpu, pool: pool_of(r, host)? });
    }
    let domain = domain(r, domains)?;
    let vcpus = domains[domain as usize].vcpus;
    let vcpu = match r.get::<u32>("vcpu")? {
        Some(v) if matches!(action, "weight" | "cap" | "pool") => {
            return Err(r.error(
                "vcpu",
                format!("`{action}` applies to a whole domain, not to vCPU {v}"),
                "leave `vcpu` out",
            ));
        }
        Some(v) if v >= vcpus => {
            return Err(r.error(
                "vcpu",
                format!("`{}`: there is no vCPU {v}", r.full("vcpu")),
                format!("the domain has vCPUs 0 to {}", vcpus - 1),
            ));
        }
        vcpu => vcpu,
    };
    Ok(match action {
        "weight" => Change::Weight { domain, weight: r.some("weight")? },
        "cap" => Change::Cap { domain, cap: r.some("cap")? },
        "affinity" => {
            let count = if vcpu.is_some() { 1 } else { vcpus };
            Change::Affinity { domain, vcpu, affinity: affinity(r, count)? }
        }
        "pause" => Change::Pause { domain, vcpu },
        "unpause" => Change::Unpause { domain, vcpu },
        _ => Change::MoveDomain { domain, pool: pool_of(r, host)? },
    })
}

/// The one action of the event.
fn action(r: &Reader<'_>) -> Result<&'static str> {
    let mut given = ACTIONS.into_iter().filter(|key| r.node(key).is_some());
    let Some(action) = given.next() else {
        let help = format!("give one of: {}", ACTIONS.join(", "));
        return Err(r.error("", "this event does nothing", help));
    };
    if let Some(second) = given.next() {
        return Err(r.error(
            second,
            format!("`{second}` and `{action}` are two changes"),
            "give each change its own [[event]]; they may have the same time",
        ));
    }
    if let "pause" | "unpause" = action
        && !r.some::<bool>(action)?
    {
        let help = "write `pause = true` or `unpause = true`";
        return Err(r.error(action, format!("`{action} = false` does nothing"), help));
    }
    Ok(action)
}

fn domain(r: &Reader<'_>, domains: &[Domain]) -> Result<u32> {
    let names: Vec<&str> = domains.iter().map(|d| d.name.as_str()).collect();
    let Some(name) = r.get::<String>("domain")? else {
        let help = format!("domains are: {}", names.join(", "));
        return Err(r.error("domain", "`domain` is missing in [[event]]", help));
    };
    if let Some(i) = names.iter().position(|n| *n == name) {
        return Ok(i as u32);
    }
    let message = format!("`{}`: there is no domain `{name}`", r.full("domain"));
    Err(r.error("domain", message, suggestion(&name, "domains are", &names)))
}

/// Checks that the hypervisor would carry out all events; `readers` are theirs.
pub(super) fn are_possible(scenario: &Scenario, readers: &[Reader<'_>]) -> Result<()> {
    let Some(first) = readers.first() else { return Ok(()) };
    let all = overspin_workload::with_noise(scenario);
    let done = admin::rehearse(&all, scenario.domains.len(), first.names().schedulers());
    // Other faults of the scenario are reported elsewhere.
    let Err(Refused::Event { index, cause }) = done else { return Ok(()) };
    let r = &readers[index];
    let key = ACTIONS.into_iter().find(|key| r.node(key).is_some()).unwrap_or("at");
    let what = scenario.events[index].change.describe(scenario);
    Err(r.error(key, format!("{what}: {cause}"), "the hypervisor would refuse this"))
}
