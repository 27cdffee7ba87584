//! `--set key=value` puts a value at a dotted path of a document. Array elements are named by their number or
//! by their `name`: `domain.0.lock=ticket`, `domain.guest.lock=ticket`.

use super::tree::{At, Document, Entry, Node, Source, Table, Value, convert};
use overspin_located::LocatedError;
use toml::de::DeValue;

/// Most keys of a path: no key of a scenario is so deep, and the stack is limited.
const DEEPEST: usize = 16;

/// Applies one override. Reading the document later checks whether the key exists and the value fits; errors
/// then point into `argument`.
pub(crate) fn apply(document: &mut Document, argument: &str) -> Result<(), LocatedError> {
    let source = document.sources.len();
    document.sources.push(Source { name: "--set".into(), text: argument.into() });
    let whole = At { source, span: 0..argument.len() };
    let usage = "write --set key.key=value, for example --set domain.0.lock=ticket";
    let Some(equals) = argument.find('=') else {
        return Err(document.error(&whole, argument, format!("`{argument}` has no `=`"), usage));
    };
    let (path, text) = (&argument[..equals], &argument[equals + 1..]);
    let value = value(text, source, equals + 1);

    let mut segments = Vec::new();
    let mut start = 0;
    for segment in path.split('.') {
        let span = start..start + segment.len();
        start = span.end + 1;
        let name = segment.trim();
        if name.is_empty() {
            return Err(document.error(
                &At { source, span },
                path,
                "a key in the path is empty",
                usage,
            ));
        }
        if segments.len() == DEEPEST {
            let message = format!("the path has more than {DEEPEST} keys, and no key is so deep");
            return Err(document.error(&At { source, span }, "", message, usage));
        }
        segments.push((name, At { source, span }));
    }
    // Split borrow: errors need the sources while the tree is being changed.
    let mut root =
        std::mem::replace(&mut document.root, Node { value: Value::Boolean(false), at: whole });
    let result = put(&mut root, &segments, value, path, document);
    document.root = root;
    result
}

/// A TOML value if the text is one, otherwise the text itself: `--set limit=5s` needs no quotes.
fn value(text: &str, source: usize, offset: usize) -> Node {
    match DeValue::parse(text) {
        Ok(parsed) => {
            let mut node = convert(parsed, source);
            shift(&mut node, offset);
            node
        }
        Err(_) => Node {
            value: Value::Text(text.to_owned()),
            at: At { source, span: offset..offset + text.len() },
        },
    }
}

/// Shifts the places of a value that was parsed from a part of a longer text.
fn shift(node: &mut Node, by: usize) {
    node.at.span = node.at.span.start + by..node.at.span.end + by;
    match &mut node.value {
        Value::Array(items) => items.iter_mut().for_each(|n| shift(n, by)),
        Value::Table(table) => {
            for entry in &mut table.entries {
                let span = &entry.key_at.span;
                entry.key_at.span = span.start + by..span.end + by;
                shift(&mut entry.node, by);
            }
        }
        _ => {}
    }
}

fn put(
    node: &mut Node,
    segments: &[(&str, At)],
    value: Node,
    path: &str,
    document: &Document,
) -> Result<(), LocatedError> {
    let Some(((name, at), rest)) = segments.split_first() else {
        *node = value;
        return Ok(());
    };
    match &mut node.value {
        Value::Table(table) => {
            if table.get(name).is_none() {
                let empty = Node { value: Value::Table(Table::default()), at: at.clone() };
                table.entries.push(Entry {
                    key: (*name).to_owned(),
                    key_at: at.clone(),
                    node: empty,
                });
            }
            match table.get_mut(name) {
                Some(entry) => put(&mut entry.node, rest, value, path, document),
                None => Ok(()),
            }
        }
        Value::Array(items) => {
            let count = items.len();
            let names: Vec<String> = items.iter().filter_map(name_of).map(str::to_owned).collect();
            let index = name
                .parse()
                .ok()
                .or_else(|| items.iter().position(|item| name_of(item) == Some(*name)));
            match index.and_then(|i: usize| items.get_mut(i)) {
                Some(item) => put(item, rest, value, path, document),
                None => {
                    let known = if names.is_empty() {
                        String::new()
                    } else {
                        format!(" or {}", names.join(", "))
                    };
                    let help = match count {
                        0 => "the file has none".to_owned(),
                        n => format!("choose 0 to {}{known}", n - 1),
                    };
                    Err(document.error(at, path, format!("there is no element `{name}`"), help))
                }
            }
        }
        other => {
            let message = format!("`{name}` is inside {}, which has no keys", other.kind());
            Err(document.error(at, path, message, "shorten the path"))
        }
    }
}

/// The name of a table, if it has one.
pub(crate) fn name_of(node: &Node) -> Option<&str> {
    let Value::Table(table) = &node.value else { return None };
    match &table.get("name")?.node.value {
        Value::Text(name) => Some(name),
        _ => None,
    }
}
