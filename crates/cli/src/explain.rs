//! `overspin explain`.

use crate::args::{ExplainArgs, Global};
use crate::failure::{Failure, Verdict};
use crate::progress::{Meter, RunsMeter};
use crate::show::Outputs;
use overspin_lab::explain::{self, Worst};
use overspin_lab::parallel::ParallelError;
use overspin_lab::record::{self, Kind, Record};
use overspin_lab::report::{self, Block};
use overspin_lab::scenario_file::{self, Loaded, Sweep};
use overspin_lab::sweep::{self, Settings, SweepError};
use overspin_lab::way::Way;
use overspin_scenario::{Outcome, Scenario};

pub(crate) fn explain(args: &ExplainArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[args.markdown.as_ref()])?;
    let text = scenario_file::read_text(&args.result)?;
    let what = What { name: args.result.display().to_string(), global };
    // Every record begins like this, and no scenario does.
    let blocks = if text.trim_start().starts_with('{') {
        let record = record::read(&what.name, &text).map_err(|e| Failure::Scenario(Box::new(e)))?;
        what.record(&record)?
    } else {
        let loaded = scenario_file::load_text(&args.result, &text, &[], &[]);
        what.scenario(loaded.map_err(Failure::Scenario)?)?
    };
    if let Some(markdown) = outputs.open(args.markdown.as_ref())? {
        markdown.finish_with(&report::markdown(&blocks))?;
    }
    outputs.report(&blocks)?;
    Ok(Verdict::Fine)
}

/// The input to explain.
struct What<'a> {
    name: String,
    global: &'a Global,
}

impl What<'_> {
    fn record(&self, record: &Record) -> Result<Vec<Block>, Failure> {
        match record.kind {
            Kind::Run => {
                let outcome = record.runs.first().and_then(|run| run.outcome.as_ref());
                let Some((scenario, outcome)) = record.scenario.as_ref().zip(outcome) else {
                    let name = &self.name;
                    return Err(Failure::usage(
                        format!("{name}: this record of a run has no scenario or no outcome"),
                        "write it again with `overspin run --json`",
                    ));
                };
                let mut blocks = explain::run(scenario, outcome, record.trace.as_deref());
                match not_again(record) {
                    Some(why) => blocks.push(why),
                    None => blocks.extend(self.drawing(scenario, outcome)?),
                }
                Ok(blocks)
            }
            Kind::Seeds | Kind::Sweep => self.many(record),
            Kind::Reproduction => Ok(explain::reproduction(record)),
            Kind::Bench
            | Kind::BenchLocks
            | Kind::Schedbench
            | Kind::Noise
            | Kind::Calibration
            | Kind::Validation => Ok(explain::samples(record)),
        }
    }

    /// The causes in all runs, and the story of the worst run, which is repeated.
    fn many(&self, record: &Record) -> Result<Vec<Block>, Failure> {
        let mut blocks = explain::many(record);
        if let Some(why) = not_again(record) {
            blocks.push(why);
            return Ok(blocks);
        }
        let worst = explain::worst(record).map_err(|message| {
            Failure::usage(format!("{}: {message}", self.name), "write the record again")
        })?;
        if let Some(worst) = worst {
            let outcome = self.run(&worst.scenario, worst.seed)?;
            blocks.push(Block::Heading(format!("The worst run: {}", worst.name)));
            blocks.extend(other_run(&worst, &outcome, record));
            // Its title is already printed.
            blocks.extend(explain::run(&worst.scenario, &outcome, None).into_iter().skip(1));
            blocks.extend(self.drawing(&worst.scenario, &outcome)?);
        }
        Ok(blocks)
    }

    /// Runs a scenario, with its own seed or the first of several, and explains it.
    fn scenario(&self, loaded: Loaded) -> Result<Vec<Block>, Failure> {
        let (scenario, seed) = match loaded {
            // With several seeds, the first is run; the report names it.
            Loaded::Seeds(scenario, seeds) => {
                let seed = seeds.first().copied().unwrap_or(scenario.seed);
                (scenario, seed)
            }
            Loaded::One(scenario) => {
                let seed = scenario.seed;
                (scenario, seed)
            }
            Loaded::Sweep(sweep) => return self.sweep(&sweep),
        };
        let outcome = self.run(&scenario, seed)?;
        let mut blocks = explain::run(&scenario, &outcome, None);
        blocks.extend(self.drawing(&scenario, &outcome)?);
        Ok(blocks)
    }

    /// The longest wait as a drawing, for which the run is repeated.
    fn drawing(&self, scenario: &Scenario, outcome: &Outcome) -> Result<Vec<Block>, Failure> {
        let meter = Meter::new(self.global, scenario.limit);
        let result = explain::drawing(scenario, outcome, Way::default(), &|at| meter.at(at));
        meter.end();
        result.map_err(|e| Failure::refused(&self.name, &e))
    }

    /// Runs a sweep, and explains its record.
    fn sweep(&self, sweep: &Sweep) -> Result<Vec<Block>, Failure> {
        let meter = RunsMeter::new(self.global, "", 0);
        let tell = |done: usize, all: usize| meter.at(done, all);
        let measured = sweep::run(sweep, Settings::default(), &tell);
        meter.end();
        let measured = measured.map_err(|e| match &e {
            SweepError::Run(ParallelError::Sim { cause, .. }) => {
                Failure::refused_as(&self.name, cause, &e)
            }
            _ => Failure::environment(format!("{}: {e}", self.name), "vary less"),
        })?;
        self.many(&record::sweep(sweep, &measured, &[], None))
    }

    fn run(&self, scenario: &Scenario, seed: u64) -> Result<Outcome, Failure> {
        let meter = Meter::new(self.global, scenario.limit);
        let result = Way::default().run(scenario, seed, &mut (), &|at| meter.at(at));
        meter.end();
        result.map_err(|e| Failure::refused(&self.name, &e))
    }
}

/// Why no run of the record is made again to look at it, if none can be.
fn not_again(record: &Record) -> Option<Block> {
    record.unrepeatable().map(|why| {
        Block::Text(format!(
            "No run is repeated for its longest wait: {why}. All of this is from the record."
        ))
    })
}

/// A warning, if the repeated run differs from the one in the record.
fn other_run(worst: &Worst, outcome: &Outcome, record: &Record) -> Option<Block> {
    let same = worst.trace_hash.is_none_or(|hash| hash == outcome.trace_hash);
    (!same && outcome.ending.is_sound()).then(|| {
        Block::Text(format!(
            "WARNING: the repeated run differs: the record was written by version {}, whose model is {}.",
            record.version, record.model_version
        ))
    })
}
