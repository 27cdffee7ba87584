//! Parameters of schedulers by name. Files and command lines can set the parameters of any
//! scheduler, and lists and documents can be generated from them.
//!
//! A scheduler declares each parameter once, as a [`ParamInfo`] with its range, default and meaning, and reads it through
//! the same declaration: [`ParamInfo::time_in`] and its siblings.

use crate::error::SchedError;
use crate::time::Nanos;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// The kind of value that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A time, in ns.
    Time {
        /// Least legal value.
        min: Nanos,
        /// Greatest legal value.
        max: Nanos,
    },
    /// A whole number.
    Number {
        /// Least legal value.
        min: i64,
        /// Greatest legal value.
        max: i64,
    },
    /// On or off.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A parameter, for lists, documents and checks, and for the scheduler itself.
#[derive(Clone, Copy, Debug)]
pub struct ParamInfo {
    /// Name.
    pub key: &'static str,
    /// The kind of value that it takes.
    pub kind: ParamKind,
    /// Its value if it is not set.
    pub default: ParamDefault,
    /// One sentence: what it does.
    pub doc: &'static str,
}

/// What a parameter is if it is not set. It is displayed as lists show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamDefault {
    value: Preset,
    words: Words,
}

/// The value of a parameter that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preset {
    Time(Nanos),
    Number(i64),
    Flag(bool),
    Word(&'static str),
}

/// What lists say of a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    /// The value.
    Value,
    /// The value, followed by this text.
    And(&'static str),
    /// This text.
    Instead(&'static str),
}

impl ParamInfo {
    const fn new(key: &'static str, kind: ParamKind, value: Preset, doc: &'static str) -> Self {
        Self { key, kind, default: ParamDefault { value, words: Words::Value }, doc }
    }

    /// A time.
    #[must_use]
    pub const fn time(
        key: &'static str,
        (min, max): (Nanos, Nanos),
        default: Nanos,
        doc: &'static str,
    ) -> Self {
        Self::new(key, ParamKind::Time { min, max }, Preset::Time(default), doc)
    }

    /// A whole number.
    #[must_use]
    pub const fn number(
        key: &'static str,
        (min, max): (i64, i64),
        default: i64,
        doc: &'static str,
    ) -> Self {
        Self::new(key, ParamKind::Number { min, max }, Preset::Number(default), doc)
    }

    /// On or off.
    #[must_use]
    pub const fn flag(key: &'static str, default: bool, doc: &'static str) -> Self {
        Self::new(key, ParamKind::Flag, Preset::Flag(default), doc)
    }

    /// One of these words.
    #[must_use]
    pub const fn word(
        key: &'static str,
        words: &'static [&'static str],
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        Self::new(key, ParamKind::Word(words), Preset::Word(default), doc)
    }

    /// Lists show the default followed by these words.
    #[must_use]
    pub const fn and(mut self, words: &'static str) -> Self {
        self.default.words = Words::And(words);
        self
    }

    /// Lists show the default as these words.
    #[must_use]
    pub const fn shown_as(mut self, words: &'static str) -> Self {
        self.default.words = Words::Instead(words);
        self
    }

    /// The parameter with another default.
    pub(crate) const fn by_default(mut self, value: Preset) -> Self {
        self.default.value = value;
        self
    }

    /// The time that `params` set, or the default.
    ///
    /// # Panics
    /// If it is not a time.
    #[must_use]
    pub fn time_in(&self, params: &Params) -> Nanos {
        let Preset::Time(default) = self.default.value else {
            panic!("`{}` is not a time", self.key)
        };
        params.time(self.key).unwrap_or(default)
    }

    /// The number that `params` set, or the default.
    ///
    /// # Panics
    /// If it is not a number.
    #[must_use]
    pub fn number_in(&self, params: &Params) -> i64 {
        let Preset::Number(default) = self.default.value else {
            panic!("`{}` is not a number", self.key)
        };
        params.number(self.key).unwrap_or(default)
    }

    /// The flag that `params` set, or the default.
    ///
    /// # Panics
    /// If it is not a flag.
    #[must_use]
    pub fn flag_in(&self, params: &Params) -> bool {
        let Preset::Flag(default) = self.default.value else {
            panic!("`{}` is not a flag", self.key)
        };
        params.flag(self.key).unwrap_or(default)
    }

    /// The word that `params` set, or the default.
    ///
    /// # Panics
    /// If it is not a word.
    #[must_use]
    pub fn word_in<'a>(&self, params: &'a Params) -> &'a str {
        let Preset::Word(default) = self.default.value else {
            panic!("`{}` is not a word", self.key)
        };
        params.word(self.key).unwrap_or(default)
    }
}

impl fmt::Display for ParamDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = match self.words {
            Words::Instead(words) => return f.write_str(words),
            Words::And(words) => words,
            Words::Value => "",
        };
        match self.value {
            Preset::Time(time) => write!(f, "{time}{more}"),
            Preset::Number(number) => write!(f, "{number}{more}"),
            Preset::Flag(flag) => write!(f, "{flag}{more}"),
            Preset::Word(word) => write!(f, "{word}{more}"),
        }
    }
}

impl fmt::Display for ParamKind {
    /// The legal values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time { min, max } => write!(f, "{min} to {max}"),
            Self::Number { min, max } => write!(f, "{min}..={max}"),
            Self::Flag => write!(f, "true or false"),
            Self::Word(words) => write!(f, "{}", words.join(", ")),
        }
    }
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamValue {
    /// A time, in ns.
    Time(Nanos),
    /// A whole number.
    Number(i64),
    /// On or off.
    Flag(bool),
    /// A word.
    Word(String),
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{time}"),
            Self::Number(n) => write!(f, "{n}"),
            Self::Flag(on) => write!(f, "{on}"),
            Self::Word(word) => write!(f, "{word}"),
        }
    }
}

/// Parameters that are set. All others have the scheduler's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(Vec<(String, ParamValue)>);

impl Params {
    /// Sets `key` to `value`.
    #[must_use]
    pub fn with(mut self, key: &str, value: ParamValue) -> Self {
        self.set(key, value);
        self
    }

    /// Sets `key` to `value`; replaces an earlier value.
    pub fn set(&mut self, key: &str, value: ParamValue) {
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// The parameters that are set, in the order in which they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ParamValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    fn get(&self, key: &str) -> Option<&ParamValue> {
        self.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The time that is set for `key`, in ns.
    #[must_use]
    pub fn time(&self, key: &str) -> Option<Nanos> {
        match self.get(key) {
            Some(ParamValue::Time(ns)) => Some(*ns),
            _ => None,
        }
    }

    /// The number that is set for `key`.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<i64> {
        match self.get(key) {
            Some(ParamValue::Number(n)) => Some(*n),
            _ => None,
        }
    }

    /// The flag that is set for `key`.
    #[must_use]
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.get(key) {
            Some(ParamValue::Flag(on)) => Some(*on),
            _ => None,
        }
    }

    /// The word that is set for `key`.
    #[must_use]
    pub fn word(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(ParamValue::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Checks that `known`, the parameters of `scheduler`, allow all parameters that are set. After
    /// this, the typed getters return None only for parameters that are not set.
    ///
    /// # Errors
    /// [`SchedError::UnknownParam`] or [`SchedError::IllegalParam`], which name the legal
    /// parameters or values.
    pub fn check(&self, scheduler: &str, known: &[ParamInfo]) -> Result<(), SchedError> {
        for (key, value) in self.iter() {
            let Some(info) = known.iter().find(|info| info.key == key) else {
                let known: Vec<&str> = known.iter().map(|info| info.key).collect();
                return Err(SchedError::UnknownParam {
                    key: key.to_owned(),
                    scheduler: scheduler.to_owned(),
                    known: if known.is_empty() { "none".into() } else { known.join(", ") },
                });
            };
            let legal = match (info.kind, value) {
                (ParamKind::Time { min, max }, ParamValue::Time(v)) => (min..=max).contains(v),
                (ParamKind::Number { min, max }, ParamValue::Number(v)) => (min..=max).contains(v),
                (ParamKind::Flag, ParamValue::Flag(_)) => true,
                (ParamKind::Word(words), ParamValue::Word(word)) => words.contains(&word.as_str()),
                _ => false,
            };
            if !legal {
                return Err(SchedError::illegal(key, value, &info.kind));
            }
        }
        Ok(())
    }
}

impl SchedError {
    /// The error for a value that is not legal.
    pub(crate) fn illegal(key: &str, value: &ParamValue, legal: &dyn fmt::Display) -> Self {
        Self::IllegalParam {
            key: key.to_owned(),
            value: value.to_string(),
            legal: format!("{legal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[ParamInfo] = &[
        ParamInfo::time("slice", (Nanos(1), Nanos(10)), Nanos(5), ""),
        ParamInfo::word("mode", &["a", "b"], "a", ""),
    ];

    #[test]
    fn what_is_legal_passes_and_reads_back() {
        let params = Params::default()
            .with("slice", ParamValue::Time(Nanos(3)))
            .with("mode", ParamValue::Word("b".into()))
            .with("slice", ParamValue::Time(Nanos(10)));
        assert_eq!(params.check("x", KNOWN), Ok(()));
        assert_eq!((params.time("slice"), params.word("mode")), (Some(Nanos(10)), Some("b")));
        assert_eq!((params.number("slice"), params.flag("other")), (None, None));
        let [slice, mode] = KNOWN else { panic!("two parameters") };
        assert_eq!((slice.time_in(&params), mode.word_in(&params)), (Nanos(10), "b"));
        let unset = Params::default();
        assert_eq!((slice.time_in(&unset), mode.word_in(&unset)), (Nanos(5), "a"));
        let told = [*slice, slice.and(", or so"), slice.shown_as("some")];
        assert_eq!(told.map(|info| info.default.to_string()), ["5 ns", "5 ns, or so", "some"]);
    }

    #[test]
    fn errors_name_the_key_and_what_is_legal() {
        let error = |key, value| {
            let params = Params::default().with(key, value);
            params.check("x", KNOWN).unwrap_err().to_string()
        };
        assert_eq!(
            error("slice", ParamValue::Time(Nanos(11))),
            "slice = 11 ns is not legal; legal values: 1 ns to 10 ns"
        );
        assert_eq!(
            error("mode", ParamValue::Number(1)),
            "mode = 1 is not legal; legal values: a, b"
        );
        assert_eq!(
            error("slize", ParamValue::Time(Nanos(1))),
            "`x` has no parameter `slize`; it has: slice, mode"
        );
    }
}
