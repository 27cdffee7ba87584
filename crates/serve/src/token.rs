//! The secret in the address of the page. A request without it gets nothing.

use std::fs::File;
use std::io::{self, Read};

/// Bytes of a token: nobody guesses 128 bits.
const BYTES: usize = 16;

/// A token, as it stands in the address.
#[derive(Debug)]
pub(crate) struct Token(String);

impl Token {
    /// A new one, from the system's random numbers.
    pub(crate) fn new() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `given` is this token. How long that takes does not depend on how much of it is right.
    pub(crate) fn is(&self, given: &str) -> bool {
        let (own, given) = (self.0.as_bytes(), given.as_bytes());
        let differing = own.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        own.len() == given.len() && differing == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_right() {
        let (token, other) = (Token::new().unwrap(), Token::new().unwrap());
        let text = token.as_str();
        assert_eq!(text.len(), 2 * BYTES);
        assert!(token.is(text) && !token.is(other.as_str()));
        let wrong =
            [String::new(), text[..31].into(), format!("{text}0"), text.to_uppercase() + "x"];
        assert!(wrong.iter().all(|wrong| !token.is(wrong)), "{wrong:?}");
    }
}
