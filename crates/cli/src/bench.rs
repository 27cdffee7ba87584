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
    let bar = show::progress(global, 0, "{bar:40} {pos} of {len} runs, {elapsed} elapsed");
    let mut tell = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let fault = |e: &dyn std::fmt::Display| {
        Failure::environment(e.to_string(), "this is a fault of the program")
    };
    let (name, results) = match args.what {
        Benchmark::Sim => ("sim", bench::sim(&mut tell).map_err(|e| fault(&e))),
        Benchmark::Sched => ("sched", bench::sched(&mut tell).map_err(|e| fault(&e))),
    };
    bar.finish_and_clear();
    let results = results?;
    if let Some(file) = file {
        let record = json!({
            "schema": "overspin-bench/1", "version": env!("CARGO_PKG_VERSION"),
            "bench": name, "results": results,
        });
        show::json(file, &record)?;
    }
    outputs.print(&text(&[Block::Grid(bench::table(&results))]))?;
    // A slower machine is no fault: the table says what was not reached.
    Ok(Verdict::Fine)
}
