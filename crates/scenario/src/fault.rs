//! What is wrong with a value of a scenario.

use alloc::format;
use alloc::string::String;
use core::fmt;

/// What is wrong with the values of a table, and at which key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The key at fault: `locks.1.name` is the name of the second lock. Empty: the table as a whole.
    pub key: String,
    /// The cause.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl Fault {
    /// A fault at a key.
    pub fn new(
        key: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { key: key.into(), message: message.into(), help: help.into() }
    }

    /// Places the key of the fault inside `outer`.
    #[must_use]
    pub fn within(self, outer: &str) -> Self {
        let key = if self.key.is_empty() { outer.into() } else { format!("{outer}.{}", self.key) };
        Self { key, ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        write!(f, "{}; {}", self.message, self.help)
    }
}

impl core::error::Error for Fault {}
