//! The key list as a JSON Schema and as Markdown tables.

use super::keys::{
    Absent, DOMAIN, HOST, Key, Kind, ROOT, SECTIONS, Section, WORKLOAD, Whose, legal,
};
use super::params;
use overspin_names::Names;
use overspin_scenario::{Picos, QUANTILES};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The pattern of a time.
const TIME_PATTERN: &str = "^\\s*(0|[0-9_]*\\.?[0-9_]*\\s*(ps|ns|us|µs|ms|s|min|h))\\s*$";

/// JSON Schema of a scenario, for editors that check TOML.
#[must_use]
pub fn schema(names: &Names) -> Value {
    let mut schema = section(names, &ROOT);
    if let Value::Object(map) = &mut schema {
        map.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        map.insert("title".into(), json!("Overspin scenario"));
        let kinds: Vec<Value> =
            names.workloads().all().iter().map(|w| workload(names, w.name, w.keys)).collect();
        let quantiles = section(names, &QUANTILES);
        map.insert(
            "$defs".into(),
            json!({ "quantiles": quantiles, "workload": { "oneOf": kinds } }),
        );
    }
    schema
}

fn section(names: &Names, of: &Section) -> Value {
    object(of, of.keys.iter().map(|key| (key, property(names, key))))
}

/// A table of a workload: the keys common to all workloads, and its own.
fn workload(names: &Names, name: &str, own: &Section) -> Value {
    let common = WORKLOAD.keys.iter().map(|key| match key.kind {
        Kind::Workload => (key, json!({ "const": name })),
        _ => (key, property(names, key)),
    });
    object(own, common.chain(own.keys.iter().map(|key| (key, property(names, key)))))
}

fn object<'a>(section: &Section, keys: impl Iterator<Item = (&'a Key, Value)>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (key, mut value) in keys {
        if let Value::Object(map) = &mut value {
            map.insert("description".into(), json!(key.doc));
            if let Absent::Is(default) = key.absent {
                map.insert("default".into(), default_value(key, default));
            }
        }
        properties.insert(key.name.into(), value);
        if matches!(key.absent, Absent::Required) {
            required.push(key.name);
        }
    }
    json!({
        "type": "object",
        "description": section.doc,
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

fn default_value(key: &Key, text: &str) -> Value {
    match key.kind {
        Kind::Integer { .. } => text.parse::<u64>().map_or_else(|_| json!(text), |n| json!(n)),
        Kind::Boolean => json!(text == "true"),
        _ => json!(text),
    }
}

fn property(names: &Names, key: &Key) -> Value {
    match key.kind {
        Kind::Text | Kind::Lock | Kind::Scheduler | Kind::Machine | Kind::Workload => {
            json!({ "type": "string" })
        }
        Kind::Numbers => {
            let number = json!({ "type": "integer", "minimum": 0 });
            json!({ "type": "array", "minItems": 1, "items": number })
        }
        Kind::Choice(_) | Kind::ChoiceOrNone(_) => json!({ "enum": key.kind.words() }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Time { min, .. } => time(min),
        Kind::Varying { min, .. } => {
            json!({ "anyOf": [time(min), { "$ref": "#/$defs/quantiles" }] })
        }
        Kind::Texts => {
            json!({ "type": "array", "minItems": 1, "items": { "type": "string" } })
        }
        Kind::Cpus => json!({ "anyOf": one_list() }),
        Kind::Affinity => {
            let each = json!({ "type": "array", "items": { "anyOf": one_list() } });
            json!({ "anyOf": [{ "type": "string" }, each] })
        }
        Kind::Table(inner) => section(names, inner),
        Kind::Tables(inner) => {
            let least = usize::from(matches!(key.absent, Absent::Required));
            json!({ "type": "array", "minItems": least, "items": section(names, inner) })
        }
        Kind::Workloads => {
            let one = json!({ "$ref": "#/$defs/workload" });
            json!({ "anyOf": [one, { "type": "array", "minItems": 1, "items": one }] })
        }
        // The scheduler is named elsewhere, where a schema cannot look.
        Kind::Params(whose) => {
            let each: Vec<Value> = params::sections(names.schedulers(), whose)
                .map(|(_, s)| section(names, s))
                .collect();
            json!({ "anyOf": each })
        }
    }
}

fn time(min: Picos) -> Value {
    let text = json!({ "type": "string", "pattern": TIME_PATTERN });
    // A bare 0 is a time without a unit; anything else needs one.
    if min == Picos::ZERO { json!({ "anyOf": [text, { "const": 0 }] }) } else { text }
}

/// A list of pCPUs: a text, or numbers.
fn one_list() -> Value {
    let numbers = json!({
        "type": "array", "minItems": 1, "items": { "type": "integer", "minimum": 0 },
    });
    json!([{ "type": "string" }, numbers])
}

/// A Markdown table for each section of a scenario file, and one for each family of schedulers.
#[must_use]
pub fn key_tables(names: &Names) -> String {
    let mut text = String::new();
    for section in SECTIONS.iter().copied() {
        table(names, &mut text, &[("", section)]);
        match section.heading {
            heading if heading == HOST.heading => families(names, Whose::Scheduler, &mut text),
            heading if heading == DOMAIN.heading => families(names, Whose::Domain, &mut text),
            heading if heading == WORKLOAD.heading => {
                let mut sections = Vec::new();
                names.workloads().all().iter().for_each(|w| with_inner(w.keys, &mut sections));
                let elsewhere = |s: &Section| SECTIONS.iter().any(|own| own.heading == s.heading);
                sections.retain(|s| !elsewhere(s));
                sections.into_iter().for_each(|s| table(names, &mut text, &[("", s)]));
            }
            _ => {}
        }
    }
    text
}

/// The tables of the parameters that schedulers bring. A scheduler and its profiles of other years, whose names begin as
/// its own, are one family.
fn families(names: &Names, whose: Whose, text: &mut String) {
    let all: Vec<_> = params::sections(names.schedulers(), whose).collect();
    let family = |name: &'static str| name.split('-').next();
    all.chunk_by(|(a, _), (b, _)| family(a) == family(b)).for_each(|of| table(names, text, of));
}

/// The table of a section, or of those of a family: a key that not all of them have, and a default that differs, name the
/// schedulers.
fn table(names: &Names, text: &mut String, family: &[(&str, &'static Section)]) {
    let [(first, section), more @ ..] = family else { return };
    let mut heading = section.heading.to_owned();
    let mut doc = format!("{}\n", section.doc);
    for (scheduler, section) in more {
        let _ = write!(heading, ", \"{scheduler}\"");
        let _ = writeln!(doc, "`{scheduler}`: {}", section.doc);
    }
    if !more.is_empty() {
        doc.insert_str(0, &format!("`{first}`: "));
        doc = doc.replace('\n', "\\\n").trim_end_matches("\\\n").to_owned() + "\n";
    }
    // Writing to a String cannot fail.
    let _ = writeln!(text, "### {heading}\n\n{doc}");
    text.push_str("| key | default | legal values | meaning |\n| --- | --- | --- | --- |\n");
    let mut keys: Vec<&'static Key> = Vec::new();
    for key in family.iter().flat_map(|(_, section)| section.keys) {
        if !keys.iter().any(|known| known.name == key.name) {
            keys.push(key);
        }
    }
    for key in keys {
        let mut defaults: Vec<(String, Vec<String>)> = Vec::new();
        for (scheduler, section) in family {
            let Some(own) = section.key(key.name) else { continue };
            let (default, scheduler) = (default(own), format!("`{scheduler}`"));
            match defaults.iter_mut().find(|(known, _)| *known == default) {
                Some((_, of)) => of.push(scheduler),
                None => defaults.push((default, vec![scheduler])),
            }
        }
        let everywhere = matches!(&defaults[..], [(_, of)] if of.len() == family.len());
        let told = defaults.into_iter().map(|(default, of)| match everywhere {
            true => default,
            false => format!("{default} ({})", of.join(", ")),
        });
        let default = told.collect::<Vec<_>>().join("; ");
        let _ =
            writeln!(text, "| `{}` | {default} | {} | {} |", key.name, short(names, key), key.doc);
    }
    text.push('\n');
}

/// The value of a key that is left out.
fn default(key: &Key) -> String {
    match key.absent {
        Absent::Required => "required".to_owned(),
        Absent::Is("") => "empty".to_owned(),
        Absent::Is(value) => format!("`{value}`"),
        Absent::Defaults(words) | Absent::Follows(_, words) | Absent::Means(words) => {
            words.to_owned()
        }
    }
}

/// Adds a section and the sections within it, each once.
fn with_inner(section: &'static Section, all: &mut Vec<&'static Section>) {
    if all.iter().any(|known| known.heading == section.heading) {
        return;
    }
    all.push(section);
    for key in section.keys {
        if let Kind::Table(inner) | Kind::Tables(inner) = key.kind {
            with_inner(inner, all);
        }
    }
}

/// Legal values, short enough for a table.
fn short(names: &Names, key: &Key) -> String {
    match key.kind {
        Kind::Time { min, max } => format!("time, {min} to {max}"),
        Kind::Varying { min, max } => format!("time, {min} to {max}, or quantiles"),
        Kind::Integer { min, max: u64::MAX } => format!("integer from {min}"),
        Kind::Integer { min, max } => format!("integer, {min} to {max}"),
        Kind::Text => "text".into(),
        Kind::Texts => "array of texts".into(),
        Kind::Cpus => "CPU list".into(),
        Kind::Affinity => "CPU list, or an array of them".into(),
        Kind::Choice(_) | Kind::ChoiceOrNone(_) => quoted(key.kind.words().into_iter()),
        Kind::Workload => quoted(names.workloads().all().iter().map(|w| w.name)),
        _ => legal(key),
    }
}

fn quoted(words: impl Iterator<Item = &'static str>) -> String {
    words.map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ")
}
