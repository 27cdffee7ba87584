//! Sentences with computed numbers, such as `byte over xen-pv {byte.half.elapsed / xen-pv.half.elapsed}`. A number stands
//! between braces, with its unit after a colon if it is not its own: `{a / b - 1 : %}`. Where a figure was published for
//! what it refers to, the published number follows.

use super::ast::Expr;
use super::eval::Eval;
use super::evidence::unit;
use super::fault::Fault;
use super::parser;
use super::samples::Index;
use super::scope::Scope;
use super::types::{Type, check};
use super::unit::Unit;
use super::vocabulary::Vocabulary;
use std::ops::Range;
use std::sync::Arc;

/// Significant digits of a number in a sentence.
const DIGITS: i32 = 3;

/// A sentence that was checked against a vocabulary.
#[derive(Clone, Debug)]
pub struct Sentence {
    parts: Vec<Part>,
    vocabulary: Arc<Vocabulary>,
}

#[derive(Clone, Debug)]
enum Part {
    Words(String),
    Number(Expr, &'static Unit),
}

impl Sentence {
    /// The sentence of `text`, whose numbers refer to names of `vocabulary`.
    ///
    /// # Errors
    /// If a brace is not closed, or a number makes no sense.
    pub fn parse(text: &str, vocabulary: &Arc<Vocabulary>) -> Result<Self, Fault> {
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(open) = text[at..].find('{').map(|i| at + i) {
            let Some(close) = text[open..].find('}').map(|i| open + i) else {
                let help = "numbers stand between braces: `{ticket.half.elapsed}`";
                return Err(Fault::new(open..text.len(), "a brace that is not closed", help));
            };
            parts.push(Part::Words(text[at..open].to_owned()));
            parts.push(number(text, open + 1..close, vocabulary)?);
            at = close + 1;
        }
        parts.push(Part::Words(text[at..].to_owned()));
        Ok(Self { parts, vocabulary: Arc::clone(vocabulary) })
    }

    /// The sentence with its numbers. Complexity: that of its formulas.
    #[must_use]
    pub fn say(&self, index: &Index<'_>) -> String {
        let mut eval = Eval::quiet(&self.vocabulary, index);
        let published = Scope { published: true, ..Scope::default() };
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Words(words) => out += words,
                Part::Number(expr, unit) => {
                    out += &match eval.number(expr, &Scope::default()) {
                        Ok(value) => unit.show_rounded(value, DIGITS),
                        Err(_) => "unknown".into(),
                    };
                    let known = !expr.is_literal() && !expr.names_published();
                    if let Some(Ok(value)) = known.then(|| eval.number(expr, &published)) {
                        out += &format!(" (published {})", unit.show_rounded(value, DIGITS));
                    }
                }
            }
        }
        out
    }
}

/// The number at `span` of a text.
fn number(text: &str, span: Range<usize>, names: &Arc<Vocabulary>) -> Result<Part, Fault> {
    let inside = &text[span.clone()];
    let (formula, named) = match inside.rsplit_once(" : ") {
        Some((formula, unit)) => (formula, Some(unit.trim())),
        None => (inside, None),
    };
    let moved = |mut fault: Fault| {
        fault.span = span.start + fault.span.start..span.start + fault.span.end;
        fault
    };
    let expr = parser::parse(formula).map_err(moved)?;
    let Type::Number(dimension) = check(&expr, &Scope::default(), names).map_err(moved)? else {
        return Err(Fault::new(span, "a condition where a number belongs", "write a formula"));
    };
    let own = || {
        let own = unit(&expr, &Scope::default(), names);
        own.or(dimension.and_then(|d| d.base())).unwrap_or(Unit::plain())
    };
    let unit = match named.map(|name| (name, Unit::find(name))) {
        None => own(),
        Some((_, Some(unit))) if dimension.is_none_or(|d| d == unit.dimension) => unit,
        Some((name, _)) => {
            let help = format!("units are: {}", Unit::names());
            return Err(Fault::new(span, format!("the number has no unit `{name}`"), help));
        }
    };
    Ok(Part::Number(expr, unit))
}
