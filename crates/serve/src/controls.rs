//! What can be turned in a scenario, and the values that each control can have. A request can set nothing else.

use crate::problem::Problem;
use crate::sources::{Source, What};
use overspin_experiment as experiment;
use overspin_runs::catalog::names;
use overspin_runs::record::load_text;
use overspin_runs::scenario_file::{self, Loaded};
use overspin_scenario::{Scenario, parse_time};
use std::path::Path;
use toml::{Table, Value};

/// Domains with controls of their own; with more, the page would be nothing but controls.
const MOST_DOMAINS: usize = 4;
/// Numbers of vCPUs and of cores.
const COUNTS: [u32; 17] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64];
/// Times of a workload.
const TIMES: [&str; 16] = [
    "100ns", "200ns", "500ns", "1us", "2us", "5us", "10us", "20us", "50us", "100us", "200us",
    "500us", "1ms", "2ms", "5ms", "10ms",
];
/// Lengths of runs.
const LIMITS: [&str; 9] = ["50ms", "100ms", "200ms", "500ms", "1s", "2s", "3s", "5s", "10s"];
/// The times of workloads that can be turned, with their labels.
const OF_WORKLOADS: [(&str, &str); 4] =
    [("section", "section"), ("outside", "outside"), ("burn", "burn"), ("wait", "wait")];
/// Most values of a curve of numbers.
const MOST_STEPS: usize = 8;

/// What a control sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sets {
    /// A key of the scenario, as `--set` does.
    Key(String),
    /// How many seeds are run, as `--seeds` does.
    Seeds,
    /// The axis of curves, as `-L` does.
    Vary,
}

/// A control: what it sets, and to which values.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) sets: Sets,
    pub(crate) label: String,
    pub(crate) values: Vec<String>,
    /// The place of the source's own value.
    pub(crate) own: usize,
    /// Names are chosen from a list; numbers and times are turned.
    pub(crate) is_list: bool,
}

/// Controls with a heading.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) heading: String,
    pub(crate) controls: Vec<Control>,
}

/// The controls of a source.
#[derive(Clone, Debug)]
pub(crate) struct Controls {
    pub(crate) groups: Vec<Group>,
    /// vCPUs without a control.
    pub(crate) other_vcpus: u32,
    /// Hardware threads of a core, in all sockets.
    pub(crate) threads_per_core: u32,
    /// Its title.
    pub(crate) title: String,
}

impl Controls {
    pub(crate) fn of(source: &Source) -> Result<Self, Problem> {
        let text = source.text()?;
        match source.what {
            What::Scenario => {}
            What::Experiment => {
                return Ok(Self::of_experiment(&experiment::parse(&source.name, &text)?.head));
            }
            What::Record => {
                let title = source.name.clone();
                return Ok(Self { groups: Vec::new(), other_vcpus: 0, threads_per_core: 1, title });
            }
        }
        let loaded = load_text(Path::new(&source.name), &text, &[], &[])?.loaded;
        Ok(match &loaded {
            Loaded::One(scenario) => Self::of_scenario(scenario, &[]),
            Loaded::Seeds(scenario, _) => Self::of_scenario(scenario, &[]),
            Loaded::Sweep(sweep) => {
                let Some(first) = sweep.points.first() else {
                    return Err(Problem::new("the sweep has no points", "give its axes values"));
                };
                let varied: Vec<&str> =
                    first.sets.iter().filter_map(|set| Some(set.split_once('=')?.0)).collect();
                Self { title: sweep.name.clone(), ..Self::of_scenario(&first.scenario, &varied) }
            }
        })
    }

    fn of_experiment(head: &experiment::Head) -> Self {
        let control = numbers(Sets::Seeds, "seeds", &[1, 2, 3, 5, 10], head.seeds);
        let groups = vec![Group { heading: "Runs".into(), controls: vec![control] }];
        Self {
            groups,
            other_vcpus: 0,
            threads_per_core: 1,
            title: format!("{}: {}", head.id, head.title),
        }
    }

    fn of_scenario(scenario: &Scenario, varied: &[&str]) -> Self {
        let host = &scenario.host;
        let title = scenario.name.clone();
        let mut whole = Self {
            groups: Vec::new(),
            other_vcpus: 0,
            threads_per_core: host.sockets * host.threads,
            title,
        };
        // The scenario with all its defaults.
        let tree: Table = scenario_file::toml(scenario).parse().unwrap_or_default();
        let schedulers = names().schedulers().iter().map(|info| info.name.to_owned()).collect();
        let key = |key: &str| Sets::Key(key.to_owned());
        whole.groups.push(Group {
            heading: "Host".into(),
            controls: vec![
                list(key("host.scheduler"), "scheduler", schedulers, &host.scheduler),
                numbers(
                    key("host.cores"),
                    if whole.threads_per_core == 1 { "pCPUs" } else { "cores" },
                    &COUNTS,
                    host.cores,
                ),
            ],
        });
        let locks: Vec<String> = names().locks().map(|(info, _)| info.name.to_owned()).collect();
        for (i, domain) in scenario.domains.iter().enumerate() {
            if i >= MOST_DOMAINS {
                whole.other_vcpus += domain.vcpus;
                continue;
            }
            let table = tree.get("domain").and_then(|all| all.get(i));
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            // Other names could be numbers or have dots.
            let plain = domain.name.starts_with(|c: char| c.is_ascii_alphabetic())
                && domain.name.chars().all(is_plain);
            let path =
                if plain { format!("domain.{}", domain.name) } else { format!("domain.{i}") };
            let key = |name: &str| Sets::Key(format!("{path}.{name}"));
            let mut controls = vec![
                list(key("lock"), "lock", locks.clone(), &domain.lock),
                numbers(key("vcpus"), "vCPUs", &COUNTS, domain.vcpus),
            ];
            let workload = table.and_then(|domain| domain.get("workload"));
            for (name, label) in OF_WORKLOADS {
                if let Some(Value::String(own)) = workload.and_then(|workload| workload.get(name)) {
                    controls.push(times(key(&format!("workload.{name}")), label, &TIMES, own));
                }
            }
            whole.groups.push(Group { heading: format!("Domain {}", domain.name), controls });
        }
        let limit = tree.get("limit").and_then(Value::as_str).unwrap_or("60s");
        let mut runs = vec![
            times(key("limit"), "length", &LIMITS, limit),
            numbers(key("seed"), "seed", &Vec::from_iter(1..=20), scenario.seed),
        ];
        for group in &mut whole.groups {
            group
                .controls
                .retain(|c| !matches!(&c.sets, Sets::Key(key) if varied.contains(&key.as_str())));
        }
        runs.push(numbers(Sets::Seeds, "seeds", &[1, 2, 5, 10, 20], 1_u32));
        if varied.is_empty() {
            let axes = whole.groups.iter().flat_map(|group| group.controls.iter().filter_map(axis));
            let axes = std::iter::once(String::new()).chain(axes).collect();
            runs.push(list(Sets::Vary, "curves of", axes, ""));
        }
        whole.groups.push(Group { heading: "Runs".into(), controls: runs });
        whole
    }

    /// All controls.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Control> {
        self.groups.iter().flat_map(|group| &group.controls)
    }

    /// Refuses what no control can set.
    pub(crate) fn check(&self, sets: &Sets, value: &str) -> Result<(), Problem> {
        let name = match sets {
            Sets::Key(key) => key.as_str(),
            Sets::Seeds => "seeds",
            Sets::Vary => "vary",
        };
        let Some(control) = self.all().find(|control| control.sets == *sets) else {
            let keys: Vec<&str> = self
                .all()
                .filter_map(|control| match &control.sets {
                    Sets::Key(key) => Some(key.as_str()),
                    _ => None,
                })
                .collect();
            let remedy = match keys.is_empty() {
                true => "it has none: overspin run --set changes any key".to_owned(),
                false => format!(
                    "its keys are {}; overspin run --set changes any other",
                    keys.join(", ")
                ),
            };
            return Err(Problem::new(
                format!("the page has no control of `{name}` for this"),
                remedy,
            ));
        };
        if control.values.iter().any(|legal| legal == value) {
            return Ok(());
        }
        let remedy = format!("one of: {}; overspin run --set takes any", control.values.join(", "));
        Err(Problem::new(format!("the page cannot set `{name}` to `{value}`"), remedy))
    }
}

/// A list of names, to which the source's own belongs even if it is an alias.
fn list(sets: Sets, label: &str, mut values: Vec<String>, own: &str) -> Control {
    let place = values.iter().position(|value| value == own).unwrap_or_else(|| {
        values.push(own.to_owned());
        values.len() - 1
    });
    Control { sets, label: label.into(), values, own: place, is_list: true }
}

/// Numbers to turn, with the source's own among them.
fn numbers<N: Copy + Ord + ToString>(sets: Sets, label: &str, values: &[N], own: N) -> Control {
    let mut values = values.to_vec();
    let place = values.binary_search(&own).unwrap_or_else(|place| {
        values.insert(place, own);
        place
    });
    let values = values.iter().map(ToString::to_string).collect();
    Control { sets, label: label.into(), values, own: place, is_list: false }
}

/// Times to turn, with the source's own among them.
fn times(sets: Sets, label: &str, values: &[&str], own: &str) -> Control {
    let mut values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
    let time = |text: &str| parse_time(text).unwrap_or_default();
    let place =
        values.binary_search_by_key(&time(own), |value| time(value)).unwrap_or_else(|place| {
            values.insert(place, own.to_owned());
            place
        });
    // `1000us` of a file is a text of its own.
    own.clone_into(&mut values[place]);
    Control { sets, label: label.into(), values, own: place, is_list: false }
}

/// The argument of `-L` that varies what a control sets.
fn axis(control: &Control) -> Option<String> {
    let Sets::Key(key) = &control.sets else { return None };
    let values = match key.rsplit('.').next()? {
        "lock" => "every lock".to_owned(),
        "scheduler" => "every scheduler".to_owned(),
        // As many steps to both sides of the source's own value.
        _ => {
            let begin = control
                .own
                .saturating_sub(MOST_STEPS / 2)
                .min(control.values.len().saturating_sub(MOST_STEPS));
            control
                .values
                .iter()
                .skip(begin)
                .take(MOST_STEPS)
                .cloned()
                .collect::<Vec<_>>()
                .join(",")
        }
    };
    Some(format!("{key}={values}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Sources;

    fn of(name: &str) -> Controls {
        Controls::of(&Sources::new(&[], None).unwrap().find(name).unwrap()).unwrap()
    }

    #[test]
    fn every_source_has_controls_with_its_own_values() {
        let sources = Sources::new(&[], None).unwrap();
        for source in sources.groups().iter().flat_map(|(_, sources)| sources) {
            let controls = Controls::of(source).unwrap();
            assert!(controls.all().count() > 0, "{}", source.name);
            for control in controls.all() {
                let own = &control.values[control.own];
                controls.check(&control.sets, own).unwrap();
                let mut once = control.values.clone();
                once.sort();
                once.dedup();
                assert_eq!(once.len(), control.values.len(), "{}: {:?}", source.name, control);
            }
        }
    }

    #[test]
    fn a_request_can_set_nothing_else() {
        let controls = of("examples/ticket-overcommit.toml");
        let key = |key: &str| Sets::Key(key.into());
        controls.check(&key("domain.guest.lock"), "xen-pv").unwrap();
        controls.check(&key("host.cores"), "64").unwrap();
        controls.check(&Sets::Seeds, "10").unwrap();
        controls.check(&Sets::Vary, "domain.guest.lock=every lock").unwrap();
        // A machine can be a file.
        for (sets, value) in [
            (key("host.machine"), "/etc/passwd"),
            (key("host"), "{ machine = \"/etc/passwd\" }"),
            (key("host.cores"), "4096"),
            (key("domain.guest.lock"), "{ a = 1 }"),
            (Sets::Seeds, "10000"),
            (Sets::Vary, "host.cores=1,2,3,4,5,6,7,8,9"),
        ] {
            assert!(controls.check(&sets, value).is_err(), "{sets:?} {value}");
        }
    }

    #[test]
    fn what_a_sweep_varies_has_no_control() {
        let controls = of("examples/overcommit-curves.toml");
        let keys: Vec<String> = controls.all().map(|c| format!("{:?}", c.sets)).collect();
        assert!(!keys.iter().any(|key| key.contains("host.cores")), "{keys:?}");
        assert!(keys.iter().any(|key| key.contains("domain.guest.vcpus")), "{keys:?}");
    }
}
