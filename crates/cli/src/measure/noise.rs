//! `overspin measure noise`.

use crate::args::{EXIT_CODES, Global, RecordArgs, cpus, some_time, time};
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress;
use crate::show::{self, Outputs};
use clap::Args;
use overspin_lab::measure;
use overspin_native::measure as native;
use overspin_native::measure::{NoiseError, NoisePlan};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct NoiseArgs {
    /// Time to measure, on all CPUs at once, after a warm-up of a tenth of it
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "10s")]
    duration: Duration,
    /// Length of a quantum of work, 1us to 1ms
    #[arg(long, value_name = "TIME", value_parser = quantum, default_value = "15us")]
    quantum: Duration,
    /// CPUs to measure, for example 0,2-3; default: all that this process may use
    #[arg(long, value_name = "CPUS", value_delimiter = ',', value_parser = cpus)]
    cpus: Vec<RangeInclusive<usize>>,
    /// Write the [host.noise] table of a scenario (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    toml: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
    /// Write the counts of all gaps by CPU, kind and length as CSV (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    raw: Option<PathBuf>,
}

/// A quantum that is long compared with the clock's cost, and short compared with the gaps to distinguish.
fn quantum(text: &str) -> Result<Duration, String> {
    let quantum = time(text)?;
    if (Duration::from_micros(1)..=Duration::from_millis(1)).contains(&quantum) {
        Ok(quantum)
    } else {
        Err("a time from 1us to 1ms".into())
    }
}

pub(super) fn noise(args: &NoiseArgs, global: &Global) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let files = [args.toml.as_ref(), args.raw.as_ref()];
    let all = [files[0], files[1], wanted.json.as_ref(), wanted.csv.as_ref()];
    let outputs = Outputs::new(global, &all)?;
    let [toml, raw] = files.map(|path| outputs.open(path));
    let (toml, raw) = (toml?, raw?);
    let records = RecordFiles::open(&outputs, wanted)?;
    let plan = NoisePlan {
        cpus: args.cpus.iter().cloned().flatten().collect(),
        quantum: args.quantum,
        duration: args.duration,
    };
    let bar = progress::progress(global, 0, "{bar:40} {elapsed} elapsed, {eta} left");
    let mut tell = |passed: Duration, whole: Duration| {
        bar.set_length(whole.as_millis() as u64);
        bar.set_position(passed.as_millis() as u64);
    };
    // An invisible bar would only add noise.
    let tell: Option<&mut dyn FnMut(Duration, Duration)> =
        if bar.is_hidden() { None } else { Some(&mut tell) };
    let measured = native::noise(&plan, tell);
    bar.finish_and_clear();
    let measured = measured.map_err(|e| failure(&e))?;
    if let Some(file) = toml {
        file.finish_with(&measure::noise_table(&measured))?;
    }
    if let Some(file) = raw {
        file.finish_with(&measure::noise_csv(&measured))?;
    }
    records.write(|| show::made(overspin_lab::measure::record(&measured)))?;
    outputs.report(&measure::noise(&measured))?;
    Ok(Verdict::Fine)
}

fn failure(error: &NoiseError) -> Failure {
    let remedy = match error {
        NoiseError::Pin { allowed, .. } if !allowed.is_empty() => {
            let cpus: Vec<u64> = allowed.iter().map(|cpu| *cpu as u64).collect();
            let cpus = overspin_stats::ranges(&cpus);
            format!(
                "use --cpus to choose CPUs that this process may use ({cpus}), or let it use more"
            )
        }
        NoiseError::Pin { .. } | NoiseError::Cpus(_) => {
            "allow this process to set its affinity (sched_setaffinity)".into()
        }
        NoiseError::Thread { .. } => {
            "raise the limit of threads, or choose fewer CPUs with --cpus".into()
        }
    };
    Failure::environment(error.to_string(), remedy)
}
