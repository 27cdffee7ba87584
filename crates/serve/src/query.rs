//! The query of an address: names and values, percent-encoded.

/// Most names and values of a query.
const MOST: usize = 64;

/// The names and values of a query, in order. `None` if it is none, or has too many.
pub(crate) fn read(query: &str) -> Option<Vec<(String, String)>> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs: Option<Vec<_>> = pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(name)?, decoded(value)?))
        })
        .collect();
    pairs.filter(|pairs| pairs.len() <= MOST)
}

/// The query of these names and values.
pub(crate) fn write<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs = pairs.into_iter().map(|(name, value)| format!("{name}={}", encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b',' => {
                encoded.push(char::from(byte));
            }
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let pairs = [("set", "domain.a b.lock=ticket&x%+é"), ("set", ""), ("scenario", "a/b.toml")];
        let query = write(pairs);
        assert!(query.is_ascii() && !query.contains(' '), "{query}");
        let read = read(&query).unwrap();
        let read: Vec<(&str, &str)> = read.iter().map(|(n, v)| (&**n, &**v)).collect();
        assert_eq!(read, pairs);
    }

    #[test]
    fn damaged_queries_are_refused() {
        for query in ["a=%", "a=%4", "a=%zz", "a=%ff", &"a&".repeat(65)] {
            assert_eq!(read(query), None, "{query}");
        }
        assert_eq!(read("").unwrap(), []);
        assert_eq!(
            read("a+b=c+d&e").unwrap(),
            [("a b".into(), "c d".into()), ("e".into(), String::new())]
        );
    }
}
