//! An expression as a tree.

use super::functions::{Function, Make};
use super::unit::Unit;
use std::ops::Range;

/// An expression and where it stands in its text.
#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: Kind,
    pub span: Range<usize>,
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// A number and the unit that it was written in.
    Number(f64, &'static Unit),
    /// The condition that is neither true nor false.
    Undecided,
    /// `$x`: the word that it stands for, as a number.
    Variable(String),
    /// A metric at a place: as a number, the mean of its samples.
    Reference(Path),
    /// The figure that was published for a metric at a place.
    Published(Path),
    Call(Call),
    Negative(Box<Expr>),
    Not(Box<Expr>),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// `a < b <= c`: the first, and each further one with the operator before it.
    Chain(Box<Expr>, Vec<(Order, Expr)>),
    Within(Box<Within>),
    Between(Box<[Expr; 3]>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

impl Order {
    pub const ALL: [(&'static str, Self); 6] = [
        ("<", Self::Less),
        ("<=", Self::LessOrEqual),
        (">", Self::Greater),
        (">=", Self::GreaterOrEqual),
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
    ];

    pub fn sign(self) -> &'static str {
        Self::ALL.iter().find(|(_, order)| *order == self).map_or("", |(sign, _)| sign)
    }

    pub fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Self::Less => a < b,
            Self::LessOrEqual => a <= b,
            Self::Greater => a > b,
            Self::GreaterOrEqual => a >= b,
            Self::Equal => a == b,
            Self::NotEqual => a != b,
        }
    }
}

/// `value within tolerance of centre`.
#[derive(Clone, Debug)]
pub struct Within {
    pub value: Expr,
    /// Relative to the centre if the unit is `%`, otherwise a distance.
    pub tolerance: f64,
    pub unit: &'static Unit,
    pub centre: Expr,
}

impl Within {
    /// Whether the tolerance is relative to the centre.
    pub fn relative(&self) -> bool {
        self.unit.name == "%"
    }
}

/// `place.metric`: the last word is the metric.
#[derive(Clone, Debug)]
pub struct Path {
    pub words: Vec<(PathWord, Range<usize>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathWord {
    Word(String),
    Variable(String),
    /// `*`: any word.
    Any,
}

/// `function(arguments by seed for $x in [..] where ..)`.
#[derive(Clone, Debug)]
pub struct Call {
    pub function: Function,
    pub arguments: Vec<Expr>,
    /// The arguments are evaluated for each seed separately.
    pub by_seed: bool,
    /// The arguments are evaluated for each combination of words.
    pub loops: Vec<Loop>,
    /// Combinations that count.
    pub filter: Option<Box<Expr>>,
}

/// `$x in [a, b]`.
#[derive(Clone, Debug)]
pub struct Loop {
    pub variable: String,
    /// `None`: all words that the references have there.
    pub words: Option<Vec<String>>,
    pub span: Range<usize>,
}

impl Expr {
    /// Calls `visit` for it and every part of it, from the left.
    fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        match &self.kind {
            Kind::Number(..)
            | Kind::Undecided
            | Kind::Variable(_)
            | Kind::Reference(_)
            | Kind::Published(_) => {}
            Kind::Call(call) => call.arguments.iter().for_each(|a| a.each(visit)),
            Kind::Negative(of) | Kind::Not(of) => of.each(visit),
            Kind::Arithmetic(_, a, b) | Kind::And(a, b) | Kind::Or(a, b) => {
                a.each(visit);
                b.each(visit);
            }
            Kind::Within(within) => {
                within.value.each(visit);
                within.centre.each(visit);
            }
            Kind::Chain(first, rest) => {
                first.each(visit);
                rest.iter().for_each(|(_, e)| e.each(visit));
            }
            Kind::Between(three) => three.iter().for_each(|e| e.each(visit)),
        }
    }

    /// Calls `visit` for every reference in it, with whether the reference is to a published figure.
    pub fn each_path<'a>(&'a self, visit: &mut dyn FnMut(&'a Path, bool)) {
        self.each(&mut |part| match &part.kind {
            Kind::Reference(path) => visit(path, false),
            Kind::Published(path) => visit(path, true),
            _ => {}
        });
    }

    /// Whether its parts are references, sums of them, and functions that keep the unit. If these references
    /// share one unit, the whole expression has it.
    pub fn keeps_units(&self) -> bool {
        let mut keeps = true;
        self.each(&mut |part| {
            keeps &= match &part.kind {
                Kind::Reference(_) | Kind::Negative(_) => true,
                Kind::Arithmetic(operator, ..) => {
                    matches!(operator, Arithmetic::Add | Arithmetic::Subtract)
                }
                Kind::Call(call) => matches!(call.function.make, Make::Same(_)),
                _ => false,
            }
        });
        keeps
    }

    /// Whether it has no references.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.each_path(&mut |_, _| constant = false);
        constant
    }

    /// Whether its text alone determines its value.
    pub fn is_literal(&self) -> bool {
        let mut literal = self.is_constant();
        self.each(&mut |part| literal &= !matches!(part.kind, Kind::Variable(_)));
        literal
    }

    /// Whether it refers to published figures.
    pub fn names_published(&self) -> bool {
        let mut names = false;
        self.each_path(&mut |_, published| names |= published);
        names
    }
}
