//! `overspin compare`.

use crate::args::{CompareArgs, Direction, Global};
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use overspin_lab::compare::{self, Better, Finding};
use overspin_lab::{report, scenario_file};
use serde_json::json;

pub(crate) fn compare(args: &CompareArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[args.json.as_ref()])?;
    let mut files = Vec::new();
    for path in &args.files {
        let text = scenario_file::read_text(path)?;
        let name = path.display().to_string();
        let samples = compare::read(&name, &text, args.column.into())
            .map_err(|e| Failure::Scenario(Box::new(e)))?;
        files.push((name, samples));
    }
    let better = args.better.map(|b| match b {
        Direction::Lower => Better::Lower,
        Direction::Higher => Better::Higher,
    });
    let confidence = args.confidence / 100.0;
    let all = compare::compare(&files, confidence, better);
    if all.is_empty() {
        return Err(Failure::usage(
            "the files have no measurement in common",
            "compare files of one kind: records of the same command, or columns of numbers",
        ));
    }
    if let Some(file) = outputs.open(args.json.as_ref())? {
        let record = json!({
            "schema": "overspin-compare/1", "version": env!("CARGO_PKG_VERSION"),
            "confidence": confidence, "comparisons": all,
        });
        show::json(file, &record)?;
    }
    outputs.print(&report::text(&compare::report(&all, confidence)))?;
    Ok(if all.iter().any(|c| c.finding == Finding::Regressed) {
        Verdict::Finding
    } else if all.iter().any(|c| c.finding == Finding::Undecided) {
        Verdict::Undecided
    } else {
        Verdict::Fine
    })
}
