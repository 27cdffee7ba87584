//! Samples by what they are of. Samples of two places or of two metrics are never of one group.

use super::Record;
use std::collections::HashMap;

/// The samples of one metric in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<'a> {
    /// Where.
    pub place: &'a str,
    /// What.
    pub metric: &'a str,
    /// Unit.
    pub unit: &'a str,
    /// The numbers, in the order of the record.
    pub values: Vec<f64>,
}

impl Record {
    /// The samples by place and metric, in the order in which the record has the first of each.
    #[must_use]
    pub fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        let mut index = HashMap::new();
        for s in &self.samples {
            // Numbers of different units are not of one kind, whoever wrote them.
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
