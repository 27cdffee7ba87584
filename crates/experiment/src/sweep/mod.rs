//! A scenario with axes, measured at every point: experiments that are data alone. A place is a point of the sweep: its
//! label on each axis.

mod points;
mod setup;
mod tables;

use crate::file::{Head, fail};
use crate::{Along, Kind, KindResult, Progress, ReproduceError, Settings};
use overspin_claims::{Samples, Vocabulary};
use overspin_located::LocatedError;
use overspin_record::metric::Metric;
use overspin_report::{Block, Grid};
use overspin_runs::instruments::{Selection, Subject, Tool, tool};
use overspin_runs::record::Run;
use overspin_runs::run::VmstatRow;
use overspin_runs::run::vmstat::vmstat;
use overspin_runs::scenario_file::tree::Document;
use overspin_scenario::{Ending, Outcome, Scenario};
use points::Points;
use setup::{PublishedTrace, Setup};
use std::sync::Arc;
use tables::Formulas;

/// An experiment that varies keys of a scenario.
#[derive(Clone, Debug)]
pub struct Sweep {
    setup: Setup,
    points: Points,
    selection: Selection,
    tools: Vec<Tool>,
    along: Vec<Along>,
    tables: Vec<Formulas>,
}

/// One run, measured.
#[derive(Debug)]
struct Measured {
    /// The number of its point.
    point: usize,
    run: Run,
    /// Values, for vCPUs with a word below the place.
    values: Vec<(Option<String>, &'static Metric, f64)>,
    /// The outputs of the tools; empty unless it is the first run of its point.
    shown: Vec<Grid>,
}

impl Sweep {
    pub(super) fn parse(
        document: &Document,
        head: &Head,
        setup: Setup,
    ) -> Result<Self, LocatedError> {
        let points = Points::read(document, head, &setup)?;
        let mut selection = Selection::default();
        for (i, name) in setup.measure.iter().enumerate() {
            selection.add(name).or_else(|(message, help)| {
                fail(document, &format!("setup.measure.{i}"), message, &help)
            })?;
        }
        let mut tools = Vec::new();
        for (i, name) in setup.tools.iter().enumerate() {
            tools.push(tool(name).or_else(|(message, help)| {
                fail(document, &format!("setup.tools.{i}"), message, &help)
            })?);
        }
        let along = points.along(document, &setup.curves)?;
        Ok(Self { setup, points, selection, tools, along, tables: Vec::new() })
    }

    /// The scenario at the point with these labels, at 1/scale of the published length; `None` if no runs are made there.
    ///
    /// # Errors
    /// If it is not legal: a value may not bear the scale.
    #[must_use]
    pub fn scenario(&self, at: &[&str], scale: u32) -> Option<Result<Scenario, Box<LocatedError>>> {
        let point = self.points.all.iter().find(|p| p.at == at)?;
        Some(self.points.scenario(point, scale).map(|(scenario, _)| scenario))
    }

    fn measure(
        &self,
        point: usize,
        scenario: &Scenario,
        outcome: &Outcome,
        scale: f64,
        tools: &[Tool],
    ) -> Measured {
        let at = &self.points.all[point];
        let subject = Subject { scenario, outcome, domain: at.domain, scale };
        Measured {
            point,
            run: Run { place: at.at.join("."), ..Run::of(outcome) },
            values: self.selection.values(&subject),
            shown: tools.iter().map(|tool| (tool.show)(&subject)).collect(),
        }
    }

    /// Assembles the results of the runs, which are in the order of the points.
    fn assemble(&self, head: &Head, scale: u32, measured: Vec<Measured>) -> KindResult {
        let mut samples = Samples::default();
        let mut blocks = Vec::new();
        for one in &measured {
            let at: Vec<&str> = self.points.all[one.point].at.iter().map(String::as_str).collect();
            let mut run = samples.run(one.run.seed);
            for (below, metric, value) in &one.values {
                let below = below.as_deref();
                let place: Vec<&str> = at.iter().copied().chain(below).collect();
                run.add(&place, metric, *value);
            }
            blocks.extend(self.outputs(&at.join(", "), one));
        }
        blocks.extend(tables::blocks(&self.tables, &samples));
        let never = head.figures.iter().any(|f| f.never);
        let limited = measured.iter().any(|m| m.run.ending == Some(Ending::Limit));
        let limit = || self.points.limit(scale).seconds();
        KindResult {
            limit_s: (never || limited).then(limit),
            samples,
            runs: measured.into_iter().map(|m| m.run).collect(),
            details: blocks,
        }
    }

    /// The outputs of the tools for the first run of a point, beside the published ones.
    fn outputs(&self, at: &str, first: &Measured) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut add = |title: &str, grid: Grid| {
            blocks.push(Block::Heading(format!("{at}: {title}")));
            blocks.push(Block::Grid(grid));
        };
        if first.shown.is_empty() {
            return blocks;
        }
        for trace in self.setup.vmstat.iter().filter(|t| t.at == at) {
            add("vmstat 1, as published", vmstat(&trace.rows()));
        }
        let seed = first.run.seed.unwrap_or_default();
        for (tool, grid) in self.tools.iter().zip(&first.shown) {
            add(&format!("{}, simulated, seed {seed}", tool.title), grid.clone());
        }
        blocks
    }
}

impl PublishedTrace {
    fn rows(&self) -> Vec<VmstatRow> {
        let row = |&[r, b, bo, us, sy, id]: &[f64; 6]| VmstatRow { r, b, bo, us, sy, id };
        self.rows.iter().map(row).collect()
    }
}

impl Kind for Sweep {
    fn vocabulary(&self) -> Vocabulary {
        let mut names = Vocabulary::default();
        for point in &self.points.all {
            let at: Vec<&str> = point.at.iter().map(String::as_str).collect();
            let domain = &point.scenario.domains[point.domain];
            let metrics: Vec<_> = self.selection.of_domain(domain).map(|row| row.metric).collect();
            names.measured(&at, &metrics);
            for vcpu in 0..domain.vcpus {
                let vcpu = format!("v{vcpu}");
                let at: Vec<&str> = at.iter().copied().chain([vcpu.as_str()]).collect();
                names.measured(&at, &self.selection.of_vcpus().collect::<Vec<_>>());
            }
        }
        names
    }

    fn read_expressions(
        &mut self,
        document: &Document,
        vocabulary: &Arc<Vocabulary>,
    ) -> Result<(), LocatedError> {
        let tables = self.setup.tables.iter().enumerate();
        self.tables = tables
            .map(|(i, table)| Formulas::read(document, i, table, &self.points.axes, vocabulary))
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    fn picture(&self) -> (&str, &str) {
        self.setup.picture.as_ref().map_or(("", ""), |p| (&p.metric, &p.title))
    }

    fn along(&self) -> Vec<Along> {
        self.along.clone()
    }

    fn run(
        &self,
        head: &Head,
        settings: Settings<'_>,
        progress: Progress<'_>,
    ) -> Result<KindResult, ReproduceError> {
        let (scale, seeds) = (settings.scale(head), settings.seeds(head));
        let points = 0..self.points.all.len();
        let jobs: Vec<(usize, u64)> =
            points.flat_map(|point| seeds.iter().map(move |seed| (point, *seed))).collect();
        let measured = settings.all(&jobs, progress, |(number, seed)| {
            let point = &self.points.all[*number];
            let (scenario, factor) = self.points.scenario(point, scale)?;
            let outcome = settings.simulate(&scenario, *seed, || point.at.join(", "))?;
            let tools: &[_] = if *seed == seeds[0] { &self.tools } else { &[] };
            Ok(self.measure(*number, &scenario, &outcome, factor, tools))
        })?;
        Ok(self.assemble(head, scale, measured))
    }
}

#[cfg(test)]
mod tests;
