//! A host that exists: how many pCPUs it has, who schedules them, and its guests, from files of other tools or from this machine.
//!
//! `libvirt.rs` reads domain XML, `xl.rs` what `xl list -l` prints, `kubernetes.rs` and `compose.rs` YAML, and `machine.rs`
//! the processes and control groups of this machine. `pressure.rs` says how short of CPU time this machine is now.

mod compose;
mod kubernetes;
mod libvirt;
mod machine;
mod pressure;
mod xl;
mod yaml;

pub use pressure::{Pressure, pressure};

use super::{Guest, MOST_GUESTS, MOST_VCPUS};
use crate::kernels_scheduler;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use yaml_rust2::Yaml;

/// Longest file that is read, in bytes: a pod list of a full node has some 2 MiB.
const LONGEST_FILE: u64 = 32 << 20;

/// Guests that are named in words.
const MOST_SHOWN: usize = 8;

/// What a file or this machine says of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFound {
    /// Where it comes from, in words.
    pub from: Vec<String>,
    /// Its guests.
    pub guests: Vec<Guest>,
    /// Its scheduler, if that was said.
    pub scheduler: Option<String>,
    /// What was read and is not simulated, in sentences.
    pub ignored: Vec<String>,
}

/// Why a host cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct HostError {
    /// The file, the place in it, and what is wrong there.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

impl HostError {
    fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { cause: cause.into(), remedy: remedy.into() }
    }
}

/// What formats are read, for messages.
const FORMATS: &str = "it takes the XML of `virsh dumpxml GUEST`, the output of `xl list -l`, the YAML or JSON of `kubectl get \
                       pods -o yaml`, and compose files";

impl HostFound {
    /// Reads the guests of these files; of this machine if there are none.
    ///
    /// # Errors
    /// If a file cannot be read or is of no known format, a value in it is not legal, or there is no guest.
    pub fn read(files: &[PathBuf], root: &Path, pcpus: u32) -> Result<Self, HostError> {
        let mut found = Self::default();
        if files.is_empty() {
            machine::read(root, pcpus, &mut found);
        }
        for file in files {
            let name = file.display().to_string();
            read_file(file, pcpus, &mut found).map_err(|error| HostError {
                cause: format!("{name}: {}", error.cause),
                ..error
            })?;
        }
        found.check()?;
        Ok(found)
    }

    /// The host's scheduler; on Xen the other usual one beside it.
    #[must_use]
    pub fn schedulers(&self) -> Vec<String> {
        match self.scheduler.as_deref() {
            None => vec![kernels_scheduler::here()],
            Some("credit") => vec!["credit".into(), "credit2".into()],
            Some("credit2") => vec!["credit2".into(), "credit".into()],
            Some(other) => vec![other.into()],
        }
    }

    /// What was read, and what could not be, in paragraphs.
    #[must_use]
    pub fn words(&self, pressure: &Pressure) -> Vec<String> {
        let guest = |g: &Guest| {
            let weight =
                if g.weight == 256 { String::new() } else { format!(", weight {}", g.weight) };
            let cap = if g.cap == 0 { String::new() } else { format!(", cap {} %", g.cap) };
            format!("{} ({} vCPUs{weight}{cap})", g.name, g.vcpus)
        };
        let mut guests: Vec<String> = self.guests.iter().take(MOST_SHOWN).map(guest).collect();
        let more = self.guests.len().saturating_sub(MOST_SHOWN);
        if more > 0 {
            guests.push(format!("and {more} more"));
        }
        let mut read = format!("Read from {}: {}.", self.from.join(", "), guests.join(", "));
        for what in &self.ignored {
            read.push(' ');
            read.push_str(what);
        }
        let unread = "What the guests do cannot be read: --work says it. Nor can the costs of this machine: `overspin \
                      calibrate -o here.toml` measures them, --machine here.toml uses them.";
        vec![read, pressure.words(), unread.into()]
    }

    /// Adds a guest; makes its name one that scenarios can have. Of too many, which [`check`](Self::check) refuses, one is kept.
    fn add(&mut self, name: &str, vcpus: u32, weight: u32, cap: u32) {
        if self.guests.len() > MOST_GUESTS {
            return;
        }
        let legal = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
        let mut name: String = name.chars().map(legal).collect();
        if name.is_empty() {
            name = "guest".into();
        }
        let is_taken = |name: &str| self.guests.iter().any(|g| g.name == name);
        let mut free = name.clone();
        for number in 2.. {
            if !is_taken(&free) {
                break;
            }
            free = format!("{name}-{number}");
        }
        // A cap of all its vCPUs is none.
        let cap = if cap >= vcpus.saturating_mul(100) { 0 } else { cap };
        self.guests.push(Guest { name: free, vcpus, weight: weight.clamp(1, 65_535), cap });
    }

    /// Says once what is not simulated.
    fn ignore(&mut self, what: &str) {
        if !self.ignored.iter().any(|known| known == what) {
            self.ignored.push(what.into());
        }
    }

    fn check(&self) -> Result<(), HostError> {
        let count = self.guests.len();
        if count == 0 {
            let from = self.from.join(", ");
            let remedy = "name files with its guests (`overspin advise --host guest.xml`), or describe them: --guests, --vcpus";
            return Err(HostError::new(format!("{from}: no guest that runs was found"), remedy));
        }
        if count > MOST_GUESTS {
            return Err(HostError::new(
                format!(
                    "there are more than {MOST_GUESTS} guests; `advise` simulates at most so many"
                ),
                "name the files of some of them, or describe alike ones: --guests, --vcpus",
            ));
        }
        let wrong = self.guests.iter().find(|g| !(1..=MOST_VCPUS).contains(&g.vcpus));
        wrong.map_or(Ok(()), |g| {
            Err(HostError::new(
                format!("guest `{}` has {} vCPUs; legal are 1 to {MOST_VCPUS}", g.name, g.vcpus),
                "leave this guest out, or describe alike ones: --guests, --vcpus",
            ))
        })
    }
}

fn read_file(file: &Path, pcpus: u32, found: &mut HostFound) -> Result<(), HostError> {
    let cannot = |cause: &dyn Display| HostError::new(format!("cannot be read: {cause}"), FORMATS);
    let length = fs::metadata(file).map_err(|e| cannot(&e))?.len();
    if length > LONGEST_FILE {
        return Err(cannot(&format_args!(
            "it has {length} bytes; at most {LONGEST_FILE} are read"
        )));
    }
    let text = fs::read_to_string(file).map_err(|e| cannot(&e))?;
    let name = file.display();
    if text.trim_start().starts_with('<') {
        libvirt::read(&text, found)?;
        found.from.push(format!("{name} (libvirt)"));
        return Ok(());
    }
    let documents = yaml::documents(&text).map_err(|e| cannot(&e))?;
    for document in documents.iter().filter(|d| !d.is_null()) {
        let from = if document.is_array() {
            xl::read(document, found)?;
            format!("{name} (xl)")
        } else if !document["services"].is_badvalue() {
            compose::read(document, pcpus, found)?;
            format!("{name} (compose)")
        } else if !document["kind"].is_badvalue() {
            kubernetes::read(document, pcpus, found)?;
            format!("{name} (Kubernetes)")
        } else {
            return Err(HostError::new("is none of the formats that are read", FORMATS));
        };
        // A file has several documents.
        if !found.from.contains(&from) {
            found.from.push(from);
        }
    }
    Ok(())
}

/// The text of a scalar: YAML reads `2`, `0.5` and `"2"` as different kinds.
fn scalar(value: &Yaml) -> Option<String> {
    match value {
        Yaml::Real(text) | Yaml::String(text) => Some(text.trim().to_owned()),
        Yaml::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A number of at least 0 at `key`, if it is there.
fn number(value: &Yaml, key: &str, legal: &str) -> Result<Option<f64>, HostError> {
    if value.is_badvalue() || value.is_null() {
        return Ok(None);
    }
    let parsed = scalar(value).and_then(|text| text.parse::<f64>().ok());
    match parsed.filter(|n| n.is_finite() && *n >= 0.0) {
        Some(number) => Ok(Some(number)),
        None => Err(wrong(key, value, legal)),
    }
}

fn wrong(key: &str, value: &Yaml, legal: &str) -> HostError {
    let shown = scalar(value).unwrap_or_else(|| "a list or a table".into());
    HostError::new(format!("`{key}` is `{shown}`; legal is {legal}"), "mend the file")
}

/// A container that may use `limit` CPUs, as a guest: enough vCPUs for the limit, and a cap. Without a limit it has as many
/// vCPUs as there are pCPUs.
fn container(found: &mut HostFound, name: &str, limit: Option<f64>, weight: u32, pcpus: u32) {
    let limit = limit.filter(|cpus| *cpus > 0.0);
    let vcpus = limit.map_or(f64::from(pcpus), f64::ceil).clamp(1.0, f64::from(pcpus.max(1)));
    let cap = limit.map_or(0.0, |cpus| (100.0 * cpus).round().max(1.0));
    found.add(name, vcpus as u32, weight, cap as u32);
    found.ignore(
        "A container is simulated as a guest with a kernel of its own; without a limit it has a vCPU for each pCPU.",
    );
}

/// A weight of control groups version 1 or of Docker, of which 1024 is usual, as a weight of scenarios.
fn of_shares(shares: f64) -> u32 {
    (shares / 4.0).round().max(1.0) as u32
}

#[cfg(test)]
mod tests;
