//! What the variables of an expression stand for while a part of it is evaluated.

use super::ast::{Path, PathWord};
use super::fault::Fault;

/// The words of variables, and which samples count.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Variables and their words.
    pub bound: Vec<(String, String)>,
    /// Only samples of this seed count.
    pub seed: Option<u64>,
    /// Published figures stand in for samples.
    pub published: bool,
}

impl Scope {
    pub fn get(&self, variable: &str) -> Option<&str> {
        self.bound.iter().rev().find(|(name, _)| name == variable).map(|(_, word)| word.as_str())
    }

    /// This scope with more variables.
    pub fn with(&self, words: &[(String, String)]) -> Self {
        Self { bound: [self.bound.as_slice(), words].concat(), ..self.clone() }
    }

    /// The word that a word of a path stands for; `Ok(None)` means any.
    pub fn word<'a>(&'a self, word: &'a PathWord) -> Result<Option<&'a str>, String> {
        match word {
            PathWord::Word(word) => Ok(Some(word)),
            PathWord::Any => Ok(None),
            PathWord::Variable(name) => match self.get(name) {
                Some(word) => Ok(Some(word)),
                None => Err(format!("`${name}` stands for nothing")),
            },
        }
    }

    /// The words that all words of a path stand for.
    pub fn words<'a>(&'a self, path: &'a Path) -> Result<Vec<Option<&'a str>>, Fault> {
        let one = |(word, span): &'a (PathWord, _)| {
            let fault = |message| {
                let help = "say what it goes over: all(ticket.$load.finished == 1 for $load)";
                Fault::new(std::ops::Range::clone(span), message, help)
            };
            self.word(word).map_err(fault)
        };
        path.words.iter().map(one).collect()
    }
}
