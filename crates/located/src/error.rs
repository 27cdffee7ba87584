//! An error with its place in a text.

use std::ops::Range;
use std::sync::Arc;

/// An error in a text, with its place. It is plain data, which the command displays. (`Box<str>` keeps it
/// small: it is the error of every function here.)
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{path}:{line}:{column}: {message}")]
pub struct LocatedError {
    /// The file, or the argument.
    pub path: Box<str>,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The bytes of `text` at fault.
    pub span: Range<usize>,
    /// Dotted key; empty if the error is not about a key.
    pub key: Box<str>,
    /// The cause.
    pub message: Box<str>,
    /// The remedy.
    pub help: Box<str>,
    /// The whole text of the file or of the argument.
    pub text: Arc<str>,
}

impl LocatedError {
    /// An error about the bytes `span` of `text`.
    pub fn at(
        path: &str,
        text: impl Into<Arc<str>>,
        span: Range<usize>,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let text = text.into();
        // Spans come from the parser; this check costs nothing, and a wrong span must not panic.
        let floor = |mut i: usize| {
            i = i.min(text.len());
            while !text.is_char_boundary(i) {
                i -= 1;
            }
            i
        };
        let span = floor(span.start)..floor(span.end.max(span.start));
        let before = &text[..span.start];
        Self {
            path: path.into(),
            line: before.matches('\n').count() + 1,
            column: before.rsplit('\n').next().unwrap_or("").chars().count() + 1,
            span,
            key: key.into(),
            message: message.into().into(),
            help: help.into().into(),
            text,
        }
    }
}
