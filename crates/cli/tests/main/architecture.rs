//! The map of the project names files and items that exist.

use overspin_testing::root;

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}

#[test]
fn every_file_and_item_that_the_map_names_exists() {
    let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    let (mut files, mut items) = (0, 0);
    for (number, line) in map.lines().enumerate() {
        let number = number + 1;
        for path in quoted(line).filter(|q| q.starts_with("crates/")) {
            assert!(root().join(path).exists(), "line {number}: there is no {path}");
            files += 1;
        }
        // A step of a walk: file, items, what happens.
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, file, names, _, _] = cells[..] else { continue };
        let Some(path) = quoted(file).find(|q| q.starts_with("crates/")) else { continue };
        let text = std::fs::read_to_string(root().join(path)).expect("checked above");
        for item in quoted(names) {
            assert!(has_word(&text, item), "line {number}: {path} has no `{item}`");
            items += 1;
        }
    }
    assert!(files > 57 && items > 80, "six walks: {files} files, {items} items");
}
