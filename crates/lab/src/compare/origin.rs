//! Where two records come from, and whether their origins may explain their differences.

use overspin_record::environment::Environment;
use overspin_runs::record::Record;

/// What a record says about its making. Columns of numbers and other tools' files say nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    version: Option<String>,
    model_version: Option<u32>,
    /// The world of the runs, if there are runs of a scenario.
    world: Option<String>,
    environment: Option<Environment>,
}

impl Origin {
    /// What a record says about its making.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let simulated = record.is_simulated();
        let world = record.world.clone().or_else(|| simulated.then(|| "sim".into()));
        Self {
            version: Some(record.version.clone()),
            model_version: Some(record.model_version).filter(|_| record.world.is_none()),
            world,
            // Simulated runs are compared in simulated time, which does not depend on the machine.
            environment: record.environment.clone().filter(|_| !simulated),
        }
    }
}

/// Says in words how the making of `other` differs from that of `first`, as far as both say.
#[must_use]
pub fn differences((first, a): (&str, &Origin), (other, b): (&str, &Origin)) -> Vec<String> {
    let mut all = Vec::new();
    if let (Some(one), Some(two)) = (&a.environment, &b.environment)
        && !one.same_machine(two)
    {
        let (one, two) = (one.words(), two.words());
        all.push(format!("{first} and {other} are of different machines: {one}; and {two}."));
    }
    if let (Some(one), Some(two)) = (&a.world, &b.world)
        && one != two
    {
        all.push(format!(
            "{first} and {other} were made in different worlds, `{one}` and `{two}`: the worlds may be the whole \
             difference."
        ));
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
        let record = |model: u32, e: &Environment| Origin {
            version: Some("1".into()),
            model_version: Some(model),
            world: None,
            environment: Some(e.clone()),
        };
        let (a, b) = (record(1, &here), record(2, &other));
        assert_eq!(differences(("a", &a), ("b", &a)), [""; 0]);
        let said = differences(("a", &a), ("b", &b));
        assert!(
            said.len() == 2 && said[0].contains("another") && said[1].contains("1 and 2"),
            "{said:?}"
        );
        assert_eq!(differences(("a", &a), ("b", &Origin::default())), [""; 0]);
    }
}
