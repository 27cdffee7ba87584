//! The words of an expression, each with its place in the text.

use super::fault::Fault;
use std::ops::Range;

/// A word of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// Digits, optionally with a point and an exponent.
    Number(f64),
    /// A bare word: letters, digits, `_`, and `-` between two of these.
    Word(String),
    /// A word in quotes.
    Quoted(String),
    /// `$word`.
    Variable(String),
    /// Anything else.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A word and where it stands.
#[derive(Clone, Debug)]
pub struct Spanned {
    pub token: Token,
    pub span: Range<usize>,
}

/// The signs, longer ones first.
const SIGNS: [&str; 18] =
    ["<=", ">=", "==", "!=", "<", ">", "(", ")", "[", "]", ",", ".", "+", "-", "*", "/", "%", "="];

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The tokens of `text`; the last is [`Token::End`].
pub fn tokens(text: &str) -> Result<Vec<Spanned>, Fault> {
    let mut tokens: Vec<Spanned> = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        // After a point there is always a word: `pings.1000.elapsed` has no number in it.
        let in_path = matches!(tokens.last(), Some(t) if t.token == Token::Sign("."));
        let (token, length) = if c == '"' || c == '\'' {
            quoted(rest, at, c)?
        } else if c == '$' {
            let word = word(&rest[1..]);
            if word.is_empty() {
                return Err(Fault::new(at..at + 1, "`$` has no name", "write `$rate`"));
            }
            (Token::Variable(word.to_owned()), 1 + word.len())
        } else if c.is_ascii_digit() && !in_path {
            number(rest, at)?
        } else if is_word(c) {
            let word = word(rest);
            (Token::Word(word.to_owned()), word.len())
        } else if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) {
            if *sign == "=" {
                let help = "compare two numbers with `==`";
                return Err(Fault::new(at..at + 1, "`=` is not an operator", help));
            }
            (Token::Sign(sign), sign.len())
        } else {
            let message = format!("`{c}` has no meaning here");
            let help = "quote words with other signs than letters, digits, `-` and `_`";
            return Err(Fault::new(at..at + c.len_utf8(), message, help));
        };
        tokens.push(Spanned { token, span: at..at + length });
        at += length;
    }
    tokens.push(Spanned { token: Token::End, span: text.len()..text.len() });
    Ok(tokens)
}

/// The word that `text` begins with. A dash belongs to it if a word character follows: a minus has spaces
/// around it.
fn word(text: &str) -> &str {
    let mut chars = text.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        let joins = c == '-' && i > 0 && chars.peek().is_some_and(|(_, next)| is_word(*next));
        if !is_word(c) && !joins {
            return &text[..i];
        }
    }
    text
}

fn quoted(rest: &str, at: usize, quote: char) -> Result<(Token, usize), Fault> {
    match rest[1..].find(quote) {
        Some(0) => {
            Err(Fault::new(at..at + 2, "an empty name", "write the name between the quotes"))
        }
        Some(end) => Ok((Token::Quoted(rest[1..=end].to_owned()), end + 2)),
        None => {
            let message = "these quotes are not closed";
            Err(Fault::new(at..at + rest.len(), message, format!("add a {quote}")))
        }
    }
}

fn number(rest: &str, at: usize) -> Result<(Token, usize), Fault> {
    let digits =
        |from: usize| rest[from..].bytes().take_while(|b| b.is_ascii_digit() || *b == b'_').count();
    let mut length = digits(0);
    if rest[length..].starts_with('.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
    }
    let exponent = rest[length..].strip_prefix(['e', 'E']).map(|rest| {
        let sign = usize::from(rest.starts_with(['+', '-']));
        (1 + sign, digits(length + 1 + sign))
    });
    if let Some((before, digits @ 1..)) = exponent {
        length += before + digits;
    }
    match rest[..length].replace('_', "").parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Token::Number(value), length)),
        _ => Err(Fault::new(at..at + length, "this is not a number", "write 1.5, 1_000 or 1e6")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Token> {
        tokens(text).unwrap().into_iter().map(|t| t.token).collect()
    }

    #[test]
    fn a_dash_inside_a_word_is_no_minus() {
        use Token::{End, Number, Sign, Variable, Word};
        let word = |w: &str| Word(w.into());
        assert_eq!(
            all("lock-byte - $a"),
            [word("lock-byte"), Sign("-"), Variable("a".into()), End]
        );
        assert_eq!(all("5-3"), [Number(5.0), Sign("-"), Number(3.0), End]);
        assert_eq!(all("a- b"), [word("a"), Sign("-"), word("b"), End]);
    }

    #[test]
    fn after_a_point_digits_are_a_word() {
        use Token::{End, Number, Quoted, Sign, Word};
        let (w, dot) = (|w: &str| Word(w.into()), Sign("."));
        assert_eq!(all("a.10.b"), [w("a"), dot.clone(), w("10"), dot.clone(), w("b"), End]);
        assert_eq!(all("1.5e3 2e"), [Number(1500.0), Number(2.0), w("e"), End]);
        assert_eq!(all("'2.4 + p'.x"), [Quoted("2.4 + p".into()), dot, w("x"), End]);
    }

    #[test]
    fn faults_have_a_place() {
        for (text, at) in [("a = b", 2), ("a ? b", 2), ("x < \"b", 4), ("$ < 1", 0), ("''", 0)] {
            assert_eq!(tokens(text).unwrap_err().span.start, at, "{text}");
        }
    }
}
