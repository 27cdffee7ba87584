//! The experiments that come with the program, and the kinds of their files. The files are compiled in, so that the program
//! needs no other files. It can also read a changed copy.

use super::{Experiment, Head, Kind, PvTicket, Schedbench, Sweep, claim, file};
use overspin_located::LocatedError;
use overspin_record::metric::Table;
use overspin_runs::instruments;
use overspin_runs::scenario_file::tree::Document;
use overspin_runs::schedbench::Machine;
use serde::de::DeserializeOwned;

/// Names and texts of the experiments that come with the program, in the order in which all of them run: the five that the
/// program began with, those that take longer and longer, and then today's questions.
const BUILT_IN: [(&str, &str); 10] = [
    ("2016-schedbench", include_str!("../../../experiments/2016-schedbench.toml")),
    (
        "2005-preemption-notification",
        include_str!("../../../experiments/2005-preemption-notification.toml"),
    ),
    ("2008-spinlocks", include_str!("../../../experiments/2008-spinlocks.toml")),
    ("2001-aligned-locks", include_str!("../../../experiments/2001-aligned-locks.toml")),
    ("2012-pv-ticketlocks", include_str!("../../../experiments/2012-pv-ticketlocks.toml")),
    ("container-quota", include_str!("../../../experiments/container-quota.toml")),
    ("2025-slice-extension", include_str!("../../../experiments/2025-slice-extension.toml")),
    ("2026-steal-governor", include_str!("../../../experiments/2026-steal-governor.toml")),
    ("2026-postgres-lazy", include_str!("../../../experiments/2026-postgres-lazy.toml")),
    ("2025-semantic-yield", include_str!("../../../experiments/2025-semantic-yield.toml")),
];

/// A kind of experiment.
struct KindOf {
    /// The `kind` of its files.
    name: &'static str,
    /// Reads a file.
    parse: fn(&Document, &str) -> Result<Experiment, LocatedError>,
    /// What it measures.
    tables: fn() -> Vec<Table>,
}

const KINDS: [KindOf; 3] = [
    KindOf {
        name: "sweep",
        parse: |document, text| any(read_as(document, text, Sweep::parse)),
        tables: instruments::tables,
    },
    KindOf {
        name: "pv-ticket",
        parse: |document, text| any(read_as(document, text, PvTicket::parse)),
        tables: || super::pv_ticket::samples::TABLES.to_vec(),
    },
    KindOf {
        name: "schedbench",
        parse: |document, text| any(read_as(document, text, Schedbench::parse)),
        tables: || super::schedbench::samples::TABLES.to_vec(),
    },
];

/// Reads a file of a known kind.
pub(super) fn read_as<S: DeserializeOwned, K: Kind>(
    document: &Document,
    text: &str,
    parse: impl Fn(&Document, &Head, S) -> Result<K, LocatedError>,
) -> Result<(Head, K), LocatedError> {
    let (mut head, setup) = file::read(document, text)?;
    let mut kind = parse(document, &head, setup)?;
    claim::read(document, &mut head, &mut kind)?;
    Ok((head, kind))
}

fn any<K: Kind + 'static>(
    read: Result<(Head, K), LocatedError>,
) -> Result<Experiment, LocatedError> {
    read.map(|(head, kind)| Experiment { head, kind: Box::new(kind) })
}

/// The kinds of experiments, and what each measures.
pub fn metrics() -> impl Iterator<Item = (&'static str, Vec<Table>)> {
    KINDS.iter().map(|kind| (kind.name, (kind.tables)()))
}

/// Names of the experiments that come with the program: those of the past, oldest first, and then those of today.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names = quickest_first().to_vec();
    // Those of the past begin with their years.
    names.sort_unstable();
    names
}

/// Names of the experiments in the order in which all of them run: those that take longer and longer.
#[must_use]
pub fn quickest_first() -> [&'static str; BUILT_IN.len()] {
    BUILT_IN.map(|(name, _)| name)
}

/// The text of the file of the built-in experiment of this name; `None` if there is none.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// The built-in experiment of this name; `None` if there is none.
#[must_use]
pub fn built_in(name: &str) -> Option<Result<Experiment, LocatedError>> {
    document(name).map(|found| found.and_then(|(document, text)| read(&document, text)))
}

/// Every experiment that comes with the program, oldest first.
///
/// # Errors
/// If a file is not legal, which a test rules out.
pub fn all() -> Result<Vec<Experiment>, LocatedError> {
    names().into_iter().filter_map(built_in).collect()
}

/// Parses an experiment file that messages call `path`.
///
/// # Errors
/// If it is not a legal experiment.
pub fn parse(path: &str, text: &str) -> Result<Experiment, LocatedError> {
    read(&Document::parse(path, text)?, text)
}

/// The machine of the 2016 experiment.
///
/// # Errors
/// If its file is not legal, which a test rules out.
pub fn schedbench_machine() -> Result<Machine, LocatedError> {
    // All its schedulers have the same one.
    Ok(schedbench_2016()?.machines.swap_remove(0))
}

/// The 2008 experiment.
///
/// # Errors
/// If its file is not legal, which a test rules out.
pub fn kernbench_2008() -> Result<(Head, Sweep), LocatedError> {
    let (document, text) = document("2008-spinlocks").expect("it is built in")?;
    read_as(&document, text, Sweep::parse)
}

/// The 2016 experiment.
///
/// # Errors
/// If its file is not legal, which a test rules out.
pub fn schedbench_2016() -> Result<Schedbench, LocatedError> {
    let (document, text) = document("2016-schedbench").expect("it is built in")?;
    Ok(read_as(&document, text, Schedbench::parse)?.1)
}

fn document(name: &str) -> Option<Result<(Document, &'static str), LocatedError>> {
    let text = text(name)?;
    Some(Document::parse(&format!("{name}.toml"), text).map(|document| (document, text)))
}

fn read(document: &Document, text: &str) -> Result<Experiment, LocatedError> {
    let kind = file::kind(document)?;
    match KINDS.iter().find(|known| known.name == kind) {
        Some(known) => (known.parse)(document, text),
        None => {
            let names: Vec<&str> = KINDS.iter().map(|known| known.name).collect();
            let message = format!("there is no kind of experiment `{kind}`");
            file::fail(document, "kind", message, &format!("kinds are: {}", names.join(", ")))
        }
    }
}
