//! Records as text: JSON that a person can read and compare line by line, and CSV of the samples.

use super::{Record, Sample};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;

/// Longest line of JSON for several values: a sample, a run, a short list.
const LINE: usize = 140;

impl Record {
    /// As JSON, with a newline at the end. Equal records give equal bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        pretty(self)
    }
}

/// A value as JSON with a newline at the end, a line for each part that fits one.
pub fn pretty(value: &impl Serialize) -> String {
    // Records have only numbers, texts, lists and structs, which JSON can express.
    let value = serde_json::to_value(value).unwrap_or_default();
    let mut out = String::new();
    write(&value, 0, &mut out);
    out.push('\n');
    out
}

/// Writes a value: on one line if it fits, otherwise on a line for each part.
fn write(value: &Value, depth: usize, out: &mut String) {
    let (open, close, parts) = match value {
        Value::Array(all) if !all.is_empty() => {
            ('[', ']', all.iter().map(|v| (None, v)).collect::<Vec<_>>())
        }
        Value::Object(all) if !all.is_empty() => {
            ('{', '}', all.iter().map(|(key, v)| (Some(key), v)).collect())
        }
        // Writing to a String cannot fail, here and below.
        _ => {
            let _ = write!(out, "{value}");
            return;
        }
    };
    // The record itself is never on one line.
    if depth > 0
        && let Some(line) = one_line(value)
    {
        out.push_str(&line);
        return;
    }
    out.push(open);
    for (i, (key, part)) in parts.into_iter().enumerate() {
        out.push_str(if i == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n("  ", depth + 1));
        if let Some(key) = key {
            let _ = write!(out, "{}: ", Value::from(key.as_str()));
        }
        write(part, depth + 1, out);
    }
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
    out.push(close);
}

/// The value on one line, if it is short enough.
fn one_line(value: &Value) -> Option<String> {
    let mut line = String::new();
    spaced(value, &mut line).then_some(line)
}

/// Writes a value on one line with spaces; stops and returns `false` when it gets too long.
fn spaced(value: &Value, out: &mut String) -> bool {
    let (open, close, parts) = match value {
        Value::Array(all) => ("[", "]", all.iter().map(|v| (None, v)).collect::<Vec<_>>()),
        Value::Object(all) => ("{", "}", all.iter().map(|(key, v)| (Some(key), v)).collect()),
        _ => {
            let _ = write!(out, "{value}");
            return out.len() <= LINE;
        }
    };
    // Each part takes at least two characters: do not write what cannot fit.
    if out.len() + 2 * parts.len() > LINE {
        return false;
    }
    out.push_str(open);
    for (i, (key, part)) in parts.into_iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        if let Some(key) = key {
            let _ = write!(out, "{}: ", Value::from(key.as_str()));
        }
        if !spaced(part, out) {
            return false;
        }
    }
    out.push_str(close);
    out.len() <= LINE
}

/// The samples of a record as CSV (RFC 4180, except for the line ends): a header, and a line for each number.
#[must_use]
pub fn csv(record: &Record) -> String {
    let seeds: HashMap<u32, u64> =
        record.runs.iter().filter_map(|r| r.seed.map(|seed| (r.number, seed))).collect();
    rows(&record.samples, |run| seeds.get(&run).copied().or(record.seed))
}

/// Rows of samples whose runs have these seeds.
pub fn rows(samples: &[Sample], seed: impl Fn(u32) -> Option<u64>) -> String {
    let mut out = "run,seed,where,metric,unit,value\n".to_owned();
    for s in samples {
        let seed = seed(s.run).map_or_else(String::new, |seed| seed.to_string());
        let [place, metric, unit] = [&s.place, &s.metric, &s.unit].map(|text| quoted(text));
        let _ = writeln!(out, "{},{seed},{place},{metric},{unit},{}", s.run, s.value);
    }
    out
}

/// A field, quoted if necessary.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
