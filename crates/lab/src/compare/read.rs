//! Samples from files: columns of numbers, or records that this program wrote.

use super::Samples;
use crate::scenario_file::ScenarioError;
use serde_json::Value;

/// Reads the samples of a file that messages call `path`: a column of numbers (the first, or
/// `column`, from 1; what follows `#` does not count), `overspin bench --json` (of locks: acquisitions a
/// second), `overspin reproduce --json`, `hyperfine --export-json`, or a JSON array of numbers.
///
/// # Errors
/// If there are no numbers, or something else stands where one should.
pub fn read(path: &str, text: &str, column: usize) -> Result<Vec<Samples>, ScenarioError> {
    let first = text.trim_start().chars().next();
    let sets = if matches!(first, Some('{' | '[')) {
        json(path, text)?
    } else {
        vec![Samples {
            name: String::new(),
            unit: String::new(),
            values: numbers(path, text, column)?,
        }]
    };
    if sets.iter().all(|s| s.values.is_empty()) {
        let help = "numbers, one a line, or what --json writes";
        return Err(ScenarioError::at(path, text, 0..0, "", "there are no samples", help));
    }
    Ok(sets)
}

fn numbers(path: &str, text: &str, column: usize) -> Result<Vec<f64>, ScenarioError> {
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
                    return Err(ScenarioError::at(path, text, span, "", message, help));
                }
            }
        }
        start += line.len();
    }
    Ok(values)
}

fn json(path: &str, text: &str) -> Result<Vec<Samples>, ScenarioError> {
    let fail = |message: String| {
        let help =
            "known are the records of bench and reproduce, hyperfine's, and arrays of numbers";
        ScenarioError::at(path, text, 0..0, "", message, help)
    };
    let value: Value =
        serde_json::from_str(text).map_err(|e| fail(format!("this is not JSON: {e}")))?;
    let plain =
        |v: &Value| -> Option<Vec<f64>> { v.as_array()?.iter().map(Value::as_f64).collect() };
    if let Some(values) = plain(&value) {
        return Ok(vec![Samples { name: String::new(), unit: String::new(), values }]);
    }
    let word = |v: &Value| v.as_str().unwrap_or("").to_owned();
    if let Some(results) = value["results"].as_array() {
        let sets: Option<Vec<Samples>> = results
            .iter()
            .map(|r| match plain(&r["samples"]) {
                Some(values) => {
                    Some(Samples { name: word(&r["name"]), unit: word(&r["unit"]), values })
                }
                // hyperfine.
                None => plain(&r["times"]).map(|values| Samples {
                    name: word(&r["command"]),
                    unit: "s".into(),
                    values,
                }),
            })
            .collect();
        return sets.ok_or_else(|| fail("a result has no samples".into()));
    }
    if value["schema"].as_str().is_some_and(|s| s.starts_with("overspin-bench-locks/"))
        && let Some(points) = value["points"].as_array()
    {
        let sets: Option<Vec<Samples>> = points.iter().map(point).collect();
        return sets.ok_or_else(|| fail("a point has no samples".into()));
    }
    if value["schema"].as_str().is_some_and(|s| s.starts_with("overspin-reproduction/"))
        && let Some(runs) = value["runs"].as_array()
    {
        let mut sets: Vec<Samples> = Vec::new();
        for run in runs {
            let name = format!("{}, {} load: elapsed time", word(&run["lock"]), word(&run["load"]));
            let Some(elapsed) = run["elapsed_s"].as_f64() else { continue };
            match sets.iter_mut().find(|s| s.name == name) {
                Some(set) => set.values.push(elapsed),
                None => sets.push(Samples { name, unit: "s".into(), values: vec![elapsed] }),
            }
        }
        return Ok(sets);
    }
    Err(fail("this record is not known".into()))
}

/// Acquisitions a second in each run of a lock in one situation, as `overspin bench locks` writes them.
fn point(point: &Value) -> Option<Samples> {
    let rate = |run: &Value| {
        let counts = run["acquisitions"].as_array()?.iter().map(Value::as_f64);
        Some(counts.sum::<Option<f64>>()? / (run["time_ns"].as_f64()? / 1e9))
    };
    let ns = |key: &str| point[key].as_u64();
    Some(Samples {
        name: format!(
            "{}, {} threads, section {} ns, outside {} ns",
            point["lock"].as_str()?,
            ns("threads")?,
            ns("section_ns")?,
            ns("outside_ns")?
        ),
        unit: "acquisitions/s".into(),
        values: point["samples"].as_array()?.iter().map(rate).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_comments_and_separators() {
        let text = "# x y\n1 10\n2,20 # a remark\n\n3;30\n";
        assert_eq!(read("f", text, 1).unwrap()[0].values, [1.0, 2.0, 3.0]);
        assert_eq!(read("f", text, 2).unwrap()[0].values, [10.0, 20.0, 30.0]);
        let e = read("f", text, 3).unwrap_err();
        assert!(e.line == 2 && e.message.contains("no column 3"), "{e}");
        let e = read("f", "1\n 2\n  x7\n", 1).unwrap_err();
        assert!((e.line, e.column) == (3, 3) && e.message.contains("`x7`"), "{e}");
        assert!(read("f", "NaN\n", 1).is_err());
        assert!(read("f", "# nothing\n", 1).unwrap_err().message.contains("no samples"));
    }

    #[test]
    fn records() {
        let bench =
            r#"{"schema":"overspin-bench/1","results":[{"name":"a","unit":"ns","samples":[1,2]}]}"#;
        let sets = read("f", bench, 1).unwrap();
        assert_eq!((sets[0].name.as_str(), sets[0].unit.as_str()), ("a", "ns"));
        let locks = r#"{"schema":"overspin-bench-locks/1","points":[{"lock":"mutex","threads":2,
            "section_ns":100,"outside_ns":200,"samples":[{"time_ns":500000000,"acquisitions":[3,4]}]}]}"#;
        let sets = read("f", locks, 1).unwrap();
        assert_eq!(sets[0].name, "mutex, 2 threads, section 100 ns, outside 200 ns");
        // Seven in half a second.
        assert_eq!(sets[0].values, [14.0]);
        let hyperfine = r#"{"results":[{"command":"ls","times":[0.1,0.2]}]}"#;
        assert_eq!(read("f", hyperfine, 1).unwrap()[0].values, [0.1, 0.2]);
        assert_eq!(read("f", "[1, 2.5]", 1).unwrap()[0].values, [1.0, 2.5]);
        let runs = r#"{"schema":"overspin-reproduction/1","runs":[
            {"lock":"t","load":"half","elapsed_s":5.0},{"lock":"t","load":"half","elapsed_s":6.0},
            {"lock":"t","load":"optimal","elapsed_s":null}]}"#;
        let sets = read("f", runs, 1).unwrap();
        assert_eq!((sets.len(), sets[0].values.len()), (1, 2));
        assert!(read("f", "{\"x\":1}", 1).unwrap_err().message.contains("not known"));
    }
}
