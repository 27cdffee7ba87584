//! From tables to a [`Scenario`]: one function for each table, and the rules that tie keys
//! together.

mod domain;
mod event;
mod pools;
mod workload;

use super::keys::{COSTS, ROOT};
use super::machine;
use super::params;
use super::reader::Reader;
use super::tree::{Document, Node};
use domain::domain;
use overspin_host::guest_type;
use overspin_located::LocatedError;
use overspin_names::Names;
use overspin_scenario::{Domain, Host, Scenario, Tree, Value, tree};
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
    let readers = root.tables("domain")?;
    for (i, reader) in readers.iter().enumerate() {
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
    let mut fields = root.tree(&["host", "domain", "event", "vary"])?;
    fields.entry("name").or_insert_with(|| default_name.into());
    fields.insert("host".into(), tree(&host).into());
    fields.insert("domains".into(), Value::Array(Vec::new()));
    let scenario = Scenario {
        events: events.iter().map(|r| event::event(r, &host, &domains)).collect::<Result<_>>()?,
        domains,
        ..root.fields(fields)?
    };
    event::are_possible(&scenario, &events)?;
    guest_type::check(&scenario, names.schedulers()).map_err(|(i, fault)| {
        let message = format!("`{}`: {}", readers[i].full(&fault.key), fault.message);
        readers[i].error(&fault.key, message, fault.help)
    })?;
    scenario.agrees().map_err(|fault| root.error(&fault.key, fault.message, fault.help))?;
    Ok(scenario)
}

fn host(r: &Reader<'_>) -> Result<Host> {
    let pcpus = r.some::<u32>("sockets")? * r.some::<u32>("cores")? * r.some::<u32>("threads")?;
    let r = &r.on(pcpus);
    let mut fields = r.tree(&["scheduler_params", "pool"])?;
    // What the file leaves out is the machine's.
    let machine = r.machine("machine")?;
    fields.entry("smt_permille").or_insert_with(|| machine.smt_permille().into());
    if let Value::Object(costs) = fields.entry("costs").or_insert_with(|| Tree::new().into()) {
        for key in COSTS.names() {
            costs.entry(key).or_insert_with(|| machine::data(machine.varying(key)));
        }
    }
    let host = Host { pools: pools::pools(r)?, ..r.fields(fields)? };
    host.agrees().map_err(|fault| r.error_within(&fault.key, fault.message, fault.help))?;
    Ok(Host { params: params::of_scheduler(r, &host.scheduler)?, ..host })
}

#[cfg(test)]
mod tests {
    use super::super::keys::{Absent, Key, Kind, SECTIONS, legal};
    use super::*;

    #[test]
    fn every_default_is_legal() {
        let names = Names::default();
        for section in SECTIONS {
            for key in section.keys {
                let Key { absent: Absent::Is(default), name, .. } = key else { continue };
                let value = match key.kind {
                    Kind::Integer { .. } | Kind::Boolean => (*default).to_owned(),
                    _ => format!("{default:?}"),
                };
                let document = Document::parse("default", &format!("{name} = {value}")).unwrap();
                let r = Reader::open(&names, &document, &document.root, String::new(), section)
                    .unwrap();
                let read = r.get::<Value>(name).unwrap_or_else(|e| panic!("{e}: {}", legal(key)));
                assert_eq!(read, key.default(&Tree::new()), "{} {name} = {value}", section.heading);
            }
        }
    }
}
