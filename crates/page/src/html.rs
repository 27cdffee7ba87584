//! Blocks of a report as HTML.

use maud::{Markup, PreEscaped, html};
use overspin_report::{Block, Grid};

/// JSON that can stand in a script element: no text in it can end the element or begin a comment.
pub(super) fn json(value: &impl serde::Serialize) -> Markup {
    // It has only numbers, texts, lists and structs, which JSON can express.
    PreEscaped(serde_json::to_string(value).unwrap_or_default().replace('<', "\\u003c"))
}

/// Blocks as HTML, without their title.
pub(super) fn blocks(blocks: &[Block]) -> Markup {
    html! {
        @for block in blocks {
            @match block {
                Block::Title(_) => {},
                Block::Heading(t) => h4 { (t) },
                Block::Text(t) => p { (with_code(t)) },
                Block::Lines(t) => pre { (t.trim_end()) },
                Block::Grid(g) => (table(g)),
            }
            "\n"
        }
    }
}

/// Running text, with what stands between backquotes as code.
fn with_code(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backquotes quotes nothing.
    let is_paired = parts.len() % 2 == 1;
    html! {
        @for (i, part) in parts.iter().enumerate() {
            @if is_paired && i % 2 == 1 { code { (part) } } @else {
                @if i > 0 && !is_paired { "`" }
                (part)
            }
        }
    }
}

/// A table that the page's script makes sortable.
pub(super) fn table(grid: &Grid) -> Markup {
    let numbers = grid.numbers();
    let class = |i: usize| numbers.contains(&i).then_some("number");
    html! {
        div class="wide" {
            table class="sortable" {
                thead {
                    tr {
                        @for (i, name) in grid.header.iter().enumerate() {
                            // A column of remarks has no name, so it heads nothing.
                            @if name.is_empty() { td {} } @else {
                                th scope="col" class=[class(i)] { (name.replace("-\n", "").replace('\n', " ")) }
                            }
                        }
                    }
                }
                "\n"
                tbody {
                    @for row in &grid.rows {
                        tr { @for (i, cell) in row.iter().enumerate() { td class=[class(i)] { (cell) } } }
                        "\n"
                    }
                }
            }
        }
    }
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
            blocks(&[Block::Heading(text.into()), Block::Lines(text.into()), Block::Grid(grid)]).0;
        assert!(!html.contains("<b") && !html.contains("</script"), "{html}");
        assert!(
            html.contains("<th scope=\"col\">a b</th><th scope=\"col\" class=\"number\">n</th>")
        );
        assert_eq!(with_code("a `b<` c").0, "a <code>b&lt;</code> c");
        assert_eq!(with_code("a ` b").0, "a ` b");
        assert_eq!(json(&"</script><!--").0, "\"\\u003c/script>\\u003c!--\"");
    }
}
