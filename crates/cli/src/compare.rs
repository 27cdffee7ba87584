//! `overspin compare`.

use crate::args::{CompareArgs, Direction, Global};
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use overspin_lab::compare::{self, Better, Choice, Finding};
use overspin_lab::record;
use overspin_report::Block;
use serde_json::json;

pub(crate) fn compare(args: &CompareArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[args.json.as_ref(), args.csv.as_ref()])?;
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
            "schema": "overspin-compare/2", "version": env!("CARGO_PKG_VERSION"),
            "confidence": confidence, "warnings": warnings, "comparisons": all,
        });
        show::json(file, &record)?;
    }
    if let Some(file) = outputs.open(args.csv.as_ref())? {
        file.finish_with(&compare::csv(&all))?;
    }
    let mut blocks: Vec<Block> =
        warnings.iter().map(|w| Block::Text(format!("WARNING: {w}"))).collect();
    blocks.extend(compare::report(&all, confidence));
    outputs.report(&blocks)?;
    Ok(if all.iter().any(|c| c.finding == Finding::Regressed) {
        Verdict::Finding
    } else if all.iter().any(|c| c.finding == Finding::Undecided) {
        Verdict::Undecided
    } else {
        Verdict::Fine
    })
}
