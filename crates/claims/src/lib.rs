//! Claims as data: conditions over measurements, such as
//! `byte.half.elapsed / xen-pv.half.elapsed within 10 % of 1.212`.
//!
//! A kind of experiment lists in a [`Vocabulary`] what it will measure where, so that a wrong name is found
//! before anything runs. After its runs, it collects [`Samples`]. A [`Condition`] is true, false, or
//! undecided if it needs samples that are missing. A [`Formula`] is a number, from which a figure is
//! computed. docs/claims.md describes the language.

#![forbid(unsafe_code)]

mod ast;
mod eval;
mod evidence;
mod fault;
mod functions;
mod lexer;
mod parser;
mod samples;
mod scope;
mod sentence;
mod types;
mod unit;
mod vocabulary;

pub use fault::Fault;
pub use samples::{Index, Samples};
pub use sentence::Sentence;
pub use vocabulary::{Vocabulary, place};

use ast::Expr;
use eval::Eval;
use overspin_stats::Summary;
use scope::Scope;
use std::sync::Arc;
use types::{Type, check, no_condition};

/// When a claim holds.
#[derive(Clone, Debug)]
pub struct Condition(Checked);

/// How a figure is computed.
#[derive(Clone, Debug)]
pub struct Formula(Checked);

/// An expression that was checked against a vocabulary.
#[derive(Clone, Debug)]
struct Checked {
    text: String,
    expr: Expr,
    vocabulary: Arc<Vocabulary>,
}

impl Checked {
    fn parse(text: &str, vocabulary: &Arc<Vocabulary>) -> Result<(Self, Type), Fault> {
        let expr = parser::parse(text)?;
        let is = check(&expr, &Scope::default(), vocabulary)?;
        Ok((Self { text: text.to_owned(), expr, vocabulary: Arc::clone(vocabulary) }, is))
    }
}

impl Condition {
    /// The condition that `text` states about names of `vocabulary`.
    ///
    /// # Errors
    /// If it is not a condition, or makes no sense.
    pub fn parse(text: &str, vocabulary: &Arc<Vocabulary>) -> Result<Self, Fault> {
        match Checked::parse(text, vocabulary)? {
            (checked, Type::Truth) => Ok(Self(checked)),
            (checked, Type::Number(_)) => Err(no_condition(&checked.expr)),
        }
    }

    /// Whether it holds, and the figures that decide it. `None` means undecided.
    #[must_use]
    pub fn judge(&self, index: &Index<'_>) -> (Option<bool>, String) {
        let (holds, seen) = Eval::judge(&self.0.vocabulary, index, &self.0.expr);
        (holds, evidence::words(&self.0.text, &seen))
    }
}

impl Formula {
    /// The number that `text` computes from names of `vocabulary`.
    ///
    /// # Errors
    /// If it is not a number, or makes no sense.
    pub fn parse(text: &str, vocabulary: &Arc<Vocabulary>) -> Result<Self, Fault> {
        match Checked::parse(text, vocabulary)? {
            (checked, Type::Number(_)) => Ok(Self(checked)),
            (checked, Type::Truth) => {
                let help = "a figure is a number: `ticket.half.elapsed`";
                Err(Fault::new(checked.expr.span, "a condition where a number belongs", help))
            }
        }
    }

    /// Its value, in the unit of its metric: a mean with its spread if it comes from samples.
    ///
    /// # Errors
    /// Says why it has no value.
    pub fn compute(&self, index: &Index<'_>) -> Result<Summary, String> {
        Eval::quiet(&self.0.vocabulary, index).summary(&self.0.expr)
    }

    /// How many runs have what it refers to, and how many runs there are.
    pub fn runs(&self, index: &Index<'_>) -> (usize, usize) {
        let mut runs = (0, 0);
        self.0.expr.each_path(&mut |path, published| {
            for name in
                self.0.vocabulary.about(path, &Scope::default()).iter().filter(|_| !published)
            {
                let (with, all) = index.runs(name);
                runs = (runs.0 + with, runs.1 + all);
            }
        });
        runs
    }
}

/// Whether the unit of a metric exists.
#[must_use]
pub fn has_unit(metric: &overspin_record::metric::Metric) -> bool {
    unit::Unit::find(metric.unit).is_some()
}

#[cfg(test)]
mod tests;
