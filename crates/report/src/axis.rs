//! Scales from values to places, with round values for grid lines.

use super::short;

/// If values differ by this factor, the scale is logarithmic.
const DECADES: f64 = 30.0;
/// Values are beyond the end if those before them would use less than one in this many parts of the scale.
const FAR: f64 = 5.0;
/// Of this many values, one may be beyond the end: more than that are no exceptions.
const FEW: usize = 4;

/// A scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// Its ends and the distance of its grid lines: values, or their decimal logarithms.
    low: f64,
    high: f64,
    step: f64,
    log: bool,
    /// Whether some values are beyond the end.
    cut: bool,
}

impl Axis {
    /// A scale over 0 and all values, which ends at grid lines.
    #[must_use]
    pub fn linear(values: impl IntoIterator<Item = f64>) -> Self {
        let [low, high] = ends(values.into_iter().chain([0.0]));
        let high = if high > low { high } else { low + 1.0 };
        let step = nice((high - low) / 6.0);
        let [low, high] = [(low / step).floor(), (high / step).ceil()].map(|n| n * step);
        Self { low, high, step, log: false, cut: false }
    }

    /// A logarithmic scale over whole decades.
    #[must_use]
    pub fn decades(low: f64, high: f64) -> Self {
        let low = low.log10().floor();
        Self { low, high: high.log10().ceil().max(low + 1.0), step: 1.0, log: true, cut: false }
    }

    /// A scale that holds all values but a few that are so large that the others would hardly be told apart; logarithmic if
    /// they differ much and are positive.
    #[must_use]
    pub fn over(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let whole = Self::around(&values);
        // On a logarithmic scale the least value is the beginning, elsewhere 0.
        let least = values.first().copied().unwrap_or(0.0);
        let length = |v: f64| if whole.log { (v / least).log10() } else { v - least.min(0.0) };
        let is_far = |beyond: &usize| {
            let end = values.len() - beyond;
            let [next, far] = [values[end - 1], values[end]];
            next > 0.0 && FAR * length(next) < length(far)
        };
        match (1..=values.len() / FEW).rev().find(is_far) {
            Some(beyond) => Self { cut: true, ..Self::around(&values[..values.len() - beyond]) },
            None => whole,
        }
    }

    /// A scale that holds all values, which are sorted.
    fn around(values: &[f64]) -> Self {
        match *values {
            [low, .., high] if low > 0.0 && high / low >= DECADES => Self::decades(low, high),
            _ => Self::linear(values.iter().copied()),
        }
    }

    /// A scale that ends at the least and at the greatest value; only if these are positive can it be logarithmic.
    #[must_use]
    pub fn exact(values: impl IntoIterator<Item = f64>, log: bool) -> Self {
        let [low, high] = ends(values);
        let log = log && low > 0.0;
        let [low, high] = if log { [low.log10(), high.log10()] } else { [low, high] };
        Self { low, high, step: high - low, log, cut: false }
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

    /// Whether a value is above the end: what never ends, and what the scale leaves out.
    #[must_use]
    pub fn is_beyond(self, value: f64) -> bool {
        value == f64::INFINITY || self.cut && value > self.value(self.high)
    }

    /// A value in words, with half of its interval if that goes beyond the end.
    #[must_use]
    pub fn in_words(self, value: f64, ends: Option<[f64; 2]>) -> String {
        let beyond = ends.filter(|[_, high]| self.is_beyond(high.max(value)));
        let spread = beyond.map(|[low, high]| format!("±{}", short((high - low) / 2.0)));
        short(value) + &spread.unwrap_or_default()
    }

    /// What to add to a title.
    #[must_use]
    pub fn words(self) -> String {
        let log = if self.log { ", logarithmic scale" } else { "" };
        let cut = match self.cut {
            true => format!(", cut at {}", tick(self.value(self.high))),
            false => String::new(),
        };
        format!("{log}{cut}")
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
    fn a_few_values_far_beyond_the_others_do_not_flatten_them() {
        // The times of the experiment of 2008 in seconds: one in eleven is more than ten times the next.
        let times = [503.0, 576.0, 411.0, 407.0, 326.0, 346.0, 339.0, 343.0, 323.0, 343.0];
        let axis = Axis::over(times.into_iter().chain([6045.0]));
        assert_eq!((axis.high, axis.log, axis.cut), (600.0, false, true));
        assert_eq!([576.0, 600.0, 6045.0].map(|v| axis.is_beyond(v)), [false, false, true]);
        assert_eq!((axis.part(6045.0), axis.words()), (1.0, ", cut at 600".into()));
        assert_eq!(axis.in_words(6045.0, Some([5845.0, 6245.0])), "6045±200.0");
        assert_eq!(axis.in_words(503.0, Some([483.0, 523.0])), "503.0", "its whisker is drawn");
        // A whisker that reaches beyond is words, too.
        assert_eq!(axis.in_words(503.0, Some([103.0, 903.0])), "503.0±400.0");
        // Decades, and one that is eight decades away.
        let axis = Axis::over([1.0, 3.0, 10.0, 40.0, 1e9]);
        assert_eq!((axis.high, axis.log, axis.cut), (2.0, true, true));
        assert_eq!(axis.words(), ", logarithmic scale, cut at 100");
        for whole in [
            &[1.0, 2.0, 3.0, 15.0][..],  // exactly five times the next
            &[1.0, 1.0, 90.0, 100.0],    // half of them are no exception
            &[1.0, 10.0, 100.0, 1000.0], // decades show them all
            &[0.0, 0.0, 0.0, 100.0],     // the others are nothing
            &[1.0, 100.0],
        ] {
            let axis = Axis::over(whole.iter().copied());
            assert!(!axis.cut && !whole.iter().any(|v| axis.is_beyond(*v)), "{whole:?}");
        }
        assert!(Axis::over([1.0, 2.0, 3.0, 15.1]).cut);
    }

    #[test]
    fn grid_lines_are_at_round_values() {
        assert_eq!([nice(1.5), nice(130.0), nice(0.04)], [2.0, 200.0, 0.05]);
        assert_eq!([0.1 + 0.2, 200.0, -0.0, 1e-7].map(tick), ["0.3", "200", "0", "0"]);
        assert_eq!([2500.0, -20_000.0, 5e6].map(tick), ["2.5k", "-20k", "5M"]);
    }
}
