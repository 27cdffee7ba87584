//! Chooses the samples to compare: those of the metrics and places that were asked for, or else those of the
//! metrics that a person would call the result of such a measurement.

use super::{Input, Samples};

/// Most names that a message lists.
const MOST_NAMES: usize = 24;
/// Asks for all metrics.
const ALL: &str = "all";

/// What the user asks for.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Metrics by name, or `all`; empty means the main ones of the first file's kind.
    pub metrics: Vec<String>,
    /// Parts of places; empty means all places.
    pub places: Vec<String>,
}

/// The first file does not have what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} has no {what} `{wish}`")]
pub struct NothingChosen {
    /// The file.
    pub file: String,
    /// `metric` or `place`.
    pub what: &'static str,
    /// What was asked for.
    pub wish: String,
    /// What the file has, in words.
    pub known: String,
}

/// Keeps in all files only what is asked for.
///
/// # Errors
/// If the first file does not have it.
pub fn choose(choice: &Choice, files: &mut [(String, Input)]) -> Result<(), NothingChosen> {
    let Some((file, first)) = files.first() else { return Ok(()) };
    let metrics = metrics(choice, file, first)?;
    let kept = |s: &Samples| metrics.as_ref().is_none_or(|wanted| wanted.contains(&s.metric));
    for wish in &choice.places {
        let there = |s: &&Samples| kept(s) && s.place.contains(wish.as_str());
        if !first.samples.iter().any(|s| there(&s)) {
            let places = first.samples.iter().filter(|s| kept(s)).map(|s| s.place.as_str());
            return Err(nothing(file, "place", wish, places));
        }
    }
    let place = |s: &Samples| {
        choice.places.is_empty() || choice.places.iter().any(|wish| s.place.contains(wish.as_str()))
    };
    for (_, input) in files {
        input.samples.retain(|s| kept(s) && place(s));
    }
    Ok(())
}

/// The names of the metrics to keep; `None` for all.
fn metrics(
    choice: &Choice,
    file: &str,
    first: &Input,
) -> Result<Option<Vec<String>>, NothingChosen> {
    let has = |name: &str| first.samples.iter().any(|s| s.metric == name);
    if choice.metrics.is_empty() {
        let main = first.kind.map_or(&[][..], |kind| kind.main_metrics());
        let main: Vec<String> = main.iter().filter(|m| has(m)).map(|m| (*m).to_owned()).collect();
        // A record without a main metric has something else to compare.
        return Ok(Some(main).filter(|m| !m.is_empty()));
    }
    if choice.metrics.iter().any(|wish| wish == ALL) {
        return Ok(None);
    }
    match choice.metrics.iter().find(|wish| !has(wish)) {
        Some(wish) => {
            let names = first.samples.iter().map(|s| s.metric.as_str());
            Err(nothing(file, "metric", wish, names))
        }
        None => Ok(Some(choice.metrics.clone())),
    }
}

fn nothing<'a>(
    file: &str,
    what: &'static str,
    wish: &str,
    names: impl Iterator<Item = &'a str>,
) -> NothingChosen {
    let known = listed(names.map(str::to_owned));
    NothingChosen { file: file.into(), what, wish: wish.into(), known }
}

/// Names as a list, each once, with the number of names left out.
fn listed(names: impl Iterator<Item = String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for name in names {
        if !name.is_empty() && !known.contains(&name) {
            known.push(name);
        }
    }
    let more = known.len().saturating_sub(MOST_NAMES);
    known.truncate(MOST_NAMES);
    let list = known.join(", ");
    match (list.is_empty(), more) {
        (true, _) => "a plain column, without names".into(),
        (false, 0) => list,
        (false, more) => format!("{list}, and {more} more"),
    }
}

/// What each file has, for a message about files with nothing in common.
#[must_use]
pub fn common(files: &[(String, Input)]) -> String {
    let of = |(file, input): &(String, Input)| {
        format!("{file} has {}", listed(input.samples.iter().map(Samples::name)))
    };
    files.iter().map(of).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_runs::record::Kind;

    fn file(kind: Option<Kind>) -> Vec<(String, Input)> {
        let of = |place: &str, metric: &str| Samples {
            place: place.into(),
            metric: metric.into(),
            unit: String::new(),
            values: vec![1.0],
        };
        let samples = vec![of("a.x", "throughput"), of("a.y", "throughput"), of("a.x", "fairness")];
        vec![("f".into(), Input { kind, ..Input::plain(samples) })]
    }

    fn chosen(kind: Option<Kind>, metrics: &[&str], places: &[&str]) -> Result<usize, String> {
        let owned = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect();
        let choice = Choice { metrics: owned(metrics), places: owned(places) };
        let mut files = file(kind);
        choose(&choice, &mut files).map_err(|e| format!("{e}: {}", e.known))?;
        Ok(files[0].1.samples.len())
    }

    #[test]
    fn main_metrics_of_a_kind_unless_others_are_asked_for() {
        assert_eq!(chosen(Some(Kind::Sweep), &[], &[]), Ok(2));
        assert_eq!(chosen(Some(Kind::Bench), &[], &[]), Ok(3), "all are");
        assert_eq!(chosen(Some(Kind::Noise), &[], &[]), Ok(3), "it has none of its own");
        assert_eq!(chosen(None, &[], &[]), Ok(3));
        assert_eq!(chosen(Some(Kind::Sweep), &["all"], &[]), Ok(3));
        assert_eq!(chosen(Some(Kind::Sweep), &["fairness"], &["a.x"]), Ok(1));
        assert_eq!(chosen(Some(Kind::Sweep), &[], &["y"]), Ok(1));
    }

    #[test]
    fn a_wish_that_is_not_there_is_answered_with_what_is() {
        let e = chosen(Some(Kind::Sweep), &["speed"], &[]).unwrap_err();
        assert_eq!(e, "f has no metric `speed`: throughput, fairness");
        let e = chosen(Some(Kind::Sweep), &["fairness"], &["y"]).unwrap_err();
        assert_eq!(e, "f has no place `y`: a.x");
    }
}
