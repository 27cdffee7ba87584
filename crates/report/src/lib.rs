//! Reports: a list of blocks, written as text for terminals or as Markdown for documents.

#![forbid(unsafe_code)]

mod axis;
mod chart;
mod curves;
mod numbers;
mod screen;
pub mod svg;

pub use axis::{Axis, tick};
pub use chart::{Bar, Panel, Row, picture};
pub use curves::{At, Curve, Horizontal, Plot, curves};
pub use maud::Markup;
pub use numbers::{
    micros, percent, seconds, share, short, short_integer, tenths, three_digits, time, two_digits,
};
pub use screen::Screen;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use std::fmt::Write;

/// Lines above, below and under the header; rows need none.
const fn style(rule: char) -> TableStyle {
    TableStyle::new()
        .top_border(LineStyle::none().fill(rule).junction(rule))
        .header_separator(LineStyle::none().fill(rule).junction(rule))
        .bottom_border(LineStyle::none().fill(rule).junction(rule))
}

/// Longer lists are cut to their sum and the first lines: a thousand pCPUs make no readable report.
pub const MOST_LINES: usize = 64;

/// Columns of a page: the longest line of running text on a terminal.
pub const WIDTH: usize = 80;

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Column names.
    pub header: Vec<String>,
    /// Number of columns from the left that hold words.
    pub words: usize,
    /// Number of columns from the right that hold words. Columns between hold numbers, aligned to the right.
    pub notes: usize,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// An empty table.
    #[must_use]
    pub fn new(words: usize, header: &[&str]) -> Self {
        Self {
            header: header.iter().map(|h| (*h).to_owned()).collect(),
            words,
            notes: 0,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// The columns that hold numbers.
    pub fn numbers(&self) -> std::ops::Range<usize> {
        self.words..self.header.len().saturating_sub(self.notes)
    }

    fn table(&self, rule: char) -> Table {
        let mut table = Table::new();
        table.load_style(style(rule));
        table.set_header(self.header.clone());
        for row in &self.rows {
            table.add_row(row.clone());
        }
        for i in self.numbers() {
            if let Some(column) = table.column_mut(i) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    fn markdown(&self, out: &mut String) {
        let line = |cells: &[String]| {
            let cells: Vec<String> =
                cells.iter().map(|c| c.replace('|', "\\|").replace('\n', " ")).collect();
            format!("| {} |", cells.join(" | "))
        };
        let rule: Vec<String> = (0..self.header.len())
            .map(|i| if self.numbers().contains(&i) { "---:" } else { "---" }.to_owned())
            .collect();
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "{}\n{}", line(&self.header), line(&rule));
        for row in &self.rows {
            let _ = writeln!(out, "{}", line(row));
        }
    }
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Title of the whole.
    Title(String),
    /// Heading of a part.
    Heading(String),
    /// Running text.
    Text(String),
    /// Lines that are printed unchanged.
    Lines(String),
    /// A table.
    Grid(Grid),
}

/// Writes blocks as text of any width.
#[must_use]
pub fn text(blocks: &[Block]) -> String {
    text_on(blocks, &Screen::default())
}

/// Writes blocks for a screen.
#[must_use]
pub fn text_on(blocks: &[Block], screen: &Screen) -> String {
    let width = screen.width.map_or(WIDTH, |width| width.min(WIDTH));
    let rule = if screen.ascii { '-' } else { '─' };
    let mut out = String::new();
    for block in blocks {
        if matches!(block, Block::Heading(_)) && !out.is_empty() && !out.ends_with("\n\n") {
            out.push('\n');
        }
        let _ = match block {
            Block::Title(t) => under(&mut out, &wrap_to(&screen.spell(t), width), "=", "\n"),
            Block::Heading(t) => under(&mut out, &wrap_to(&screen.spell(t), width), "-", ""),
            Block::Text(t) => writeln!(out, "{}", wrap_to(&screen.spell(t), width)),
            Block::Lines(t) => writeln!(out, "{}\n", screen.spell(t.trim_end())),
            Block::Grid(g) => screen
                .fit(g)
                .iter()
                .try_for_each(|part| writeln!(out, "{}\n", part.table(rule).trim_fmt())),
        };
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// A title or heading with a line under it.
fn under(out: &mut String, title: &str, line: &str, end: &str) -> std::fmt::Result {
    let length = title.lines().map(|l| l.chars().count()).max().unwrap_or(0);
    writeln!(out, "{title}\n{}{end}", line.repeat(length))
}

/// Breaks running text into lines.
pub fn wrap(text: &str) -> String {
    wrap_to(text, WIDTH)
}

/// Breaks running text into lines of at most `width` characters, unless a word is longer.
pub fn wrap_to(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// Writes blocks as Markdown.
#[must_use]
pub fn markdown(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        let _ = match block {
            Block::Title(t) => writeln!(out, "# {t}\n"),
            Block::Heading(t) => writeln!(out, "## {t}\n"),
            Block::Text(t) => writeln!(out, "{t}\n"),
            Block::Lines(t) => writeln!(out, "```text\n{}\n```\n", t.trim_end()),
            Block::Grid(g) => {
                g.markdown(&mut out);
                writeln!(out)
            }
        };
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_hold_every_cell() {
        let mut grid = Grid::new(1, &["name", "value"]);
        grid.row(["a|b".into(), "1.5".into()]);
        let blocks = [Block::Title("T".into()), Block::Heading("H".into()), Block::Grid(grid)];
        let (text, markdown) = (text(&blocks), markdown(&blocks));
        assert!(text.contains("a|b") && text.contains("1.5"), "{text}");
        assert!(
            markdown.contains("| a\\|b | 1.5 |") && markdown.contains("| --- | ---: |"),
            "{markdown}"
        );
        assert!(markdown.starts_with("# T\n\n## H\n\n|") && markdown.ends_with("|\n"));
    }

    #[test]
    fn long_text_is_broken_between_words() {
        let text = wrap(&"word ".repeat(50));
        assert!(text.lines().all(|l| l.len() <= WIDTH && !l.ends_with(' ')), "{text}");
        assert_eq!(text.split_whitespace().count(), 50);
    }
}
