//! Workloads of the tasks of a domain, as data: the kind of the workload, and its parameters by name.
//!
//! This crate does not know which kinds exist, nor the meaning of their parameters: a kind is one file of
//! `overspin_workload`, or of another crate. So a program can read, compare and write a scenario without
//! knowing the kind. A program that knows the kind gets the parameters as a type: see [`Workload::get`].

use crate::keys::Absent::{Means, Required};
use crate::keys::{Kind, Section, key};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Values by name, in the order in which they were written if that is kept.
pub type Tree = Map<String, Value>;

/// The parameters of a kind of workload as a type.
pub trait Parameters: Serialize + DeserializeOwned {
    /// Name of the kind.
    const KIND: &'static str;
}

/// One workload of a domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Name of its kind.
    pub kind: String,
    /// Its name among the workloads of its domain; `None`: the name of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// vCPUs that its tasks may use, without repetitions; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vcpus: Vec<u32>,
    /// Its parameters.
    #[serde(flatten)]
    pub parameters: Tree,
}

/// The keys of every workload, besides those of its kind.
pub const WORKLOAD: Section = Section {
    heading: "[domain.workload]",
    doc: "What the tasks of the domain do. With `[[domain.workload]]` tables, the domain does several things side by side, \
     each with its own tasks and locks. The names of these then begin with their workload: `ping/ping`, \
     `kernbench/dcache`. Further keys depend on the kind.",
    keys: &[
        key("kind", Kind::Workload, Required, "The kind of workload."),
        key(
            "name",
            Kind::Text,
            Means("its kind"),
            "Its name among several; no two workloads of a domain share a name.",
        ),
        key(
            "vcpus",
            Kind::Numbers,
            Means("all"),
            "vCPUs that its tasks may use, such as [0, 1]. A workload with a thread on each vCPU then has one on each of \
         these.",
        ),
    ],
};

impl Workload {
    /// Its parameters as a type, if it is of this kind and the parameters fit.
    #[must_use]
    pub fn get<P: Parameters>(&self) -> Option<P> {
        if self.kind != P::KIND {
            return None;
        }
        serde_json::from_value(Value::Object(self.parameters.clone())).ok()
    }

    /// Changes its parameters, if it is of this kind; returns whether it is.
    pub fn edit<P: Parameters>(&mut self, change: impl FnOnce(&mut P)) -> bool {
        let Some(mut parameters) = self.get::<P>() else { return false };
        change(&mut parameters);
        self.parameters = tree(&parameters);
        true
    }
}

/// A structure as data.
#[must_use]
pub fn tree(structure: &impl Serialize) -> Tree {
    match serde_json::to_value(structure) {
        Ok(Value::Object(tree)) => tree,
        // If the parameters of a kind are not a structure of plain data, a world refuses the workload when
        // it reads them.
        _ => Tree::new(),
    }
}

impl<P: Parameters> From<P> for Workload {
    fn from(parameters: P) -> Self {
        let kind = P::KIND.to_owned();
        Self { kind, name: None, vcpus: Vec::new(), parameters: tree(&parameters) }
    }
}

/// The workloads of a domain: one, or several side by side. As data, one stands by itself, and several are
/// a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Workloads(pub Vec<Workload>);

impl Workloads {
    /// The parameters of the first workload of this kind.
    #[must_use]
    pub fn get<P: Parameters>(&self) -> Option<P> {
        self.0.iter().find_map(Workload::get)
    }

    /// Changes the parameters of each workload of this kind; returns whether there is one.
    pub fn edit<P: Parameters>(&mut self, mut change: impl FnMut(&mut P)) -> bool {
        let mut any = false;
        for workload in &mut self.0 {
            any |= workload.edit(&mut change);
        }
        any
    }
}

impl From<Workload> for Workloads {
    fn from(workload: Workload) -> Self {
        Self(vec![workload])
    }
}

impl<P: Parameters> From<P> for Workloads {
    fn from(parameters: P) -> Self {
        Workload::from(parameters).into()
    }
}

impl Serialize for Workloads {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(to),
            several => several.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Workloads {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            several @ Value::Array(_) => serde_json::from_value(several).map(Self),
            one => serde_json::from_value::<Workload>(one).map(Self::from),
        }
        .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Knit {
        rows: u32,
        wool: Vec<String>,
    }

    impl Parameters for Knit {
        const KIND: &'static str = "knit";
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Purl {
        rows: u32,
    }

    impl Parameters for Purl {
        const KIND: &'static str = "purl";
    }

    fn knit() -> Knit {
        Knit { rows: 7, wool: vec!["red".into()] }
    }

    #[test]
    fn parameters_come_back_as_their_type_and_as_no_other() {
        let mut w = Workload::from(knit());
        assert_eq!(w.get::<Knit>(), Some(knit()));
        assert_eq!(w.get::<Purl>(), None);
        assert!(w.edit(|k: &mut Knit| k.rows = 8));
        assert!(!w.edit(|p: &mut Purl| p.rows = 9));
        assert_eq!(w.get::<Knit>().map(|k| k.rows), Some(8));
        w.parameters.remove("wool");
        assert_eq!(w.get::<Knit>(), None, "not all of them are there");
    }

    #[test]
    fn one_stands_by_itself_and_several_are_a_list() {
        let one = Workloads::from(knit());
        let written = json!({ "kind": "knit", "rows": 7, "wool": ["red"] });
        assert_eq!(serde_json::to_value(&one).unwrap(), written);
        let mut several = Workloads(vec![knit().into(), Purl { rows: 1 }.into()]);
        several.0[1].vcpus = vec![2];
        several.0[1].name = Some("hem".into());
        let list = json!([written, { "kind": "purl", "name": "hem", "vcpus": [2], "rows": 1 }]);
        assert_eq!(serde_json::to_value(&several).unwrap(), list);
        for w in [one, several] {
            let text = serde_json::to_string(&w).unwrap();
            assert_eq!(serde_json::from_str::<Workloads>(&text).unwrap(), w);
        }
    }

    #[test]
    fn all_of_a_kind_are_changed() {
        let mut w = Workloads(vec![knit().into(), Purl { rows: 1 }.into(), knit().into()]);
        assert!(w.edit(|k: &mut Knit| k.rows += 1));
        let rows: Vec<_> = w.0.iter().filter_map(Workload::get::<Knit>).map(|k| k.rows).collect();
        assert_eq!(rows, [8, 8]);
        assert_eq!(w.get::<Purl>(), Some(Purl { rows: 1 }));
    }
}
