//! Reads records from text: JSON of this layout. An older layout is refused with advice.

use super::{Record, SCHEMA};
use overspin_located::LocatedError;
use serde::Deserialize;

/// Longest cause that is quoted: serde repeats a text of the wrong type, however long it is.
const LONGEST_CAUSE: usize = 200;

/// The field that says what it is.
#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

/// Reads a record that messages call `path`.
///
/// # Errors
/// If it is none; with the place if it is not JSON.
pub fn read(path: &str, text: &str) -> Result<Record, LocatedError> {
    let known = "overspin reads records that --json writes, and .bench files";
    let head: Head = serde_json::from_str(text).map_err(|e| json_error(path, text, &e, known))?;
    let refuse = |message: String, help: &str| {
        // The first occurrence of the word is nearly always the key itself.
        let at = text.find("\"schema\"").unwrap_or(0);
        Err(LocatedError::at(path, text, at..at, "schema", message, help))
    };
    match head.schema.as_deref() {
        Some(SCHEMA) => {
            let help = "write the record again, or undo what changed it; docs/json.md describes it";
            serde_json::from_str(text).map_err(|e| json_error(path, text, &e, help))
        }
        Some("overspin-list/1" | "overspin-check/1" | "overspin-compare/2") => {
            let schema = head.schema.unwrap_or_default();
            refuse(format!("`{schema}` is not a measurement: it has no samples"), known)
        }
        Some("overspin-recording/1") => refuse(
            "this is a recording of `overspin exec --record`, not a record of runs".into(),
            "`overspin fit FILE -o SCENARIO.toml` makes a scenario of it, which `run`, `explain` and `sweep` read",
        ),
        Some(old) if old.starts_with("overspin-") => refuse(
            format!(
                "the layout `{old}` is of another version of the program; this version reads `{SCHEMA}`"
            ),
            "write the record again with this version: run the same command once more",
        ),
        Some(other) => refuse(format!("the layout `{other}` is not known"), known),
        None => refuse(
            "this is not a record: it has no `schema`".into(),
            "overspin reads records that --json writes, and .bench files; convert a workload of rt-app with \
             `overspin import rt-app`",
        ),
    }
}

/// serde's error about a JSON text, with its place.
#[must_use]
pub fn json_error(path: &str, text: &str, error: &serde_json::Error, help: &str) -> LocatedError {
    // Lines and columns count from 1, and columns are in bytes; 0 means that there is no place.
    let start: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let at = start + error.column().saturating_sub(1);
    let cause = error.to_string();
    let cause = cause.rsplit_once(" at line").map_or(&*cause, |(cause, _)| cause);
    LocatedError::at(path, text, at..at + 1, "", shortened(cause), help)
}

/// A cause that is too long, cut to its beginning and its end, which says what was expected.
fn shortened(cause: &str) -> String {
    let count = cause.chars().count();
    if count <= LONGEST_CAUSE {
        return cause.to_owned();
    }
    let half = LONGEST_CAUSE / 2;
    let begin: String = cause.chars().take(half).collect();
    let end: String = cause.chars().skip(count - half).collect();
    format!("{begin} ... {end}")
}
