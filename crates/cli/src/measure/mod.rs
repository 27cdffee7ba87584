//! `overspin measure`: real benchmarks, and what interrupts threads.

mod noise;
mod real;

use crate::args::{Global, MeasureArgs, Measurement};
use crate::failure::{Failure, Verdict};

pub(crate) fn measure(args: &MeasureArgs, global: &Global) -> Result<Verdict, Failure> {
    match &args.what {
        Measurement::Kernbench(args) => real::kernbench(args, global),
        Measurement::Dbench(args) => real::dbench(args, global),
        Measurement::Pgbench(args) => real::pgbench(args, global),
        Measurement::Pft(args) => real::pft(args, global),
        Measurement::Count(args) => real::count(args, global),
        Measurement::Command(args) => real::command(args, global),
        Measurement::Noise(args) => noise::noise(args, global),
    }
}
