//! The workloads of a domain. Each kind's keys, and what they become, are in the kind's own file. This file
//! has what all kinds share.

use super::Result;
use crate::keys::{Kind, Section, WORKLOAD};
use crate::reader::Reader;
use overspin_located::LocatedError;
use overspin_scenario::{Domain, Tree, Value, Workload, Workloads};
use overspin_workload::{Fault, Loads};

/// Reads the workloads of a domain.
pub(super) fn workloads(domain: &Reader<'_>) -> Result<Workloads> {
    let tables = domain.one_or_more("workload", &WORKLOAD)?;
    tables.iter().map(workload).collect::<Result<_>>().map(Workloads)
}

/// Checks what the ranges of single keys cannot say.
pub(super) fn check(reader: &Reader<'_>, domain: &Domain) -> Result<()> {
    match Loads::of(domain, reader.names().workloads()) {
        Ok(_) => Ok(()),
        Err(fault) => Err(located(reader, fault)),
    }
}

fn workload(r: &Reader<'_>) -> Result<Workload> {
    let kinds = r.names().workloads();
    // The kind decides which other keys are legal, so it is read before they are checked.
    let known: Vec<&'static str> = kinds.all().iter().map(|k| k.name).collect();
    let kind = r.name("kind", &known)?;
    let info = kinds.find(&kind).map_err(|fault| located(r, fault))?;
    let r = r.as_one_of(info.keys)?;
    let tree = completed(info.keys, r.tree(&[])?);
    let workload = info.lower(tree).map_err(|fault| located(&r, fault))?;
    Ok(Workload { name: r.get("name")?, vcpus: r.get("vcpus")?.unwrap_or_default(), ..workload })
}

/// The values of all keys in the order of the keys, as records have them: those `given`, and the defaults of others.
fn completed(section: &Section, mut given: Tree) -> Tree {
    let mut tree = Tree::new();
    let asked = given.clone();
    for key in section.keys {
        let default = key.default(&asked);
        let value = match (key.kind, given.remove(key.field).or(default)) {
            (Kind::Table(inner), Some(Value::Object(part))) => completed(inner, part).into(),
            (Kind::Tables(inner), Some(Value::Array(parts))) => {
                let part = |part| match part {
                    Value::Object(part) => completed(inner, part).into(),
                    other => other,
                };
                parts.into_iter().map(part).collect()
            }
            (_, Some(value)) => value,
            (_, None) => continue,
        };
        tree.insert(key.field.to_owned(), value);
    }
    tree
}

fn located(r: &Reader<'_>, fault: Fault) -> LocatedError {
    r.error_within(&fault.key, fault.message, fault.help)
}
