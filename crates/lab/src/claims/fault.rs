//! What is wrong with an expression, and where in its text.

use std::ops::Range;

/// An error in an expression.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// Place in the expression's text.
    pub(crate) span: Range<usize>,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: String,
}

impl Fault {
    pub(crate) fn new(
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { span, message: message.into(), help: help.into() }
    }
}
