//! Macros that declare the keys of a table once. One row gives a field of a structure, a key of scenario files, a row of
//! their reference, a part of their schema, a default for files and records that lack the key, and a range that is
//! checked whatever made the value.

/// A structure and the table of its keys. A row is `field: type = kind of key, what absence means, meaning`; `field as
/// key` names the key differently. Comments before the structure and before a row are for readers of the type only.
///
/// A value is read from data that may lack fields: these have the values of absent keys.
#[macro_export]
macro_rules! parameters {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $key:ident) => { stringify!($key) };
    ($(@$refuse_others:ident)? $(#[$attribute:meta])* $name:ident: $vis:vis $keys:ident at $heading:literal, $about:literal {
        $($(#[$more:meta])* $field:ident $(as $key:ident)?: $type:ty = $kind:expr, $absent:expr, $doc:literal;)*
    }) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        $(#[$attribute])*
        #[doc = ""]
        #[doc = $about]
        pub struct $name {
            $(#[doc = $doc] $(#[$more])* pub $field: $type,)*
        }

        impl TryFrom<$crate::Tree> for $name {
            type Error = serde_json::Error;

            fn try_from(mut tree: $crate::Tree) -> Result<Self, Self::Error> {
                $keys.fill(&mut tree);
                let all = Self { $($field: $crate::keys::take(&mut tree, stringify!($field))?),* };
                $($keys.$refuse_others(&tree)?;)?
                Ok(all)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Self::try_from($crate::Tree::deserialize(from)?).map_err(serde::de::Error::custom)
            }
        }

        #[doc = concat!("The keys of [`", stringify!($name), "`].")]
        #[allow(unused_imports, reason = "not every table has keys of every sort")]
        $vis const $keys: $crate::keys::Section = {
            use $crate::keys::{
                ANY, Absent::*, CAP, COST, Key, Kind::*, VARYING_COST, WEIGHT, integer, key, time, varying,
            };
            use $crate::{LONGEST, MS, NS, SEC, US};
            $crate::keys::Section {
                heading: $heading,
                doc: $about,
                keys: &[$(Key {
                    field: stringify!($field),
                    ..key($crate::parameters!(@name $field $($key)?), $kind, $absent, $doc)
                }),*],
            }
        };
    };
}

/// `Default` for structures that [`parameters!`](crate::parameters!) makes: the values of absent keys. Keys without a
/// default follow in braces.
#[macro_export]
macro_rules! defaults {
    ($name:ident $given:tt) => {
        impl Default for $name {
            #[doc = "The values of absent keys."]
            fn default() -> Self {
                $crate::keys::with_defaults(serde_json::json!($given))
            }
        }
    };
}

/// An enumeration and its words in scenario files.
#[macro_export]
macro_rules! words {
    ($(#[$attribute:meta])* $name:ident, $about:literal {
        $($(#[$more:meta])* $variant:ident = $word:literal, $doc:literal;)*
    }) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        $(#[$attribute])*
        pub enum $name {
            $(#[doc = $doc] $(#[$more])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            #[doc = "All words, in the order of the variants."]
            pub const WORDS: &[&str] = &[$($word),*];
            #[doc = "All variants."]
            pub const ALL: [Self; Self::WORDS.len()] = [$(Self::$variant),*];

            #[doc = "Its word."]
            #[must_use]
            pub fn name(self) -> &'static str {
                Self::WORDS[self as usize]
            }
        }
    };
}
