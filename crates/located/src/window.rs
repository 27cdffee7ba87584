//! The part of a text that an error message shows. A record may be one line of megabytes in which one word is
//! wrong. So long lines are cut to a window around the place.

use crate::LocatedError;
use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::ops::Range;

/// Most characters that are shown of a line.
const WIDTH: usize = 100;
/// Number of these before the place.
const BEFORE: usize = 50;
/// Marks a cut.
const CUT: &str = "...";

/// The line with the place and its neighbours, cut.
#[derive(Debug)]
pub(crate) struct Window {
    name: String,
    text: String,
    /// Lines of the whole text before this part.
    lines_before: usize,
    /// Where the line with the place begins in `text`, and the number of bytes cut off its beginning, less
    /// the mark.
    own_line: usize,
    cut_before: usize,
    /// The place in `text`.
    span: Range<usize>,
}

impl Window {
    /// A window around the place of an error.
    pub(crate) fn of(error: &LocatedError) -> Self {
        let whole = &*error.text;
        let start = whole[..error.span.start].rfind('\n').map_or(0, |at| at + 1);
        let end = whole[start..].find('\n').map_or(whole.len(), |at| start + at);
        let before = whole[..start].strip_suffix('\n').map(|b| b.rsplit('\n').next().unwrap_or(b));
        let after = whole.get(end + 1..).map(|a| a.split('\n').next().unwrap_or(a));
        let mut text = before.map_or_else(String::new, |line| cut_to(line, 0, WIDTH).1 + "\n");
        let own_line = text.len();
        let (line, at) = (&whole[start..end], error.span.start - start);
        let (cut, shown) = around(line, at);
        text += &shown;
        if let Some(line) = after {
            text = text + "\n" + &cut_to(line, 0, WIDTH).1;
        }
        let begin = own_line + at - cut;
        // A table's span may cover many lines; its first line is the one to look at.
        let length = error.span.len().min(line.len() - at.min(line.len()));
        let length = length.min((own_line + shown.len()).saturating_sub(begin));
        Self {
            name: error.path.to_string(),
            lines_before: whole[..start].matches('\n').count() - usize::from(before.is_some()),
            own_line,
            cut_before: cut,
            span: begin..begin + length,
            text,
        }
    }

    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

/// The shown part of a line around byte `at`, and the number of bytes by which the place moves to the left.
fn around(line: &str, at: usize) -> (usize, String) {
    if line.chars().count() <= WIDTH {
        return (0, line.to_owned());
    }
    let from = line[..at].char_indices().rev().nth(BEFORE).map_or(0, |(i, _)| i);
    cut_to(line, from, WIDTH)
}

/// At most `width` characters of a line from byte `from`, with marks at the cuts.
fn cut_to(line: &str, from: usize, width: usize) -> (usize, String) {
    let rest = &line[from..];
    let end = rest.char_indices().nth(width).map_or(rest.len(), |(i, _)| i);
    // A mark must be shorter than the text that it replaces, or the place would move to the right.
    let (cut, begin) = if from > CUT.len() { (from - CUT.len(), CUT) } else { (0, &line[..from]) };
    let tail = if end < rest.len() { CUT } else { "" };
    (cut, format!("{begin}{}{tail}", &rest[..end]))
}

impl SourceCode for Window {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let shown = self.text.read_span(span, lines_before, lines_after)?;
        let cut = if shown.span().offset() >= self.own_line { self.cut_before } else { 0 };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            shown.data(),
            *shown.span(),
            shown.line() + self.lines_before,
            shown.column() + cut,
            shown.line_count(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error at the word `here` of a text.
    fn window(text: &str) -> Window {
        let at = text.find("here").unwrap();
        Window::of(&LocatedError {
            path: "r.json".into(),
            line: 1,
            column: 1,
            span: at..at + 4,
            key: "".into(),
            message: "m".into(),
            help: "h".into(),
            text: text.into(),
        })
    }

    #[test]
    fn a_short_text_is_shown_as_it_is() {
        let w = window("first\nsecond here\nthird\nfourth");
        assert_eq!((w.text.as_str(), w.lines_before), ("first\nsecond here\nthird", 0));
        assert_eq!(&w.text[w.span()], "here");
        let w = window("1\n2\nhere");
        assert_eq!((w.text.as_str(), w.lines_before, &w.text[w.span()]), ("2\nhere", 1, "here"));
    }

    #[test]
    fn of_a_long_line_the_surroundings_are_shown() {
        let long = "é,".repeat(34_000);
        for text in [format!("{long}here{long}"), format!("{long}here"), format!("here{long}")] {
            let w = window(&format!("{long}\n{text}\n{long}"));
            assert_eq!(&w.text[w.span()], "here");
            let lines: Vec<usize> = w.text.lines().map(|l| l.chars().count()).collect();
            assert!(lines.len() == 3 && lines.iter().all(|n| *n <= 110), "{lines:?}");
            // miette's column is the place in the whole line.
            let column = text.find("here").unwrap();
            let shown = w.read_span(&w.span().into(), 0, 0).unwrap();
            assert_eq!((shown.line(), shown.column()), (1, column));
        }
    }

    #[test]
    fn a_place_at_the_end_or_over_many_lines_is_no_trouble() {
        let mut error = LocatedError {
            path: "r".into(),
            line: 1,
            column: 1,
            span: 3..3,
            key: "".into(),
            message: "m".into(),
            help: "h".into(),
            text: "{\n\n".into(),
        };
        assert_eq!(Window::of(&error).span(), 1..1, "after the empty line before it");
        error.span = 0..3;
        assert_eq!(Window::of(&error).span(), 0..1);
        error.text = "".into();
        error.span = 0..0;
        assert_eq!(Window::of(&error).span(), 0..0);
    }
}
