//! Records of `overspin measure` with a real benchmark.

use overspin_native::bench::Warning;
use overspin_real::seconds::figures;
use overspin_real::{Failed, Measured};
use overspin_runs::record::{Kind, RealConditions, Record, Run, RunSeconds};

/// What a measurement was of, besides its runs.
#[derive(Clone, Copy, Debug)]
pub struct Of<'a> {
    /// Doubts that were known before it.
    pub before: &'a [Warning],
    /// The locks that were compared, the base first; none if it was one variant.
    pub locks: &'a [String],
    /// Seed of the order of the runs.
    pub seed: u64,
}

/// The record of a measurement, which may go on with what an earlier command kept.
#[must_use]
pub fn record(measured: &Measured, earlier: Option<Record>, of: Of<'_>) -> Record {
    let mut record = head(measured, of);
    record.warnings.extend(measured.doubts.iter().cloned());
    match &measured.failed {
        None => {}
        Some(Failed::Stopped) => record.warnings.push("it was stopped before the end".into()),
        Some(failed) => {
            // A warning is one sentence; an error has a line for each of the program's last ones.
            let lines: Vec<String> = failed.to_string().lines().map(|l| l.trim().into()).collect();
            record.warnings.push(format!("it ended early: {}", lines.join(" / ")));
        }
    }
    if let Some(earlier) = earlier {
        let runs = earlier.runs.len();
        record.warnings.push(format!("{runs} of its runs were made before an interruption"));
        (record.runs, record.samples) = (earlier.runs, earlier.samples);
        if let (Some(real), Some(earlier)) = (&mut record.real, earlier.real) {
            real.seconds = earlier.seconds;
        }
    }
    for (number, run) in (record.runs.len()..).zip(&measured.runs) {
        push(&mut record, number, run);
    }
    record
}

/// A record of the last run alone, which has this number.
#[must_use]
pub fn of_last(measured: &Measured, number: usize, of: Of<'_>) -> Record {
    let mut record = head(measured, of);
    if let Some(run) = measured.runs.last() {
        push(&mut record, number, run);
    }
    record
}

/// The record without runs.
fn head(measured: &Measured, of: Of<'_>) -> Record {
    let mut record = Record::new(Kind::Real, measured.name.clone());
    record.description.clone_from(&measured.description);
    record.seed = Some(of.seed);
    record.warnings = of.before.iter().map(ToString::to_string).collect();
    let (locks, places) = (of.locks.to_owned(), measured.places.clone());
    record.real = Some(RealConditions { locks, places, seconds: Vec::new() });
    record
}

fn push(record: &mut Record, number: usize, run: &overspin_real::Run) {
    // There are a thousand rounds at most.
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    record.runs.push(Run { number, place: run.place.clone(), ..Run::default() });
    for figure in &run.outcome.figures {
        let place = match figure.part.as_str() {
            "" => run.place.clone(),
            part => format!("{}/{part}", run.place),
        };
        record.push(number, &place, figure.metric, figure.value);
    }
    let place = format!("{}/machine", run.place);
    for (metric, value) in figures(&run.whole) {
        // What the kernel does not tell has no sample.
        record.push(number, &place, metric, value.unwrap_or(f64::NAN));
    }
    if let Some(real) = &mut record.real {
        real.seconds.push(RunSeconds {
            run: number,
            began_s: run.began_s,
            seconds: run.seconds.clone(),
        });
    }
}
