//! Numbers as reports show them.

use overspin_scenario::Picos;

/// Seconds, to the millisecond.
#[must_use]
pub fn seconds(picos: Picos) -> String {
    format!("{:.3}", picos.seconds())
}

/// Microseconds, for locks.
#[must_use]
pub fn micros(picos: Picos) -> String {
    short(picos.micros())
}

/// Percentage of a count.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { tenths(100.0 * part as f64 / whole as f64) }
}

/// Percentage of a time.
#[must_use]
pub fn share(part: Picos, whole: Picos) -> String {
    percent(part.0, whole.0)
}

/// A number with one decimal, or with two significant digits if one decimal would hide them.
#[must_use]
pub fn tenths(value: f64) -> String {
    if value == 0.0 || value.abs() >= 0.0995 { format!("{value:.1}") } else { two_digits(value) }
}

/// A number with two significant digits, whole from 10 on.
#[must_use]
pub fn two_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    // 9.96 is 10, and 0.0996 is 0.10.
    let decimals = 1.0 - (value.abs() * 1.005).log10().floor();
    if decimals > 6.0 {
        return format!("{value:.1e}");
    }
    format!("{value:.*}", decimals.max(0.0) as usize)
}

/// A number with about four significant digits, two if it is small.
#[must_use]
pub fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        0.0 => "0".into(),
        v if v >= 0.01 => format!("{value:.3}"),
        _ => two_digits(value),
    }
}

/// A number for narrow columns, whole from 10 on.
#[must_use]
pub fn short_integer(value: f64) -> String {
    if value >= 10.0 || value == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        let shown: Vec<String> = [0.0, 0.1234, 12.345, 410.686, 54_069.4].map(short).into();
        assert_eq!(shown, ["0", "0.123", "12.35", "410.7", "54069"]);
        let shown: Vec<String> = [0.0, 0.004, 1e-9, 0.46, 9.96, 47.3, -0.03].map(two_digits).into();
        assert_eq!(shown, ["0", "0.0040", "1.0e-9", "0.46", "10", "47", "-0.030"]);
        let shown: Vec<String> = [0.0, 0.04, 0.1, 0.96, 99.96].map(tenths).into();
        assert_eq!(shown, ["0.0", "0.040", "0.1", "1.0", "100.0"]);
    }
}
