//! Machines as tables, for `overspin list machines` and `docs/machines.md`.

use super::{Basis, DEFAULT, MACHINES, Machine, Unit, Value};
use crate::cost_keys;
use overspin_report::{Block, Grid, wrap_to};
use overspin_scenario::{NS, US};

/// Longest line of a source in a table.
const WIDTH: usize = 70;

/// Keys for which a machine has values, in the order of the documentation.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    std::iter::once("smt_permille").chain(cost_keys())
}

/// All machines, with their descriptions and costs.
#[must_use]
pub fn comparison() -> Vec<Block> {
    let mut machines = Grid::new(2, &["name", "what it is", "year", "MHz", "values", "sourced"]);
    for m in MACHINES {
        let sourced = m.values.iter().filter(|v| matches!(v.basis, Basis::Source(_))).count();
        machines.row([
            m.name.into(),
            m.brief.into(),
            m.year.to_string(),
            m.mhz.to_string(),
            m.values.len().to_string(),
            sourced.to_string(),
        ]);
    }
    let header: Vec<&str> = std::iter::once("key").chain(MACHINES.iter().map(|m| m.name)).collect();
    let mut costs = Grid::new(1, &header);
    let mut same = Vec::new();
    for key in keys() {
        let of = |m: &Machine| m.value(key).map_or_else(String::new, |(v, of)| shown(v, of));
        let values: Vec<String> = MACHINES.iter().map(of).collect();
        match values.iter().all(|value| *value == values[0]) {
            true => same.push(format!("`{key}` {}", values[0])),
            false => costs.rows.push(std::iter::once(key.to_owned()).chain(values).collect()),
        }
    }
    let same = format!("On all of them: {}.", same.join(", "));
    vec![Block::Grid(machines), Block::Text(same), Block::Grid(costs)]
}

/// One machine: each of its own values as published, and how it is known.
#[must_use]
pub fn tables(machine: &Machine) -> Vec<Block> {
    let mut grid = Grid::new(1, &["key", "value", "given as", "range", "source"]);
    grid.notes = 1;
    for key in keys() {
        let Some(value) = machine.own(key) else { continue };
        let (range, from) = basis(value);
        grid.row([
            key.into(),
            shown(value, machine),
            format!("{} {}", value.amount, value.unit.name()),
            range,
            wrap_to(&told_before(machine, key, value).unwrap_or(from), WIDTH),
        ]);
    }
    let others = match grid.rows.len() < keys().count() {
        true => format!(" All other values are those of {}.", DEFAULT.name),
        false => String::new(),
    };
    vec![
        Block::Heading(machine.name.into()),
        Block::Text(format!(
            "{}. {} MHz; sold in {}.{others}",
            machine.brief, machine.mhz, machine.year
        )),
        Block::Grid(grid),
    ]
}

/// Where the source of a value is told, if an earlier machine has the same for this key.
fn told_before(machine: &Machine, key: &str, value: &Value) -> Option<String> {
    let earlier = MACHINES.iter().take_while(|m| m.name != machine.name);
    let mut same = earlier.filter(|m| m.own(key).is_some_and(|v| v.basis == value.basis));
    same.next().map(|m| format!("as {}", m.name))
}

/// A value as a scenario would state it, to three digits: no cost is known more precisely.
fn shown(value: &Value, of: &Machine) -> String {
    let Some(time) = value.time(value.amount, of.mhz) else { return value.amount.to_string() };
    let (amount, unit) = if time < US { (time.ratio(NS), "ns") } else { (time.micros(), "us") };
    let digits = if amount < 9.995 {
        2
    } else if amount < 99.95 {
        1
    } else {
        0
    };
    let text = format!("{amount:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

/// The range, empty for a published value, and the source.
fn basis(value: &Value) -> (String, String) {
    match value.basis {
        Basis::Source(source) | Basis::Chosen(source) => (String::new(), source.to_owned()),
        Basis::Assumed { low, high, from } => {
            let unit = if value.unit == Unit::Permille { "" } else { value.unit.name() };
            (format!("{low} to {high} {unit}").trim_end().into(), format!("assumed: {from}"))
        }
    }
}
