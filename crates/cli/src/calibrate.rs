//! `overspin calibrate`.

use crate::args::{EXIT_CODES, Global, RecordArgs, some_time};
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::show::{self, Outputs};
use crate::{progress, signals, world};
use clap::Args;
use overspin_lab::calibrate;
use overspin_native::calibrate as native;
use overspin_scenario::Stopped;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CalibrateArgs {
    /// Time to measure, in rounds; at least three rounds are made
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "20s")]
    time: Duration,
    /// Write the machine profile, for `host.machine` of scenarios and `advise --machine` (`-`: standard output)
    #[arg(long, short, value_name = "FILE.toml")]
    output: Option<PathBuf>,
    /// Seed of the order of the measurements
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    record: RecordArgs,
}

pub(crate) fn calibrate(args: &CalibrateArgs, global: &Global) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let files = [args.output.as_ref(), wanted.json.as_ref(), wanted.csv.as_ref()];
    let outputs = Outputs::new(global, &files)?;
    let profile = outputs.open(args.output.as_ref())?;
    let records = RecordFiles::open(&outputs, wanted)?;
    let bar = progress::progress(global, 0, "{bar:40} {elapsed} elapsed, {eta} left");
    bar.set_length(args.time.as_millis() as u64);
    let over = signals::interrupted();
    let mut tell = |so_far: Duration| bar.set_position(so_far.as_millis() as u64);
    let found = native::calibrate(args.time, args.seed, &[calibrate::GUESTS], &mut tell, &over);
    bar.finish_and_clear();
    let found = found.map_err(|e| {
        Failure::environment(
            format!("cannot measure this machine: {e}"),
            "allow this process to choose its CPUs (sched_setaffinity) and to start threads",
        )
    })?;
    if let Some(profile) = profile {
        profile.finish_with(&calibrate::profile(&found))?;
    }
    records.write(|| show::made(overspin_lab::calibrate::record(&found)))?;
    outputs.report(&calibrate::report(&found))?;
    Ok(if over() { world::stopped(Stopped::Interrupted) } else { Verdict::Fine })
}
