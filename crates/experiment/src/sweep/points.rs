//! The points of a sweep: their labels, and the scenario of each.

use super::setup::{Curves, Setup};
use crate::Along;
use crate::file::{Head, fail};
use overspin_located::LocatedError;
use overspin_runs::catalog::names;
use overspin_runs::scenario_file::tree::Document;
use overspin_runs::scenario_file::{Axis, Dimension, Template};
use overspin_scenario::{Picos, Scenario, parse_time};
use overspin_sched::suggestion;
use std::collections::BTreeMap;

/// A point.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// Its labels, of the axes that it has.
    pub(super) at: Vec<String>,
    /// The `--set` arguments of these labels.
    sets: Vec<String>,
    /// At the published length.
    pub(super) scenario: Scenario,
    /// The number of the domain that is measured.
    pub(super) domain: usize,
}

/// All points, and the axes.
#[derive(Clone, Debug)]
pub(super) struct Points {
    template: Template,
    pub(super) axes: Vec<Axis>,
    pub(super) all: Vec<Point>,
    /// Keys that are divided by the scale.
    scaled: Vec<String>,
}

/// An index for each axis, if the point has it.
type Labels = Vec<Option<usize>>;

impl Points {
    pub(super) fn read(
        document: &Document,
        head: &Head,
        setup: &Setup,
    ) -> Result<Self, LocatedError> {
        let Some(node) = document.root.find("scenario") else {
            return fail(document, "", "`scenario` is missing".into(), "add a [scenario] table");
        };
        let template = Template::within(document, node, "scenario", &head.id);
        let (dimensions, seeds) = template.axes(names(), &[]).map_err(|e| *e)?;
        if !seeds.is_empty() {
            let help = "say how many runs each point has: `seeds = 5` at the top of the file";
            return fail(document, "scenario.vary", "an experiment varies no seed".into(), help);
        }
        if dimensions.is_empty() {
            let help = "add [[scenario.vary]] with `name`, `set` and `to`: places are its values";
            return fail(document, "scenario", "nothing is varied".into(), help);
        }
        let mut points = Self {
            template,
            axes: dimensions.iter().map(|d| d.axis.clone()).collect(),
            all: Vec::new(),
            scaled: setup.scaled.clone(),
        };
        let mut chosen: Vec<Labels> = Vec::new();
        if setup.runs.is_empty() {
            chosen = combinations(&points.every());
        }
        for (i, runs) in setup.runs.iter().enumerate() {
            let labels = points.chosen(document, &format!("setup.runs.{i}"), runs)?;
            for point in combinations(&labels) {
                if !chosen.contains(&point) {
                    chosen.push(point);
                }
            }
        }
        for labels in chosen {
            let point = points.point(document, &dimensions, &labels, setup.of.as_deref())?;
            points.all.push(point);
        }
        points.check_scale(document, head.scale)?;
        Ok(points)
    }

    /// All labels of all axes.
    fn every(&self) -> Vec<Labels> {
        self.axes.iter().map(|axis| (0..axis.values.len()).map(Some).collect()).collect()
    }

    /// The labels that `runs` names for each axis.
    fn chosen(
        &self,
        document: &Document,
        key: &str,
        runs: &BTreeMap<String, Vec<String>>,
    ) -> Result<Vec<Labels>, LocatedError> {
        for name in runs.keys() {
            self.axis(document, &format!("{key}.{name}"), name)?;
        }
        let of = |(axis, every): (&Axis, Labels)| {
            let Some(labels) = runs.get(&axis.name) else { return Ok(vec![None]) };
            if *labels == ["*"] {
                return Ok(every);
            }
            let label = |(i, label): (usize, &String)| {
                let key = format!("{key}.{}.{i}", axis.name);
                position(document, &key, "label", label, &axis.values).map(Some)
            };
            labels.iter().enumerate().map(label).collect()
        };
        self.axes.iter().zip(self.every()).map(of).collect()
    }

    /// The number of the axis of this name.
    fn axis(&self, document: &Document, key: &str, name: &str) -> Result<usize, LocatedError> {
        let names: Vec<String> = self.axes.iter().map(|axis| axis.name.clone()).collect();
        position(document, key, "axis", name, &names)
    }

    fn point(
        &self,
        document: &Document,
        dimensions: &[Dimension],
        labels: &Labels,
        of: Option<&str>,
    ) -> Result<Point, LocatedError> {
        let has = || dimensions.iter().zip(labels).enumerate();
        let has = || has().filter_map(|(axis, (d, label))| Some((axis, d, (*label)?)));
        let at: Vec<String> = has().map(|(_, d, i)| d.axis.values[i].clone()).collect();
        let sets: Vec<String> = has().flat_map(|(_, d, i)| d.sets[i].iter().cloned()).collect();
        if sets.is_empty() && at.is_empty() {
            let help = "each of [[setup.runs]] needs labels of at least one axis";
            return fail(document, "setup.runs", "runs without a label".into(), help);
        }
        let scenario = self.template.scenario(names(), &sets).or_else(|error| {
            // The argument is not in the file; the value that made it is. The scenario without values is legal.
            let legal = |n: usize| {
                let sets: Vec<String> =
                    has().take(n).flat_map(|(_, d, i)| d.sets[i].clone()).collect();
                self.template.scenario(names(), &sets).is_ok()
            };
            let wrong = (0..at.len()).rfind(|n| legal(*n)).unwrap_or(0);
            let (axis, d, i) =
                has().nth(wrong).expect("a point has the labels that it was made of");
            let to = format!("scenario.vary.{axis}.to");
            let value = format!("{to}.{i}");
            let key = if document.root.find(&value).is_some() { value } else { to };
            fail(document, &key, format!("{}: {}", d.axis.values[i], error.message), &error.help)
        })?;
        let domain = match of {
            None => 0,
            Some(of) => {
                let names: Vec<String> = scenario.domains.iter().map(|d| d.name.clone()).collect();
                let number = of.parse().ok().filter(|i| *i < names.len());
                number.map_or_else(|| position(document, "setup.of", "domain", of, &names), Ok)?
            }
        };
        Ok(Point { at, sets, scenario, domain })
    }

    /// Checks that what the scale divides is there, and that what remains is legal.
    fn check_scale(&self, document: &Document, scale: u32) -> Result<(), LocatedError> {
        for (i, key) in self.scaled.iter().enumerate() {
            let divides = |p: &Point| matches!(self.divided(p, key, 1), Ok(Some(_)));
            if !self.all.iter().any(divides) {
                let message = format!("no scenario sets `{key}` to a whole number or a time");
                let help = "name a key that the scenario sets and that makes runs longer";
                return fail(document, &format!("setup.scaled.{i}"), message, help);
            }
        }
        for point in &self.all {
            if let Err(e) = self.scenario(point, scale) {
                let message = format!("at 1/{scale} of the length: {}", e.message);
                return fail(document, "scale", message, &e.help);
            }
        }
        Ok(())
    }

    /// The argument that sets a key to 1/scale of its value; `None` if it has none that can be divided.
    fn divided(
        &self,
        point: &Point,
        key: &str,
        scale: u32,
    ) -> Result<Option<String>, Box<LocatedError>> {
        let Some(text) = self.template.value(&point.sets, key)? else { return Ok(None) };
        let part = match (text.parse::<u64>(), parse_time(&text)) {
            (Ok(number), _) => (number / u64::from(scale)).max(1).to_string(),
            (_, Ok(time)) => format!("{}ps", time.0 / u64::from(scale)),
            _ => return Ok(None),
        };
        Ok(Some(format!("{key}={part}")))
    }

    /// The scenario of a point at 1/scale of the length, and the factor for its times and counts: 1 if it has nothing
    /// that the scale divides.
    pub(super) fn scenario(
        &self,
        point: &Point,
        scale: u32,
    ) -> Result<(Scenario, f64), Box<LocatedError>> {
        if scale <= 1 {
            return Ok((point.scenario.clone(), 1.0));
        }
        let mut sets = point.sets.clone();
        for key in &self.scaled {
            sets.extend(self.divided(point, key, scale)?);
        }
        let divided = sets.len() > point.sets.len();
        let factor = if divided { f64::from(scale) } else { 1.0 };
        Ok((self.template.scenario(names(), &sets)?, factor))
    }

    /// The simulated time at which runs are cut off.
    pub(super) fn limit(&self, scale: u32) -> Picos {
        let limits = self.all.iter().filter_map(|p| Some(self.scenario(p, scale).ok()?.0.limit));
        limits.max().unwrap_or_default()
    }

    /// The plots of the file, by numbers of axes.
    pub(super) fn along(
        &self,
        document: &Document,
        curves: &[Curves],
    ) -> Result<Vec<Along>, LocatedError> {
        let one = |(i, of): (usize, &Curves)| {
            let key = |name: &str| format!("setup.curves.{i}.{name}");
            let mut only = Vec::new();
            for (axis, label) in &of.only {
                let number = self.axis(document, &key(&format!("only.{axis}")), axis)?;
                let (key, labels) = (key(&format!("only.{axis}")), &self.axes[number].values);
                position(document, &key, "label", label, labels)?;
                only.push((number, label.clone()));
            }
            let plots = of.plots.iter().map(|axis| self.axis(document, &key("plots"), axis));
            Ok(Along {
                metrics: of.metrics.clone(),
                only,
                words: self.axes.len(),
                x: self.axis(document, &key("along"), &of.along)?,
                title: of.title.clone(),
                plots: plots.collect::<Result<_, _>>()?,
            })
        };
        curves.iter().enumerate().map(one).collect()
    }
}

/// Every combination of one label of each axis, the last axis fastest.
fn combinations(axes: &[Labels]) -> Vec<Labels> {
    axes.iter().fold(vec![Vec::new()], |all, labels| {
        let longer = |point: Labels| labels.iter().map(move |l| [&point[..], &[*l]].concat());
        all.into_iter().flat_map(longer).collect()
    })
}

/// The position of a name in a list, or an error that says what there is.
pub(super) fn position(
    document: &Document,
    key: &str,
    what: &str,
    name: &str,
    names: &[String],
) -> Result<usize, LocatedError> {
    names.iter().position(|n| n == name).map_or_else(
        || {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let help = suggestion(name, "it can be", &names);
            fail(document, key, format!("there is no {what} `{name}`"), &help)
        },
        Ok,
    )
}
