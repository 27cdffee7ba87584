//! The names that claims may use: what an experiment will measure, and what was published about it. A kind of
//! experiment knows them from the set-up, before anything runs.

use super::ast::{Expr, Kind, Path, PathWord};
use super::fault::Fault;
use super::parser::parse;
use super::scope::Scope;
use super::unit::Unit;
use overspin_record::metric::Metric;
use overspin_sched::nearest;
use std::collections::HashMap;

/// At most this many legal words are listed in a message.
const LISTED: usize = 24;

/// A metric at a place.
#[derive(Clone, Debug)]
pub struct Name {
    pub place: Vec<String>,
    pub metric: &'static Metric,
}

impl Name {
    /// The unit of its metric, for calculations.
    pub fn unit(&self) -> &'static Unit {
        // A test checks that those of all metrics that claims use exist.
        Unit::find(self.metric.unit).unwrap_or(Unit::plain())
    }

    /// The word at a position; the last is the metric.
    fn word(&self, at: usize) -> Option<&str> {
        match self.place.get(at) {
            Some(word) => Some(word),
            None => (at == self.place.len()).then_some(self.metric.name),
        }
    }

    fn fits(&self, words: &[Option<&str>]) -> bool {
        words.len() == self.place.len() + 1 && self.begins(words)
    }

    fn begins(&self, words: &[Option<&str>]) -> bool {
        words.iter().enumerate().all(|(at, wanted)| match (wanted, self.word(at)) {
            (Some(wanted), Some(word)) => *wanted == word,
            (None, word) => word.is_some(),
            (Some(_), None) => false,
        })
    }
}

/// Every name that claims may use.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    names: Vec<Name>,
    /// Their positions, by their metric: an experiment has thousands of names, and hundreds of references to them.
    of_metric: HashMap<&'static str, Vec<usize>>,
    published: Vec<(Name, f64)>,
}

impl Vocabulary {
    /// Announces samples of these metrics at a place.
    pub fn measured(&mut self, place: &[&str], metrics: &[&'static Metric]) {
        let place: Vec<String> = place.iter().map(|w| (*w).to_owned()).collect();
        for metric in metrics {
            self.of_metric.entry(metric.name).or_default().push(self.names.len());
            self.names.push(Name { place: place.clone(), metric });
        }
    }

    /// Adds a published value of a metric at a place, in the metric's unit, that is not a figure.
    pub fn published(&mut self, place: &[&str], metric: &'static Metric, value: f64) {
        let place = place.iter().map(|w| (*w).to_owned()).collect();
        self.published.push((Name { place, metric }, value));
    }

    /// Adds the published value of a figure. If the figure's formula is one reference, `published` of that
    /// reference means this value.
    pub fn figure(&mut self, simulated: &str, value: f64) {
        // An error in the text is reported when it is read as a formula.
        let Ok(Expr { kind: Kind::Reference(path), .. }) = parse(simulated) else { return };
        if let Ok([name]) = self.find(&path, &Scope::default()).as_deref() {
            let name = (*name).clone();
            self.published.push((name, value));
        }
    }

    /// The names that a reference stands for: one, or several if it has `*`.
    ///
    /// # Errors
    /// If there is no such name; the fault says which word is wrong and which words are legal.
    pub fn find(&self, path: &Path, scope: &Scope) -> Result<Vec<&Name>, Fault> {
        let words = scope.words(path)?;
        let found = self.fitting(&words);
        if found.is_empty() { Err(unknown(path, &words, &|| self.names.iter())) } else { Ok(found) }
    }

    /// The names that fit words, of which some may be any.
    fn fitting(&self, words: &[Option<&str>]) -> Vec<&Name> {
        let Some(Some(metric)) = words.last() else {
            return self.names.iter().filter(|n| n.fits(words)).collect();
        };
        let names = self.of_metric.get(metric).into_iter().flatten().map(|i| &self.names[*i]);
        names.filter(|n| n.fits(words)).collect()
    }

    /// The published figures that a reference stands for.
    ///
    /// # Errors
    /// If there are none.
    pub fn find_published(&self, path: &Path, scope: &Scope) -> Result<Vec<&(Name, f64)>, Fault> {
        let words = scope.words(path)?;
        let found: Vec<_> = self.published.iter().filter(|(n, _)| n.fits(&words)).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let mut fault = unknown(path, &words, &|| self.published.iter().map(|(n, _)| n));
        fault.message = format!("{} among what was published", fault.message);
        Err(fault)
    }

    /// The words that names have in the place of `$variable` in a path whose other words fit.
    ///
    /// # Errors
    /// If no name fits them.
    pub fn words_for(
        &self,
        path: &Path,
        published: bool,
        variable: &str,
        scope: &Scope,
    ) -> Result<Vec<&str>, Fault> {
        let words = known_words(path, scope);
        let names = || {
            let names = self.published.iter().map(|(n, _)| n).filter(|_| published);
            names.chain(self.names.iter().filter(|_| !published))
        };
        let fitting: Vec<&Name> = if published {
            names().filter(|n| n.fits(&words)).collect()
        } else {
            self.fitting(&words)
        };
        let mut found: Vec<&str> = Vec::new();
        for (at, (word, _)) in path.words.iter().enumerate() {
            if !matches!(word, PathWord::Variable(v) if v == variable) {
                continue;
            }
            for word in fitting.iter().filter_map(|n| n.word(at)) {
                if !found.contains(&word) {
                    found.push(word);
                }
            }
        }
        if found.is_empty() { Err(unknown(path, &words, &names)) } else { Ok(found) }
    }

    /// The measured names that a path may lead to, whatever its unbound variables will stand for.
    pub fn about(&self, path: &Path, scope: &Scope) -> Vec<&Name> {
        self.fitting(&known_words(path, scope))
    }

    /// Every metric that is measured, with each of its places.
    pub fn metrics(&self) -> impl Iterator<Item = (&[String], &'static Metric)> {
        self.names.iter().map(|n| (n.place.as_slice(), n.metric))
    }
}

/// The words of a path; an unbound variable is any word.
fn known_words<'a>(path: &'a Path, scope: &'a Scope) -> Vec<Option<&'a str>> {
    path.words.iter().map(|(word, _)| scope.word(word).unwrap_or(None)).collect()
}

/// The fault of a path: which of its words is wrong.
fn unknown<'a, I: Iterator<Item = &'a Name>>(
    path: &Path,
    words: &[Option<&str>],
    names: &dyn Fn() -> I,
) -> Fault {
    let legal = |at: usize| {
        let mut legal: Vec<&str> = Vec::new();
        for word in names().filter(|n| n.begins(&words[..at])).filter_map(|n| n.word(at)) {
            if !legal.contains(&word) {
                legal.push(word);
            }
        }
        legal
    };
    for (at, (_, span)) in path.words.iter().enumerate() {
        if names().any(|n| n.begins(&words[..=at])) {
            continue;
        }
        let word = words[at].unwrap_or("*");
        let legal = legal(at);
        let before = place_text(&words[..at]);
        let message = match (before.is_empty(), legal.is_empty()) {
            (true, _) => format!("there is no place `{word}`"),
            (false, true) => format!("`{before}` has nothing below it"),
            (false, false) => format!("there is no `{word}` at `{before}`"),
        };
        return Fault::new(span.clone(), message, list(word, &legal));
    }
    let span =
        path.words.first().map_or(0, |w| w.1.start)..path.words.last().map_or(0, |w| w.1.end);
    let message = format!("`{}` is a place, not a metric", place_text(words));
    Fault::new(span, message, list("", &legal(words.len())))
}

fn list(wrong: &str, legal: &[&str]) -> String {
    let guess = match nearest(wrong, legal.iter().copied()) {
        Some(near) if !wrong.is_empty() => format!("did you mean `{}`? ", quoted(near)),
        _ => String::new(),
    };
    let mut names: Vec<String> = legal.iter().take(LISTED).map(|w| quoted(w)).collect();
    if legal.len() > LISTED {
        names.push(format!("and {} more", legal.len() - LISTED));
    }
    if names.is_empty() {
        return "a reference is a place and a metric: `ticket.half.elapsed`".into();
    }
    format!("{guess}it can be: {}", names.join(", "))
}

fn place_text(words: &[Option<&str>]) -> String {
    let words: Vec<String> = words.iter().map(|w| w.map_or_else(|| "*".into(), quoted)).collect();
    words.join(".")
}

/// A word as in expressions and places: in quotes if it has other signs than letters, digits, `_` and `-`, or
/// if it begins like a number and is not one.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let number = word.starts_with(|c: char| c.is_ascii_digit());
    let bare = word.chars().all(plain) && !word.starts_with('-') && !word.ends_with('-');
    if word.is_empty() || !bare || (number && !word.bytes().all(|b| b.is_ascii_digit())) {
        let quote = if word.contains('"') { '\'' } else { '"' };
        return format!("{quote}{word}{quote}");
    }
    word.to_owned()
}

/// A place, as in samples.
pub fn place(words: &[impl AsRef<str>]) -> String {
    let words: Vec<String> = words.iter().map(|w| quoted(w.as_ref())).collect();
    words.join(".")
}
