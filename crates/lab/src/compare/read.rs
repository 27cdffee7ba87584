//! Samples from files: columns of numbers, records, and what hyperfine writes.

use super::{Origin, Samples};
use overspin_located::LocatedError;
use overspin_runs::record::{self, Kind, json_error};
use overspin_stats::Summary;
use serde::Deserialize;

/// The contents of a file to compare.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its samples, a set for each metric in each place.
    pub samples: Vec<Samples>,
    /// The kind of record; `None` for columns of numbers and other tools' files.
    pub kind: Option<Kind>,
    /// What it says about its making.
    pub origin: Origin,
    /// How often locks were acquired in each place, on average; whatever samples are chosen.
    pub acquired: Vec<(String, f64)>,
}

impl Input {
    /// The input from a file that says nothing about itself.
    pub(super) fn plain(samples: Vec<Samples>) -> Self {
        Self { samples, kind: None, origin: Origin::default(), acquired: Vec::new() }
    }
}

/// Reads the samples of a file that messages call `path`. It may be a column of numbers (the first, or
/// `column`, from 1; text after `#` is ignored), a record of this program, a `.bench` file, the output of
/// `hyperfine --export-json`, or a JSON array of numbers.
///
/// # Errors
/// If there are no numbers, or something else is in the place of one.
pub fn read(path: &str, text: &str, column: usize) -> Result<Input, LocatedError> {
    let input = match text.trim_start().chars().next() {
        Some('{') => object(path, text)?,
        Some('[') => {
            let values = serde_json::from_str(text)
                .map_err(|e| json_error(path, text, &e, "write an array of numbers"))?;
            Input::plain(vec![Samples { values, ..Samples::default() }])
        }
        _ => {
            let values = numbers(path, text, column)?;
            Input::plain(vec![Samples { values, ..Samples::default() }])
        }
    };
    if input.samples.iter().all(|s| s.values.is_empty()) {
        let help = match input.kind {
            Some(_) => "no run of it finished: run it again, or longer",
            None => "the file needs numbers, one a line, or the output of --json",
        };
        return Err(LocatedError::at(path, text, 0..0, "", "there are no samples", help));
    }
    Ok(input)
}

fn numbers(path: &str, text: &str, column: usize) -> Result<Vec<f64>, LocatedError> {
    let (mut values, mut start) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let data = line.split('#').next().unwrap_or("");
        let words = data.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
        let mut words = words.filter(|w| !w.is_empty()).peekable();
        if words.peek().is_some() {
            let word = words.nth(column - 1).unwrap_or("");
            match word.parse::<f64>() {
                Ok(value) if value.is_finite() => values.push(value),
                _ => {
                    let at = start + data.find(word).unwrap_or(0);
                    let message = match word {
                        "" => format!("there is no column {column}"),
                        _ => format!("`{word}` is not a number"),
                    };
                    let help = "one number a line; choose a column with --column";
                    let span = at..at + word.len();
                    return Err(LocatedError::at(path, text, span, "", message, help));
                }
            }
        }
        start += line.len();
    }
    Ok(values)
}

/// A record, or the output of hyperfine.
fn object(path: &str, text: &str) -> Result<Input, LocatedError> {
    #[derive(Deserialize)]
    struct Hyperfine {
        schema: Option<serde::de::IgnoredAny>,
        results: Option<Vec<Timed>>,
    }
    #[derive(Deserialize)]
    struct Timed {
        command: String,
        times: Vec<f64>,
    }
    // Anything else goes to the reader of records, which reports its faults.
    if let Ok(Hyperfine { schema: None, results: Some(results) }) = serde_json::from_str(text) {
        let of = |timed: Timed| Samples {
            place: timed.command,
            metric: "time".into(),
            unit: "s".into(),
            values: timed.times,
        };
        return Ok(Input::plain(results.into_iter().map(of).collect()));
    }
    let record = record::read(path, text)?;
    let groups = record.groups();
    let of_locks = groups.iter().filter(|g| matches!(g.metric, "acquisitions" | "throughput"));
    let acquired =
        of_locks.filter_map(|g| Some((g.place.to_owned(), Summary::of(&g.values)?.mean))).collect();
    let samples = groups.into_iter().map(|group| Samples {
        place: group.place.to_owned(),
        metric: group.metric.to_owned(),
        unit: group.unit.to_owned(),
        values: group.values,
    });
    Ok(Input {
        samples: samples.collect(),
        kind: Some(record.kind),
        origin: Origin::of(&record),
        acquired,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, column: usize) -> Vec<f64> {
        read("f", text, column).unwrap().samples[0].values.clone()
    }

    #[test]
    fn columns_comments_and_separators() {
        let text = "# x y\n1 10\n2,20 # a remark\n\n3;30\n";
        assert_eq!(values(text, 1), [1.0, 2.0, 3.0]);
        assert_eq!(values(text, 2), [10.0, 20.0, 30.0]);
        let e = read("f", text, 3).unwrap_err();
        assert!(e.line == 2 && e.message.contains("no column 3"), "{e}");
        let e = read("f", "1\n 2\n  x7\n", 1).unwrap_err();
        assert!((e.line, e.column) == (3, 3) && e.message.contains("`x7`"), "{e}");
        assert!(read("f", "NaN\n", 1).is_err());
        assert!(read("f", "# nothing\n", 1).unwrap_err().message.contains("no samples"));
    }

    #[test]
    fn other_tools_and_arrays() {
        let hyperfine = r#"{"results":[{"command":"ls","times":[0.1,0.2]}]}"#;
        assert_eq!(values(hyperfine, 1), [0.1, 0.2]);
        assert_eq!(read("f", hyperfine, 1).unwrap().samples[0].name(), "ls: time");
        assert_eq!(values("[1, 2.5]", 1), [1.0, 2.5]);
        assert!(read("f", "[1, \"x\"]", 1).unwrap_err().message.contains("invalid type"));
        assert!(read("f", "{\"x\":1}", 1).unwrap_err().message.contains("no `schema`"));
    }

    #[test]
    fn places_of_a_record_are_never_one_set() {
        let record = r#"{"schema":"overspin-record/1","version":"1","model_version":1,"kind":"bench",
            "name":"n","description":"","seed":null,"runs":[],"samples":[
            {"run":0,"where":"a","metric":"time","unit":"s","value":1},
            {"run":0,"where":"b","metric":"time","unit":"s","value":7},
            {"run":1,"where":"a","metric":"time","unit":"s","value":2}]}"#;
        let input = read("f", record, 1).unwrap();
        let sets: Vec<(String, Vec<f64>)> =
            input.samples.iter().map(|s| (s.name(), s.values.clone())).collect();
        assert_eq!(sets, [("a: time".into(), vec![1.0, 2.0]), ("b: time".into(), vec![7.0])]);
        assert_eq!(input.kind, Some(Kind::Bench));
    }
}
