//! Whether an expression makes sense, before anything runs: every name exists, and only numbers of the same
//! unit are added or compared.

use super::ast::{Arithmetic, Call, Expr, Kind, Path, PathWord};
use super::eval::Eval;
use super::evidence::unit;
use super::fault::Fault;
use super::functions::Make;
use super::samples::{Index, Samples};
use super::scope::Scope;
use super::unit::{Dimension, Unit};
use super::vocabulary::Vocabulary;

/// Combinations of words that one expression may go over.
const MAX_COMBINATIONS: usize = 20_000;

/// What an expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number; `None` is the number 0, which fits every unit.
    Number(Option<Dimension>),
    /// A condition.
    Truth,
}

/// Checks expressions against a vocabulary.
pub struct Checker<'a> {
    vocabulary: &'a Vocabulary,
    /// Combinations so far.
    combinations: usize,
}

/// The type of an expression.
///
/// # Errors
/// If it makes no sense.
pub fn check(expr: &Expr, scope: &Scope, vocabulary: &Vocabulary) -> Result<Type, Fault> {
    Checker { vocabulary, combinations: 0 }.check(expr, scope)
}

/// Every combination of words that a call goes over.
///
/// # Errors
/// If a variable goes over nothing.
pub fn combinations(
    call: &Call,
    scope: &Scope,
    vocabulary: &Vocabulary,
) -> Result<Vec<Scope>, Fault> {
    let mut all = vec![Vec::new()];
    for l in &call.loops {
        if scope.get(&l.variable).is_some() || all.iter().flatten().any(|(v, _)| *v == l.variable) {
            let message = format!("`${}` already stands for something", l.variable);
            return Err(Fault::new(l.span.clone(), message, "give it another name"));
        }
        let words = match &l.words {
            Some(words) => words.clone(),
            None => domain(call, &l.variable, scope, vocabulary)?,
        };
        if words.is_empty() {
            let message = format!("`${}` goes over nothing", l.variable);
            let help = "use it in a reference, in the place of a word: `ticket.$load.elapsed`";
            return Err(Fault::new(l.span.clone(), message, help));
        }
        if all.len().saturating_mul(words.len()) > MAX_COMBINATIONS {
            return Err(too_many(l.span.clone()));
        }
        let extended = |before: &Vec<(String, String)>| {
            let before = before.clone();
            let with = move |word: &String| {
                [before.as_slice(), &[(l.variable.clone(), word.clone())]].concat()
            };
            words.iter().map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(extended).collect();
    }
    let mut scopes: Vec<Scope> = all.iter().map(|words| scope.with(words)).collect();
    if let Some(filter) = &call.filter {
        let nothing = Samples::default();
        let index = Index::new(&nothing);
        let mut eval = Eval::quiet(vocabulary, &index);
        for scope in &scopes {
            if check(filter, scope, vocabulary)? != Type::Truth {
                return Err(no_condition(filter));
            }
        }
        scopes.retain(|scope| eval.truth(filter, scope) == Some(true));
        if scopes.is_empty() {
            let help = "every combination of words is left out";
            return Err(Fault::new(filter.span.clone(), "this is never true", help));
        }
    }
    Ok(scopes)
}

fn too_many(span: std::ops::Range<usize>) -> Fault {
    Fault::new(span, "there are too many combinations", "name the words: `for $x in [a, b]`")
}

/// The words that all references of a call have in the place of `$variable`.
fn domain(
    call: &Call,
    variable: &str,
    scope: &Scope,
    vocabulary: &Vocabulary,
) -> Result<Vec<String>, Fault> {
    let mut domain: Option<Vec<String>> = None;
    let mut fault = None;
    let mut narrow = |path: &Path, published: bool| {
        let is = |(word, _): &(PathWord, _)| matches!(word, PathWord::Variable(v) if v == variable);
        if !path.words.iter().any(is) {
            return;
        }
        match (vocabulary.words_for(path, published, variable, scope), &mut domain) {
            (Err(wrong), _) => fault = fault.take().or(Some(wrong)),
            (Ok(words), None) => domain = Some(words.into_iter().map(str::to_owned).collect()),
            (Ok(words), Some(domain)) => domain.retain(|word| words.contains(&word.as_str())),
        }
    };
    call.arguments.iter().for_each(|a| a.each_path(&mut narrow));
    fault.map_or(Ok(domain.unwrap_or_default()), Err)
}

impl Checker<'_> {
    fn check(&mut self, expr: &Expr, scope: &Scope) -> Result<Type, Fault> {
        match &expr.kind {
            Kind::Number(number, _) if *number == 0.0 => Ok(Type::Number(None)),
            Kind::Number(_, unit) => Ok(Type::Number(Some(unit.dimension))),
            Kind::Undecided => Ok(Type::Truth),
            Kind::Variable(name) => self.variable(name, expr, scope),
            Kind::Reference(path) => {
                several(path, expr)?;
                self.reference(path, scope)
            }
            Kind::Published(path) => {
                several(path, expr)?;
                let found = self.vocabulary.find_published(path, scope)?;
                let unit = found.first().map_or(Unit::plain(), |(name, _)| name.unit());
                Ok(Type::Number(Some(unit.dimension)))
            }
            Kind::Call(call) => self.call(call, expr, scope),
            Kind::Negative(of) => self.number(of, scope).map(Type::Number),
            Kind::Arithmetic(operator, a, b) => {
                let (left, right) = (self.number(a, scope)?, self.number(b, scope)?);
                let (x, y) = (left.unwrap_or_default(), right.unwrap_or_default());
                match operator {
                    Arithmetic::Add | Arithmetic::Subtract => {
                        same(left, right, b).map(Type::Number)
                    }
                    Arithmetic::Multiply => Ok(Type::Number(Some(x.times(y)))),
                    Arithmetic::Divide => Ok(Type::Number(Some(x.over(y)))),
                }
            }
            Kind::Not(of) => self.truth(of, scope),
            Kind::And(a, b) | Kind::Or(a, b) => {
                self.truth(a, scope)?;
                self.truth(b, scope)
            }
            Kind::Chain(first, rest) => {
                let mut before = self.number(first, scope)?;
                let mut left = &**first;
                for (_, next) in rest {
                    let dimension = self.number(next, scope)?;
                    before = same(before, dimension, next)?;
                    self.percent(left, next, scope)?;
                    left = next;
                }
                Ok(Type::Truth)
            }
            Kind::Within(within) => {
                let value = self.number(&within.value, scope)?;
                let centre = same(value, self.number(&within.centre, scope)?, &within.centre)?;
                self.percent(&within.value, &within.centre, scope)?;
                if !within.relative() && centre.is_some_and(|c| c != within.unit.dimension) {
                    let (is, of) = (within.unit.dimension, centre.unwrap_or_default());
                    let message = format!("the tolerance is {is}, but its centre is {of}");
                    let help = "write `within 10 % of x`, or a tolerance with the unit of x";
                    return Err(Fault::new(expr.span.clone(), message, help));
                }
                Ok(Type::Truth)
            }
            Kind::Between(three) => {
                let [value, low, high] = &**three;
                let dimension = self.number(value, scope)?;
                for end in [low, high] {
                    same(dimension, self.number(end, scope)?, end)?;
                    self.percent(value, end, scope)?;
                }
                Ok(Type::Truth)
            }
        }
    }

    /// The dimension of an expression that must be a number.
    fn number(&mut self, expr: &Expr, scope: &Scope) -> Result<Option<Dimension>, Fault> {
        match self.check(expr, scope)? {
            Type::Number(dimension) => Ok(dimension),
            Type::Truth => {
                let help = "conditions are joined by `and` and `or`";
                Err(Fault::new(expr.span.clone(), "a condition where a number belongs", help))
            }
        }
    }

    /// Refuses to compare a value in percent with a number without a unit: 90 would be 9000 %.
    fn percent(&self, a: &Expr, b: &Expr, scope: &Scope) -> Result<(), Fault> {
        let unit = |e: &Expr| unit(e, scope, self.vocabulary).map_or("", |unit| unit.name);
        let bare = |e: &Expr| match e.kind {
            Kind::Number(number, unit) => number != 0.0 && unit.name.is_empty(),
            _ => false,
        };
        for (one, other) in [(a, b), (b, a)] {
            if bare(one) && unit(other) == "%" {
                let message = "a number without a unit beside one in percent";
                let help = "write `90 %`: without `%`, 1 is the whole";
                return Err(Fault::new(one.span.clone(), message, help));
            }
        }
        Ok(())
    }

    fn truth(&mut self, expr: &Expr, scope: &Scope) -> Result<Type, Fault> {
        match self.check(expr, scope)? {
            Type::Truth => Ok(Type::Truth),
            Type::Number(_) => Err(no_condition(expr)),
        }
    }

    fn variable(&mut self, name: &str, expr: &Expr, scope: &Scope) -> Result<Type, Fault> {
        match scope.get(name).map(str::parse::<f64>) {
            Some(Ok(number)) if number.is_finite() => Ok(Type::Number(Some(Dimension::default()))),
            Some(_) => {
                let word = scope.get(name).unwrap_or_default();
                let message = format!("`${name}` stands for `{word}`, which is not a number");
                let help = "only words that are numbers can be compared";
                Err(Fault::new(expr.span.clone(), message, help))
            }
            None => {
                let message = format!("`${name}` stands for nothing");
                let help = format!("say what it goes over: all(.. for ${name})");
                Err(Fault::new(expr.span.clone(), message, help))
            }
        }
    }

    fn reference(&self, path: &Path, scope: &Scope) -> Result<Type, Fault> {
        let found = self.vocabulary.find(path, scope)?;
        let units = found.iter().map(|name| name.unit());
        Ok(Type::Number(units.map(|unit| unit.dimension).next()))
    }

    fn call(&mut self, call: &Call, expr: &Expr, scope: &Scope) -> Result<Type, Fault> {
        let name = call.function.name;
        let fail = |message: String, help: &str| Err(Fault::new(expr.span.clone(), message, help));
        if call.by_seed && scope.seed.is_some() {
            let help = "leave one of them out";
            return fail("`by seed` is inside another `by seed`".into(), help);
        }
        if let Some(filter) = &call.filter
            && !filter.is_constant()
        {
            let help = "`where` compares variables with numbers: `where $rate <= 1000`";
            return Err(Fault::new(
                filter.span.clone(),
                "`where` cannot use measured values",
                help,
            ));
        }
        match call.function.make {
            Make::Truth { .. } if !call.by_seed && call.loops.is_empty() => {
                let help = "write `for $load`, with `$load` in a reference, or `by seed`";
                return fail(format!("`{name}` goes over nothing"), help);
            }
            Make::Curve(_) if call.by_seed || call.loops.len() != 1 => {
                let help = "write `for $rate`, with `$rate` in a reference";
                return fail(format!("`{name}` goes over one variable"), help);
            }
            _ => {}
        }
        let mut result = None;
        for mut inner in combinations(call, scope, self.vocabulary)? {
            self.combinations += 1;
            if self.combinations > MAX_COMBINATIONS {
                return Err(too_many(expr.span.clone()));
            }
            if call.by_seed {
                inner.seed = Some(0);
            }
            if let (Make::Curve(_), Some(l)) = (call.function.make, call.loops.first()) {
                let variable =
                    Expr { kind: Kind::Variable(l.variable.clone()), span: l.span.clone() };
                self.check(&variable, &inner)?;
            }
            let one = self.arguments(call, &inner)?;
            match (result, one) {
                (Some(Type::Number(a)), Type::Number(b)) => {
                    result = Some(Type::Number(same(a, b, expr)?));
                }
                _ => result = Some(one),
            }
        }
        Ok(result.unwrap_or(Type::Number(None)))
    }

    /// The type of a call whose variables stand for words.
    fn arguments(&mut self, call: &Call, scope: &Scope) -> Result<Type, Fault> {
        if let Make::Truth { .. } = call.function.make {
            return call.arguments.iter().try_fold(Type::Truth, |_, a| self.truth(a, scope));
        }
        let mut dimension = None;
        for (i, argument) in call.arguments.iter().enumerate() {
            let one = match &argument.kind {
                // All samples of it, even of several places.
                Kind::Reference(path) => match self.reference(path, scope)? {
                    Type::Number(dimension) => dimension,
                    Type::Truth => None,
                },
                _ => self.number(argument, scope)?,
            };
            if matches!(call.function.make, Make::Percentile) && i == 1 {
                if !argument.is_constant() {
                    let message = "the second argument is not a number";
                    let help = "write `percentile(ticket.half.elapsed, 95 %)`";
                    return Err(Fault::new(argument.span.clone(), message, help));
                }
                same(Some(Dimension::default()), one, argument)?;
            } else {
                dimension = if i == 0 { one } else { same(dimension, one, argument)? };
            }
        }
        Ok(Type::Number(match call.function.make {
            Make::Same(_) | Make::Percentile => dimension,
            _ => Some(Dimension::default()),
        }))
    }
}

/// The dimension that two numbers have in common.
fn same(a: Option<Dimension>, b: Option<Dimension>, at: &Expr) -> Result<Option<Dimension>, Fault> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => {
            let message = format!("this is {b}, but its counterpart is {a}");
            let help = "only numbers with units of one kind can be compared or added: 10 ms, 5 %";
            Err(Fault::new(at.span.clone(), message, help))
        }
        _ => Ok(a.or(b)),
    }
}

/// The fault of a number in the place of a condition.
pub(super) fn no_condition(expr: &Expr) -> Fault {
    let help = "compare it with something: < <= > >= == !=, `within 10 % of`, `between a and b`";
    Fault::new(expr.span.clone(), "a number where a condition belongs", help)
}

/// Refuses a reference to several places where one number is needed.
fn several(path: &Path, expr: &Expr) -> Result<(), Fault> {
    if path.words.iter().any(|(word, _)| *word == PathWord::Any) {
        let help = "make one number of them, `mean(..)`, or go over them, `all(.. $x .. for $x)`";
        return Err(Fault::new(expr.span.clone(), "`*` stands for several places", help));
    }
    Ok(())
}
