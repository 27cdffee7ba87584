//! Units of numbers in claims, and which numbers may be added or compared.

use std::fmt;

/// The kind of quantity: powers of a second and of a KiB. Plain numbers have neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dimension {
    time: i16,
    data: i16,
}

impl Dimension {
    const fn new(time: i16, data: i16) -> Self {
        Self { time, data }
    }

    pub fn times(self, other: Self) -> Self {
        // A product of hundreds of times is nonsense, but must not panic.
        Self::new(self.time.saturating_add(other.time), self.data.saturating_add(other.data))
    }

    pub fn over(self, other: Self) -> Self {
        Self::new(self.time.saturating_sub(other.time), self.data.saturating_sub(other.data))
    }

    /// The unit that calculations use for this dimension.
    pub fn base(self) -> Option<&'static Unit> {
        UNITS.iter().find(|u| u.dimension == self && (u.factor, u.divisor) == (1.0, 1.0))
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.base() {
            Some(unit) if unit.name.is_empty() => f.write_str("a plain number"),
            Some(unit) => f.write_str(unit.name),
            None => write!(f, "s^{} KiB^{}", self.time, self.data),
        }
    }
}

/// A unit. In calculations a number of it is `number * factor / divisor`. These are two numbers and not their
/// ratio, so that 75 % is exactly 0.75.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    pub name: &'static str,
    pub dimension: Dimension,
    factor: f64,
    divisor: f64,
}

/// Every unit. Calculations use the first unit of each dimension with factor and divisor 1.
static UNITS: [Unit; 12] = [
    Unit::new("", Dimension::new(0, 0), 1.0, 1.0),
    Unit::new("%", Dimension::new(0, 0), 1.0, 100.0),
    Unit::new("s", Dimension::new(1, 0), 1.0, 1.0),
    Unit::new("ms", Dimension::new(1, 0), 1.0, 1e3),
    Unit::new("us", Dimension::new(1, 0), 1.0, 1e6),
    Unit::new("ns", Dimension::new(1, 0), 1.0, 1e9),
    Unit::new("min", Dimension::new(1, 0), 60.0, 1.0),
    Unit::new("h", Dimension::new(1, 0), 3600.0, 1.0),
    Unit::new("1/s", Dimension::new(-1, 0), 1.0, 1.0),
    Unit::new("Mops/s", Dimension::new(-1, 0), 1e6, 1.0),
    Unit::new("KiB", Dimension::new(0, 1), 1.0, 1.0),
    Unit::new("KiB/s", Dimension::new(-1, 1), 1.0, 1.0),
];

impl Unit {
    const fn new(name: &'static str, dimension: Dimension, factor: f64, divisor: f64) -> Self {
        Self { name, dimension, factor, divisor }
    }

    /// The unit of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        UNITS.iter().find(|u| u.name == name)
    }

    /// The unit of plain numbers.
    pub fn plain() -> &'static Self {
        &UNITS[0]
    }

    /// Names of all units, for messages.
    pub fn names() -> String {
        let names: Vec<&str> = UNITS.iter().map(|u| u.name).filter(|n| !n.is_empty()).collect();
        names.join(", ")
    }

    /// Converts a number of this unit for calculations.
    pub fn to_base(self, number: f64) -> f64 {
        number * self.factor / self.divisor
    }

    /// Converts a number of a calculation to this unit.
    pub fn of_base(self, value: f64) -> f64 {
        value * self.divisor / self.factor
    }

    /// A value with its unit, as text for people.
    pub fn show(self, value: f64) -> String {
        self.show_rounded(value, 4)
    }

    /// A value with its unit, as text with so many significant digits.
    pub fn show_rounded(self, value: f64, significant: i32) -> String {
        let number = rounded(self.of_base(value), significant);
        match self.name {
            "" => number,
            "1/s" => format!("{number}/s"),
            name => format!("{number} {name}"),
        }
    }
}

/// A number with four significant digits, or with all digits before the point.
pub fn digits(value: f64) -> String {
    rounded(value, 4)
}

/// A number with so many significant digits, or with all digits before the point.
fn rounded(value: f64, significant: i32) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let size = value.abs().log10().floor();
    if !(-6.0..15.0).contains(&size) {
        return format!("{value:.3e}");
    }
    let decimals = (significant - 1 - size as i32).max(0).unsigned_abs() as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown =
            [0.0, 1.2124, 410.686, 54_069.4, -0.000_123_456, 1e-9, 2.0, 0.99999].map(digits);
        assert_eq!(shown, ["0", "1.212", "410.7", "54069", "-0.0001235", "1.000e-9", "2", "1"]);
    }

    #[test]
    fn percents_are_exact_and_times_are_seconds() {
        let of = |name| *Unit::find(name).unwrap();
        assert_eq!(of("%").to_base(75.0), 0.75);
        assert_eq!(of("h").to_base(6.0), of("min").to_base(360.0));
        assert_eq!(of("ms").show(0.0045), "4.5 ms");
        assert_eq!(of("Mops/s").show(of("Mops/s").to_base(300.0)), "300 Mops/s");
        assert_eq!(of("1/s").show(12.0), "12/s");
    }

    #[test]
    fn dimensions_multiply_and_divide() {
        let of = |name| Unit::find(name).unwrap().dimension;
        assert_eq!(of("KiB").over(of("ms")), of("KiB/s"));
        assert_eq!(of("s").times(of("1/s")), Dimension::default());
        assert_eq!(of("s").times(of("s")).to_string(), "s^2 KiB^0");
        assert_eq!(of("%").to_string(), "a plain number");
    }
}
