//! Takes typed values out of one table, and reports exactly which values do not fit. Opening a table checks
//! its key names first: a misspelt key is the cause, a missing key only the effect.

use super::keys::{Absent, Key, Kind, Section, expected, legal};
use super::quantity::parse_cpus;
use super::set::name_of;
use super::tree::{At, Document, Node, Table, Value};
use crate::machine::{self, MACHINES, Machine};
use overspin_located::LocatedError;
use overspin_locks::LockInfo;
use overspin_names::Names;
use overspin_scenario::keys::NONE;
use overspin_scenario::{Picos, QUANTILES, Quantiles, Tree, Value as Json, Varying, parse_time};
use overspin_sched::{SchedulerInfo, suggestion};
use serde::de::DeserializeOwned;

type Result<T> = std::result::Result<T, LocatedError>;

/// One table of a document, with the section that defines its legal keys.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    /// What can be named.
    names: &'a Names,
    document: &'a Document,
    table: &'a Table,
    /// The table itself, for errors about missing keys.
    pub(crate) at: &'a At,
    /// Dotted path of the table, empty at the top.
    path: String,
    section: &'static Section,
    /// Legal keys besides those of the section.
    common: &'static [Key],
    /// pCPUs of the host, which lists may name.
    pcpus: u32,
}

impl<'a> Reader<'a> {
    /// Opens `node` as a table of `section`.
    pub(crate) fn open(
        names: &'a Names,
        document: &'a Document,
        node: &'a Node,
        path: String,
        section: &'static Section,
    ) -> Result<Self> {
        const NOTHING: &Table = &Table { entries: Vec::new() };
        let (table, at) = (NOTHING, &node.at);
        let outer = Self {
            names,
            document,
            table,
            at,
            path: String::new(),
            section,
            common: &[],
            pcpus: 1,
        };
        outer.inner(node, path, section)
    }

    /// Opens `node`, which is in this table, as a table of `section`.
    fn inner(&self, node: &'a Node, path: String, section: &'static Section) -> Result<Self> {
        let reader = self.inner_loosely(node, path, section)?;
        reader.know_all_keys()?;
        Ok(reader)
    }

    /// Opens `node`, which is in this table, as a table of `section` that may have other keys, too.
    fn inner_loosely(
        &self,
        node: &'a Node,
        path: String,
        section: &'static Section,
    ) -> Result<Self> {
        let Value::Table(table) = &node.value else {
            return Err(self.document.error(
                &node.at,
                &path,
                format!("`{path}` is {}, but must be a table", node.value.kind()),
                format!("write it as {}", section.heading),
            ));
        };
        Ok(Self { table, at: &node.at, path, section, common: &[], ..*self })
    }

    /// This table on a host with `pcpus` pCPUs, which its lists may name.
    pub(crate) fn on(&self, pcpus: u32) -> Self {
        Self { pcpus, ..self.clone() }
    }

    /// Checks that every key of the table is legal.
    fn know_all_keys(&self) -> Result<()> {
        match self.table.entries.iter().find(|entry| self.declared(&entry.key).is_none()) {
            Some(entry) => Err(self.unknown_key(&entry.key, &entry.key_at)),
            None => Ok(()),
        }
    }

    fn declared(&self, name: &str) -> Option<&'static Key> {
        self.common.iter().find(|k| k.name == name).or_else(|| self.section.key(name))
    }

    /// What can be named.
    pub(crate) fn names(&self) -> &'a Names {
        self.names
    }

    /// This table once its kind is known: legal are the keys of `section`, and those that it was opened with.
    pub(crate) fn as_one_of(&self, section: &'static Section) -> Result<Self> {
        let reader = Self { section, common: self.section.keys, ..self.clone() };
        reader.know_all_keys()?;
        Ok(reader)
    }

    fn unknown_key(&self, name: &str, at: &At) -> LocatedError {
        let known: Vec<&str> =
            self.common.iter().map(|k| k.name).chain(self.section.names()).collect();
        let message = format!("`{name}` is not a key of {}", self.section.heading);
        let help = suggestion(name, "legal keys are", &known);
        self.document.error(at, &self.full(name), message, help)
    }

    /// Dotted path of a key in this table.
    pub(crate) fn full(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// The value of a key, if it is present.
    pub(crate) fn node(&self, name: &str) -> Option<&'a Node> {
        self.table.get(name).map(|e| &e.node)
    }

    /// An error about the value of `name`, or about the table if the key is absent.
    pub(crate) fn error(
        &self,
        name: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> LocatedError {
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
    ) -> LocatedError {
        self.document.error(at, &self.full(name), message, help)
    }

    fn key(&self, name: &str) -> &'static Key {
        match self.declared(name) {
            Some(key) => key,
            // The names are literals in `lower`; a test reads every section in full.
            None => unreachable!("`{name}` is not declared for {}", self.section.heading),
        }
    }

    fn missing(&self, key: &Key) -> LocatedError {
        let message = format!("`{}` is missing in {}", key.name, self.section.heading);
        self.document.error(
            self.at,
            &self.full(key.name),
            message,
            format!("{}; {}", key.doc, legal(key)),
        )
    }

    pub(crate) fn wrong_type(&self, name: &str, node: &Node) -> LocatedError {
        let full = self.full(name);
        let message =
            format!("`{full}` is {}, but must be {}", node.value.kind(), expected(self.key(name)));
        self.document.error(&node.at, &full, message, legal(self.key(name)))
    }

    /// The values of all keys that are present, as the fields of a scenario have them, except the keys `own`, which the
    /// caller reads itself.
    pub(crate) fn tree(&self, own: &[&str]) -> Result<Tree> {
        let mut tree = Tree::new();
        for key in self.section.keys.iter().filter(|key| !own.contains(&key.name)) {
            if let Some(value) = self.value(key)? {
                tree.insert(key.field.to_owned(), value);
            }
        }
        Ok(tree)
    }

    /// The fields of a table as their structure. Absent ones take their defaults.
    pub(crate) fn fields<T: DeserializeOwned>(&self, tree: Tree) -> Result<T> {
        let made = serde_json::from_value(tree.into());
        made.map_err(|e| self.error("", e.to_string(), "docs/scenario.md lists all keys"))
    }

    /// The value of a key, as data; `None` if it is absent.
    fn value(&self, key: &Key) -> Result<Option<Json>> {
        let name = key.name;
        let Some(node) = self.node(name) else {
            return match key.absent {
                Absent::Required => Err(self.missing(key)),
                _ => Ok(None),
            };
        };
        let wrong = || self.wrong_type(name, node);
        Ok(Some(match key.kind {
            Kind::Text => match &node.value {
                Value::Text(text) => text.clone().into(),
                _ => return Err(wrong()),
            },
            Kind::Lock => self.lock(name)?.name.into(),
            Kind::Scheduler => self.scheduler(name)?.name.into(),
            Kind::Machine => self.machine(name)?.name.into(),
            Kind::Workload => {
                let kinds = self.names.workloads().all();
                self.name(name, &kinds.iter().map(|k| k.name).collect::<Vec<_>>())?.into()
            }
            Kind::Choice(_) | Kind::ChoiceOrNone(_) => self.name(name, &key.kind.words())?.into(),
            Kind::Integer { .. } => self.integer_in(key, node)?.into(),
            Kind::Boolean => match node.value {
                Value::Boolean(b) => b.into(),
                _ => return Err(wrong()),
            },
            Kind::Time { .. } => self.time_in(key, node)?.0.into(),
            Kind::Varying { .. } => match node.value {
                Value::Table(_) => {
                    let quantiles = self.inner(node, self.full(name), &QUANTILES)?;
                    let tree = quantiles.tree(&[])?;
                    let of: Quantiles = quantiles.fields(tree.clone())?;
                    Varying::from(of)
                        .agrees()
                        .map_err(|f| quantiles.error_within(&f.key, f.message, f.help))?;
                    tree.into()
                }
                _ => self.time_in(key, node)?.0.into(),
            },
            Kind::Cpus => self.cpu_list(name, node)?.into(),
            Kind::Numbers | Kind::Texts => {
                let Value::Array(items) = &node.value else { return Err(wrong()) };
                if items.is_empty() {
                    let message = format!("`{}` is empty", self.full(name));
                    return Err(self.error(name, message, legal(key)));
                }
                let item = |item: &Node| match (&item.value, key.kind) {
                    (Value::Text(text), Kind::Texts) => Ok(text.clone().into()),
                    (Value::Integer(Some(n)), Kind::Numbers) => {
                        u32::try_from(*n).map(Json::from).map_err(|_| wrong())
                    }
                    _ => Err(self.wrong_type(name, item)),
                };
                items.iter().map(item).collect::<Result<_>>()?
            }
            Kind::Table(inner) => {
                let Some(table) = self.table(name)? else { return Ok(None) };
                let tree = table.tree(&[])?;
                let is_none = |k: &Key| {
                    matches!(k.kind, Kind::ChoiceOrNone(_))
                        && tree.get(k.field).is_some_and(|word| word == NONE)
                };
                if inner.keys.iter().any(is_none) { Json::Null } else { tree.into() }
            }
            Kind::Tables(_) => {
                let tables = self.tables(name)?;
                tables.iter().map(|t| t.tree(&[]).map(Json::from)).collect::<Result<_>>()?
            }
            Kind::Affinity | Kind::Workloads | Kind::Params(_) => {
                unreachable!("`{name}` has a reader of its own")
            }
        }))
    }

    fn time_in(&self, key: &Key, node: &Node) -> Result<Picos> {
        let full = self.full(key.name);
        let fail = |reason: String| {
            Err(self.document.error(&node.at, &full, format!("`{full}`: {reason}"), legal(key)))
        };
        let picos = match &node.value {
            Value::Text(text) => match parse_time(text) {
                Ok(picos) => picos,
                Err(reason) => return fail(reason),
            },
            Value::Integer(Some(0)) => Picos::ZERO,
            Value::Integer(Some(i)) if *i < 0 => return fail("a time cannot be negative".into()),
            Value::Integer(_) | Value::Float => return fail("the unit is missing".into()),
            _ => return Err(self.wrong_type(key.name, node)),
        };
        if !key.kind.contains(picos.0) {
            return fail(format!("{picos} is out of range"));
        }
        Ok(picos)
    }

    fn integer_in(&self, key: &Key, node: &Node) -> Result<u64> {
        let Value::Integer(value) = node.value else { return Err(self.wrong_type(key.name, node)) };
        match value.and_then(|v| u64::try_from(v).ok()) {
            Some(v) if key.kind.contains(v) => Ok(v),
            _ => {
                let full = self.full(key.name);
                let shown = value.map_or_else(|| "the number".into(), |v| v.to_string());
                let message = format!("`{full}`: {shown} is out of range");
                Err(self.document.error(&node.at, &full, message, legal(key)))
            }
        }
    }

    /// The list of pCPUs in `node`, which is in the value of `key`.
    pub(crate) fn cpu_list(&self, key: &str, node: &Node) -> Result<Vec<u32>> {
        let (full, last) = (self.full(key), self.pcpus - 1);
        let bad = |at, reason: String| {
            let help = format!("pCPUs are numbered 0 to {last}; write a list such as \"0-{last}\"");
            self.error_at(at, key, format!("`{full}`: {reason}"), help)
        };
        match &node.value {
            Value::Text(text) => {
                parse_cpus(text, self.pcpus).map_err(|reason| bad(&node.at, reason))
            }
            Value::Array(items) if !items.is_empty() => {
                let mut cpus = Vec::new();
                for item in items {
                    let Value::Integer(value) = item.value else {
                        return Err(bad(&item.at, format!("{} is not a pCPU", item.value.kind())));
                    };
                    let cpu = value.and_then(|v| u32::try_from(v).ok()).filter(|v| *v <= last);
                    cpus.push(cpu.ok_or_else(|| bad(&item.at, "there is no such pCPU".into()))?);
                }
                cpus.sort_unstable();
                cpus.dedup();
                Ok(cpus)
            }
            Value::Array(_) => Err(bad(&node.at, "this needs at least one pCPU".into())),
            _ => Err(self.wrong_type(key, node)),
        }
    }

    /// The value of a key as a type, or its default; `None` if absence has its own meaning.
    pub(crate) fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let key = self.key(name);
        let value = self.value(key)?.or_else(|| key.default(&Tree::new()));
        let value = value.map(serde_json::from_value).transpose();
        value.map_err(|e| self.error(name, format!("`{}`: {e}", self.full(name)), legal(key)))
    }

    /// The value of a key as a type; it is present or has a default.
    pub(crate) fn some<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        self.get(name)?.ok_or_else(|| self.missing(self.key(name)))
    }

    /// A name out of `known`.
    pub(crate) fn name(&self, name: &str, known: &[&'static str]) -> Result<String> {
        self.named(name, known, |text| known.contains(&text).then(|| text.to_owned()))
    }

    /// The lock in the key `name`, by its own name or an alias.
    pub(crate) fn lock(&self, name: &str) -> Result<&'a LockInfo> {
        let known: Vec<&'static str> = self.names.locks().map(|(l, _)| l.name).collect();
        self.named(name, &known, |text| self.names.lock(text))
    }

    /// The scheduler in the key `name`, by its own name or an alias.
    pub(crate) fn scheduler(&self, name: &str) -> Result<&'a SchedulerInfo> {
        let known: Vec<&'static str> = self.names.schedulers().iter().map(|s| s.name).collect();
        self.named(name, &known, |text| self.names.schedulers().find(text).ok())
    }

    /// The machine in the key `name`: a built-in one, or a profile from a file.
    pub(crate) fn machine(&self, name: &str) -> Result<&'static Machine> {
        if let Some(Node { value: Value::Text(text), .. }) = self.node(name)
            && machine::file::is_file(text)
        {
            return machine::file::load(text).map_err(|e| self.error(name, e.message, e.help));
        }
        let known: Vec<&'static str> = MACHINES.iter().map(|m| m.name).collect();
        self.named(name, &known, machine::machine)
    }

    /// The result of `find` for the text of `name`; an error message lists the names `known`.
    fn named<T>(
        &self,
        name: &str,
        known: &[&'static str],
        find: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T> {
        // `--set` and `[[vary]]` read a name that looks like a number as a number.
        let node = self.node(name);
        let text = match node.map(|node| &node.value) {
            Some(Value::Integer(Some(n))) if known.contains(&n.to_string().as_str()) => {
                n.to_string()
            }
            Some(Value::Text(text)) => text.clone(),
            None => self.some(name)?,
            Some(_) => return Err(self.wrong_type(name, node.expect("present"))),
        };
        if let Some(found) = find(&text) {
            return Ok(found);
        }
        let what = match self.key(name).kind {
            Kind::Lock => "lock",
            Kind::Scheduler => "scheduler",
            Kind::Machine => "machine",
            Kind::Workload => "workload",
            _ => "choice",
        };
        Err(self.error(
            name,
            format!("`{}`: there is no {what} `{text}`", self.full(name)),
            suggestion(&text, &format!("{what}s are"), known),
        ))
    }

    /// A table within this one; `None` if it is absent and optional.
    pub(crate) fn table(&self, name: &str) -> Result<Option<Self>> {
        let key = self.key(name);
        let Kind::Table(section) = key.kind else { unreachable!("`{name}` is not a table") };
        match self.node(name) {
            Some(node) => self.inner(node, self.full(name), section).map(Some),
            None if matches!(key.absent, Absent::Required) => Err(self.missing(key)),
            None => Ok(None),
        }
    }

    /// A table within this one, with keys that the caller defines; `None` if it is absent.
    pub(crate) fn table_of(&self, name: &str, section: &'static Section) -> Result<Option<Self>> {
        let open = |node| self.inner(node, self.full(name), section);
        self.node(name).map(open).transpose()
    }

    /// An error about the value of `key` in the table `table`, or about the nearest present thing.
    pub(crate) fn error_in(
        &self,
        table: &str,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> LocatedError {
        let inner = match self.node(table).map(|n| &n.value) {
            Some(Value::Table(inner)) => inner.get(key).map(|e| &e.node.at),
            _ => None,
        };
        let at = inner.or(self.node(table).map(|n| &n.at)).unwrap_or(self.at);
        self.document.error(at, &format!("{}.{key}", self.full(table)), message, help)
    }

    /// An array of tables within this one; empty if it is absent and optional.
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
        // By its name, as users write it in --set; by its number if it shares that with another.
        let of_node = |(i, node): (usize, &Node)| match name_of(node) {
            Some(own) if nodes.iter().filter(|n| name_of(n) == Some(own)).count() == 1 => {
                own.to_owned()
            }
            _ => i.to_string(),
        };
        let open = |(i, node): (usize, _)| {
            self.inner(node, format!("{}.{}", self.full(name), of_node((i, node))), section)
        };
        nodes.iter().enumerate().map(open).collect()
    }

    /// The tables at `name`, which may be one or several. Their legal keys besides those of `section` become
    /// known later ([`as_one_of`](Self::as_one_of)).
    pub(crate) fn one_or_more(&self, name: &str, section: &'static Section) -> Result<Vec<Self>> {
        let node = self.node(name).ok_or_else(|| self.missing(self.key(name)))?;
        let full = self.full(name);
        match &node.value {
            Value::Table(_) => Ok(vec![self.inner_loosely(node, full, section)?]),
            Value::Array(nodes) if !nodes.is_empty() => {
                let open = |(i, node)| self.inner_loosely(node, format!("{full}.{i}"), section);
                nodes.iter().enumerate().map(open).collect()
            }
            Value::Array(_) => {
                Err(self.error(name, format!("`{full}` is empty"), legal(self.key(name))))
            }
            _ => Err(self.wrong_type(name, node)),
        }
    }

    /// An error about the value at a dotted path in this table, or about the nearest present thing around it.
    /// Numbers in the path are indices into arrays.
    pub(crate) fn error_within(
        &self,
        path: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> LocatedError {
        let mut at = self.at;
        let (mut table, mut array) = (Some(self.table), None);
        for step in path.split('.') {
            let node = match (table, array) {
                (Some(table), _) => table.get(step).map(|entry| &entry.node),
                (_, Some(items)) => step.parse().ok().and_then(|i: usize| <[Node]>::get(items, i)),
                _ => None,
            };
            let Some(node) = node else { break };
            at = &node.at;
            (table, array) = match &node.value {
                Value::Table(table) => (Some(table), None),
                Value::Array(items) => (None, Some(items.as_slice())),
                _ => (None, None),
            };
        }
        let full = if path.is_empty() { self.path.clone() } else { self.full(path) };
        self.document.error(at, &full, format!("`{full}`: {}", message.into()), help)
    }
}
