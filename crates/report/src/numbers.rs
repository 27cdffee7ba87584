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

/// A time in the unit that suits it, with three significant digits: `11.7 s`, `106 ms`, `5.00 us`.
#[must_use]
pub fn time(picos: Picos) -> String {
    let ps = picos.0 as f64;
    let units = [(1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns")];
    // 999.6 us is 1.00 ms.
    let fits = |(worth, _): &&(f64, &str)| ps >= 0.9995 * worth;
    match units.iter().find(fits) {
        Some((worth, unit)) => format!("{} {unit}", three_digits(ps / worth)),
        None if ps == 0.0 => "0 s".into(),
        None => format!("{ps} ps"),
    }
}

/// A number with three significant digits, and with commas from 1,000 on: `70,540`, `37.3`, `0.0512`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    let size = value.abs();
    if size >= 999.5 {
        let digits = format!("{:.0}", size);
        let mut out = String::from(if value < 0.0 { "-" } else { "" });
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i) % 3 == 0 {
                out.push(',');
            }
            out.push(digit);
        }
        return out;
    }
    if size == 0.0 {
        return "0".into();
    }
    let decimals = 2.0 - (size * 1.0005).log10().floor();
    if decimals > 7.0 {
        format!("{value:.1e}")
    } else {
        format!("{value:.*}", decimals.max(0.0) as usize)
    }
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
        let shown: Vec<String> = [0.0, 0.051_234, 9.996, 37.33, 999.4, 999.6, 70_540.4, -1234.0]
            .map(three_digits)
            .into();
        assert_eq!(shown, ["0", "0.0512", "10.0", "37.3", "999", "1,000", "70,540", "-1,234"]);
        let times = [0, 12, 5_000_000, 999_600_000, 106_111_000_000, 11_684_694_000_000];
        let shown: Vec<String> = times.map(|ps| time(Picos(ps))).into();
        assert_eq!(shown, ["0 s", "12 ps", "5.00 us", "1.00 ms", "106 ms", "11.7 s"]);
    }
}
