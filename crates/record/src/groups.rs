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
    /// The samples by place and metric, in the order in which each first occurs in the record. Those of a real
    /// benchmark, whose runs are shuffled, have the order of its places.
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
        if let Some(real) = &self.real {
            groups.sort_by_key(|group| {
                // What follows the slash is a part of a place.
                let whole = group.place.split('/').next();
                real.places.iter().position(|place| Some(place.as_str()) == whole)
            });
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, RealConditions};

    #[test]
    fn the_places_of_a_real_benchmark_have_its_order() {
        let mut record = Record::new(Kind::Real, "pgbench");
        for place in ["clients-16", "clients-2/machine", "clients-2", "clients-16/machine"] {
            record.push_as(0, place, "rate", "1/s", 1.0);
        }
        let places = |record: &Record| {
            record.groups().iter().map(|g| g.place.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(places(&record)[0], "clients-16", "the order of the samples");
        let order = ["clients-2", "clients-16"].map(str::to_owned).into();
        record.real =
            Some(RealConditions { locks: Vec::new(), places: order, seconds: Vec::new() });
        let expected = ["clients-2/machine", "clients-2", "clients-16", "clients-16/machine"];
        assert_eq!(places(&record), expected);
    }
}
