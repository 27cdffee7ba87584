//! From words to a tree. Operators from weak to strong: `or`; `and`; `not`; comparisons; `+ -`; `* /`; the
//! sign.

use super::ast::{Arithmetic, Call, Expr, Kind, Loop, Order, Path, PathWord, Within};
use super::fault::Fault;
use super::functions::{FUNCTIONS, Function};
use super::lexer::{Spanned, Token, tokens};
use super::unit::Unit;
use overspin_sched::suggestion;
use std::ops::Range;

/// Most nested parentheses. The parser calls itself for each, and the stack is limited.
const MAX_DEPTH: usize = 40;
/// Most operators and operands. A long sum is a deep tree.
const MAX_SIZE: usize = 400;
/// Words that do not begin a path.
const RESERVED: [&str; 11] =
    ["and", "or", "not", "within", "of", "between", "by", "for", "in", "where", "undecided"];

/// Parses a whole text.
pub fn parse(text: &str) -> Result<Expr, Fault> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0, size: 0 };
    let expr = parser.condition()?;
    match parser.peek() {
        Token::End => Ok(expr),
        Token::Word(_) if parser.after_number() => {
            let help = format!("units are: {}", Unit::names());
            Err(parser.expected("a unit or an operator", help))
        }
        _ => Err(parser.expected("an operator or the end", OPERATORS)),
    }
}

const OPERATORS: &str =
    "operators are + - * / < <= > >= == !=, `within 10 % of`, `between a and b`, and, or, not";

struct Parser {
    tokens: Vec<Spanned>,
    at: usize,
    depth: usize,
    size: usize,
}

impl Parser {
    fn spanned(&self) -> &Spanned {
        // The last token is the end; the parser never steps past it.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> &Token {
        &self.spanned().token
    }

    fn start(&self) -> usize {
        self.spanned().span.start
    }

    /// The end of the last word read.
    fn end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |i| self.tokens[i].span.end)
    }

    fn after_number(&self) -> bool {
        let before = self.at.checked_sub(1).map(|i| &self.tokens[i].token);
        matches!(before, Some(Token::Number(_)))
    }

    fn step(&mut self) -> Spanned {
        let token = self.spanned().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn sign(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Token::Sign(s) if *s == sign);
        if is {
            self.step();
        }
        is
    }

    fn is_keyword(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w == word)
    }

    fn keyword(&mut self, word: &str) -> bool {
        let is = self.is_keyword(word);
        if is {
            self.step();
        }
        is
    }

    fn expected(&self, what: &str, help: impl Into<String>) -> Fault {
        let found = match self.peek() {
            Token::End => "the end".to_owned(),
            Token::Number(_) => "a number".to_owned(),
            Token::Word(w) | Token::Quoted(w) => format!("`{w}`"),
            Token::Variable(v) => format!("`${v}`"),
            Token::Sign(s) => format!("`{s}`"),
        };
        Fault::new(self.spanned().span.clone(), format!("{found} where {what} belongs"), help)
    }

    fn close(&mut self, sign: &str) -> Result<(), Fault> {
        if self.sign(sign) {
            return Ok(());
        }
        Err(self.expected(&format!("`{sign}`"), "close each ( and each ["))
    }

    fn node(&mut self, start: usize, kind: Kind) -> Result<Expr, Fault> {
        let span = start..self.end();
        self.size += 1;
        if self.size > MAX_SIZE {
            return Err(Fault::new(
                span,
                "this expression is too long",
                "split it into two claims",
            ));
        }
        Ok(Expr { kind, span })
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth >= MAX_DEPTH {
            let span = self.spanned().span.clone();
            return Err(Fault::new(span, "this is nested too deeply", "split it into two claims"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn condition(&mut self) -> Result<Expr, Fault> {
        let start = self.start();
        let mut left = self.conjunction()?;
        while self.keyword("or") {
            let right = self.conjunction()?;
            left = self.node(start, Kind::Or(Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Expr, Fault> {
        let start = self.start();
        let mut left = self.negation()?;
        while self.keyword("and") {
            let right = self.negation()?;
            left = self.node(start, Kind::And(Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    fn negation(&mut self) -> Result<Expr, Fault> {
        let start = self.start();
        if self.keyword("not") {
            let of = self.nested(Self::negation)?;
            return self.node(start, Kind::Not(Box::new(of)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr, Fault> {
        let start = self.start();
        let first = self.sum()?;
        if self.keyword("within") {
            let (tolerance, unit) = self.tolerance()?;
            let centre = self.sum()?;
            let within = Within { value: first, tolerance, unit, centre };
            return self.node(start, Kind::Within(Box::new(within)));
        }
        if self.keyword("between") {
            let low = self.sum()?;
            if !self.keyword("and") {
                return Err(self.expected("`and`", "write `x between 1 and 2`"));
            }
            let high = self.sum()?;
            return self.node(start, Kind::Between(Box::new([first, low, high])));
        }
        let mut rest = Vec::new();
        while let Some(order) = self.order() {
            rest.push((order, self.sum()?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        self.node(start, Kind::Chain(Box::new(first), rest))
    }

    fn order(&mut self) -> Option<Order> {
        let Token::Sign(sign) = self.peek() else { return None };
        let (_, order) = Order::ALL.into_iter().find(|(s, _)| s == sign)?;
        self.step();
        Some(order)
    }

    /// `10 % of`, after `within`.
    fn tolerance(&mut self) -> Result<(f64, &'static Unit), Fault> {
        const HELP: &str = "write `within 10 % of x`, or `within 5 ms of x`";
        let Token::Number(number) = *self.peek() else {
            return Err(self.expected("a number", HELP));
        };
        self.step();
        let unit = self.unit().unwrap_or(Unit::plain());
        if !self.keyword("of") {
            return Err(self.expected("`of`", HELP));
        }
        Ok((unit.to_base(number), unit))
    }

    fn sum(&mut self) -> Result<Expr, Fault> {
        let operators = [("+", Arithmetic::Add), ("-", Arithmetic::Subtract)];
        self.arithmetic(operators, Self::product)
    }

    fn product(&mut self) -> Result<Expr, Fault> {
        let operators = [("*", Arithmetic::Multiply), ("/", Arithmetic::Divide)];
        self.arithmetic(operators, Self::signed)
    }

    fn arithmetic(
        &mut self,
        operators: [(&str, Arithmetic); 2],
        operand: fn(&mut Self) -> Result<Expr, Fault>,
    ) -> Result<Expr, Fault> {
        let start = self.start();
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.sign(sign)) {
            let right = operand(self)?;
            let kind = Kind::Arithmetic(*operator, Box::new(left), Box::new(right));
            left = self.node(start, kind)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Expr, Fault> {
        let start = self.start();
        if self.sign("-") {
            let of = self.nested(Self::signed)?;
            return self.node(start, Kind::Negative(Box::new(of)));
        }
        self.nested(Self::operand)
    }

    fn operand(&mut self) -> Result<Expr, Fault> {
        let start = self.start();
        match self.peek().clone() {
            Token::Number(number) => {
                self.step();
                let unit = self.unit().unwrap_or(Unit::plain());
                let literal = self.node(start, Kind::Number(number, unit))?;
                if !self.keyword("of") {
                    return Ok(literal);
                }
                // `50 % of x`.
                let of = Box::new(self.signed()?);
                self.node(start, Kind::Arithmetic(Arithmetic::Multiply, Box::new(literal), of))
            }
            Token::Sign("(") => {
                self.step();
                let inner = self.condition()?;
                self.close(")")?;
                // The shown text includes the parentheses.
                Ok(Expr { span: start..self.end(), ..inner })
            }
            Token::Word(word) if word == "undecided" && !self.next_is(".") => {
                self.step();
                self.node(start, Kind::Undecided)
            }
            Token::Word(word) if self.next_is("(") => self.call(&word, start),
            Token::Word(word) if RESERVED.contains(&word.as_str()) && !self.next_is(".") => {
                Err(self.expected("a number or a reference", "quote it if it is a name"))
            }
            Token::Variable(name) if !self.next_is(".") => {
                self.step();
                self.node(start, Kind::Variable(name))
            }
            Token::Word(_) | Token::Quoted(_) | Token::Variable(_) | Token::Sign("*") => {
                let path = self.path()?;
                self.node(start, Kind::Reference(path))
            }
            _ => Err(self.expected(
                "a number, a reference or a function",
                "for example `byte.half.elapsed`, 10 %, or max(byte.half.elapsed)",
            )),
        }
    }

    fn next_is(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.at + 1).map(|t| &t.token), Some(Token::Sign(s)) if *s == sign)
    }

    /// A unit after a number, if there is one: `%`, `ms`, `/s`, `KiB/s`.
    fn unit(&mut self) -> Option<&'static Unit> {
        let text = |at: usize| match self.tokens.get(at).map(|t| &t.token) {
            Some(Token::Word(w)) => w.as_str(),
            Some(Token::Sign(s @ ("%" | "/"))) => s,
            _ => "",
        };
        let is_path = |at: usize| {
            matches!(self.tokens.get(at + 1).map(|t| &t.token), Some(Token::Sign("." | "(")))
        };
        let (one, two, three) = (text(self.at), text(self.at + 1), text(self.at + 2));
        let (words, unit) = if one == "/" && !is_path(self.at + 1) {
            (2, Unit::find(&format!("1/{two}"))?)
        } else if two == "/"
            && !is_path(self.at + 2)
            && Unit::find(&format!("{one}/{three}")).is_some()
        {
            (3, Unit::find(&format!("{one}/{three}"))?)
        } else if !one.is_empty() && !is_path(self.at) {
            (1, Unit::find(one)?)
        } else {
            return None;
        };
        for _ in 0..words {
            self.step();
        }
        Some(unit)
    }

    fn path(&mut self) -> Result<Path, Fault> {
        let mut words = Vec::new();
        loop {
            let Spanned { token, span } = self.spanned().clone();
            let word = match token {
                Token::Word(w) | Token::Quoted(w) => PathWord::Word(w),
                Token::Variable(v) => PathWord::Variable(v),
                Token::Sign("*") => PathWord::Any,
                _ => return Err(self.expected("a word", "write a point only between two words")),
            };
            self.step();
            words.push((word, span));
            if !self.sign(".") {
                return Ok(Path { words });
            }
        }
    }

    fn call(&mut self, name: &str, start: usize) -> Result<Expr, Fault> {
        let span = self.step().span;
        self.step();
        if name == "published" {
            let path = self.path()?;
            self.close(")")?;
            return self.node(start, Kind::Published(path));
        }
        let Some(function) = Function::find(name) else {
            let names: Vec<&str> = FUNCTIONS.iter().map(|f| f.name).chain(["published"]).collect();
            let message = format!("there is no function `{name}`");
            let help = suggestion(name, "functions are", &names);
            return Err(Fault::new(span, message, help));
        };
        let mut arguments = vec![self.condition()?];
        while self.sign(",") {
            arguments.push(self.condition()?);
        }
        let by_seed = self.keyword("by");
        if by_seed && !self.keyword("seed") {
            return Err(self.expected("`seed`", "write `by seed`"));
        }
        let loops = if self.keyword("for") { self.loops()? } else { Vec::new() };
        let filter = if !loops.is_empty() && self.keyword("where") {
            Some(Box::new(self.condition()?))
        } else {
            None
        };
        self.close(")")?;
        let call = Call { function, arguments, by_seed, loops, filter };
        if call.function.arity().is_some_and(|n| n != call.arguments.len()) {
            let message = format!("`{name}` got {} arguments", call.arguments.len());
            let help = format!("it takes {}", call.function.arity().unwrap_or(1));
            return Err(Fault::new(start..self.end(), message, help));
        }
        self.node(start, Kind::Call(call))
    }

    /// `$a in [x, y], $b`.
    fn loops(&mut self) -> Result<Vec<Loop>, Fault> {
        let mut loops = Vec::new();
        loop {
            let Spanned { token, span } = self.spanned().clone();
            let Token::Variable(variable) = token else {
                return Err(self.expected("a `$name`", "write `for $rate`"));
            };
            self.step();
            let words = if self.keyword("in") { Some(self.words()?) } else { None };
            loops.push(Loop { variable, words, span });
            if !self.sign(",") {
                return Ok(loops);
            }
        }
    }

    fn words(&mut self) -> Result<Vec<String>, Fault> {
        const HELP: &str = "write `in [1000, 2000]` or `in [credit, \"2a+2b\"]`";
        if !self.sign("[") {
            return Err(self.expected("`[`", HELP));
        }
        let mut words = Vec::new();
        loop {
            let span: Range<usize> = self.spanned().span.clone();
            match self.peek().clone() {
                Token::Word(w) | Token::Quoted(w) => words.push(w),
                Token::Number(n) if n.fract() == 0.0 && n.abs() < 1e15 => {
                    words.push(format!("{n}"))
                }
                Token::Number(_) => {
                    return Err(Fault::new(span, "a word with a point", "quote it"));
                }
                _ => return Err(self.expected("a word", HELP)),
            }
            self.step();
            if !self.sign(",") {
                self.close("]")?;
                return Ok(words);
            }
        }
    }
}
