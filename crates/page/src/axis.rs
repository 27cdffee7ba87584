//! The frame of a chart: a scale along its bottom, and labels on its left. The charts are SVG inside the page, styled by
//! the page's style sheet, so that they follow its theme.

use super::html::escape;
use overspin_report::{nice, tick};
use std::fmt::Write;

/// Width of the plot, in SVG's pixels.
pub(super) const PLOT: f64 = 520.0;
/// Space on the right, for the value of the longest bar.
const VALUES: f64 = 110.0;
const MARGIN: f64 = 8.0;
/// Width of a letter of 12 pixels in a wide sans-serif font.
const LETTER: f64 = 7.0;
/// Longest label; longer ones are cut in the middle.
const LONGEST: usize = 44;
/// If values differ by this factor, the scale is logarithmic.
const DECADES: f64 = 30.0;

/// A scale from left to right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    /// From 0 to `high`, or to the next grid line.
    pub(super) fn to(high: f64) -> Self {
        Self::linear(0.0, high)
    }

    fn linear(low: f64, high: f64) -> Self {
        let (low, high) =
            (low.min(0.0), if high > low { high.max(0.0) } else { low.min(0.0) + 1.0 });
        let step = nice((high - low) / 6.0);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, log: false }
    }

    /// A logarithmic scale over whole decades.
    pub(super) fn decades(low: f64, high: f64) -> Self {
        let low = low.log10().floor();
        Self { low, high: high.log10().ceil().max(low + 1.0), log: true }
    }

    /// A scale that holds all values; logarithmic if they differ much and are positive.
    pub(super) fn over(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            (low, high) = (low.min(value), high.max(value));
        }
        match low {
            _ if low > high => Self::to(1.0),
            _ if low > 0.0 && high / low >= DECADES => Self::decades(low, high),
            _ => Self::linear(low, high),
        }
    }

    /// Where a value is, from 0 to 1.
    pub(super) fn part(self, value: f64) -> f64 {
        let value = match self.log {
            true if value > 0.0 => value.log10(),
            true => self.low,
            false => value,
        };
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Whether it is logarithmic.
    pub(super) fn is_log(self) -> bool {
        self.log
    }

    /// The values of the grid lines.
    pub(super) fn lines(self) -> Vec<f64> {
        if self.log {
            let decades = (self.high - self.low).round() as i32;
            return (0..=decades).map(|i| 10_f64.powf(self.low + f64::from(i))).collect();
        }
        let step = nice((self.high - self.low) / 6.0);
        let count = ((self.high - self.low) / step).round() as i32;
        (0..=count).map(|i| self.low + f64::from(i) * step).collect()
    }
}

/// A chart that grows downwards, row by row.
#[derive(Debug)]
pub(super) struct Chart {
    axis: Axis,
    left: f64,
    y: f64,
    body: String,
}

impl Chart {
    /// A chart whose rows have these labels.
    pub(super) fn new<'a>(axis: Axis, labels: impl IntoIterator<Item = &'a str>) -> Self {
        let longest = labels.into_iter().map(|l| l.chars().count().min(LONGEST)).max().unwrap_or(0);
        let left = (longest as f64 * LETTER + 2.0 * MARGIN).max(60.0);
        Self { axis, left, y: MARGIN, body: String::new() }
    }

    /// The position of a value.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + PLOT * self.axis.part(value)
    }

    /// Begins a row of this height; returns its upper end.
    pub(super) fn row(&mut self, label: &str, height: f64) -> f64 {
        let y = self.y;
        self.y += height;
        let (x, middle) = (self.left - MARGIN, y + height / 2.0 + 4.0);
        self.text((x, middle), "label", &shortened(label));
        y
    }

    /// A rectangle of a class between two values, with a tooltip.
    pub(super) fn bar(
        &mut self,
        from: f64,
        to: f64,
        (y, height): (f64, f64),
        class: &str,
        tip: &str,
    ) {
        let (x, end) = (self.x(from), self.x(to));
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}</title></rect>",
            (end - x).max(0.0),
            escape(tip)
        );
    }

    /// Text of a class at a position.
    pub(super) fn text(&mut self, (x, y): (f64, f64), class: &str, words: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escape(words)
        );
    }

    /// Any other element.
    pub(super) fn draw(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// The chart as SVG, which `words` describe to readers that see no pictures.
    pub(super) fn finish(mut self, words: &str) -> String {
        let bottom = self.y + 4.0;
        let mut grid = String::new();
        for value in self.axis.lines() {
            let x = self.x(value);
            let _ = writeln!(
                grid,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{MARGIN:.1}\" y2=\"{bottom:.1}\"/>"
            );
            self.text((x, bottom + 14.0), "tick", &tick(value));
        }
        let (width, height) = (self.left + PLOT + VALUES, bottom + 22.0);
        format!(
            "<svg class=\"chart\" role=\"img\" aria-label=\"{}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\">\n{grid}{}</svg>\n",
            escape(words),
            self.body
        )
    }
}

fn shortened(label: &str) -> String {
    let letters: Vec<char> = label.chars().collect();
    if letters.len() <= LONGEST {
        return label.to_owned();
    }
    let half = LONGEST / 2 - 1;
    let begin: String = letters[..half].iter().collect();
    let end: String = letters[letters.len() - half..].iter().collect();
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_hold_their_values_and_end_at_grid_lines() {
        let axis = Axis::over([3.0, 7.0]);
        assert_eq!((axis.low, axis.high, axis.is_log()), (0.0, 8.0, false));
        assert!((axis.part(4.0) - 0.5).abs() < 1e-9);
        let axis = Axis::over([-11.5, 8.4]);
        assert_eq!((axis.low, axis.high), (-15.0, 10.0));
        let axis = Axis::over([2.0, 200.0]);
        assert_eq!((axis.is_log(), axis.lines()), (true, vec![1.0, 10.0, 100.0, 1000.0]));
        assert_eq!(Axis::over([]), Axis::over([0.0]), "no values are no fault");
    }

    #[test]
    fn long_labels_keep_both_ends() {
        let label = shortened(&format!("begin{}end", "x".repeat(100)));
        assert!(
            label.starts_with("begin")
                && label.ends_with("end")
                && label.chars().count() <= LONGEST
        );
    }
}
