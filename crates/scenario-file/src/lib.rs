//! Scenario files: TOML in; a checked [`Scenario`] or a precise error out.
//!
//! A text becomes a tree with places, and the tree becomes a [`Scenario`]. The tree keeps a span with every
//! key and value, so that each rule, however late it is checked, can point at the character that broke it. What a scenario
//! can name is an argument ([`Names`]).
#![forbid(unsafe_code)]

mod axis;
mod keys;
mod lower;
pub mod machine;
mod params;
mod quantity;
mod reader;
mod reference;
mod set;
mod template;
pub mod tree;
mod vary;
mod write;

pub use axis::AxisArgument;
pub use reference::{key_tables, schema};
pub use template::Template;
pub use vary::{Axis, Dimension, MOST_RUNS, Point, Sweep};
pub use write::toml;

/// The keys of `[host.costs]`.
pub fn cost_keys() -> impl Iterator<Item = &'static str> {
    overspin_scenario::COSTS.names()
}

pub use lower::scenario as lower_scenario;

use overspin_located::LocatedError;
use overspin_names::Names;
use overspin_scenario::Scenario;
use std::io::Read;
use std::path::Path;
use tree::Document;

/// Why a scenario could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read `{path}`: {cause}")]
    Read {
        /// The file.
        path: String,
        /// The error of the system.
        #[source]
        cause: std::io::Error,
    },
    /// Its content is wrong.
    #[error(transparent)]
    Invalid(#[from] Box<LocatedError>),
}

/// Longest scenario or record; a device or a wrong file might be longer.
const LONGEST_FILE: u64 = 512 << 20;

/// Reads the text of `path`, or of standard input for `-`.
///
/// # Errors
/// If it cannot be read, is not UTF-8 or is longer than 512 MiB.
pub fn read_text(path: &Path) -> Result<String, LoadError> {
    String::from_utf8(read_bytes(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let cause = std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            format!("it is no text: byte {at} is not UTF-8"),
        );
        LoadError::Read { path: path.display().to_string(), cause }
    })
}

/// Reads the bytes of `path`, or of standard input for `-`.
///
/// # Errors
/// If it cannot be read or is longer than 512 MiB.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, LoadError> {
    let name = path.display().to_string();
    let error = |cause| LoadError::Read { path: name.clone(), cause };
    let mut bytes = Vec::new();
    let mut input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(error)?)
    };
    input.by_ref().take(LONGEST_FILE).read_to_end(&mut bytes).map_err(error)?;
    if input.read(&mut [0]).map_err(error)? != 0 {
        return Err(error(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            "longer than 512 MiB, the limit for scenarios and records",
        )));
    }
    Ok(bytes)
}

/// The contents of a scenario file.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// One run.
    One(Box<Scenario>),
    /// A sweep of runs: it has `[[vary]]` tables.
    Sweep(Sweep),
    /// One scenario with these seeds: its `[[vary]]` varies only the seed.
    Seeds(Box<Scenario>, Vec<u64>),
}

/// Loads a scenario file and applies `--set` overrides in order.
///
/// # Errors
/// If the file cannot be read or is not a legal scenario.
pub fn load(names: &Names, path: &Path, sets: &[String]) -> Result<Loaded, LoadError> {
    Ok(load_text(names, path, &read_text(path)?, sets, &[])?)
}

/// Like [`load`], for a file whose text has been read, with the `axes` of the command line besides those of
/// the file.
///
/// # Errors
/// If it is not a legal scenario, or an axis is not legal.
pub fn load_text(
    names: &Names,
    path: &Path,
    text: &str,
    sets: &[String],
    axes: &[AxisArgument],
) -> Result<Loaded, Box<LocatedError>> {
    let (name, stem) = names_of(path);
    let mut document = document(&name, text, sets)?;
    for argument in axes {
        axis::apply(&mut document, argument)?;
    }
    let sweep = vary::sweep(names, &document, &stem)?;
    Ok(match sweep {
        Some(Sweep { axes, mut points, seeds, .. }) if axes.is_empty() && points.len() == 1 => {
            Loaded::Seeds(Box::new(points.remove(0).scenario), seeds)
        }
        Some(sweep) => Loaded::Sweep(sweep),
        None => Loaded::One(Box::new(one(names, &document, &stem)?)),
    })
}

/// The name of a file in messages, and the name of its scenario if that has none.
fn names_of(path: &Path) -> (String, String) {
    let name = path.display().to_string();
    let stem = path.file_stem().map_or_else(|| name.clone(), |s| s.to_string_lossy().into_owned());
    let stem = if stem == "-" { "stdin".to_owned() } else { stem };
    (name, stem)
}

/// Parses a scenario and ignores its `[[vary]]` tables. `path` is its name in messages, `default_name` its
/// name if it has none.
///
/// # Errors
/// If it is not a legal scenario.
pub fn parse(
    names: &Names,
    path: &str,
    default_name: &str,
    text: &str,
    sets: &[String],
) -> Result<Scenario, LocatedError> {
    one(names, &document(path, text, sets)?, default_name)
}

fn document(path: &str, text: &str, sets: &[String]) -> Result<Document, LocatedError> {
    let mut document = Document::parse(path, text)?;
    for argument in sets {
        set::apply(&mut document, argument)?;
    }
    Ok(document)
}

fn one(names: &Names, document: &Document, default_name: &str) -> Result<Scenario, LocatedError> {
    lower::scenario(names, document, &document.root, "", default_name)
}

#[cfg(test)]
mod tests;

/// Reading with the parts that come with the program.
#[cfg(test)]
mod built_in {
    use super::*;

    pub(crate) fn parse(
        path: &str,
        default_name: &str,
        text: &str,
        sets: &[String],
    ) -> Result<Scenario, LocatedError> {
        super::parse(&Names::default(), path, default_name, text, sets)
    }

    pub(crate) fn load(path: &Path, sets: &[String]) -> Result<Loaded, LoadError> {
        super::load(&Names::default(), path, sets)
    }

    pub(crate) fn load_text(path: &Path, text: &str, axes: &[AxisArgument]) -> Loaded {
        super::load_text(&Names::default(), path, text, &[], axes).unwrap()
    }
}
