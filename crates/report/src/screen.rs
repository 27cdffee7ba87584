//! What the reader's terminal can show: its width, and whether it has more than ASCII.

use super::{Grid, WIDTH, wrap_to};

/// Where text is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Columns; `None`: as many as the text needs, as in a file.
    pub width: Option<usize>,
    /// Only ASCII.
    pub ascii: bool,
}

impl Screen {
    /// As wide as a page, with all characters.
    #[must_use]
    pub fn page() -> Self {
        Self { width: Some(WIDTH), ascii: false }
    }

    /// The text in the characters that this screen has.
    #[must_use]
    pub fn spell(&self, text: &str) -> String {
        if !self.ascii || text.is_ascii() {
            return text.to_owned();
        }
        let one = |c: char| match c {
            c if c.is_ascii() => c.to_string(),
            '─' | '–' | '—' | '−' => "-".into(),
            '±' => "+-".into(),
            '×' => "x".into(),
            '█' => "#".into(),
            // Bars of other heights.
            '▁' => "_".into(),
            '▂' => ".".into(),
            '▃' => "-".into(),
            '▄' => "+".into(),
            '▅' => "=".into(),
            '▆' => "*".into(),
            '▇' => "%".into(),
            '▒' => "x".into(),
            '━' => "=".into(),
            '│' | '┌' | '└' => "|".into(),
            '·' => ".".into(),
            '…' => "...".into(),
            'µ' => "u".into(),
            '→' => "->".into(),
            '≤' => "<=".into(),
            '≥' => ">=".into(),
            _ => "?".into(),
        };
        text.chars().map(one).collect()
    }

    /// The table as tables that fit this screen: headings and words are broken between words first. If that is
    /// not enough, the columns are spread over several tables, each of which begins with the first column.
    /// Numbers and single words are never broken, so a table may still be too wide.
    #[must_use]
    pub fn fit(&self, grid: &Grid) -> Vec<Grid> {
        let grid = self.spelled(grid);
        match self.width {
            Some(width) => fit(&grid, width),
            None => vec![grid],
        }
    }

    fn spelled(&self, grid: &Grid) -> Grid {
        let all = |cells: &[String]| cells.iter().map(|cell| self.spell(cell)).collect();
        Grid {
            header: all(&grid.header),
            rows: grid.rows.iter().map(|row| all(row)).collect(),
            ..*grid
        }
    }
}

/// Space that a column takes besides its text.
const BESIDE: usize = 3;

/// Least and natural width of a column.
struct Needs {
    least: usize,
    natural: usize,
}

fn widest<'a>(parts: impl Iterator<Item = &'a str>) -> usize {
    parts.map(|part| part.chars().count()).max().unwrap_or(0)
}

fn needs(grid: &Grid, column: usize) -> Needs {
    let cells = || grid.rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
    let head = grid.header[column].as_str();
    let natural = widest(cells().chain([head]).flat_map(str::lines));
    let in_cells = match grid.numbers().contains(&column) {
        true => widest(cells().flat_map(str::lines)),
        false => widest(cells().flat_map(str::split_whitespace)),
    };
    Needs { least: in_cells.max(widest(head.split_whitespace())), natural }
}

fn fit(grid: &Grid, width: usize) -> Vec<Grid> {
    let needs: Vec<Needs> = (0..grid.header.len()).map(|column| needs(grid, column)).collect();
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut used = usize::MAX;
    for (column, need) in needs.iter().enumerate() {
        let own = need.least + BESIDE;
        // A part that holds nothing but the first column takes one more in any case.
        let first_only = parts.last().is_some_and(|part| part.len() == 1);
        if used.saturating_add(own) > width && !first_only {
            let part = if column == 0 { vec![0] } else { vec![0, column] };
            used = part.iter().map(|c| needs[*c].least + BESIDE).sum();
            parts.push(part);
        } else if let Some(part) = parts.last_mut() {
            part.push(column);
            used += own;
        }
    }
    parts.iter().map(|columns| shrunk(grid, columns, &needs, width)).collect()
}

/// The given columns of a table, the widest of them shrunk until the table fits.
fn shrunk(grid: &Grid, columns: &[usize], needs: &[Needs], width: usize) -> Grid {
    let mut widths: Vec<usize> = columns.iter().map(|c| needs[*c].natural).collect();
    while widths.iter().map(|w| w + BESIDE).sum::<usize>() > width {
        let larger = (0..columns.len()).filter(|i| widths[*i] > needs[columns[*i]].least);
        let Some(widest) = larger.max_by_key(|i| widths[*i]) else { break };
        widths[widest] -= 1;
    }
    let cell = |row: &[String], i: usize| {
        let text = row.get(columns[i]).map_or("", String::as_str);
        let whole = widest(text.lines()) <= widths[i];
        if whole { text.to_owned() } else { wrap_to(text, widths[i]) }
    };
    let line = |row: &[String]| (0..columns.len()).map(|i| cell(row, i)).collect();
    let numbers = grid.numbers();
    Grid {
        header: line(&grid.header),
        rows: grid.rows.iter().map(|row| line(row)).collect(),
        words: columns.iter().filter(|c| **c < numbers.start).count(),
        notes: columns.iter().filter(|c| **c >= numbers.end).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Block, text_on};
    use super::*;

    fn grid() -> Grid {
        let header =
            ["lock", "what it is", "next waiter preempted (LWP)", "acquisitions", "max us"];
        let mut grid = Grid::new(2, &header);
        let brief = "first come, first served; every waiter spins on one word";
        for (lock, n) in [("ticket", "123456"), ("pv-qspinlock", "9")] {
            grid.row([lock.into(), brief.into(), n.into(), n.into(), "1234567.890".into()]);
        }
        grid
    }

    fn shown(width: usize) -> String {
        text_on(&[Block::Grid(grid())], &Screen { width: Some(width), ascii: true })
    }

    #[test]
    fn tables_fit_and_lose_nothing() {
        for width in [200, 120, 100, 80, 60, 40, 34] {
            let text = shown(width);
            assert!(text.lines().all(|l| l.chars().count() <= width), "{width}:\n{text}");
            assert!(text.is_ascii(), "{text}");
            let words: Vec<&str> = text.split_whitespace().collect();
            for word in ["pv-qspinlock", "1234567.890", "123456", "served;", "(LWP)"] {
                assert!(words.contains(&word), "{width}: {word}\n{text}");
            }
        }
        // Numbers are in a table of their own, which names its rows again.
        assert!(shown(34).matches("pv-qspinlock").count() >= 2, "{}", shown(34));
    }

    #[test]
    fn a_table_that_cannot_fit_is_shown_all_the_same() {
        let text = shown(5);
        assert!(text.contains("1234567.890") && text.contains("pv-qspinlock"), "{text}");
    }

    #[test]
    fn without_a_width_nothing_is_broken() {
        let text = text_on(&[Block::Grid(grid())], &Screen::default());
        assert!(text.contains("every waiter spins on one word") && text.contains('─'), "{text}");
    }

    #[test]
    fn ascii_has_a_spelling_for_what_reports_use() {
        let screen = Screen { width: None, ascii: true };
        assert_eq!(screen.spell("1.5 ± 0.2 µs … ─"), "1.5 +- 0.2 us ... -");
        assert_eq!(Screen::default().spell("±"), "±");
    }
}
