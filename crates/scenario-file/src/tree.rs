//! A TOML document as an owned tree that remembers the place of each key and value. `--set` overrides are
//! further sources of the same tree, so that an error in one points into it.

use overspin_located::LocatedError;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A text that contains keys and values.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name in messages.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
}

impl Source {
    fn error(
        &self,
        span: Range<usize>,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> LocatedError {
        LocatedError::at(&self.name, Arc::clone(&self.text), span, key, message, help)
    }
}

/// A place in a source.
#[derive(Clone, Debug)]
pub struct At {
    /// Index of the source in its document.
    pub source: usize,
    /// Bytes of the source's text.
    pub span: Range<usize>,
}

/// A value of TOML. Numbers with a fraction and dates have no use in scenarios.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    Text(String),
    /// An integer; `None` if it does not fit even 128 bits.
    Integer(Option<i128>),
    /// A number with a fraction.
    Float,
    /// True or false.
    Boolean(bool),
    /// A date or a time of day.
    Datetime,
    /// Values in order.
    Array(Vec<Node>),
    /// Keys with values.
    Table(Table),
}

impl Value {
    /// The type, in plain words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float => "a decimal number",
            Self::Boolean(_) => "a boolean",
            Self::Datetime => "a date",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }
}

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its place.
    pub at: At,
}

impl Node {
    /// The node at a dotted path; array elements are addressed by number or by their `name`.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |node, part| match &node.value {
            Value::Table(table) => table.get(part).map(|e| &e.node),
            Value::Array(items) => match part.parse::<usize>() {
                Ok(i) => items.get(i),
                Err(_) => items.iter().find(|item| {
                    matches!(item.find("name").map(|n| &n.value), Some(Value::Text(name)) if name == part)
                }),
            },
            _ => None,
        })
    }
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Its place.
    pub key_at: At,
    /// The value.
    pub node: Node,
}

/// Entries in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The entries.
    pub entries: Vec<Entry>,
}

impl Table {
    /// The entry of this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    /// Removes and returns an entry.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|e| e.key == key)?;
        Some(self.entries.remove(at))
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|e| e.key == key)
    }
}

/// A document: its sources and its root.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file, then the arguments of the command line.
    pub sources: Vec<Source>,
    /// The table at the top.
    pub root: Node,
}

impl Document {
    /// Parses `text`; messages call it `name`.
    ///
    /// # Errors
    /// If it is not TOML.
    pub fn parse(name: &str, text: &str) -> Result<Self, LocatedError> {
        let sources = vec![Source { name: name.to_owned(), text: text.into() }];
        match DeTable::parse(text) {
            Ok(table) => {
                let span = table.span();
                let value = convert_table(table.into_inner(), 0);
                Ok(Self { sources, root: Node { value, at: At { source: 0, span } } })
            }
            Err(error) => {
                let at = At { source: 0, span: error.span().unwrap_or(0..0) };
                let message = format!("this is not TOML: {}", error.message());
                let help = "quote texts and times (limit = \"5s\"), use a key only once in its table, \
                            and open a table with [name]";
                Err(sources[0].error(at.span, "", message, help))
            }
        }
    }

    /// An error at a place in this document.
    pub fn error(
        &self,
        at: &At,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> LocatedError {
        self.sources[at.source].error(at.span.clone(), key, message, help)
    }
}

/// Converts a parsed value whose text belongs to `source`.
pub(crate) fn convert(value: Spanned<DeValue<'_>>, source: usize) -> Node {
    let at = At { source, span: value.span() };
    let value = match value.into_inner() {
        DeValue::String(s) => Value::Text(s.into_owned()),
        DeValue::Integer(i) => {
            Value::Integer(i128::from_str_radix(&i.as_str().replace('_', ""), i.radix()).ok())
        }
        DeValue::Float(_) => Value::Float,
        DeValue::Boolean(b) => Value::Boolean(b),
        DeValue::Datetime(_) => Value::Datetime,
        DeValue::Array(a) => Value::Array(a.iter().map(|v| convert(v.clone(), source)).collect()),
        DeValue::Table(t) => convert_table(t, source),
    };
    Node { value, at }
}

fn convert_table(table: DeTable<'_>, source: usize) -> Value {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| Entry {
            key_at: At { source, span: key.span() },
            key: key.into_inner().into_owned(),
            node: convert(value, source),
        })
        .collect();
    // The parser sorts by name; a person reads from the top, and our messages use that order.
    entries.sort_by_key(|e| e.key_at.span.start);
    Value::Table(Table { entries })
}
