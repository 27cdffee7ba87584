//! Blocks of a report as HTML, and the escaping of text.

use overspin_report::{Block, Grid};
use std::fmt::Write;

/// Text with the characters escaped that mean something in HTML and in SVG, in attributes too.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON that can stand in a script element: no text in it can end the element or begin a comment.
pub(super) fn json(value: &impl serde::Serialize) -> String {
    // It has only numbers, texts, lists and structs, which JSON can express.
    serde_json::to_string(value).unwrap_or_default().replace('<', "\\u003c")
}

/// Blocks as HTML. A title becomes a heading of level `level`, a heading one below it.
pub(super) fn blocks(blocks: &[Block], level: u8) -> String {
    let mut out = String::new();
    for block in blocks {
        // Writing to a String cannot fail, here and below.
        let _ = match block {
            Block::Title(t) => writeln!(out, "<h{level}>{}</h{level}>", escape(t)),
            Block::Heading(t) => writeln!(out, "<h{0}>{1}</h{0}>", level + 1, escape(t)),
            Block::Text(t) => writeln!(out, "<p>{}</p>", escape(t)),
            Block::Lines(t) => writeln!(out, "<pre>{}</pre>", escape(t.trim_end())),
            Block::Grid(g) => writeln!(out, "{}", table(g)),
        };
    }
    out
}

/// A table that the page's script makes sortable.
pub(super) fn table(grid: &Grid) -> String {
    let mut out = "<div class=\"wide\"><table class=\"sortable\"><thead><tr>".to_owned();
    let numbers = grid.numbers();
    let class = |i: usize| if numbers.contains(&i) { " class=\"number\"" } else { "" };
    for (i, name) in grid.header.iter().enumerate() {
        let name = name.replace("-\n", "").replace('\n', " ");
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(i), escape(&name));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &grid.rows {
        out.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(i), escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let text = "</script><b a=\"1\" b='2'>&";
        let mut grid = Grid::new(1, &["a\nb", "n"]);
        grid.row([text.into(), "1".into()]);
        let html =
            blocks(&[Block::Title(text.into()), Block::Lines(text.into()), Block::Grid(grid)], 2);
        assert!(!html.contains("<b") && !html.contains("</script"), "{html}");
        assert!(
            html.contains("<th scope=\"col\">a b</th><th scope=\"col\" class=\"number\">n</th>")
        );
        assert_eq!(escape("a=\"'"), "a=&quot;&#39;");
        assert_eq!(json(&"</script><!--"), "\"\\u003c/script>\\u003c!--\"");
    }
}
