//! YAML that needs little more memory than its text. The parser calls itself for each level, and copies what an alias stands
//! for; so the text is looked through first, without either.

use std::collections::HashMap;
use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::{Yaml, YamlLoader};

/// Deepest nesting that is read: objects of Kubernetes have a dozen levels.
const DEEPEST: usize = 64;
/// Most values with those that aliases stand for: so many fill the longest file that is read.
const MOST_VALUES: usize = 8 << 20;

/// The documents of a text.
///
/// # Errors
/// Says why it cannot be read.
pub(super) fn documents(text: &str) -> Result<Vec<Yaml>, String> {
    look(text)?;
    YamlLoader::load_from_str(text).map_err(|error| error.to_string())
}

fn look(text: &str) -> Result<(), String> {
    let mut parser = Parser::new_from_str(text);
    let mut values_of_anchors: HashMap<usize, usize> = HashMap::new();
    let (mut values, mut open) = (0_usize, Vec::new());
    loop {
        let (event, _) = parser.next_token().map_err(|error| error.to_string())?;
        match event {
            Event::StreamEnd => return Ok(()),
            Event::Scalar(_, _, anchor, _) => {
                values += 1;
                values_of_anchors.insert(anchor, 1);
            }
            Event::Alias(anchor) => {
                let more = values_of_anchors.get(&anchor).copied().unwrap_or(1);
                values = values.saturating_add(more);
            }
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                if open.len() == DEEPEST {
                    return Err(format!("it is nested deeper than {DEEPEST} levels"));
                }
                open.push((anchor, values));
                values += 1;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, before)) = open.pop() {
                    values_of_anchors.insert(anchor, values - before);
                }
            }
            _ => {}
        }
        if values > MOST_VALUES {
            return Err(format!("with its aliases it has more than {MOST_VALUES} values"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_what_it_stands_for() {
        let found = documents("a: &a [1, 2]\nb: *a\n---\nc: 3\n").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0]["b"], found[0]["a"]);
    }

    /// The first would overflow the stack, the second has 10^12 values.
    #[test]
    fn what_would_use_up_the_memory_is_refused() {
        for part in ["[", "{a: ", "- ", "? "] {
            let error = documents(&part.repeat(100_000)).unwrap_err();
            // The parser itself has a limit for brackets and braces.
            let words = ["nested deeper than 64", "recursion limit"];
            assert!(words.iter().any(|w| error.contains(w)), "{part}: {error}");
        }
        let levels = (1..12).map(|i| {
            let ten = vec![format!("*a{}", i - 1); 10].join(", ");
            format!("a{i}: &a{i} [{ten}]\n")
        });
        let bomb =
            "a0: &a0 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n".to_owned() + &levels.collect::<String>();
        let error = documents(&bomb).unwrap_err();
        assert!(error.contains("more than 8388608 values"), "{error}");
    }
}
