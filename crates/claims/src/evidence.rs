//! The figures that decide a claim, in words: each comparison with the values of its sides.

use super::ast::{Arithmetic, Expr, Kind, Order};
use super::eval::{Eval, Number};
use super::functions::Make;
use super::scope::Scope;
use super::types::{Type, check, combinations};
use super::unit::{Dimension, Unit, digits};
use super::vocabulary::Vocabulary;
use std::fmt::Write;
use std::ops::Range;

/// This many values of one comparison are listed; if there are more, only the extremes.
const LISTED: usize = 16;

/// A comparison that was made.
pub struct Seen {
    /// Where it stands in the text.
    span: Range<usize>,
    /// What the variables stood for.
    words: Vec<String>,
    pub holds: Option<bool>,
    sides: Vec<Side>,
    link: Link,
}

/// One side of a comparison.
struct Side {
    span: Range<usize>,
    value: Number,
    /// The figure that was published instead.
    published: Option<f64>,
    constant: bool,
    unit: Option<&'static Unit>,
    dimension: Dimension,
}

/// How the sides are compared.
enum Link {
    Chain(Vec<(Order, Option<bool>)>),
    /// The tolerance, and the least and the largest value within it.
    Within(String, Option<(f64, f64)>),
    Between,
}

impl Eval<'_> {
    /// Makes a comparison.
    pub(super) fn compare(&mut self, expr: &Expr, scope: &Scope) -> Seen {
        let seen = |holds, sides, link| Seen {
            span: expr.span.clone(),
            words: scope
                .bound
                .iter()
                .map(|(_, word)| word.clone())
                .chain(scope.seed.map(|seed| format!("seed {seed}")))
                .collect(),
            holds,
            sides: in_one_unit(sides),
            link,
        };
        match &expr.kind {
            Kind::Chain(first, rest) => {
                let mut sides = vec![self.side(first, scope)];
                let mut links = Vec::new();
                for (order, next) in rest {
                    let next = self.side(next, scope);
                    let before = sides.last().and_then(|s| s.value.as_ref().ok());
                    let pair = before.zip(next.value.as_ref().ok());
                    links.push((*order, pair.map(|(a, b)| order.holds(*a, *b))));
                    sides.push(next);
                }
                let known = links.iter().all(|(_, holds)| holds.is_some());
                let all = !links.iter().any(|(_, holds)| *holds == Some(false));
                seen((known || !all).then_some(all), sides, Link::Chain(links))
            }
            Kind::Within(within) => {
                let (value, centre) =
                    (self.side(&within.value, scope), self.side(&within.centre, scope));
                let tolerance = within.tolerance;
                let range = centre.value.as_ref().ok().map(|c| {
                    let distance = if within.relative() { tolerance * c.abs() } else { tolerance };
                    (c - distance, c + distance)
                });
                let pair = value.value.as_ref().ok().zip(centre.value.as_ref().ok());
                let holds = pair.and_then(|(v, c)| {
                    let off = if within.relative() { v / c - 1.0 } else { v - c };
                    (!off.is_nan()).then(|| off.abs() <= tolerance)
                });
                let link = Link::Within(within.unit.show(tolerance), range);
                seen(holds, vec![value, centre], link)
            }
            Kind::Between(three) => {
                let sides: Vec<Side> = three.iter().map(|e| self.side(e, scope)).collect();
                let values: Option<Vec<f64>> =
                    sides.iter().map(|s| s.value.as_ref().ok().copied()).collect();
                let holds = values.map(|v| v[1] <= v[0] && v[0] <= v[2]);
                seen(holds, sides, Link::Between)
            }
            _ => seen(None, Vec::new(), Link::Between),
        }
    }

    fn side(&mut self, expr: &Expr, scope: &Scope) -> Side {
        let value = self.number(expr, scope);
        let constant = expr.is_literal();
        let dimension = match check(expr, scope, self.vocabulary) {
            Ok(Type::Number(Some(dimension))) => dimension,
            _ => Dimension::default(),
        };
        let published = Scope { published: true, seed: None, ..scope.clone() };
        let published = if constant || expr.names_published() {
            None
        } else {
            self.quietly(|eval| eval.number(expr, &published)).ok()
        };
        let unit = unit(expr, scope, self.vocabulary);
        Side { span: expr.span.clone(), value, published, constant, unit, dimension }
    }
}

/// The unit that a number is shown in, if its parts have one.
pub(super) fn unit(expr: &Expr, scope: &Scope, names: &Vocabulary) -> Option<&'static Unit> {
    match &expr.kind {
        Kind::Number(_, unit) => Some(unit),
        Kind::Reference(path) => names.find(path, scope).ok()?.first().map(|name| name.unit()),
        Kind::Published(path) => {
            names.find_published(path, scope).ok()?.first().map(|(name, _)| name.unit())
        }
        Kind::Call(call) if matches!(call.function.make, Make::Same(_) | Make::Percentile) => {
            // Whatever its variables stand for, the unit is the same.
            let scopes = combinations(call, scope, names).ok()?;
            unit(call.arguments.first()?, scopes.first()?, names)
        }
        Kind::Negative(of) => unit(of, scope, names),
        Kind::Arithmetic(Arithmetic::Add | Arithmetic::Subtract, a, _) => unit(a, scope, names),
        // `50 % of x`.
        Kind::Arithmetic(Arithmetic::Multiply, a, b) if matches!(a.kind, Kind::Number(_, unit) if unit.name == "%") => {
            unit(b, scope, names)
        }
        _ => None,
    }
}

/// A side without a unit is shown in the unit of another side: a ratio beside 5 % in percent.
fn in_one_unit(mut sides: Vec<Side>) -> Vec<Side> {
    let other = sides.iter().filter_map(|s| s.unit).find(|unit| !unit.name.is_empty());
    for side in &mut sides {
        side.unit = side
            .unit
            .filter(|unit| !unit.name.is_empty())
            .or(other.filter(|unit| unit.dimension == side.dimension))
            .or(side.dimension.base());
    }
    sides
}

/// All comparisons in words. `text` is the expression.
pub fn words(text: &str, seen: &[Seen]) -> String {
    let mut groups: Vec<(&Range<usize>, Vec<&Seen>)> = Vec::new();
    for one in seen {
        match groups.iter_mut().find(|(span, _)| **span == one.span) {
            Some((_, group)) => group.push(one),
            None => groups.push((&one.span, vec![one])),
        }
    }
    let words: Vec<String> = groups.iter().map(|(_, group)| of_group(text, group)).collect();
    words.join("; ")
}

/// A part of the text in one line.
fn line(text: &str, span: &Range<usize>) -> String {
    text.get(span.clone()).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn of_group(text: &str, group: &[&Seen]) -> String {
    let [first, ..] = group else { return String::new() };
    if group.len() == 1 && first.words.is_empty() {
        return first.alone(text);
    }
    let mut out = line(text, &first.span);
    let one = |seen: &&Seen| format!("{} at {}", seen.values(), seen.words.join(", "));
    // Writing to a String cannot fail.
    if group.len() <= LISTED {
        let each: Vec<String> = group.iter().map(one).collect();
        let _ = write!(out, ": {}", each.join("; "));
        return out;
    }
    let count = |holds| group.iter().filter(|s| s.holds == holds).count();
    let _ = write!(out, ": true in {} of {} cases", count(Some(true)), group.len());
    for (holds, what) in [(Some(false), "false"), (None, "undecided")] {
        if let Some(example) = group.iter().find(|s| s.holds == holds) {
            let _ = write!(out, ", {what} in {}, for example {}", count(holds), one(example));
        }
    }
    out
}

impl Side {
    fn show(&self, value: f64) -> String {
        match self.unit {
            Some(unit) => unit.show(value),
            None => format!("{} {}", digits(value), self.dimension),
        }
    }

    fn shown(&self) -> String {
        match &self.value {
            Ok(value) => self.show(*value),
            Err(_) => "unknown".into(),
        }
    }

    /// Its text, its value and what was published.
    fn full(&self, text: &str) -> String {
        let own = line(text, &self.span);
        if self.constant {
            return own;
        }
        let published =
            self.published.map_or_else(String::new, |p| format!(" (published {})", self.show(p)));
        format!("{own} = {}{published}", self.shown())
    }
}

impl Seen {
    fn why(&self) -> String {
        let mut why: Vec<&str> =
            self.sides.iter().filter_map(|s| s.value.as_ref().err()).map(String::as_str).collect();
        why.dedup();
        if why.is_empty() { "a division by 0".into() } else { why.join(", ") }
    }

    /// The whole comparison with its values.
    fn alone(&self, text: &str) -> String {
        if self.holds.is_none() {
            return format!("{}: undecided, {}", line(text, &self.span), self.why());
        }
        let not = if self.holds == Some(false) { "not " } else { "" };
        match (&self.link, self.sides.as_slice()) {
            (Link::Within(tolerance, range), [value, centre]) => {
                let range = range.map_or_else(String::new, |(low, high)| {
                    format!(" ({} to {})", value.show(low), value.show(high))
                });
                let (value, centre) = (value.full(text), centre.full(text));
                format!("{value}, {not}within {tolerance} of {centre}{range}")
            }
            (Link::Between, [value, low, high]) => {
                let (low, high) = (low.full(text), high.full(text));
                format!("{}, {not}between {low} and {high}", value.full(text))
            }
            (Link::Chain(links), [first, rest @ ..]) => {
                let mut out = first.full(text);
                for ((order, holds), side) in links.iter().zip(rest) {
                    let not = if *holds == Some(false) { "not " } else { "" };
                    // Writing to a String cannot fail.
                    let _ = write!(out, " {not}{} {}", order.sign(), side.full(text));
                }
                out
            }
            _ => String::new(),
        }
    }

    /// The values alone, for a text that was shown once for many comparisons.
    fn values(&self) -> String {
        let shown: Vec<String> =
            self.sides.iter().filter(|s| !s.constant).map(Side::shown).collect();
        let between = match &self.link {
            Link::Chain(links) => links.first().map_or("", |(order, _)| order.sign()),
            Link::Within(..) | Link::Between => "to",
        };
        let values = shown.join(&format!(" {between} "));
        match self.holds {
            Some(true) => values,
            Some(false) => format!("{values} (no)"),
            None => format!("undecided ({})", self.why()),
        }
    }
}
