//! Reads the expressions of a file: conditions of claims and formulas of figures. Judges claims by the
//! measurements.

use super::file::Claim;
use super::{Head, Kind};
use crate::Judged;
#[cfg(test)]
use overspin_claims::place;
use overspin_claims::{Condition, Fault, Formula, Index, Samples, Sentence};
use overspin_located::LocatedError;
use overspin_runs::scenario_file::tree::{At, Document, Node, Value};
use std::sync::Arc;

/// Reads the formulas of the figures, the conditions of the claims and the expressions of the set-up, which refer to what
/// this kind measures.
pub(super) fn read(
    document: &Document,
    head: &mut Head,
    kind: &mut dyn Kind,
) -> Result<(), LocatedError> {
    let mut vocabulary = kind.vocabulary();
    for figure in &head.figures {
        if let Some((simulated, value)) = figure.simulated.as_ref().zip(figure.published()) {
            vocabulary.figure(simulated, value);
        }
    }
    let vocabulary = Arc::new(vocabulary);
    for (i, figure) in head.figures.iter_mut().enumerate() {
        let formula = figure.simulated.as_ref().map(|text| Formula::parse(text, &vocabulary));
        figure.formula = formula
            .transpose()
            .map_err(|fault| located(document, &format!("figures.{i}.simulated"), fault))?;
    }
    for (i, claim) in head.claims.iter_mut().enumerate() {
        let condition = claim.holds.as_ref().map(|text| Condition::parse(text, &vocabulary));
        claim.condition = condition
            .transpose()
            .map_err(|fault| located(document, &format!("claim.{i}.holds"), fault))?;
        let sentence = claim.in_words.as_ref().map(|text| Sentence::parse(text, &vocabulary));
        claim.sentence = sentence
            .transpose()
            .map_err(|fault| located(document, &format!("claim.{i}.in_words"), fault))?;
    }
    kind.read_expressions(document, &vocabulary)
}

/// Turns a fault in the text at `key` into an error at its place in the file.
fn located(document: &Document, key: &str, fault: Fault) -> LocatedError {
    let node = document.root.find(key).unwrap_or(&document.root);
    document.error(&within(document, node, &fault), key, fault.message, fault.help)
}

/// The place in the file of a part of a text. If the text has escapes, this is the whole text.
fn within(document: &Document, node: &Node, fault: &Fault) -> At {
    let mut at = node.at.clone();
    let Value::Text(text) = &node.value else { return at };
    let raw = document.sources.get(at.source).and_then(|s| s.text.get(at.span.clone()));
    if let Some(offset) = raw.and_then(|raw| raw.find(text.as_str())) {
        let start = at.span.start + offset;
        at.span = start + fault.span.start..start + fault.span.end;
    }
    at
}

/// The claims, judged.
pub(crate) fn judged(claims: &[Claim], samples: &Samples) -> Vec<Judged> {
    let index = Index::new(samples);
    let one = |claim: &Claim| {
        let (holds, mut evidence) = match &claim.condition {
            Some(condition) => condition.judge(&index),
            None => (None, "the file does not say when it holds: add `holds = \"..\"`".into()),
        };
        if let Some(note) = &claim.note {
            evidence = format!("{evidence} ({note})");
        }
        let in_words = claim.sentence.as_ref().map(|sentence| sentence.say(&index));
        Judged { id: claim.id, text: claim.text.clone(), holds, in_words, evidence }
    };
    claims.iter().map(one).collect()
}

/// Asserts that claims know every sample and its unit: a kind states twice what it measures.
#[cfg(test)]
pub(super) fn assert_known(kind: &dyn Kind, samples: &Samples) {
    let vocabulary = kind.vocabulary();
    let names: std::collections::HashSet<(String, &str, &str)> =
        vocabulary.metrics().map(|(at, m)| (place(at), m.name, m.unit)).collect();
    assert!(!samples.rows.is_empty());
    for s in &samples.rows {
        let name = (s.place.clone(), s.metric.as_str(), s.unit.as_str());
        assert!(names.contains(&name), "{name:?}");
        assert!((s.run as usize) < samples.seeds.len(), "{s:?}");
    }
}
