//! Drawings in SVG: how their elements are written, and what all of them have in common. maud writes the elements, and
//! escapes all text in them.

use super::{Axis, tick};
use maud::{Markup, PreEscaped, html};

/// Okabe and Ito's colours, which people distinguish without full colour vision.
pub mod colour {
    /// Blue.
    pub const BLUE: &str = "#0072b2";
    /// A red with some yellow.
    pub const VERMILLION: &str = "#d55e00";
    /// Green.
    pub const GREEN: &str = "#009e73";
    /// A reddish purple.
    pub const PURPLE: &str = "#cc79a7";
    /// Orange.
    pub const ORANGE: &str = "#e69f00";
    /// The blue of the sky.
    pub const SKY: &str = "#56b4e9";
    /// What was published or measured.
    pub const PUBLISHED: &str = "#9aa5b1";
    /// What was simulated.
    pub const SIMULATED: &str = BLUE;
    /// Up to eight series, strongest contrast first; black and brown fill up.
    pub const SERIES: [&str; 8] =
        [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, "#000000", SKY, "#7a5c00"];
}

/// Space around a picture.
pub const MARGIN: f64 = 16.0;
/// Widths of a letter of 13 pixels, and of a bold letter of a title, in the widest sans-serif font of browsers.
const LETTER: f64 = 7.6;
const TITLE: f64 = 10.4;
/// Width of a sample in a legend.
pub const SAMPLE: f64 = 26.0;

/// Classes of text and lines. Every rule is inside the class of pictures, so that it concerns nothing else on a page
/// that contains a picture. Charts of the page have the same classes; the page's style sheet colours them by its theme.
const STYLE: &str = ".picture{font:13px sans-serif;fill:#222}\
    .picture .title{font-size:16px;font-weight:bold}.picture .heading{font-weight:bold}.picture .faint{fill:#666}\
    .picture .label{text-anchor:end}.picture .tick{text-anchor:middle;font-size:12px;fill:#666}\
    .picture .value{font-size:11px}.picture .grid{stroke:#ddd}.picture .whisker{fill:none;stroke:#222}\
    .picture .frame{fill:none;stroke:#888}";

/// Pixels as they are written: to a tenth.
#[must_use]
pub fn px(value: f64) -> f64 {
    // A sum with 0 is never -0.
    (value * 10.0).round() / 10.0 + 0.0
}

/// The greatest width of a text.
#[must_use]
pub fn width_of(words: &str) -> f64 {
    words.chars().count() as f64 * LETTER
}

/// A drawing that grows element by element.
#[derive(Clone, Debug, Default)]
pub struct Svg(String);

impl Svg {
    /// Adds an element.
    pub fn add(&mut self, PreEscaped(element): &Markup) {
        self.0 += element;
        self.0.push('\n');
    }

    /// Adds text of a class at a place.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), words: &str) {
        let class = Some(class).filter(|class| !class.is_empty());
        self.add(&html! { text class=[class] x=(px(x)) y=(px(y)) { (words) } });
    }

    /// Adds text in lines of at most this width, the first one below `y`; returns the lower end of the last one.
    pub fn lines(&mut self, class: &str, words: &str, mut y: f64, width: f64) -> f64 {
        let [letter, high] = if class == "title" { [TITLE, 20.0] } else { [LETTER, 18.0] };
        let letters = ((width - 2.0 * MARGIN) / letter) as usize;
        for line in crate::wrap_to(words, letters).lines() {
            y += high;
            self.text(class, (MARGIN, y), line);
        }
        y
    }

    /// Adds a rectangle of a colour.
    pub fn rect(&mut self, fill: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let [x, y, width, height] = [x, y, width, height].map(px);
        self.add(&html! { rect x=(x) y=(y) width=(width) height=(height) fill=(fill) {} });
    }

    /// Adds a horizontal line with two ends, of the class `whisker` and another one.
    pub fn whisker(&mut self, class: &str, [low, high]: [f64; 2], y: f64) {
        let [low, high, y, up] = [low, high, y, y - 3.0].map(px);
        let d = format!("M{low} {y}H{high}M{low} {up}v6M{high} {up}v6");
        self.add(&html! { path class={ "whisker " (class) } d=(d) {} });
    }

    /// Adds the mark of a bar or a line that goes on beyond the scale: two strokes of the ground through it, which begin at
    /// this lower left corner.
    pub fn broken(&mut self, corner: (f64, f64), high: f64) {
        let ([x, next, y], up) = ([corner.0, corner.0 + 8.0, corner.1].map(px), px(-high));
        let d = format!("M{x} {y}l8 {up}M{next} {y}l8 {up}");
        // A page gives white the colour of its ground.
        self.add(&html! { path d=(d) stroke="white" stroke-width="3" {} });
    }

    /// Adds a legend below `y`, in as many lines as it needs; returns its lower end. `sample` draws the sample of each name
    /// on a space of 14 pixels by [`SAMPLE`].
    pub fn legend<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
        mut y: f64,
        width: f64,
        mut sample: impl FnMut(&mut Self, usize, (f64, f64)),
    ) -> f64 {
        let mut x = MARGIN;
        for (i, name) in names.into_iter().enumerate() {
            let wide = SAMPLE + width_of(name) + 20.0;
            if x > MARGIN && x + wide > width - MARGIN {
                (x, y) = (MARGIN, y + 20.0);
            }
            sample(self, i, (x, y));
            self.text("", (x + SAMPLE + 6.0, y + 12.0), name);
            x += wide;
        }
        y + 16.0
    }

    /// The drawing as a chart of a page, whose style sheet colours it. `words` describe it to readers that see no pictures.
    #[must_use]
    pub fn chart(self, words: &str, (width, height): (f64, f64)) -> Markup {
        let [width, height] = [width, height].map(f64::round);
        html! {
            svg class="chart" role="img" aria-label=(words) width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } {
                "\n" (self.markup())
            }
            "\n"
        }
    }

    /// The drawing as a picture, which can be a file: with a white ground and a style of its own.
    #[must_use]
    pub fn picture(self, words: &str, (width, height): (f64, f64)) -> Markup {
        let [width, height] = [width, height].map(f64::round);
        html! {
            svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" aria-label=(words) viewBox={ "0 0 " (width) " " (height) } {
                // The constant has no end of an element.
                "\n" style { (PreEscaped(STYLE)) }
                "\n" rect width=(width) height=(height) fill="white" {}
                "\n" (self.markup())
            }
            "\n"
        }
    }

    /// All elements. Only `add` adds to them, and maud made what it adds.
    #[must_use]
    pub fn markup(self) -> Markup {
        PreEscaped(self.0)
    }
}

/// Rows of equal height with labels on their left and a scale along their bottom.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The scale.
    pub axis: Axis,
    left: f64,
    top: f64,
    height: f64,
}

impl Rows {
    /// Width of the scale.
    pub const PLOT: f64 = 500.0;
    /// Space on the right for the value of the longest bar.
    pub const VALUES: f64 = 130.0;

    /// The space on the left that labels need.
    #[must_use]
    pub fn left<'a>(labels: impl IntoIterator<Item = &'a str>) -> f64 {
        labels.into_iter().map(width_of).fold(30.0, f64::max) + MARGIN + 10.0
    }

    /// Draws grid and labels of rows below `top`; returns the rows and the lower end of all.
    pub fn draw<'a>(
        svg: &mut Svg,
        axis: Axis,
        (left, top): (f64, f64),
        height: f64,
        labels: impl ExactSizeIterator<Item = &'a str>,
    ) -> (Self, f64) {
        let rows = Self { axis, left, top, height };
        let bottom = rows.y(labels.len()) + 2.0;
        for value in axis.lines() {
            let x = px(rows.x(value));
            svg.add(&html! { line class="grid" x1=(x) x2=(x) y1=(px(top)) y2=(px(bottom)) {} });
            svg.text("tick", (x, bottom + 15.0), &tick(value));
        }
        for (i, label) in labels.enumerate() {
            svg.text("label", (left - 10.0, rows.y(i) + height / 2.0 + 4.0), label);
        }
        (rows, bottom + 24.0)
    }

    /// The place of a value.
    #[must_use]
    pub fn x(&self, value: f64) -> f64 {
        self.left + Self::PLOT * self.axis.part(value)
    }

    /// The place where bars begin.
    #[must_use]
    pub fn base(&self) -> f64 {
        self.left + Self::PLOT * self.axis.base()
    }

    /// The upper end of a row.
    #[must_use]
    pub fn y(&self, row: usize) -> f64 {
        self.top + row as f64 * self.height
    }
}
