//! Takes typed values out of one table and says precisely what is wrong with those that do not
//! fit. Opening a table checks its key names first: a misspelt key is the cause, a missing one
//! only the effect.

use super::ScenarioError;
use super::keys::{Absent, Key, Kind, Section};
use super::quantity::{format_time, parse_time};
use super::tree::{At, Document, Node, Table, Value};
use super::words::{expected, legal};
use overspin_locks::LockInfo;
use overspin_scenario::Picos;
use overspin_sched::{SchedulerInfo, nearest};

type Result<T> = std::result::Result<T, ScenarioError>;

/// One table of a document, with the section that says what may stand in it.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    document: &'a Document,
    table: &'a Table,
    /// The table itself, for what is missing in it.
    pub(crate) at: &'a At,
    /// Dotted path of the table, empty at the top.
    path: String,
    section: &'static Section,
}

impl<'a> Reader<'a> {
    /// Opens `node` as a table of `section`.
    pub(crate) fn open(
        document: &'a Document,
        node: &'a Node,
        path: String,
        section: &'static Section,
    ) -> Result<Self> {
        let Value::Table(table) = &node.value else {
            return Err(document.error(
                &node.at,
                &path,
                format!("`{path}` is {}, and must be a table", node.value.kind()),
                format!("write it as {}", section.heading),
            ));
        };
        let reader = Self { document, table, at: &node.at, path, section };
        for entry in &table.entries {
            if section.key(&entry.key).is_none() {
                return Err(reader.unknown_key(&entry.key, &entry.key_at));
            }
        }
        Ok(reader)
    }

    fn unknown_key(&self, name: &str, at: &At) -> ScenarioError {
        let known: Vec<&str> = self.section.names().collect();
        let guess = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? "),
            None => String::new(),
        };
        let message = format!("`{name}` is not a key of {}", self.section.heading);
        let help = format!("{guess}legal keys are: {}", known.join(", "));
        self.document.error(at, &self.full(name), message, help)
    }

    /// Dotted path of a key in this table.
    pub(crate) fn full(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// The value of a key, if it is there.
    pub(crate) fn node(&self, name: &str) -> Option<&'a Node> {
        self.table.get(name).map(|e| &e.node)
    }

    /// An error about the value of `name`, or about the table if the key is absent.
    pub(crate) fn error(
        &self,
        name: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> ScenarioError {
        let at = self.node(name).map_or(self.at, |n| &n.at);
        self.document.error(at, &self.full(name), message, help)
    }

    /// An error about a place in the value of `name`.
    pub(crate) fn error_at(
        &self,
        at: &At,
        name: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> ScenarioError {
        self.document.error(at, &self.full(name), message, help)
    }

    fn key(&self, name: &str) -> &'static Key {
        match self.section.key(name) {
            Some(key) => key,
            // The names are literals in `build.rs`; a test reads every section in full.
            None => unreachable!("`{name}` is not declared for {}", self.section.heading),
        }
    }

    fn missing(&self, key: &Key) -> ScenarioError {
        let message = format!("`{}` is missing in {}", key.name, self.section.heading);
        self.document.error(
            self.at,
            &self.full(key.name),
            message,
            format!("{}; {}", key.doc, legal(key)),
        )
    }

    pub(crate) fn wrong_type(&self, name: &str, node: &Node) -> ScenarioError {
        let full = self.full(name);
        let message =
            format!("`{full}` is {}, and must be {}", node.value.kind(), expected(self.key(name)));
        self.document.error(&node.at, &full, message, legal(self.key(name)))
    }

    /// A text, or the default; `None` where absence has a meaning of its own.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        let key = self.key(name);
        match self.node(name) {
            Some(node) => match &node.value {
                Value::Text(text) => Ok(Some(text.clone())),
                _ => Err(self.wrong_type(name, node)),
            },
            None => match key.absent {
                Absent::Required => Err(self.missing(key)),
                Absent::Is(default) => Ok(Some(default.to_owned())),
                Absent::Means(_) => Ok(None),
            },
        }
    }

    /// A time.
    pub(crate) fn time(&self, name: &str) -> Result<Option<Picos>> {
        let key = self.key(name);
        let Kind::Time { min, max } = key.kind else { unreachable!("`{name}` is not a time") };
        let Some(node) = self.node(name) else {
            return match key.absent {
                Absent::Required => Err(self.missing(key)),
                Absent::Is(default) => Ok(parse_time(default).ok()),
                Absent::Means(_) => Ok(None),
            };
        };
        let full = self.full(name);
        let fail = |reason: String| {
            Err(self.document.error(&node.at, &full, format!("`{full}`: {reason}"), legal(key)))
        };
        let picos = match &node.value {
            Value::Text(text) => match parse_time(text) {
                Ok(picos) => picos,
                Err(reason) => return fail(reason),
            },
            Value::Integer(Some(0)) => 0,
            Value::Integer(Some(i)) if *i < 0 => return fail("a time cannot be negative".into()),
            Value::Integer(_) | Value::Float => return fail("the unit is missing".into()),
            _ => return Err(self.wrong_type(name, node)),
        };
        if picos < min || picos > max {
            return fail(format!("{} is out of range", format_time(picos)));
        }
        Ok(Some(picos))
    }

    /// A time that is there or has a default.
    pub(crate) fn some_time(&self, name: &str) -> Result<Picos> {
        self.time(name)?.ok_or_else(|| self.missing(self.key(name)))
    }

    /// A whole number.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<u64>> {
        let key = self.key(name);
        let Kind::Integer { min, max } = key.kind else { unreachable!("`{name}` is not a number") };
        let Some(node) = self.node(name) else {
            return match key.absent {
                Absent::Required => Err(self.missing(key)),
                Absent::Is(default) => Ok(default.parse().ok()),
                Absent::Means(_) => Ok(None),
            };
        };
        let Value::Integer(value) = node.value else { return Err(self.wrong_type(name, node)) };
        match value.and_then(|v| u64::try_from(v).ok()) {
            Some(v) if (min..=max).contains(&v) => Ok(Some(v)),
            _ => {
                let full = self.full(name);
                let shown = value.map_or_else(|| "the number".into(), |v| v.to_string());
                let message = format!("`{full}`: {shown} is out of range");
                Err(self.document.error(&node.at, &full, message, legal(key)))
            }
        }
    }

    /// A whole number that is there or has a default; its range fits 32 bits.
    pub(crate) fn u32(&self, name: &str) -> Result<u32> {
        let value = self.integer(name)?.ok_or_else(|| self.missing(self.key(name)))?;
        u32::try_from(value)
            .map_err(|_| self.error(name, format!("`{name}` is too large"), legal(self.key(name))))
    }

    /// A whole number that is there or has a default.
    pub(crate) fn u64(&self, name: &str) -> Result<u64> {
        self.integer(name)?.ok_or_else(|| self.missing(self.key(name)))
    }

    /// A boolean that is there or has a default.
    pub(crate) fn boolean(&self, name: &str) -> Result<bool> {
        let key = self.key(name);
        match self.node(name) {
            Some(node) => match node.value {
                Value::Boolean(b) => Ok(b),
                _ => Err(self.wrong_type(name, node)),
            },
            None => match key.absent {
                Absent::Is(default) => Ok(default == "true"),
                _ => Err(self.missing(key)),
            },
        }
    }

    /// An array of at least one text.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>> {
        let node = self.node(name).ok_or_else(|| self.missing(self.key(name)))?;
        let Value::Array(items) = &node.value else { return Err(self.wrong_type(name, node)) };
        if items.is_empty() {
            return Err(self.error(
                name,
                format!("`{}` is empty", self.full(name)),
                legal(self.key(name)),
            ));
        }
        let text = |item: &Node| match &item.value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(self.wrong_type(name, item)),
        };
        items.iter().map(text).collect()
    }

    /// A name out of `known`.
    pub(crate) fn name(&self, name: &str, known: &[&'static str]) -> Result<String> {
        self.named(name, known, |text| known.contains(&text).then(|| text.to_owned()))
    }

    /// The lock that `name` names, by its own name or by an alias.
    pub(crate) fn lock(&self, name: &str) -> Result<&'static LockInfo> {
        let known: Vec<&'static str> = overspin_locks::infos().iter().map(|l| l.name).collect();
        self.named(name, &known, overspin_locks::find)
    }

    /// The scheduler that `name` names, by its own name or by an alias.
    pub(crate) fn scheduler(&self, name: &str) -> Result<&'static SchedulerInfo> {
        let known: Vec<&'static str> =
            overspin_sched::schedulers().iter().map(|s| s.name).collect();
        self.named(name, &known, |text| overspin_sched::find(text).ok())
    }

    /// What `find` finds by the text of `name`; `known` are the names that a complaint lists.
    fn named<T>(
        &self,
        name: &str,
        known: &[&'static str],
        find: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T> {
        // `--set` and `[[vary]]` take a name that is a number for one.
        let text = match self.node(name).map(|node| &node.value) {
            Some(Value::Integer(Some(n))) if known.contains(&n.to_string().as_str()) => {
                n.to_string()
            }
            _ => self.text(name)?.ok_or_else(|| self.missing(self.key(name)))?,
        };
        if let Some(found) = find(&text) {
            return Ok(found);
        }
        let what = match self.key(name).kind {
            Kind::Lock => "lock",
            Kind::Scheduler => "scheduler",
            Kind::Machine => "machine",
            Kind::Choice(_) if name != "kind" => "choice",
            _ => "workload",
        };
        let guess = match nearest(&text, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? "),
            None => String::new(),
        };
        Err(self.error(
            name,
            format!("`{}`: there is no {what} `{text}`", self.full(name)),
            format!("{guess}{what}s are: {}", known.join(", ")),
        ))
    }

    /// A table within this one; `None` if it is absent and need not be there.
    pub(crate) fn table(&self, name: &str) -> Result<Option<Self>> {
        let key = self.key(name);
        let Kind::Table(section) = key.kind else { unreachable!("`{name}` is not a table") };
        match self.node(name) {
            Some(node) => Reader::open(self.document, node, self.full(name), section).map(Some),
            None if matches!(key.absent, Absent::Required) => Err(self.missing(key)),
            None => Ok(None),
        }
    }

    /// A table within this one whose keys the caller knows; `None` if it is absent.
    pub(crate) fn table_of(&self, name: &str, section: &'static Section) -> Result<Option<Self>> {
        let open = |node| Reader::open(self.document, node, self.full(name), section);
        self.node(name).map(open).transpose()
    }

    /// An error about the value of `key` in the table `table`, or about the nearest thing that is
    /// there.
    pub(crate) fn error_in(
        &self,
        table: &str,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> ScenarioError {
        let inner = match self.node(table).map(|n| &n.value) {
            Some(Value::Table(inner)) => inner.get(key).map(|e| &e.node.at),
            _ => None,
        };
        let at = inner.or(self.node(table).map(|n| &n.at)).unwrap_or(self.at);
        self.document.error(at, &format!("{}.{key}", self.full(table)), message, help)
    }

    /// An array of tables within this one; empty if it is absent and need not be there.
    pub(crate) fn tables(&self, name: &str) -> Result<Vec<Self>> {
        let key = self.key(name);
        let Kind::Tables(section) = key.kind else {
            unreachable!("`{name}` is not an array of tables")
        };
        let nodes = match self.node(name) {
            Some(Node { value: Value::Array(nodes), .. }) => nodes,
            Some(node) => return Err(self.wrong_type(name, node)),
            None if matches!(key.absent, Absent::Required) => return Err(self.missing(key)),
            None => return Ok(Vec::new()),
        };
        if nodes.is_empty() && matches!(key.absent, Absent::Required) {
            return Err(self.error(name, format!("`{}` is empty", self.full(name)), legal(key)));
        }
        let open = |(i, node)| {
            Reader::open(self.document, node, format!("{}.{i}", self.full(name)), section)
        };
        nodes.iter().enumerate().map(open).collect()
    }

    /// The workload table, opened with the section that its `kind` asks for.
    pub(crate) fn one_of(&self, name: &str, kinds: &[&'static str]) -> Result<(Self, String)> {
        let key = self.key(name);
        let Kind::OneOf(sections) = key.kind else { unreachable!("`{name}` has no kinds") };
        let node = self.node(name).ok_or_else(|| self.missing(key))?;
        let Value::Table(table) = &node.value else { return Err(self.wrong_type(name, node)) };
        // The kind decides which other keys are legal, so it is read before they are checked.
        let loose = Self {
            document: self.document,
            table,
            at: &node.at,
            path: self.full(name),
            section: sections[0],
        };
        let kind = loose.name("kind", kinds)?;
        let index = kinds.iter().position(|k| *k == kind).unwrap_or(0);
        Ok((Reader::open(self.document, node, self.full(name), sections[index])?, kind))
    }
}
