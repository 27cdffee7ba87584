//! The origin of a run of a `.bench` file. Several commands may fill one file, and a report must warn if it
//! shows runs of different machines side by side.

use super::run::Machine;
use super::summary::RunSummary;
use crate::record::InWorld;
use overspin_record::environment::Environment;
use overspin_report::wrap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;

/// The simulated machine of a run, before its plan chooses scheduler and pCPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct MachineRecord {
    /// The scenario or experiment that describes it.
    pub name: String,
    /// Million operations that a worker does in a second of CPU time at full speed; 0 for real Xen.
    pub rate: u32,
    /// The host with all its keys, as in the records of `overspin run`; for real Xen an [`XenHost`].
    pub host: Value,
}

/// A host with real Xen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct XenHost {
    /// Version of Xen.
    pub xen: String,
    /// The guests' kernel, by its file name.
    pub kernel: String,
    /// What emulates the host, and how its time passes; `None` for real hardware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<String>,
}

/// The origin of a run; our extension, which schedbench ignores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Origin {
    /// Program version.
    pub version: String,
    /// Version of its model.
    pub model_version: u32,
    /// The world of the run, if it is not the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<String>,
    /// Seed.
    pub seed: u64,
    /// The command, as it was given.
    pub command: String,
    /// The simulated machine.
    pub machine: MachineRecord,
    /// The machine that simulated it; results do not depend on it.
    pub environment: Environment,
}

impl Origin {
    /// The origin of a run that this program makes now.
    #[must_use]
    pub fn now(machine: &Machine, world: &InWorld, seed: u64, command: &str) -> Self {
        let environment = Environment::here();
        Self {
            version: environment.overspin.clone(),
            model_version: environment.model_version,
            world: world.name.clone(),
            seed,
            command: command.into(),
            machine: MachineRecord {
                name: machine.name.clone(),
                rate: machine.rate,
                // It has only numbers, texts, lists and structs, which JSON can express.
                host: serde_json::to_value(&machine.host).unwrap_or_default(),
            },
            environment,
        }
    }

    /// The origin of a run on real Xen that this program makes now, in the world `world`.
    #[must_use]
    pub fn on_xen(world: &str, host: &XenHost, seed: u64, command: &str) -> Self {
        let environment = Environment::here();
        let by = host.emulator.as_ref().map_or_else(String::new, |e| format!(", emulated by {e}"));
        Self {
            version: environment.overspin.clone(),
            model_version: environment.model_version,
            world: Some(world.into()),
            seed,
            command: command.into(),
            machine: MachineRecord {
                name: format!("Xen {} with guests of {}{by}", host.xen, host.kernel),
                // Nothing is simulated. What a CPU does in a second, the runs themselves show.
                rate: 0,
                host: serde_json::to_value(host).unwrap_or_default(),
            },
            environment,
        }
    }

    /// Whether figures of both may be compared: they have the same world, machine and model.
    #[must_use]
    pub fn comparable(&self, other: &Self) -> bool {
        let of =
            |o: &Self| (o.world.clone(), o.machine.rate, o.machine.host.clone(), o.model_version);
        of(self) == of(other)
    }

    fn words(&self) -> String {
        let count = |key: &str| self.machine.host.get(key).and_then(Value::as_u64).unwrap_or(0);
        if self.machine.rate == 0 {
            let (name, world) = (&self.machine.name, self.world.as_deref().unwrap_or_default());
            return format!(
                "{name} (world `{world}`), seed {}, Overspin {}",
                self.seed, self.version
            );
        }
        let world =
            self.world.as_ref().map_or_else(String::new, |w| format!("the world `{w}`, as "));
        format!(
            "{world}{} ({} cores of {} threads before the plan's choice, {} Mops/s), seed {}, Overspin {}, \
             model version {}",
            self.machine.name,
            count("cores") * count("sockets"),
            count("threads"),
            self.machine.rate,
            self.seed,
            self.version,
            self.model_version
        )
    }
}

/// Runs of one origin, apart from the command and the machine that simulated them.
struct Group<'a> {
    origin: Option<&'a Origin>,
    labels: Vec<&'a str>,
}

fn groups(runs: &[RunSummary]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for run in runs {
        let same = |g: &&mut Group<'_>| match (g.origin, &run.origin) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                a.comparable(b)
                    && (a.seed, &a.version, &a.machine.name)
                        == (b.seed, &b.version, &b.machine.name)
            }
            _ => false,
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.labels.push(&run.label),
            None => {
                groups.push(Group { origin: run.origin.as_ref(), labels: vec![&run.label] });
            }
        }
    }
    groups
}

/// Lines at the head of a report: the origin of its runs, and a warning if there are several.
pub(super) fn head(runs: &[RunSummary]) -> String {
    let groups = groups(runs);
    let words =
        |g: &Group<'_>| g.origin.map_or_else(|| "origin not recorded".into(), Origin::words);
    let mut out = String::new();
    match &groups[..] {
        [] => return out,
        // schedbench's own files do not record an origin, and need not.
        [one] if one.origin.is_none() => return out,
        [one] => {
            let _ = writeln!(out, "Runs on {}", words(one));
        }
        several => {
            let known: Vec<&Origin> = several.iter().filter_map(|g| g.origin).collect();
            let differ = |what: &dyn Fn(&Origin) -> String| {
                known.windows(2).any(|pair| what(pair[0]) != what(pair[1]))
            };
            let mut what = Vec::new();
            if differ(&|o| format!("{} {}", o.machine.rate, o.machine.host)) {
                what.push("machines");
            }
            if differ(&|o| o.world.clone().unwrap_or_default()) {
                what.push("worlds");
            }
            if differ(&|o| o.model_version.to_string()) {
                what.push("model versions");
            }
            if differ(&|o| o.seed.to_string()) {
                what.push("seeds");
            }
            if known.len() < several.len() {
                what.push("origins, some of them not recorded");
            }
            let differs = if what.is_empty() { "origins".into() } else { what.join(", ") };
            let warning = format!(
                "WARNING: the runs of this file are of different {differs}. Do not compare figures of different \
                 machines or models; fairness is computed only within one of them."
            );
            let _ = writeln!(out, "{}", wrap(&warning));
            for group in several {
                let _ = writeln!(out, "  {}:", words(group));
                group.labels.iter().for_each(|label| {
                    let _ = writeln!(out, "    {label}");
                });
            }
        }
    }
    out.push('\n');
    out
}
