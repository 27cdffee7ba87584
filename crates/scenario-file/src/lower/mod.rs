//! From tables to a [`Scenario`]: one function for each table, and the rules that tie keys
//! together.

mod domain;
mod event;
mod pools;
mod workload;

use super::keys::{NOISE_PLACEMENTS, NOTIFIED_GUESTS, PROTOCOLS, ROOT, RULES};
use super::params;
use super::reader::Reader;
use super::tree::{Document, Node};
use crate::machine::Machine;
use domain::{cpu_list, domain};
use overspin_located::LocatedError;
use overspin_names::Names;
use overspin_scenario::{
    Costs, DirectedYieldRules, Domain, Governor, HaltPolling, Host, Noise, NoisePlacement,
    NotificationProtocol, NotifiedGuests, PauseLoopExiting, Picos, PreemptionNotification,
    Scenario,
};
use overspin_sched::Topology;
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, LocatedError>;

/// Most vCPUs of a scenario, so that their sums fit 32 bits in all worlds. A world may have a lower limit.
const MOST_VCPUS: u64 = 65_536;

/// Reads the scenario at `node`; messages call its keys `path…`.
///
/// # Errors
/// If it is not a legal scenario.
pub fn scenario(
    names: &Names,
    document: &Document,
    node: &Node,
    path: &str,
    default_name: &str,
) -> std::result::Result<Scenario, LocatedError> {
    let root = Reader::open(names, document, node, path.to_owned(), &ROOT)?;
    let host_table = root.table("host")?;
    let host = match &host_table {
        Some(reader) => host(reader)?,
        None => return Err(root.error("host", "there is no [host]", "add a [host] table")),
    };
    let mut domains: Vec<Domain> = Vec::new();
    let mut taken = BTreeSet::new();
    let mut vcpus = 0;
    for (i, reader) in root.tables("domain")?.iter().enumerate() {
        let domain = domain(reader, i, &host)?;
        if !taken.insert(domain.name.clone()) {
            return Err(reader.error(
                "name",
                format!("an earlier domain is also called `{}`", domain.name),
                "give each domain its own name",
            ));
        }
        vcpus += u64::from(domain.vcpus);
        if vcpus > MOST_VCPUS {
            return Err(reader.error(
                "vcpus",
                format!("the domains together have more than {MOST_VCPUS} vCPUs"),
                "use fewer or smaller domains",
            ));
        }
        domains.push(domain);
    }
    let events = root.tables("event")?;
    let scenario = Scenario {
        name: root.text("name")?.unwrap_or_else(|| default_name.to_owned()),
        description: root.text("description")?.unwrap_or_default(),
        seed: root.u64("seed")?,
        limit: root.some_time("limit")?,
        to_the_limit: root.boolean("to_the_limit")?,
        events: events.iter().map(|r| event::event(r, &host, &domains)).collect::<Result<_>>()?,
        host,
        domains,
    };
    event::are_possible(&scenario, &events)?;
    Ok(scenario)
}

fn host(r: &Reader<'_>) -> Result<Host> {
    let (sockets, cores, threads) = (r.u32("sockets")?, r.u32("cores")?, r.u32("threads")?);
    let topology = Topology { sockets, cores_per_socket: cores, threads_per_core: threads };
    // The list of keys limits each of the three, so only their product can be too large.
    if topology.check().is_err() {
        let pcpus = u64::from(sockets) * u64::from(cores) * u64::from(threads);
        return Err(r.error(
            "cores",
            format!(
                "{sockets} sockets x {cores} cores x {threads} threads are {pcpus} pCPUs, too many"
            ),
            format!("a host has at most {} pCPUs", Topology::MAX_PCPUS),
        ));
    }
    let pcpus = topology.pcpus();
    let scheduler = r.scheduler("scheduler")?.name;
    let machine = r.machine("machine")?;
    Ok(Host {
        machine: machine.name.into(),
        sockets,
        cores,
        threads,
        smt_permille: match r.node("smt_permille") {
            Some(_) => r.u32("smt_permille")?,
            None => machine.smt_permille(),
        },
        governor: r.table("governor")?.as_ref().map(governor).transpose()?,
        params: params::of_scheduler(r, scheduler)?,
        scheduler: scheduler.into(),
        costs: costs(r.table("costs")?.as_ref(), machine)?,
        pools: pools::pools(r, pcpus)?,
        pause_loop_exiting: r.table("pause_loop_exiting")?.as_ref().map(pause_loop).transpose()?,
        directed_yield: r.boolean("directed_yield")?,
        halt_polling: r.table("halt_polling")?.as_ref().map(halt_polling).transpose()?,
        preemption_notification: r
            .table("preemption_notification")?
            .as_ref()
            .map(preemption_notification)
            .transpose()?
            .flatten(),
        noise: match r.table("noise")? {
            Some(reader) => noise(&reader, pcpus)?,
            None => Some(Noise::default()),
        },
        stagger: r.some_time("stagger")?,
    })
}

/// The host's own activity; none with the placement `none`.
fn noise(r: &Reader<'_>, pcpus: u32) -> Result<Option<Noise>> {
    let placement = match r.name("placement", NOISE_PLACEMENTS)?.as_str() {
        "per-cpu" => Some(NoisePlacement::PerCpu),
        "anywhere" => Some(NoisePlacement::Anywhere),
        _ => None,
    };
    let cpus = r.node("cpus").map(|node| cpu_list(r, "cpus", node, pcpus)).transpose()?;
    let (every, length) = (r.some_time("every")?, r.some_time("length")?);
    let (vcpus, weight) = (r.u32("vcpus")?, r.u32("weight")?);
    Ok(placement.map(|placement| Noise {
        placement,
        every,
        length,
        vcpus,
        cpus: cpus.unwrap_or_default(),
        weight,
    }))
}

fn pause_loop(r: &Reader<'_>) -> Result<PauseLoopExiting> {
    let (window, max) = (r.some_time("window")?, r.some_time("max")?);
    in_order(r, ("window", window), max)?;
    let name = r.name("rules", RULES)?;
    let rules = DirectedYieldRules::ALL.into_iter().find(|rules| rules.name() == name);
    let rules = rules.expect("all names are years of rules");
    // Windows have grown since 2014 (Linux 3.18, commit b4a2d31da812).
    let grow = match r.node("grow").is_some() {
        true => r.u32("grow")?,
        false if rules <= DirectedYieldRules::Y2013 => 1,
        false => 2,
    };
    let (gap, shrink) = (r.some_time("gap")?, r.u32("shrink")?);
    Ok(PauseLoopExiting { window, gap, grow, shrink, max, rules })
}

fn halt_polling(r: &Reader<'_>) -> Result<HaltPolling> {
    let (start, max) = (r.some_time("start")?, r.some_time("max")?);
    in_order(r, ("start", start), max)?;
    Ok(HaltPolling { max, start, grow: r.u32("grow")?, shrink: r.u32("shrink")? })
}

/// The windows; `None` with the protocol `none`.
fn preemption_notification(r: &Reader<'_>) -> Result<Option<PreemptionNotification>> {
    let protocol = match r.name("protocol", PROTOCOLS)?.as_str() {
        "upcall" => Some(NotificationProtocol::Upcall),
        "deferral" => Some(NotificationProtocol::Deferral),
        _ => None,
    };
    let guests = match r.name("guests", NOTIFIED_GUESTS)?.as_str() {
        "all" => NotifiedGuests::All,
        _ => NotifiedGuests::Smp,
    };
    let (window, back_off) = (r.some_time("window")?, r.some_time("back_off")?);
    let strikes = r.u32("strikes")?;
    Ok(protocol.map(|protocol| PreemptionNotification {
        guests,
        protocol,
        window,
        strikes,
        back_off,
    }))
}

/// Checks that the shortest window is no longer than `max`.
fn in_order(r: &Reader<'_>, (least, time): (&str, Picos), max: Picos) -> Result<()> {
    if time <= max {
        return Ok(());
    }
    let full = r.full(least);
    let at = if r.node(least).is_some() { least } else { "max" };
    Err(r.error(
        at,
        format!("`{full}` is {time}, longer than the longest window, {max}"),
        format!("make `{least}` shorter or `max` longer"),
    ))
}

fn governor(r: &Reader<'_>) -> Result<Governor> {
    Ok(Governor {
        interval: r.some_time("interval")?,
        busy_permille: r.u32("busy_permille")?,
        quiet_permille: r.u32("quiet_permille")?,
    })
}

/// The machine's costs, except those that `[host.costs]` states.
fn costs(r: Option<&Reader<'_>>, machine: &Machine) -> Result<Costs> {
    let time = |key| match r {
        Some(r) if r.node(key).is_some() => r.some_time(key),
        _ => Ok(machine.cost(key)),
    };
    Ok(Costs {
        cache_hit: time("cache_hit")?,
        atomic: time("atomic")?,
        same_core: time("same_core")?,
        cross_core: time("cross_core")?,
        cross_socket: time("cross_socket")?,
        spin_iteration: time("spin_iteration")?,
        fence: time("fence")?,
        context_switch: time("context_switch")?,
        preemption: time("preemption")?,
        hypercall: time("hypercall")?,
        pause_loop_exit: time("pause_loop_exit")?,
        yield_to: time("yield_to")?,
        ipi: time("ipi")?,
        timer: time("timer")?,
        interrupt: time("interrupt")?,
        migration: time("migration")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::keys::{
        Absent, COSTS, HALT_POLLING, HOST, KERNEL, Key, NOISE, PAUSE_LOOP_EXITING,
        PREEMPTION_NOTIFICATION, legal,
    };
    use super::domain::kernel;
    use super::*;
    use crate::machine;
    use overspin_scenario::Kernel;

    /// Defaults are in words in the key list and in code in the types: they must agree.
    #[test]
    fn documented_defaults_are_the_types_defaults() {
        let (names, document) = (Names::default(), Document::parse("defaults", "").unwrap());
        let open = |section| {
            Reader::open(&names, &document, &document.root, String::new(), section).unwrap()
        };
        assert_eq!(costs(Some(&open(&COSTS)), machine::DEFAULT).unwrap(), Costs::default());
        // The reader takes absent costs from the machine; the list says the same.
        for key in COSTS.keys {
            let listed = open(&COSTS).some_time(key.name).unwrap();
            assert_eq!(listed, machine::DEFAULT.cost(key.name), "{}", key.name);
        }
        assert_eq!(pause_loop(&open(&PAUSE_LOOP_EXITING)).unwrap(), PauseLoopExiting::default());
        assert_eq!(halt_polling(&open(&HALT_POLLING)).unwrap(), HaltPolling::default());
        let notification = preemption_notification(&open(&PREEMPTION_NOTIFICATION)).unwrap();
        assert_eq!(notification, Some(PreemptionNotification::default()));
        assert_eq!(kernel(&open(&KERNEL)).unwrap(), Kernel::default());
        assert_eq!(noise(&open(&NOISE), 1).unwrap(), Some(Noise::default()));
        assert_eq!(open(&HOST).some_time("stagger").unwrap(), Host::default().stagger);
    }

    #[test]
    fn every_default_is_legal() {
        let names = Names::default();
        for section in super::super::keys::SECTIONS {
            for key in section.keys {
                let Key { absent: Absent::Is(default), name, .. } = key else { continue };
                use super::super::keys::Kind;
                let value = match key.kind {
                    Kind::Integer { .. } | Kind::Boolean => (*default).to_owned(),
                    _ => format!("{default:?}"),
                };
                let document = Document::parse("default", &format!("{name} = {value}")).unwrap();
                let r = Reader::open(&names, &document, &document.root, String::new(), section)
                    .unwrap();
                let fine = match key.kind {
                    super::super::keys::Kind::Time { .. } => r.time(name).is_ok(),
                    super::super::keys::Kind::Integer { .. } => r.integer(name).is_ok(),
                    super::super::keys::Kind::Boolean => r.boolean(name).is_ok(),
                    _ => r.text(name).is_ok(),
                };
                assert!(fine, "{} {name} = {value}: {}", section.heading, legal(key));
            }
        }
    }
}
