//! `-L key=a,b,c` and `-P key=from..to[:step]` add an axis to a scenario as a `[[vary]]` table would. The
//! letters are those of hyperfine: a list, and a range of numbers.

use super::tree::{At, Document, Entry, Node, Source, Table, Value};
use overspin_located::LocatedError;

/// Most values of one range: more would be a typing mistake.
const MOST_VALUES: usize = 10_000;

/// An axis of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AxisArgument {
    /// `-L key=a,b,c`: these values.
    List(String),
    /// `-P key=from..to[:step]`: numbers from `from` to `to`. The step is a number (default 1), or `x` and a
    /// factor; all three may have one unit, such as `us`.
    Range(String),
    /// A key and its values one by one, from a program: a value may contain a comma.
    Values(String, Vec<String>),
}

/// Adds an axis to the document. It replaces a `[[vary]]` of the same key.
pub(super) fn apply(document: &mut Document, argument: &AxisArgument) -> Result<(), LocatedError> {
    let shown;
    let (option, text) = match argument {
        AxisArgument::List(text) => ("-L", text),
        AxisArgument::Range(text) => ("-P", text),
        AxisArgument::Values(key, values) => {
            shown = format!("{key}={}", values.join(","));
            ("axis", &shown)
        }
    };
    let source = document.sources.len();
    document.sources.push(Source { name: option.into(), text: text.as_str().into() });
    let at = At { source, span: 0..text.len() };
    let fail = |message: String| {
        let help = match argument {
            AxisArgument::List(_) => {
                "write -L key=value,value,..., for example -L domain.guest.lock=ticket,mcs"
            }
            AxisArgument::Range(_) => {
                "write -P key=from..to or -P key=from..to:step, for example -P domain.guest.vcpus=2..16:2, \
                 -P domain.guest.vcpus=1..16:x2 or -P domain.guest.workload.section=1us..9us:2us"
            }
            AxisArgument::Values(..) => "give a dotted key and at least one value",
        };
        document.error(&at, text, message, help)
    };
    let Some((key, values)) = text.split_once('=') else {
        return Err(fail(format!("`{text}` has no `=`")));
    };
    let values = match argument {
        AxisArgument::List(_) => values.split(',').map(|v| v.trim().to_owned()).collect(),
        AxisArgument::Range(_) => range(values).map_err(fail)?,
        AxisArgument::Values(_, values) => values.clone(),
    };
    if values.is_empty() || values.iter().any(String::is_empty) {
        return Err(fail(format!("`{text}` has an empty value")));
    }
    let key = key.trim();
    let vary = vary(document, &at);
    vary.retain(|node| text_of(node, "set").is_none_or(|set| set.trim() != key));
    let taken: Vec<&str> = vary.iter().filter_map(|node| text_of(node, "name")).collect();
    let short = short_name(key);
    let name = if taken.contains(&short.as_str()) { key.to_owned() } else { short };
    let node = |value| Node { value, at: at.clone() };
    let entry = |key: &str, value| Entry { key: key.into(), key_at: at.clone(), node: node(value) };
    let to = values.into_iter().map(|v| node(Value::Text(v))).collect();
    let entries = vec![
        entry("name", Value::Text(name)),
        entry("set", Value::Text(key.to_owned())),
        entry("to", Value::Array(to)),
    ];
    vary.push(node(Value::Table(Table { entries })));
    Ok(())
}

/// The list of the document's `[[vary]]` tables, which is made if there is none.
fn vary<'a>(document: &'a mut Document, at: &At) -> &'a mut Vec<Node> {
    let Value::Table(root) = &mut document.root.value else {
        unreachable!("the root of a document is a table")
    };
    // Something else there is replaced: the scenario needs no `vary` of another type.
    let is_list = |e: &Entry| matches!(e.node.value, Value::Array(_));
    if !root.get("vary").is_some_and(is_list) {
        root.remove("vary");
        let node = Node { value: Value::Array(Vec::new()), at: at.clone() };
        root.entries.push(Entry { key: "vary".into(), key_at: at.clone(), node });
    }
    match root.get_mut("vary").map(|e| &mut e.node.value) {
        Some(Value::Array(nodes)) => nodes,
        _ => unreachable!("it was made above"),
    }
}

fn text_of<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    let Value::Table(table) = &node.value else { return None };
    match &table.get(key)?.node.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// The last word of each key: `vcpus/cores` for `domain.guest.vcpus / host.cores`.
fn short_name(key: &str) -> String {
    let last = |part: &str| part.trim().rsplit('.').next().unwrap_or_default().to_owned();
    key.split('/').map(last).collect::<Vec<_>>().join("/")
}

/// The values of `from..to[:step]`.
fn range(text: &str) -> Result<Vec<String>, String> {
    let (ends, step) = match text.split_once(':') {
        Some((ends, step)) => (ends, Some(step.trim())),
        None => (text, None),
    };
    let (from, to) = ends.split_once("..").ok_or_else(|| format!("`{text}` has no `..`"))?;
    let (from, unit) = number(from)?;
    let (to, unit_of_to) = number(to)?;
    if unit != unit_of_to {
        return Err(format!("`{ends}` has two units, `{unit}` and `{unit_of_to}`"));
    }
    let next: Box<dyn Fn(usize) -> f64> = match step {
        Some(factor) if factor.starts_with('x') => {
            let (factor, no_unit) = number(&factor[1..])?;
            if factor <= 1.0 || !no_unit.is_empty() || from <= 0.0 {
                return Err(
                    "a factor must be greater than 1, and the range must begin above 0".into()
                );
            }
            Box::new(move |i| from * factor.powi(i32::try_from(i).unwrap_or(i32::MAX)))
        }
        step => {
            let (step, unit_of_step) = step.map_or(Ok((1.0, unit)), number)?;
            if unit_of_step != unit {
                return Err(format!("the step has the unit `{unit_of_step}`, the ends `{unit}`"));
            }
            if step <= 0.0 {
                return Err("the step must be greater than 0".into());
            }
            // A product, not a sum: ten steps of 0.1 are 1.
            Box::new(move |i| from + i as f64 * step)
        }
    };
    // The last value may miss the end by rounding.
    let within = |value: &f64| *value <= to + 1e-9 * to.abs().max(1.0);
    let values: Vec<f64> = (0..=MOST_VALUES).map(next).take_while(within).collect();
    match values.len() {
        0 => Err(format!("`{ends}` ends before it begins")),
        n if n > MOST_VALUES => Err(format!("`{text}` has more than {MOST_VALUES} values")),
        _ => Ok(values.into_iter().map(|v| format!("{}{unit}", rounded(v))).collect()),
    }
}

/// A number, and the unit behind it.
fn number(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    match number.trim().parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((value, unit)),
        _ => Err(format!("`{text}` is not a number")),
    }
}

/// The value without the noise of binary fractions.
fn rounded(value: f64) -> f64 {
    let digits = 12 - value.abs().log10().max(0.0).ceil() as i32;
    let scale = 10_f64.powi(digits.max(0));
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_their_ends_and_their_unit() {
        for (text, values) in [
            ("1..4", vec!["1", "2", "3", "4"]),
            ("2..9:3", vec!["2", "5", "8"]),
            ("1..16:x2", vec!["1", "2", "4", "8", "16"]),
            ("1us..2us:0.5us", vec!["1us", "1.5us", "2us"]),
            (
                "0..1:0.1",
                vec!["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"],
            ),
            ("5..5", vec!["5"]),
        ] {
            assert_eq!(
                range(text).as_deref(),
                Ok(&values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>()[..]),
                "{text}"
            );
        }
    }

    #[test]
    fn ranges_that_are_none_are_refused() {
        for (text, reason) in [
            ("1-4", "has no `..`"),
            ("4..1", "ends before it begins"),
            ("1..4:0", "greater than 0"),
            ("1..4:-1", "greater than 0"),
            ("1us..4ms", "two units"),
            ("1us..4us:1ms", "the step has the unit"),
            ("0..4:x2", "above 0"),
            ("1..4:x1", "greater than 1"),
            ("a..b", "not a number"),
            ("1..inf", "not a number"),
            ("0..1:0.000001", "more than 10000"),
        ] {
            let error = range(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
