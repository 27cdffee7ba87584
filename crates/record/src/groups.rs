//! Samples by place and metric. Samples of two places or of two metrics are never in one group.

use super::Record;
use std::collections::HashMap;

/// The samples of one metric in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<'a> {
    /// The place.
    pub place: &'a str,
    /// The metric.
    pub metric: &'a str,
    /// Unit.
    pub unit: &'a str,
    /// The numbers, in the order of the record.
    pub values: Vec<f64>,
}

impl Record {
    /// The samples by place and metric, in the order in which each first occurs in the record.
    #[must_use]
    pub fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        let mut index = HashMap::new();
        for s in &self.samples {
            // Numbers of different units never belong together, whatever wrote them.
            let at = *index.entry((&s.place, &s.metric, &s.unit)).or_insert_with(|| {
                groups.push(Group {
                    place: &s.place,
                    metric: &s.metric,
                    unit: &s.unit,
                    values: Vec::new(),
                });
                groups.len() - 1
            });
            groups[at].values.push(s.value);
        }
        groups
    }
}
