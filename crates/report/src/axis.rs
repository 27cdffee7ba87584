//! Scales from values to places, with round values for grid lines.

/// If values differ by this factor, the scale is logarithmic.
const DECADES: f64 = 30.0;

/// A scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// Its ends and the distance of its grid lines: values, or their decimal logarithms.
    low: f64,
    high: f64,
    step: f64,
    log: bool,
}

impl Axis {
    /// A scale over 0 and all values, which ends at grid lines.
    #[must_use]
    pub fn linear(values: impl IntoIterator<Item = f64>) -> Self {
        let [low, high] = ends(values.into_iter().chain([0.0]));
        let high = if high > low { high } else { low + 1.0 };
        let step = nice((high - low) / 6.0);
        let [low, high] = [(low / step).floor(), (high / step).ceil()].map(|n| n * step);
        Self { low, high, step, log: false }
    }

    /// A logarithmic scale over whole decades.
    #[must_use]
    pub fn decades(low: f64, high: f64) -> Self {
        let low = low.log10().floor();
        Self { low, high: high.log10().ceil().max(low + 1.0), step: 1.0, log: true }
    }

    /// A scale that holds all values; logarithmic if they differ much and are positive.
    #[must_use]
    pub fn over(values: impl IntoIterator<Item = f64>) -> Self {
        let [low, high] = ends(values);
        match low {
            _ if low > 0.0 && high / low >= DECADES => Self::decades(low, high),
            _ if low > high => Self::linear([]),
            _ => Self::linear([low, high]),
        }
    }

    /// A scale that ends at the least and at the greatest value; only if these are positive can it be logarithmic.
    #[must_use]
    pub fn exact(values: impl IntoIterator<Item = f64>, log: bool) -> Self {
        let [low, high] = ends(values);
        let log = log && low > 0.0;
        let [low, high] = if log { [low.log10(), high.log10()] } else { [low, high] };
        Self { low, high, step: high - low, log }
    }

    /// Where a value is, from 0 to 1.
    #[must_use]
    pub fn part(self, value: f64) -> f64 {
        let value = match self.log {
            true if value > 0.0 => value.log10(),
            true => self.low,
            false => value,
        };
        let part = (value - self.low) / (self.high - self.low);
        // The ends of an exact scale may be equal.
        if part.is_nan() { 0.5 } else { part.clamp(0.0, 1.0) }
    }

    /// Where bars begin.
    #[must_use]
    pub fn base(self) -> f64 {
        if self.log { 0.0 } else { self.part(0.0) }
    }

    /// Whether a value is above the end.
    #[must_use]
    pub fn is_beyond(self, value: f64) -> bool {
        value > self.value(self.high)
    }

    /// What to add to a title.
    #[must_use]
    pub fn words(self) -> &'static str {
        if self.log { ", logarithmic scale" } else { "" }
    }

    /// The values of the grid lines.
    #[must_use]
    pub fn lines(self) -> Vec<f64> {
        let count = ((self.high - self.low) / self.step).round() as i32;
        (0..=count).map(|i| self.value(self.low + f64::from(i) * self.step)).collect()
    }

    fn value(self, at: f64) -> f64 {
        if self.log { 10_f64.powf(at) } else { at }
    }
}

/// The least and the greatest value.
fn ends(values: impl IntoIterator<Item = f64>) -> [f64; 2] {
    let none = [f64::INFINITY, f64::NEG_INFINITY];
    values.into_iter().fold(none, |[low, high], value| [low.min(value), high.max(value)])
}

/// A value of a grid line: a multiple of a round number, without rounding errors; in thousands or millions if it is large.
#[must_use]
pub fn tick(value: f64) -> String {
    let (value, unit) = match value.abs() {
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let rounded = format!("{value:.6}");
    let rounded = rounded.trim_end_matches('0').trim_end_matches('.');
    if rounded == "-0" { "0".into() } else { format!("{rounded}{unit}") }
}

/// The smallest 1, 2 or 5 times a power of ten that is at least `about`.
fn nice(about: f64) -> f64 {
    let power = 10_f64.powf(about.max(f64::MIN_POSITIVE).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|s| s * power);
    steps.into_iter().find(|s| *s >= about).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_hold_their_values_and_end_at_grid_lines() {
        let axis = Axis::over([3.0, 7.0]);
        assert_eq!((axis.low, axis.high, axis.log), (0.0, 8.0, false));
        assert!((axis.part(4.0) - 0.5).abs() < 1e-9);
        let axis = Axis::over([-11.5, 8.4]);
        assert_eq!((axis.low, axis.high), (-15.0, 10.0));
        let axis = Axis::over([2.0, 200.0]);
        assert_eq!((axis.log, axis.lines()), (true, vec![1.0, 10.0, 100.0, 1000.0]));
        assert_eq!(Axis::over([]), Axis::over([0.0]), "no values are no fault");
        assert_eq!(Axis::exact([3.0, 3.0], true).part(3.0), 0.5);
        assert!((Axis::exact([2.0, 8.0], true).part(4.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn grid_lines_are_at_round_values() {
        assert_eq!([nice(1.5), nice(130.0), nice(0.04)], [2.0, 200.0, 0.05]);
        assert_eq!([0.1 + 0.2, 200.0, -0.0, 1e-7].map(tick), ["0.3", "200", "0", "0"]);
        assert_eq!([2500.0, -20_000.0, 5e6].map(tick), ["2.5k", "-20k", "5M"]);
    }
}
