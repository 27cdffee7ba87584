//! Parameters of workloads are declared once, in the workload's file. One declaration gives a field, a key of
//! scenario files, a row of their reference, a part of their schema, and a range that is checked whatever
//! made the value.

/// A structure and the table of its keys. A row is `field: type = kind of key, what absence means, meaning`.
macro_rules! parameters {
    ($name:ident: $keys:ident at $heading:literal, $about:literal {
        $($field:ident: $type:ty = $kind:expr, $absent:expr, $doc:literal;)*
    }) => {
        #[doc = $about]
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $(#[doc = $doc] pub $field: $type,)*
        }

        #[allow(unused_imports, reason = "not every table has keys of every sort")]
        pub(crate) const $keys: overspin_scenario::keys::Section = {
            use overspin_scenario::keys::{ANY, Absent::*, COST, Kind::*, integer, key, time};
            use overspin_scenario::{LONGEST, MS, NS, SEC, US};
            overspin_scenario::keys::Section {
                heading: $heading,
                doc: $about,
                keys: &[$(key(stringify!($field), $kind, $absent, $doc)),*],
            }
        };
    };
}

/// `Default` from the table of keys, for a structure whose keys all have a default.
macro_rules! defaults {
    ($name:ident: $keys:ident) => {
        impl Default for $name {
            #[doc = "The values of absent keys."]
            fn default() -> Self {
                let defaults = serde_json::Value::Object($keys.defaults());
                serde_json::from_value(defaults).expect("all keys have legal defaults")
            }
        }
    };
}

/// An enumeration and its words in scenario files.
macro_rules! words {
    ($name:ident: $words:ident, $about:literal { $($variant:ident = $word:literal, $doc:literal;)* }) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $(#[doc = $doc] #[serde(rename = $word)] $variant,)*
        }

        pub(crate) const $words: &[&str] = &[$($word),*];
    };
}

pub(crate) use {defaults, parameters, words};
