//! The differences between two scenarios. A sweep has up to 100,000 points whose scenarios differ in a few
//! values. The record stores the first one whole, and for each other one only the differences.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Values by their place in a scenario's JSON (RFC 6901: `/domains/0/lock`); they replace the values there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Changes(BTreeMap<String, Value>);

impl Changes {
    /// The changes that turn `base` into `other`.
    #[must_use]
    pub fn between(base: &Value, other: &Value) -> Self {
        let mut changes = BTreeMap::new();
        collect(base, other, String::new(), &mut changes);
        Self(changes)
    }

    /// Applies the changes to `base`.
    ///
    /// # Errors
    /// Returns the place that `base` does not have.
    pub fn apply(&self, base: &Value) -> Result<Value, String> {
        let mut changed = base.clone();
        for (place, value) in &self.0 {
            match changed.pointer_mut(place) {
                Some(there) => there.clone_from(value),
                None => return Err(place.clone()),
            }
        }
        Ok(changed)
    }
}

fn collect(base: &Value, other: &Value, place: String, changes: &mut BTreeMap<String, Value>) {
    match (base, other) {
        (a, b) if a == b => {}
        // If the keys differ too, the whole object is replaced, so that no place can be missing or left over.
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for (key, value) in a {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                collect(value, &b[key], format!("{place}/{escaped}"), changes);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                collect(x, y, format!("{place}/{i}"), changes);
            }
        }
        _ => {
            changes.insert(place, other.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_kept_and_applying_it_gives_the_other() {
        let base = json!({"a": 1, "b": [1, {"x/y": 2, "z": 3}], "c": {"only": 1}, "d": [1]});
        let other = json!({"a": 1, "b": [1, {"x/y": 5, "z": 3}], "c": {"else": 1}, "d": [1, 2]});
        let changes = Changes::between(&base, &other);
        let places: Vec<&String> = changes.0.keys().collect();
        assert_eq!(places, ["/b/1/x~1y", "/c", "/d"]);
        assert_eq!(changes.apply(&base).unwrap(), other);
        assert_eq!(Changes::between(&base, &base), Changes::default());
    }

    #[test]
    fn a_place_that_is_not_there_is_named() {
        let changes: Changes =
            serde_json::from_value(json!({"/domains/7/lock": "ticket"})).unwrap();
        assert_eq!(changes.apply(&json!({"domains": []})), Err("/domains/7/lock".into()));
    }
}
