//! Expected texts that stand in files. `UPDATE_EXPECT=1 cargo test` writes them anew; read what changed before you commit
//! it.

use std::path::Path;

/// Compares `actual` with the file `path`, which is relative to the folder of the repository.
///
/// # Panics
/// If they differ, with the difference.
#[track_caller]
pub fn expect_file(path: &str, actual: &str) {
    expect_test::ExpectFile { path: crate::root().join(path), position: file!() }.assert_eq(actual);
}

/// Compares `actual` with the part of a page between the lines `begin` and `end`. The rest of the page is written by hand.
///
/// # Panics
/// If they differ, or if the page lacks one of the lines.
#[track_caller]
pub fn expect_section(page: &str, begin: &str, end: &str, actual: &str) {
    let path = crate::root().join(page);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{page}: {e}"));
    let from = text.find(begin).unwrap_or_else(|| panic!("{page} lacks the line `{begin}`"));
    let from = from + begin.len();
    let to = text[from..].find(end).unwrap_or_else(|| panic!("{page} lacks the line `{end}`"));
    expect_file(page, &[&text[..from], actual, &text[from + to..]].concat());
}

/// A file of bytes, such as a picture: `None` if it was written anew, and else what is expected.
///
/// # Panics
/// If it cannot be read or written.
#[must_use]
pub fn expected_bytes(path: &Path, actual: &[u8]) -> Option<Vec<u8>> {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, actual).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return None;
    }
    Some(std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}
