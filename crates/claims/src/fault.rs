//! What is wrong with an expression, and where in its text.

use std::ops::Range;

/// An error in an expression.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Place in the expression's text.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Fault {
    /// A fault in these bytes of the claim.
    pub fn new(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: help.into() }
    }
}
