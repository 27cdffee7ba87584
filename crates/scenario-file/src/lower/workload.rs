//! The workloads of a domain. Each kind's keys, and what they become, are in the kind's own file. This file
//! has what all kinds share.

use super::Result;
use crate::keys::{Absent, Key, Kind, WORKLOAD};
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
    let workload = info.lower(tree(&r)?).map_err(|fault| located(&r, fault))?;
    Ok(Workload {
        name: r.text("name")?,
        vcpus: r.numbers("vcpus")?.unwrap_or_default(),
        ..workload
    })
}

/// The values of all keys of a table, with the defaults of absent keys.
fn tree(r: &Reader<'_>) -> Result<Tree> {
    let mut tree = Tree::new();
    for key in r.section().keys {
        if let Some(value) = value(r, key)? {
            tree.insert(key.name.to_owned(), value);
        }
    }
    Ok(tree)
}

fn value(r: &Reader<'_>, key: &Key) -> Result<Option<Value>> {
    let is_there = r.node(key.name).is_some();
    Ok(match key.kind {
        Kind::Choice(words) if is_there || !matches!(key.absent, Absent::Means(_)) => {
            Some(r.name(key.name, words)?.into())
        }
        Kind::Integer { .. } => r.integer(key.name)?.map(Value::from),
        Kind::Time { .. } => r.time(key.name)?.map(|time| time.0.into()),
        Kind::Boolean if is_there || !matches!(key.absent, Absent::Means(_)) => {
            Some(r.boolean(key.name)?.into())
        }
        Kind::Texts if is_there || matches!(key.absent, Absent::Required) => {
            Some(r.texts(key.name)?.into())
        }
        Kind::Table(inner) => Some(match r.table(key.name)? {
            Some(table) => tree(&table)?.into(),
            None => inner.defaults().into(),
        }),
        Kind::Tables(_) => {
            let each = r.tables(key.name)?;
            Some(each.iter().map(|t| tree(t).map(Value::from)).collect::<Result<_>>()?)
        }
        Kind::Choice(_) | Kind::Boolean | Kind::Texts => None,
        // The part that knows the names checks them. Other kinds of keys occur only outside workload tables.
        _ => r.text(key.name)?.map(Value::from),
    })
}

fn located(r: &Reader<'_>, fault: Fault) -> LocatedError {
    r.error_within(&fault.key, fault.message, fault.help)
}
