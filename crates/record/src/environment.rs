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
    /// When, in UTC: `2026-11-28T09:39:11Z`. Records of before do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
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
            debug_build: cfg!(debug_assertions),
            cpu: cpu(&cpuinfo),
            cpus: Some(cpus).filter(|n| *n > 0),
            usable_cpus: std::thread::available_parallelism().ok().map(Into::into),
            cores: cores(&cpuinfo),
            kernel: read("/proc/sys/kernel/ostype")
                .zip(read("/proc/sys/kernel/osrelease"))
                .map(|(name, release)| format!("{name} {release}")),
            hypervisor: hypervisor(&cpuinfo),
            date: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .ok()
                .map(|passed| date(passed.as_secs())),
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

/// So many seconds after the beginning of 1970, in UTC and the format of ISO 8601.
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant's `civil_from_days`: years begin in March, so that the leap day is their last, and 400 years
    // always have the same number of days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
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
    fn dates_are_those_of_the_calendar() {
        // By `date --utc --date=@N`: the beginning, leap days of a century and of a year, and around new year.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (1_798_761_600, "2027-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds), expected);
        }
        let now = Environment::here().date.unwrap();
        assert!(now.as_str() > "2026-" && now.len() == "2026-11-28T09:39:11Z".len(), "{now}");
    }

    #[test]
    fn a_machine_is_itself_and_no_other() {
        let here = Environment::here();
        let (overspin, date) = ("9.9.9".into(), Some("2099-01-01T00:00:00Z".into()));
        let newer = Environment { overspin, model_version: 99, date, ..here.clone() };
        assert!(here.same_machine(&newer) && here != newer);
        let other = Environment { cpus: Some(4097), ..here.clone() };
        assert!(!here.same_machine(&other));
        let text = serde_json::to_string(&here).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&text).unwrap(), here);
    }
}
