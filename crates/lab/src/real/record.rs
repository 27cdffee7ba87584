//! Records of `overspin measure` with a real benchmark.

use crate::metric::real;
use overspin_native::bench::Warning;
use overspin_real::seconds::Second;
use overspin_real::{Failed, Measured};
use overspin_runs::record::{Kind, RealConditions, Record, Run, RunSeconds};
use overspin_scenario::Metric;

/// The record of a measurement. `before` are doubts that were known before it, and `locks` are those that were compared, the base first; none if it was one variant.
#[must_use]
pub fn record(measured: &Measured, before: &[Warning], locks: &[String], seed: u64) -> Record {
    let mut record = Record::new(Kind::Real, measured.name.clone());
    record.description.clone_from(&measured.description);
    record.seed = Some(seed);
    record.warnings = before.iter().map(ToString::to_string).collect();
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
    let mut seconds = Vec::new();
    for (number, run) in (0..).zip(&measured.runs) {
        record.runs.push(Run { number, place: run.place.clone(), ..Run::default() });
        for figure in &run.outcome.figures {
            let place = match figure.part.as_str() {
                "" => run.place.clone(),
                part => format!("{}/{part}", run.place),
            };
            record.push(number, &place, figure.metric, figure.value);
        }
        let place = format!("{}/machine", run.place);
        for (metric, value) in of_machine(&run.whole) {
            // What the kernel does not tell has no sample.
            record.push(number, &place, metric, value.unwrap_or(f64::NAN));
        }
        seconds.push(RunSeconds {
            run: number,
            began_s: run.began_s,
            seconds: run.seconds.clone(),
        });
    }
    let (locks, places) = (locks.to_owned(), measured.places.clone());
    record.real = Some(RealConditions { locks, places, seconds });
    record
}

fn of_machine(s: &Second) -> [(&'static Metric, Option<f64>); 9] {
    let shares = s.shares.as_ref();
    [
        (&real::USER, shares.map(|s| s.user)),
        (&real::SYSTEM, shares.map(|s| s.system)),
        (&real::IDLE, shares.map(|s| s.idle)),
        (&real::IOWAIT, shares.map(|s| s.iowait)),
        (&real::STEAL, shares.map(|s| s.steal)),
        (&real::SWITCHES, Some(s.switches)),
        (&real::CPU_PRESSURE, s.cpu_pressure),
        (&real::RUN_DELAY, s.run_delay),
        (&real::CONTENTIONS, s.contentions),
    ]
}
