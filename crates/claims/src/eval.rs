//! Evaluates expressions with the samples of an experiment. Conditions are true, false or undecided (Kleene
//! logic): a missing value leaves a condition undecided, unless the condition comes out the same for every
//! possible value.

use super::ast::{Arithmetic, Call, Expr, Kind, Path};
use super::evidence::{Seen, unit};
use super::functions::{Make, percentile};
use super::samples::Index;
use super::scope::Scope;
use super::types::combinations;
use super::unit::Unit;
use super::vocabulary::{Name, Vocabulary};
use overspin_stats::Summary;

/// A number, or why there is none.
pub type Number = Result<f64, String>;

/// Evaluates expressions that were checked.
pub struct Eval<'a> {
    pub(super) vocabulary: &'a Vocabulary,
    index: &'a Index<'a>,
    /// Comparisons so far; `None` if they are not recorded.
    seen: Option<Vec<Seen>>,
    /// Numbers stay in the unit of measurement if all share it: converting a number there and back may
    /// change its last digit.
    as_measured: bool,
}

impl<'a> Eval<'a> {
    /// Without evidence.
    pub fn quiet(vocabulary: &'a Vocabulary, index: &'a Index<'a>) -> Self {
        Self { vocabulary, index, seen: None, as_measured: false }
    }

    /// Whether `expr` holds, and the comparisons that decide it.
    pub fn judge(
        vocabulary: &'a Vocabulary,
        index: &'a Index<'a>,
        expr: &Expr,
    ) -> (Option<bool>, Vec<Seen>) {
        let mut eval = Self { seen: Some(Vec::new()), ..Self::quiet(vocabulary, index) };
        let holds = eval.truth(expr, &Scope::default());
        (holds, eval.seen.unwrap_or_default())
    }

    /// Runs `what` without recording its comparisons.
    pub(super) fn quietly<T>(&mut self, what: impl FnOnce(&mut Self) -> T) -> T {
        let seen = self.seen.take();
        let result = what(self);
        self.seen = seen;
        result
    }

    pub fn truth(&mut self, expr: &Expr, scope: &Scope) -> Option<bool> {
        match &expr.kind {
            Kind::Not(of) => self.truth(of, scope).map(|holds| !holds),
            Kind::And(a, b) => both([self.truth(a, scope), self.truth(b, scope)], true),
            Kind::Or(a, b) => both([self.truth(a, scope), self.truth(b, scope)], false),
            Kind::Call(call) => self.quantifier(call, scope),
            Kind::Chain(..) | Kind::Within(_) | Kind::Between(_) => {
                let seen = self.compare(expr, scope);
                let holds = seen.holds;
                if let Some(all) = &mut self.seen {
                    all.push(seen);
                }
                holds
            }
            // `undecided`; anything else is a number, which the check has refused.
            _ => None,
        }
    }

    fn quantifier(&mut self, call: &Call, scope: &Scope) -> Option<bool> {
        let Make::Truth { all } = call.function.make else { return None };
        let scopes = self.scopes(call, scope).ok()?;
        let each: Vec<Option<bool>> = scopes
            .iter()
            .flat_map(|scope| call.arguments.iter().map(move |a| (a, scope)))
            .map(|(argument, scope)| self.truth(argument, scope))
            .collect();
        both(each, all)
    }

    pub fn number(&mut self, expr: &Expr, scope: &Scope) -> Number {
        let value = match &expr.kind {
            Kind::Number(number, unit) => unit.to_base(*number),
            Kind::Variable(name) => {
                scope.get(name).and_then(|w| w.parse().ok()).ok_or("not a number")?
            }
            Kind::Reference(path) => {
                let samples = self.values(path, scope)?;
                Summary::of(&samples).ok_or("there are no samples")?.mean
            }
            Kind::Published(path) => {
                let found = self.vocabulary.find_published(path, scope).map_err(|f| f.message)?;
                let (name, value) = found.first().ok_or("nothing was published")?;
                self.converted(name, *value)
            }
            Kind::Call(call) => self.function(call, scope)?,
            Kind::Negative(of) => -self.number(of, scope)?,
            Kind::Arithmetic(operator, a, b) => {
                let (a, b) = (self.number(a, scope)?, self.number(b, scope)?);
                match operator {
                    Arithmetic::Add => a + b,
                    Arithmetic::Subtract => a - b,
                    Arithmetic::Multiply => a * b,
                    Arithmetic::Divide => a / b,
                }
            }
            // The check has refused conditions.
            _ => return Err("not a number".into()),
        };
        if value.is_finite() { Ok(value) } else { Err("a division by 0".into()) }
    }

    /// The value of an expression, in its unit for people. A reference, or the mean of something, has all its
    /// samples; anything else is one number.
    pub fn summary(&mut self, expr: &Expr) -> Result<Summary, String> {
        let scope = Scope::default();
        let unit = unit(expr, &scope, self.vocabulary).unwrap_or(Unit::plain());
        self.as_measured = expr.keeps_units();
        expr.each_path(&mut |path, _| {
            let names = self.vocabulary.about(path, &scope);
            self.as_measured &= names.iter().all(|name| name.unit() == unit);
        });
        let samples = match &expr.kind {
            Kind::Call(call) if call.function.name == "mean" => {
                let mut all = Vec::new();
                for scope in self.scopes(call, &scope)? {
                    for argument in &call.arguments {
                        all.extend(self.samples(argument, &scope)?);
                    }
                }
                all
            }
            _ => self.samples(expr, &scope)?,
        };
        let show = |value: &f64| if self.as_measured { *value } else { unit.of_base(*value) };
        let shown: Vec<f64> = samples.iter().map(show).collect();
        Summary::of(&shown).ok_or_else(|| "a division by 0".into())
    }

    /// All samples that a reference stands for.
    fn values(&self, path: &Path, scope: &Scope) -> Result<Vec<f64>, String> {
        if scope.published {
            let found = self.vocabulary.find_published(path, scope).map_err(|f| f.message)?;
            return Ok(found
                .into_iter()
                .map(|(name, value)| self.converted(name, *value))
                .collect());
        }
        let names = self.vocabulary.find(path, scope).map_err(|f| f.message)?;
        let mut all = Vec::new();
        for name in names {
            let values = self.index.values(name, scope.seed)?;
            all.extend(values.into_iter().map(|value| self.converted(name, value)));
        }
        Ok(all)
    }

    /// Converts a number from a metric's unit to what the calculation needs.
    fn converted(&self, name: &Name, value: f64) -> f64 {
        if self.as_measured { value } else { name.unit().to_base(value) }
    }

    /// Samples of an argument: all samples of a reference, or the one number of anything else.
    fn samples(&mut self, argument: &Expr, scope: &Scope) -> Result<Vec<f64>, String> {
        match &argument.kind {
            Kind::Reference(path) => self.values(path, scope),
            _ => Ok(vec![self.number(argument, scope)?]),
        }
    }

    fn function(&mut self, call: &Call, scope: &Scope) -> Number {
        let scopes = self.scopes(call, scope)?;
        let name = call.function.name;
        let few = || format!("too few samples for `{name}`");
        let mut collect = |argument: &Expr| -> Result<Vec<f64>, String> {
            let all: Result<Vec<Vec<f64>>, String> =
                scopes.iter().map(|scope| self.samples(argument, scope)).collect();
            Ok(all?.concat())
        };
        let mut together = || -> Result<Vec<f64>, String> {
            let all: Result<Vec<Vec<f64>>, String> =
                call.arguments.iter().map(&mut collect).collect();
            Ok(all?.concat())
        };
        // Publications give one number, and not how runs differ.
        if scope.published && !matches!(name, "mean" | "median" | "min" | "max" | "sum" | "abs") {
            return Err("nothing was published about the runs".into());
        }
        match call.function.make {
            Make::Same(of) | Make::Plain(of) => of(&together()?).ok_or_else(few),
            Make::Percentile => {
                let [samples, part] = call.arguments.as_slice() else { return Err(few()) };
                let all = collect(samples)?;
                percentile(&all, self.number(part, scope)?.clamp(0.0, 1.0)).ok_or_else(few)
            }
            Make::Probability(of) => {
                let [a, b] = call.arguments.as_slice() else { return Err(few()) };
                let (a, b) = (collect(a)?, collect(b)?);
                of(&a, &b).ok_or_else(few)
            }
            Make::Count => self.count(call, &scopes),
            Make::Curve(of) => {
                let variable = call.loops.first().map_or("", |l| l.variable.as_str());
                let mut curve = Vec::new();
                for scope in &scopes {
                    let x = scope.get(variable).and_then(|w| w.parse::<f64>().ok());
                    let y = call.arguments.first().map(|a| self.number(a, scope));
                    curve.extend(x.zip(y.transpose()?));
                }
                curve.sort_by(|a, b| a.0.total_cmp(&b.0));
                of(&curve).ok_or_else(few)
            }
            Make::Truth { .. } => Err("not a number".into()),
        }
    }

    fn count(&mut self, call: &Call, scopes: &[Scope]) -> Number {
        let mut count = 0;
        for scope in scopes {
            for argument in &call.arguments {
                if let Kind::Reference(path) = &argument.kind {
                    let names = self.vocabulary.find(path, scope).map_err(|f| f.message)?;
                    for name in names {
                        count += self.index.count(name, scope.seed)?;
                    }
                } else {
                    self.number(argument, scope)?;
                    count += 1;
                }
            }
        }
        Ok(count as f64)
    }

    /// A scope for each combination of words and, with `by seed`, for each seed of it.
    fn scopes(&self, call: &Call, scope: &Scope) -> Result<Vec<Scope>, String> {
        let scopes = combinations(call, scope, self.vocabulary).map_err(|f| f.message)?;
        if !call.by_seed || scope.published {
            return Ok(scopes);
        }
        let mut of_seeds = Vec::new();
        for scope in scopes {
            let mut names = Vec::new();
            for argument in &call.arguments {
                argument.each_path(&mut |path, published| {
                    if !published {
                        names.extend(self.vocabulary.about(path, &scope));
                    }
                });
            }
            let seeds = self.index.seeds(names.into_iter());
            if seeds.is_empty() {
                return Err("there are no runs with seeds".into());
            }
            of_seeds.extend(seeds.iter().map(|s| Scope { seed: Some(*s), ..scope.clone() }));
        }
        Ok(of_seeds)
    }
}

/// Joins conditions by `and` if `all`, otherwise by `or`.
fn both(conditions: impl IntoIterator<Item = Option<bool>>, all: bool) -> Option<bool> {
    let mut joined = Some(all);
    for one in conditions {
        match one {
            Some(holds) if holds == all => {}
            Some(_) => return Some(!all),
            None => joined = None,
        }
    }
    joined
}
