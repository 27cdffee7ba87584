//! `overspin bench`.

use crate::args::{BenchArgs, Benchmark, Global};
use crate::failure::{Failure, Verdict};
use crate::show::{self, Outputs};
use overspin_lab::bench;
use overspin_lab::report::{Block, text};
use serde_json::json;

pub(crate) fn bench(args: &BenchArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[args.json.as_ref()])?;
    let file = outputs.open(args.json.as_ref())?;
    let (name, results) = match args.what {
        Benchmark::Sim => ("sim", bench::sim()),
    };
    if let Some(file) = file {
        let record = json!({
            "schema": "overspin-bench/1", "version": env!("CARGO_PKG_VERSION"),
            "bench": name, "results": results,
        });
        show::json(file, &record)?;
    }
    outputs.print(&text(&[Block::Grid(bench::table(&results))]))?;
    let missed = results.iter().any(|r| r.target.is_some_and(|t| r.value < t));
    Ok(if missed { Verdict::Finding } else { Verdict::Fine })
}
