//! Writes a scenario as a scenario file, with every key: the opposite of reading one. The tables of keys say which
//! numbers are times.

use super::keys::{Absent, Key, Kind, NONE, ROOT, Section};
use overspin_names::Names;
use overspin_scenario::{
    Change, NS, Picos, QUANTILES, Scenario, Setting, Settings, Tree, Workload, tree,
};
use overspin_workload::{Again, BenchItem, Phase, Phases, Schedbench, Step};
use serde_json::{Value, json};
use std::fmt::Write;

/// The text of a scenario file that is read as `scenario` again, to the last picosecond.
///
/// A workload from outside may read texts in its file that stand for data. Such a workload is written with the data.
#[must_use]
pub fn toml(names: &Names, scenario: &Scenario) -> String {
    let mut root = tree(scenario);
    let domains = scenario.domains.iter().map(|domain| {
        let mut tree = tree(domain);
        tree.insert("pool".into(), pool(scenario, domain.pool));
        let workloads: Vec<Value> = domain.workload.0.iter().map(workload).collect();
        // As data, one stands by itself.
        let workloads = if let [one] = &workloads[..] { one.clone() } else { workloads.into() };
        tree.insert("workload".into(), workloads);
        Value::Object(tree)
    });
    root.insert("domains".into(), domains.collect());
    root.insert("events".into(), scenario.events.iter().map(|e| event(scenario, e)).collect());
    let mut out = String::new();
    table(names, &mut out, "", &root, &ROOT);
    out
}

/// The parameters of a scheduler, as a table without a section: times are written as texts here.
fn settings(settings: &Settings) -> Value {
    let value = |setting: &Setting| match setting {
        Setting::Time(time) => time.to_string().into(),
        Setting::Number(number) => (*number).into(),
        Setting::Flag(flag) => (*flag).into(),
        Setting::Word(word) => word.clone().into(),
    };
    Value::Object(settings.iter().map(|(key, setting)| (key.clone(), value(setting))).collect())
}

/// A workload. Two kinds have texts in files that stand for more than they say.
fn workload(workload: &Workload) -> Value {
    let mut tree = tree(workload);
    if let Some(phases) = workload.get::<Phases>() {
        let texts: Vec<String> = phases.phases.iter().map(phase).collect();
        tree.insert("phases".into(), texts.into());
    }
    if let Some(worker) = workload.get::<Schedbench>() {
        tree.remove("items");
        tree.insert("worker".into(), worker_args(&worker.items).into());
        // Every item burns at the same rate.
        let first = worker.items.first().filter(|item| item.burn > Picos::ZERO);
        let rate = first.map(|item| item.kops * 1_000_000_000 / item.burn.0);
        tree.insert("rate".into(), rate.into());
    }
    Value::Object(tree)
}

fn phase(phase: &Phase) -> String {
    let step = |step: &Step| match step {
        Step::Run(time) => format!("run {time}"),
        Step::Sleep(time) => format!("sleep {time}"),
        Step::Timer(time) => format!("timer {time}"),
        Step::Yield => "yield".into(),
    };
    let steps = phase.steps.iter().map(step).collect::<Vec<_>>().join(", ");
    if phase.times == 1 { steps } else { format!("{} x {steps}", phase.times) }
}

/// The command line of a schedbench worker.
fn worker_args(items: &[BenchItem]) -> String {
    let item = |item: &BenchItem| match item.again {
        Again::After(wait) => format!("burnwait {} {}", item.kops, wait / NS),
        Again::Every(period) => format!("deadline {} {}", item.kops, period / NS),
    };
    items.iter().map(item).collect::<Vec<_>>().join(" ")
}

/// The name of a pool.
fn pool(scenario: &Scenario, number: u32) -> Value {
    match scenario.host.pool(number) {
        Some(pool) => pool.name.clone().into(),
        None => "host".into(),
    }
}

fn event(scenario: &Scenario, event: &overspin_scenario::Event) -> Value {
    let domain = |d: u32| scenario.domains.get(d as usize).map(|d| d.name.as_str());
    let mut tree = match &event.change {
        Change::Weight { domain: d, weight } => json!({ "domain": domain(*d), "weight": weight }),
        Change::Cap { domain: d, cap } => json!({ "domain": domain(*d), "cap": cap }),
        Change::Affinity { domain: d, vcpu, affinity } => {
            json!({ "domain": domain(*d), "vcpu": vcpu, "affinity": affinity })
        }
        Change::Pause { domain: d, vcpu } => {
            json!({ "domain": domain(*d), "vcpu": vcpu, "pause": true })
        }
        Change::Unpause { domain: d, vcpu } => {
            json!({ "domain": domain(*d), "vcpu": vcpu, "unpause": true })
        }
        Change::MoveDomain { domain: d, pool: to } => {
            json!({ "domain": domain(*d), "pool": pool(scenario, *to) })
        }
        Change::MovePcpu { pcpu, pool: to } => {
            json!({ "pcpu": pcpu, "pool": pool(scenario, *to) })
        }
    };
    tree["at"] = event.at.0.into();
    tree
}

/// Writes the values of a table, then the tables in it. `path` is its own place.
fn table(names: &Names, out: &mut String, path: &str, tree: &Tree, section: &Section) {
    let is_table = |value: &Value| match value {
        Value::Object(_) => true,
        Value::Array(all) => all.first().is_some_and(Value::is_object),
        _ => false,
    };
    let is_there = |value: &Value| match value {
        Value::Null => false,
        // Lists and tables that are absent are empty.
        Value::Array(all) => !all.is_empty(),
        Value::Object(all) => !all.is_empty(),
        _ => true,
    };
    let keyed = tree.iter().map(|(field, value)| {
        let key = section.keys.iter().find(|key| key.field == field);
        let kind = key.map(|key| key.kind);
        (key.map_or(&**field, |key| key.name), kind, in_file(key, value))
    });
    let (tables, values): (Vec<_>, Vec<_>) =
        keyed.filter(|(.., value)| is_there(value)).partition(|(.., value)| is_table(value));
    for (name, _, value) in values {
        // Texts, numbers and lists are the same in TOML as in JSON. Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "{name} = {value}");
    }
    for (name, kind, value) in tables {
        let inner = format!("{path}{}{name}", if path.is_empty() { "" } else { "." });
        let (parts, brackets) = match &value {
            Value::Array(all) => (all.as_slice(), ("[[", "]]")),
            one => (std::slice::from_ref(one), ("[", "]")),
        };
        for part in parts.iter().filter_map(Value::as_object) {
            let _ = writeln!(out, "\n{}{inner}{}", brackets.0, brackets.1);
            table(names, out, &inner, part, section_of(names, kind, part));
        }
    }
}

/// The value of a key as files have it.
fn in_file(key: Option<&Key>, value: &Value) -> Value {
    match (key.map(|key| (key.kind, key.absent)), value) {
        (Some((Kind::Time { .. } | Kind::Varying { .. }, _)), Value::Number(n)) => {
            n.as_u64().map_or(Value::Null, |picos| Picos(picos).to_string().into())
        }
        (Some((Kind::Params(_), _)), _) => {
            serde_json::from_value(value.clone()).map_or(Value::Null, |params| settings(&params))
        }
        // A table that is there by default says itself that it is not.
        (Some((Kind::Table(inner), Absent::Defaults(_))), Value::Null) => {
            let none = inner.keys.iter().find(|key| matches!(key.kind, Kind::ChoiceOrNone(_)));
            none.map_or(Value::Null, |key| json!({ key.name: NONE }))
        }
        _ => value.clone(),
    }
}

/// The keys of a table in a table.
fn section_of(names: &Names, kind: Option<Kind>, tree: &Tree) -> &'static Section {
    const PLAIN: Section = Section { heading: "", doc: "", keys: &[] };
    match kind {
        Some(Kind::Table(section) | Kind::Tables(section)) => section,
        Some(Kind::Varying { .. }) => &QUANTILES,
        Some(Kind::Workloads) => {
            let name = tree.get("kind").and_then(Value::as_str).unwrap_or_default();
            names.workloads().find(name).map_or(&PLAIN, |info| info.keys)
        }
        _ => &PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Loaded;
    use crate::built_in::{load, parse};
    use std::path::Path;

    fn comes_back(scenario: &Scenario) {
        let text = toml(&Names::default(), scenario);
        let again = parse("again", "again", &text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(&again, scenario, "{text}");
    }

    #[test]
    fn every_example_comes_back_as_it_was() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut count = 0;
        for entry in std::fs::read_dir(examples).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "toml") {
                match load(&path, &[]).unwrap() {
                    Loaded::One(scenario) | Loaded::Seeds(scenario, _) => comes_back(&scenario),
                    Loaded::Sweep(sweep) => {
                        sweep.points.iter().take(40).for_each(|p| comes_back(&p.scenario));
                    }
                }
                count += 1;
            }
        }
        assert!(count > 8, "{count} examples");
    }

    #[test]
    fn noise_by_pcpu_comes_back() {
        let text = r#"
            [host]
            cores = 4
            [host.noise]
            cpus = "0-2"
            length = { min = "1ns", p50 = "2us", p90 = "3us", p95 = "4us", p99 = "5us", p995 = "6us", p999 = "7us" }
            [[host.noise.cpu]]
            cpus = "1-2"
            every = "3ms"
            length = { p50 = "2us", p99 = "40us", max = "50us" }
            [[host.noise.cpu]]
            cpus = "0"
            length = "1ms"
            [[domain]]
            name = "d"
            vcpus = 2
            lock = "ticket"
            workload = { kind = "burn-wait", burn_quantiles = { p50 = "2us", p99 = "40us" } }
        "#;
        comes_back(&parse("t", "t", text, &[]).unwrap());
    }

    #[test]
    fn odd_names_and_every_action_come_back() {
        let text = r#"
            name = "a \"b\"\n\\c"
            [host]
            cores = 4
            scheduler = "credit2"
            noise = { placement = "none" }
            costs = { ipi = { p50 = "1500ps", p99 = "2us", max = "1ms" }, timer = "7us" }
            [[host.pool]]
            name = "p"
            cpus = "2-3"
            scheduler = "credit"
            scheduler_params = { tslice = "5ms" }
            [[domain]]
            name = "d"
            vcpus = 2
            lock = "ticket"
            affinity = ["0", "1"]
            workload = [{ kind = "lock-loop" }, { kind = "lock-loop", name = "x", vcpus = [1] }]
            [[event]]
            at = "1ms"
            domain = "d"
            affinity = "0-1"
            [[event]]
            at = "2ms"
            domain = "d"
            vcpu = 1
            pause = true
            [[event]]
            at = "3ms"
            domain = "d"
            vcpu = 1
            unpause = true
            [[event]]
            at = "4ms"
            pcpu = 3
            pool = "host"
            [[event]]
            at = "5ms"
            domain = "d"
            weight = 300
        "#;
        comes_back(&parse("t", "t", text, &[]).unwrap());
    }
}
