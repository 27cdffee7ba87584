//! `overspin compare`.

use crate::args::{EXIT_CODES, Global};
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use clap::{Args, ValueEnum};
use overspin_lab::compare::{self, Better, Choice, Finding};
use overspin_report::Block;
use overspin_runs::record;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CompareArgs {
    /// Records that --json wrote, .bench files, hyperfine's records, or columns of numbers (`-`: standard
    /// input)
    #[arg(required = true, num_args = 2..)]
    files: Vec<PathBuf>,
    /// Column of numbers, from 1
    #[arg(long, short = 'C', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..))]
    column: u16,
    /// Compare this metric, instead of the main ones of the kind of record; repeat it for several, `all` for
    /// all
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// Compare only places whose names contain this text; repeat it for several
    #[arg(long = "where", value_name = "TEXT")]
    places: Vec<String>,
    /// Confidence in percent
    #[arg(long, short, value_name = "PERCENT", default_value_t = 95.0, value_parser = confidence)]
    confidence: f64,
    /// The good direction: a proven change in the other direction gives exit code 1
    #[arg(long)]
    better: Option<Direction>,
    /// Print spreads, tests and a box plot for each figure
    #[arg(long, short)]
    verbose: bool,
    /// Write as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write as CSV, a line for each number (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw the means of all files side by side as SVG (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// A direction of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Direction {
    /// Less is better, as for times
    Lower,
    /// More is better, as for rates
    Higher,
}

/// A meaningful confidence.
fn confidence(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (50.0..=99.99).contains(&percent) => Ok(percent),
        _ => Err("a number from 50 to 99.99".into()),
    }
}

pub(crate) fn compare(args: &CompareArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs =
        Outputs::new(global, &[args.json.as_ref(), args.csv.as_ref(), args.svg.as_ref()])?;
    let mut files = Vec::new();
    for path in &args.files {
        let text = record::read_text(path)?;
        let name = path.display().to_string();
        let input = compare::read(&name, &text, args.column.into())?;
        files.push((name, input));
    }
    let choice = Choice { metrics: args.metric.clone(), places: args.places.clone() };
    compare::choose(&choice, &mut files)
        .map_err(|e| Failure::usage(e.to_string(), format!("the file has: {}", e.known)))?;
    let better = args.better.map(|b| match b {
        Direction::Lower => Better::Lower,
        Direction::Higher => Better::Higher,
    });
    let confidence = args.confidence / 100.0;
    let all = compare::compare(&files, confidence, better);
    if all.is_empty() {
        return Err(Failure::usage(
            "the files have no measurement in common",
            format!(
                "compare files of one kind, or choose with --metric and --where: {}",
                compare::common(&files)
            ),
        ));
    }
    let mut warnings = Vec::new();
    if let Some(((first, a), others)) = files.split_first() {
        for (other, b) in others {
            warnings.extend(compare::differences((first, &a.origin), (other, &b.origin)));
        }
    }
    if let Some(file) = outputs.open(args.json.as_ref())? {
        let record = json!({
            "confidence": confidence, "warnings": warnings, "comparisons": all,
        });
        show::json(file, "overspin-compare/2", record)?;
    }
    if let Some(file) = outputs.open(args.csv.as_ref())? {
        file.finish_with(&compare::csv(&all))?;
    }
    if let Some(file) = outputs.open(args.svg.as_ref())? {
        file.finish_with(&compare::picture(&all, confidence).0)?;
    }
    let mut blocks: Vec<Block> =
        warnings.iter().map(|w| Block::Text(format!("WARNING: {w}"))).collect();
    blocks.extend(compare::answer(&all, confidence, better));
    if args.verbose {
        blocks.extend(compare::report(&all, confidence));
    }
    outputs.report(&blocks)?;
    Ok(if all.iter().any(|c| c.finding == Finding::Regressed) {
        Verdict::Finding
    } else if all.iter().any(|c| c.finding == Finding::Undecided) {
        Verdict::Undecided
    } else {
        Verdict::Fine
    })
}
