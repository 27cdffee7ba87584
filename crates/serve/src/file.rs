//! A state as a scenario file: the source with the settings in it.

use crate::problem::Problem;
use crate::sources::What;
use crate::state::{Side, State};
use overspin_runs::scenario_file;
use toml::{Table, Value};

/// The name of the file, without a folder.
pub(crate) fn name(state: &State) -> String {
    let name = state.source.name.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".toml").or(name.strip_suffix(".json")).unwrap_or(name);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    name.chars().take(60).map(plain).collect()
}

/// The text of the file of one side.
pub(crate) fn text(state: &State, side: Side) -> Result<String, Problem> {
    let text = state.source.text()?;
    let command = state.command(side);
    let heading = format!("# The same as: {command}\n\n");
    let is_experiment = state.source.what == What::Experiment;
    if state.source.what == What::Record {
        let name = &state.source.name;
        let loaded = overspin_runs::record::load_text(name.as_ref(), &text, &[], &[])?.loaded;
        let scenario_file::Loaded::One(scenario) = loaded else {
            return Err(Problem::new(
                format!("{name} is a record of many runs, which has no scenario file"),
                format!("overspin run {name} makes them again"),
            ));
        };
        return Ok(heading + &scenario_file::toml(&scenario));
    }
    let seeds = state.seeds.filter(|n| *n > 1 || is_experiment);
    if state.settings(side).is_empty() && state.vary.is_none() && seeds.is_none() {
        return Ok(text.into_owned());
    }
    let unreadable = |error| Problem::new(error, "this is a fault in overspin");
    let mut table: Table = text.parse().map_err(|e: toml::de::Error| unreadable(e.to_string()))?;
    for (key, value) in state.settings(side) {
        put(&mut table, key, typed(value));
    }
    match seeds {
        Some(seeds) if is_experiment => {
            table.insert("seeds".into(), Value::Integer(seeds.into()));
        }
        Some(seeds) => {
            let first = table.get("seed").and_then(Value::as_integer).unwrap_or(1);
            let seeds = (first..first.saturating_add(seeds.into())).map(|n| n.to_string());
            vary(&mut table, "seed", seeds.collect());
        }
        None => {}
    }
    if let Some((key, values)) = state.vary.as_ref().and_then(|vary_| vary_.split_once('=')) {
        vary(&mut table, key, values.split(',').map(str::to_owned).collect());
    }
    let text = toml::to_string(&table).map_err(|error| unreadable(error.to_string()))?;
    Ok(heading + &text)
}

/// A value as `--set` reads it: TOML if it is that, or else a text.
fn typed(text: &str) -> Value {
    match text.parse::<i64>() {
        Ok(number) => Value::Integer(number),
        Err(_) => Value::String(text.to_owned()),
    }
}

/// Puts a value at a dotted path, in which elements of arrays have numbers or names.
fn put(table: &mut Table, path: &str, value: Value) {
    let Some((key, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return;
    };
    match table.entry(key.to_owned()).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => put(inner, rest, value),
        Value::Array(all) => {
            let Some((which, rest)) = rest.split_once('.') else { return };
            let named = |one: &Value| one.get("name").and_then(Value::as_str) == Some(which);
            let place = which.parse().ok().or_else(|| all.iter().position(named));
            if let Some(Value::Table(inner)) = place.and_then(|i: usize| all.get_mut(i)) {
                put(inner, rest, value);
            }
        }
        _ => {}
    }
}

/// Adds a `[[vary]]` table.
fn vary(table: &mut Table, key: &str, values: Vec<String>) {
    let to = Value::Array(values.into_iter().map(Value::String).collect());
    // The last word of a key is its name in reports, as `-L` has it.
    let name = Value::String(key.rsplit('.').next().unwrap_or(key).to_owned());
    let axis = Table::from_iter([
        ("name".to_owned(), name),
        ("set".to_owned(), Value::String(key.to_owned())),
        ("to".to_owned(), to),
    ]);
    if let Value::Array(all) = table.entry("vary").or_insert_with(|| Value::Array(Vec::new())) {
        all.push(Value::Table(axis));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Sources;
    use overspin_runs::scenario_file::{AxisArgument, Loaded, load_text};
    use std::path::Path;

    fn state(query: &str) -> State {
        State::read(query, &Sources::new(&[], None).unwrap()).unwrap().0
    }

    /// The scenarios of a file, with the values on its axes.
    fn scenarios(loaded: Loaded) -> Vec<String> {
        match loaded {
            Loaded::One(scenario) => vec![scenario_file::toml(&scenario)],
            Loaded::Seeds(scenario, seeds) => {
                vec![scenario_file::toml(&scenario), format!("{seeds:?}")]
            }
            Loaded::Sweep(sweep) => {
                let points = sweep.points.iter().map(|point| scenario_file::toml(&point.scenario));
                points.chain([format!("{:?} {:?}", sweep.axes, sweep.seeds)]).collect()
            }
        }
    }

    #[test]
    fn the_file_says_what_the_command_says() {
        for query in [
            "scenario=examples/ticket-overcommit.toml",
            "scenario=examples/ticket-overcommit.toml&set=host.cores=4&set=domain.guest.workload.section=1us",
            "scenario=examples/ticket-overcommit.toml&set=domain.guest.lock=mcs&vary=host.scheduler=every+scheduler",
            "scenario=examples/io-beside-hog.toml&set=host.scheduler=credit2&set=limit=1s",
            "scenario=examples/overcommit-curves.toml&set=domain.guest.vcpus=8",
        ] {
            let state = state(query);
            let (name, source) = (Path::new("t.toml"), state.source.text().unwrap());
            let axes = state.vary.clone().map(AxisArgument::List);
            let command =
                load_text(name, &source, &state.sets(Side::First), &Vec::from_iter(axes)).unwrap();
            let text = text(&state, Side::First).unwrap();
            let file = load_text(name, &text, &[], &[]).unwrap();
            assert_eq!(scenarios(file), scenarios(command), "{text}");
        }
    }

    #[test]
    fn seeds_are_in_the_file() {
        let of = |query| text(&state(query), Side::First).unwrap();
        let text = of("scenario=examples/ticket-overcommit.toml&seeds=2&set=seed=3");
        let Loaded::Seeds(_, seeds) = load_text(Path::new("t"), &text, &[], &[]).unwrap() else {
            panic!("{text}")
        };
        assert_eq!(seeds, [3, 4]);
        let text = of("scenario=2008-spinlocks&seeds=2");
        assert_eq!(overspin_experiment::parse("t", &text).unwrap().head.seeds, 2);
        assert_eq!(
            of("scenario=2008-spinlocks"),
            overspin_experiment::text("2008-spinlocks").unwrap()
        );
    }

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(name(&state("scenario=examples/lock-map.toml")), "lock-map");
        assert_eq!(name(&state("scenario=2008-spinlocks")), "2008-spinlocks");
    }
}
