//! What can be chosen: examples and experiments that come with the program, the files of the command line, and what was kept. A
//! request names one of these; no request names a path.

use crate::kept::Kept;
use crate::problem::Problem;
use overspin_experiment as experiment;
use overspin_runs::examples::EXAMPLES;
use overspin_runs::record::read_text;
use std::borrow::Cow;
use std::path::PathBuf;

/// The example that a page without files shows first: that of the tutorial.
const TUTORIAL: &str = "ticket-overcommit";

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// To be run, with settings.
    Scenario,
    /// To be run as it is.
    Experiment,
    /// To be shown.
    Record,
}

impl What {
    fn of(text: &str) -> Self {
        // Every record begins like this, and no scenario does.
        if text.trim_start().starts_with('{') {
            Self::Record
        } else if text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("kind")) {
            Self::Experiment
        } else {
            Self::Scenario
        }
    }
}

/// Something to run or to show.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Its name, which is that of the command line.
    pub(crate) name: String,
    pub(crate) what: What,
    text: Text,
}

#[derive(Clone, Debug)]
enum Text {
    BuiltIn(&'static str),
    /// Read again for each run, so that the page follows an editor.
    File(PathBuf),
}

impl Source {
    pub(crate) fn text(&self) -> Result<Cow<'static, str>, Problem> {
        match &self.text {
            Text::BuiltIn(text) => Ok(Cow::Borrowed(text)),
            Text::File(path) => Ok(Cow::Owned(read_text(path)?)),
        }
    }
}

/// All that can be chosen.
#[derive(Debug)]
pub(crate) struct Sources {
    groups: Vec<(&'static str, Vec<Source>)>,
    /// Where results are kept, if they are.
    pub(crate) kept: Option<Kept>,
}

impl Sources {
    /// The built-in ones, these files, which come first, and what is kept.
    pub(crate) fn new(files: &[PathBuf], kept: Option<Kept>) -> Result<Self, Problem> {
        let file = |path: &PathBuf| {
            let text = read_text(path)?;
            let name = path.display().to_string();
            Ok(Source { name, what: What::of(&text), text: Text::File(path.clone()) })
        };
        let files: Vec<Source> = files.iter().map(file).collect::<Result<_, Problem>>()?;
        let other = |name: &str| files.iter().all(|file| file.name != name);
        let built_in = |name: &str, text, what| Source {
            name: name.to_owned(),
            what,
            text: Text::BuiltIn(text),
        };
        let mut examples = EXAMPLES;
        examples.sort_by_key(|(name, _)| *name != TUTORIAL);
        let examples = examples.map(|(name, text)| (format!("examples/{name}.toml"), text));
        let examples = examples.iter().filter(|(name, _)| other(name));
        // Those that measure this machine would be no runs of the simulator.
        let simulated = |name: &&str| {
            experiment::built_in(name).is_some_and(|e| e.is_ok_and(|e| !e.kind.measures_threads()))
        };
        let experiments = experiment::names().into_iter().filter(simulated);
        let experiments = experiments.filter_map(|name| Some((name, experiment::text(name)?)));
        Ok(Self {
            groups: vec![
                (
                    "Examples",
                    examples.map(|(name, text)| built_in(name, text, What::Scenario)).collect(),
                ),
                (
                    "Experiments",
                    experiments
                        .map(|(name, text)| built_in(name, text, What::Experiment))
                        .collect(),
                ),
                ("Files", files.clone()),
            ],
            kept,
        })
    }

    /// The source that a page shows first: a file of the command line, or that of the tutorial.
    pub(crate) fn first(&self) -> &Source {
        let files = self.groups.iter().rev().find(|(_, sources)| !sources.is_empty());
        let own = files.filter(|(heading, _)| *heading == "Files");
        &own.unwrap_or(&self.groups[0]).1[0]
    }

    /// The groups, with their headings, and what has been kept so far.
    pub(crate) fn groups(&self) -> Vec<(&'static str, Vec<Source>)> {
        let kept = self.kept.iter().flat_map(Kept::files);
        let result = |path: PathBuf| Source {
            name: path.display().to_string(),
            what: What::Record,
            text: Text::File(path),
        };
        let kept = [("Kept results", kept.map(result).collect())];
        self.groups.iter().cloned().chain(kept).collect()
    }

    /// The source of this name.
    pub(crate) fn find(&self, name: &str) -> Result<Source, Problem> {
        let mut all = self.groups().into_iter().flat_map(|(_, sources)| sources);
        all.find(|source| source.name == name).ok_or_else(|| {
            Problem::new(
                format!("the page does not offer `{name}`"),
                "choose from its list, or start `overspin serve` with the file's name",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_testing::root;

    #[test]
    fn every_example_is_offered() {
        let files = std::fs::read_dir(root().join("examples")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut there: Vec<String> = names
            .filter(|name| name.ends_with(".toml"))
            .map(|name| format!("examples/{name}"))
            .collect();
        there.sort();
        let sources = Sources::new(&[], None).unwrap();
        let mut offered: Vec<&str> =
            sources.groups[0].1.iter().map(|source| source.name.as_str()).collect();
        offered.sort_unstable();
        assert_eq!(offered, there);
    }

    #[test]
    fn no_path_is_a_name() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own.toml");
        std::fs::write(&own, overspin_testing::SCENARIO).unwrap();
        let sources = Sources::new(std::slice::from_ref(&own), None).unwrap();
        let own = own.display().to_string();
        assert_eq!(sources.first().name, own);
        assert!(sources.find(&own).is_ok());
        for name in
            ["/etc/passwd", "examples/../Cargo.toml", "", "-", &format!("{own}/../own.toml")]
        {
            assert!(sources.find(name).unwrap_err().cause.contains("does not offer"), "{name}");
        }
        let names: Vec<&str> =
            sources.groups[1].1.iter().map(|source| source.name.as_str()).collect();
        // It measures locks on threads.
        assert!(
            !names.contains(&"2012-pv-ticketlocks") && names.contains(&"2008-spinlocks"),
            "{names:?}"
        );
    }
}
