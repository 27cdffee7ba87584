//! The machine at hand, as records name it. A reader who compares two records must know whether they are of
//! one machine. Nothing in it identifies a person or a host.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a record was made. Unknown facts are null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this program.
    pub overspin: String,
    /// Version of the program's model of hosts and guests: it changes whenever simulated results change.
    pub model_version: u32,
    /// How the program was built.
    #[serde(flatten)]
    pub build: Build,
    /// The day in UTC, such as `2026-11-28`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Whether the program was built without optimisation, which affects real times.
    pub debug_build: bool,
    /// The processor's name.
    pub cpu: Option<String>,
    /// Number of processors that the kernel counts.
    pub cpus: Option<usize>,
    /// Number of these that this process may use.
    pub usable_cpus: Option<usize>,
    /// Number of cores, if the kernel reports it.
    pub cores: Option<usize>,
    /// The kernel's name and version.
    pub kernel: Option<String>,
    /// The hypervisor below: its name, "unknown" if there is one without a name, null for none.
    pub hypervisor: Option<String>,
}

/// How this program was built, once it has said so.
static BUILD: OnceLock<Build> = OnceLock::new();

/// How a program was built. Only its last crate knows, and says it with [`is_of_this_program`](Self::is_of_this_program).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Revision of its sources; it ends with `+` if they had been changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Cargo's profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Features of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
}

impl Build {
    /// Makes it the build of this process, for all environments from now on. Only the first call counts.
    pub fn is_of_this_program(self) {
        let _ = BUILD.set(self);
    }

    /// In a few words, for people.
    #[must_use]
    pub fn words(&self) -> String {
        let revision = self.revision.as_deref().unwrap_or("unknown revision");
        let profile = self.profile.as_deref().unwrap_or("unknown");
        let features = match self.features.as_slice() {
            [] => "none".into(),
            features => features.join(", "),
        };
        format!("{revision}, profile {profile}, features {features}")
    }
}

impl Environment {
    /// The environment of the machine at hand.
    #[must_use]
    pub fn here() -> Self {
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let cpus = values(&cpuinfo, "processor").count();
        Self {
            overspin: env!("CARGO_PKG_VERSION").into(),
            model_version: overspin_host::MODEL_VERSION,
            build: BUILD.get().cloned().unwrap_or_default(),
            date: today(),
            debug_build: cfg!(debug_assertions),
            cpu: cpu(&cpuinfo),
            cpus: Some(cpus).filter(|n| *n > 0),
            usable_cpus: std::thread::available_parallelism().ok().map(Into::into),
            cores: cores(&cpuinfo),
            kernel: read("/proc/sys/kernel/ostype")
                .zip(read("/proc/sys/kernel/osrelease"))
                .map(|(name, release)| format!("{name} {release}")),
            hypervisor: hypervisor(&cpuinfo),
        }
    }

    /// In a few words, for people.
    #[must_use]
    pub fn words(&self) -> String {
        let cpu = self.cpu.as_deref().unwrap_or("unknown processor");
        let cpus = self.usable_cpus.map_or_else(String::new, |n| format!(", {n} CPUs"));
        let kernel = self.kernel.as_deref().unwrap_or("unknown kernel");
        let below = self.hypervisor.as_ref().map_or_else(String::new, |h| format!(", under {h}"));
        let debug = if self.debug_build { ", debug build" } else { "" };
        format!("{cpu}{cpus}, {kernel}{below}{debug}")
    }

    /// Whether both are the same machine with the same kernel, whatever ran on it.
    #[must_use]
    pub fn same_machine(&self, other: &Self) -> bool {
        let machine = |e: &Self| {
            (e.cpu.clone(), e.cpus, e.usable_cpus, e.cores, e.kernel.clone(), e.hypervisor.clone())
        };
        machine(self) == machine(other)
    }
}

fn today() -> Option<String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(date(since.as_secs() / 86_400))
}

/// The date so many days after 1970-01-01, by counting in eras of 400 years that begin in March, so that a leap day is
/// the last of a year.
fn date(days: u64) -> String {
    const ERA: u64 = 146_097;
    // 1970-01-01 is so many days after 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months from March have 31 or 30 days, five of them 153.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", 400 * era + year + next)
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The values of a key, one for each processor.
fn values<'a>(cpuinfo: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    cpuinfo.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

fn cpu(cpuinfo: &str) -> Option<String> {
    let value = |key| values(cpuinfo, key).next();
    // AArch64 has numbers instead of a name.
    let numbers = || {
        let (implementer, part) = (value("CPU implementer")?, value("CPU part")?);
        Some(format!("implementer {implementer}, part {part}"))
    };
    value("model name").map(str::to_owned).or_else(numbers)
}

fn cores(cpuinfo: &str) -> Option<usize> {
    let (packages, cores) = (values(cpuinfo, "physical id"), values(cpuinfo, "core id"));
    let all: BTreeSet<(&str, &str)> = packages.zip(cores).collect();
    Some(all.len()).filter(|n| *n > 0)
}

fn hypervisor(cpuinfo: &str) -> Option<String> {
    let xen = read("/sys/hypervisor/type");
    let flagged = values(cpuinfo, "flags").any(|f| f.split(' ').any(|flag| flag == "hypervisor"));
    if xen.is_none() && !flagged {
        return None;
    }
    let product = || read("/sys/class/dmi/id/product_name");
    let vendor = || read("/sys/class/dmi/id/sys_vendor");
    xen.or_else(product).or_else(vendor).or_else(|| Some("unknown".into()))
}

/// This program and its model, as reports name them.
#[must_use]
pub fn program() -> String {
    made_by(env!("CARGO_PKG_VERSION"), overspin_host::MODEL_VERSION)
}

/// The program and the model of a record, in the same format.
#[must_use]
pub fn made_by(version: &str, model: u32) -> String {
    format!("Overspin {version}, model version {model}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_by_name_and_by_number() {
        let x86 = "processor\t: 0\nmodel name\t: Some CPU\nphysical id\t: 0\ncore id\t: 0\n\
                   flags\t: fpu hypervisor\n\nprocessor\t: 1\nmodel name\t: Some CPU\n\
                   physical id\t: 0\ncore id\t: 0\nflags\t: fpu hypervisor\n";
        assert_eq!(cpu(x86).as_deref(), Some("Some CPU"));
        assert_eq!((values(x86, "processor").count(), cores(x86)), (2, Some(1)));
        assert!(hypervisor(x86).is_some());
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(cpu(arm).as_deref(), Some("implementer 0x41, part 0xd0c"));
        assert_eq!((cores(arm), cpu("")), (None, None));
    }

    #[test]
    fn days_are_dates() {
        // As `date --utc --date=@SECONDS --iso-8601` prints them.
        for (days, is) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (19_782, "2024-02-29"),
            (20_453, "2025-12-31"),
            (20_785, "2026-11-28"),
        ] {
            assert_eq!(date(days), is);
        }
    }

    #[test]
    fn a_machine_is_itself_and_no_other() {
        let here = Environment::here();
        let newer = Environment { overspin: "9.9.9".into(), model_version: 99, ..here.clone() };
        assert!(here.same_machine(&newer) && here != newer);
        let other = Environment { cpus: Some(4097), ..here.clone() };
        assert!(!here.same_machine(&other));
        let text = serde_json::to_string(&here).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&text).unwrap(), here);
    }
}
