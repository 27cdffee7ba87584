//! A scenario file as a template: read once, then made into many scenarios, one at a time. A sweep whose runs are made
//! in many places sends each place the template and the arguments of its points.

use super::vary::{self, Dimension};
use super::{AxisArgument, axis, document, lower, names_of, set};
use crate::tree::{Document, Node, Value};
use overspin_located::LocatedError;
use overspin_names::Names;
use overspin_scenario::Scenario;
use std::path::Path;

/// A scenario file that has been read.
#[derive(Clone, Debug)]
pub struct Template {
    /// With its `[[vary]]` tables.
    document: Document,
    /// Without them.
    base: Document,
    /// The key of the scenario in its file; empty if it is the whole file.
    path: String,
    default_name: String,
}

impl Template {
    /// Reads a text and applies the `--set` arguments in order.
    ///
    /// # Errors
    /// If it is not TOML, or an argument has no key.
    pub fn new(path: &Path, text: &str, sets: &[String]) -> Result<Self, Box<LocatedError>> {
        let (name, default_name) = names_of(path);
        Ok(Self::of(document(&name, text, sets)?, String::new(), default_name))
    }

    /// The template at `node` of a document, whose key is `path` there.
    #[must_use]
    pub fn within(document: &Document, node: &Node, path: &str, default_name: &str) -> Self {
        let document = Document { root: node.clone(), ..document.clone() };
        Self::of(document, path.to_owned(), default_name.to_owned())
    }

    fn of(document: Document, path: String, default_name: String) -> Self {
        let base = vary::without_axes(&document);
        Self { document, base, path, default_name }
    }

    /// The axes of the file and then those of `more`, which replace axes of the same key; and the seeds that the file
    /// names.
    ///
    /// # Errors
    /// If an axis is not legal. Its values are checked when scenarios are made of them.
    pub fn axes(
        &self,
        names: &Names,
        more: &[AxisArgument],
    ) -> Result<(Vec<Dimension>, Vec<u64>), Box<LocatedError>> {
        let mut document = self.document.clone();
        for argument in more {
            axis::apply(&mut document, argument)?;
        }
        Ok(vary::dimensions(names, &document, &self.path)?)
    }

    /// The scenario with these `--set` arguments, and without axes. Costs about as much as reading the text.
    ///
    /// # Errors
    /// If it is not a legal scenario.
    pub fn scenario(&self, names: &Names, sets: &[String]) -> Result<Scenario, Box<LocatedError>> {
        let document = self.with(sets)?;
        Ok(lower::scenario(names, &document, &document.root, &self.path, &self.default_name)?)
    }

    fn with(&self, sets: &[String]) -> Result<Document, LocatedError> {
        let mut document = self.base.clone();
        for argument in sets {
            set::apply(&mut document, argument)?;
        }
        Ok(document)
    }

    /// The text or whole number at a key, with these `--set` arguments; `None` if it is not set, or is something else.
    ///
    /// # Errors
    /// If an argument has no key.
    pub fn value(&self, sets: &[String], key: &str) -> Result<Option<String>, Box<LocatedError>> {
        Ok(match self.with(sets)?.root.find(key).map(|node| &node.value) {
            Some(Value::Text(text)) => Some(text.clone()),
            Some(Value::Integer(Some(number))) => Some(number.to_string()),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Loaded;
    use crate::built_in::load_text;

    const TEXT: &str = "limit = \"5ms\"\n[host]\ncores = 1\n[[domain]]\nname = \"g\"\nvcpus = 2\nlock = \"ticket\"\n\
                        workload = { kind = \"lock-loop\" }\n[[vary]]\nname = \"cores\"\nset = \"host.cores\"\nto = [\"1\", \"2\"]\n";

    #[test]
    fn scenarios_are_those_of_the_sweep() {
        let path = Path::new("t.toml");
        let more = [AxisArgument::List("domain.g.lock=mcs,ticket".into())];
        let Loaded::Sweep(sweep) = load_text(path, TEXT, &more) else { panic!("no sweep") };
        let names = Names::default();
        let template = Template::new(path, TEXT, &[]).unwrap();
        let (axes, seeds) = template.axes(&names, &more).unwrap();
        assert_eq!(axes.iter().map(|d| d.axis.clone()).collect::<Vec<_>>(), sweep.axes);
        assert!(seeds.is_empty() && sweep.points.len() == 4);
        for point in &sweep.points {
            assert_eq!(template.scenario(&names, &point.sets).unwrap(), point.scenario);
            let own: Vec<String> =
                axes.iter().zip(&point.at).flat_map(|(d, i)| d.sets[*i].clone()).collect();
            assert_eq!(own, point.sets);
        }
    }

    #[test]
    fn an_empty_part_of_a_value_leaves_its_key_as_it_is() {
        let names = Names::default();
        let text = TEXT.replace("\"host.cores\"", "\"host.cores / domain.g.vcpus\"");
        let text = text.replace("[\"1\", \"2\"]", "[\"2 /\", \"/ 3\"]");
        let template = Template::new(Path::new("t.toml"), &text, &[]).unwrap();
        let (axes, _) = template.axes(&names, &[]).unwrap();
        assert_eq!(axes[0].sets, [["host.cores=2"], ["domain.g.vcpus=3"]]);
        let value = |sets: &[String], key| template.value(sets, key).unwrap();
        assert_eq!(value(&axes[0].sets[0], "domain.g.vcpus").as_deref(), Some("2"));
        assert_eq!(value(&axes[0].sets[1], "domain.g.vcpus").as_deref(), Some("3"));
        assert_eq!(value(&axes[0].sets[1], "domain.g.workload"), None);
    }

    #[test]
    fn a_value_may_contain_a_comma() {
        let names = Names::default();
        let template = Template::new(Path::new("t.toml"), TEXT, &[]).unwrap();
        let workload = "{ kind = \"lock-loop\", section = \"7us\" }".to_owned();
        let more = [AxisArgument::Values("domain.g.workload".into(), vec![workload.clone()])];
        let (axes, _) = template.axes(&names, &more).unwrap();
        assert_eq!(axes[1].sets, [[format!("domain.g.workload={workload}")]]);
        assert_ne!(template.scenario(&names, &axes[1].sets[0]), template.scenario(&names, &[]));
        let none = template.axes(&names, &[AxisArgument::Values("host.cores".into(), Vec::new())]);
        assert!(none.unwrap_err().help.contains("at least one value"));
    }
}
