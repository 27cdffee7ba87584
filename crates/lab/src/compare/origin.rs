//! Where two records come from, and whether that may be what makes them differ.

use crate::environment::Environment;
use serde::Deserialize;

/// What a record says of its making; columns of numbers and other tools' files say nothing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Origin {
    schema: String,
    version: Option<String>,
    model_version: Option<u32>,
    environment: Option<Environment>,
}

/// The origin that the text of a file tells, if any.
#[must_use]
pub fn origin(text: &str) -> Origin {
    let origin: Origin = serde_json::from_str(text).unwrap_or_default();
    // What is compared of these is simulated time, which no machine changes.
    let simulated = origin.schema.starts_with("overspin-reproduction");
    Origin { environment: origin.environment.filter(|_| !simulated), ..origin }
}

/// In words, each way in which `other` was not made as `first` was, as far as both say.
#[must_use]
pub fn differences((first, a): (&str, &Origin), (other, b): (&str, &Origin)) -> Vec<String> {
    let mut all = Vec::new();
    if let (Some(one), Some(two)) = (&a.environment, &b.environment)
        && !one.same_machine(two)
    {
        let (one, two) = (one.words(), two.words());
        all.push(format!("{first} and {other} are of different machines: {one}; and {two}."));
    }
    if let (Some(one), Some(two)) = (a.model_version, b.model_version)
        && one != two
    {
        all.push(format!(
            "{first} and {other} were simulated by different models, of version {one} and {two}."
        ));
    }
    if let (Some(one), Some(two)) = (&a.version, &b.version)
        && one != two
    {
        all.push(format!(
            "{first} and {other} were written by different versions of the program, {one} and {two}."
        ));
    }
    let debug = |o: &Origin| o.environment.as_ref().map(|e| e.debug_build);
    if debug(a).zip(debug(b)).is_some_and(|(one, two)| one != two) {
        all.push(format!("One of {first} and {other} is of a debug build."));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_said_and_only_if_both_say_it() {
        let here = Environment::here();
        let other = Environment { cpu: Some("another".into()), ..here.clone() };
        let record = |model: u32, e: &Environment| {
            let text =
                serde_json::json!({ "version": "1", "model_version": model, "environment": e });
            origin(&text.to_string())
        };
        let (a, b) = (record(1, &here), record(2, &other));
        assert_eq!(differences(("a", &a), ("b", &a)), [""; 0]);
        let said = differences(("a", &a), ("b", &b));
        assert!(
            said.len() == 2 && said[0].contains("another") && said[1].contains("1 and 2"),
            "{said:?}"
        );
        assert_eq!(differences(("a", &a), ("b", &origin("1\n2\n"))), [""; 0]);
    }
}
