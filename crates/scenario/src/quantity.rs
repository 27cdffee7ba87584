//! Times as people write them.

use crate::Picos;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;

/// Unit suffixes and their length in picoseconds.
const UNITS: [(&str, u128); 8] = [
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("µs", 1_000_000),
    ("ms", 1_000_000_000),
    ("min", 60_000_000_000_000),
    ("h", 3_600_000_000_000_000),
    ("s", 1_000_000_000_000),
];

/// Longest time that a scenario may contain: small enough that a sum of a few does not overflow.
pub const LONGEST: Picos = Picos::sec(1_000 * 3_600);

/// Parses `30ms`, `1.5s`, `6h`, `0`. It uses integer arithmetic only, so a text means the same time
/// everywhere.
///
/// # Errors
/// Says in words what is wrong with the text.
pub fn parse_time(text: &str) -> Result<Picos, String> {
    let text = text.trim();
    if text == "0" {
        return Ok(Picos::ZERO);
    }
    if text.starts_with('-') {
        return Err("a time cannot be negative".into());
    }
    let digits =
        text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim();
    if number.is_empty() {
        return Err("a time is a number and a unit".into());
    }
    if unit.is_empty() {
        return Err("the unit is missing".into());
    }
    let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("`{unit}` is not a unit of time"));
    };
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let bad = || format!("`{number}` is not a number");
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return Err(bad());
    }
    let too_long = || "the time is longer than 1000h".to_owned();
    // 21 digits are beyond any legal time, and keep the products below within 128 bits.
    if whole.len() > 21 {
        return Err(too_long());
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| bad())? };
    let mut picos = whole * scale;
    let mut place = *scale;
    for digit in fraction.bytes() {
        let value = u128::from(digit - b'0');
        if place % 10 != 0 && value != 0 {
            return Err("times are whole picoseconds".into());
        }
        place /= 10;
        picos += value * place;
    }
    match u64::try_from(picos).map(Picos) {
        Ok(time) if time <= LONGEST => Ok(time),
        _ => Err(too_long()),
    }
}

/// Writes a time with the largest unit that leaves it whole, as [`parse_time`] reads it.
impl fmt::Display for Picos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Picos::ZERO {
            return f.pad("0");
        }
        let picos = u128::from(self.0);
        let whole = |unit: &&str| {
            let scale = UNITS.iter().find(|(name, _)| name == unit).map_or(1, |(_, s)| *s);
            picos.is_multiple_of(scale).then(|| format!("{}{unit}", picos / scale))
        };
        let units = ["h", "min", "s", "ms", "us", "ns", "ps"];
        f.pad(&units.iter().find_map(whole).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MS, NS, SEC, US};
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn times() {
        for (text, picos) in [
            ("0", Picos::ZERO),
            ("0s", Picos::ZERO),
            ("30ms", 30 * MS),
            ("1.5s", 1_500 * MS),
            ("2us", 2 * US),
            ("2 µs", 2 * US),
            ("500ns", 500 * NS),
            ("0.5ns", Picos(500)),
            ("7ps", Picos(7)),
            ("6h", 6 * 3600 * SEC),
            ("2min", 120 * SEC),
            ("1_000s", 1000 * SEC),
            ("1.50000000000000000000s", 1_500 * MS),
        ] {
            assert_eq!(parse_time(text), Ok(picos), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_time() {
        for (text, reason) in [
            ("", "number and a unit"),
            ("5", "unit is missing"),
            ("-5ms", "negative"),
            ("5 parsecs", "not a unit"),
            ("1.2.3s", "not a number"),
            (".s", "not a number"),
            ("0.5ps", "whole picoseconds"),
            ("1001h", "longer than"),
            ("99999999999999999999999999999999999999h", "longer than"),
            ("ms", "number and a unit"),
        ] {
            let error = parse_time(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_time_reads_back(picos in 0..=LONGEST.0) {
            let time = Picos(picos);
            prop_assert_eq!(parse_time(&time.to_string()), Ok(time));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse_time(&text);
        }
    }
}
