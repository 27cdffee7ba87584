//! Records of `overspin measure noise`.

use crate::measure::{self, EIGHTHS};
use crate::metric::threads;
use overspin_native::measure::{Histogram, Noise};
use overspin_runs::record::{Kind, NoiseConditions, Record, Run};

/// The record of a measurement. All CPUs are measured at once, so they are places of one run.
#[must_use]
pub fn record(noise: &Noise) -> Record {
    let mut record = Record::new(Kind::Noise, "noise");
    record.warnings = noise.warnings.iter().map(ToString::to_string).collect();
    record.runs = vec![Run::default()];
    record.noise = Some(NoiseConditions {
        clock_source: noise.system.clock_source.clone(),
        quantum_ns: noise.quantum_ns,
        duration_ns: noise.duration_ns,
        steal: steal(noise),
        toml: measure::noise_table(noise),
    });
    record.push(0, "clock", &threads::READ, noise.clock_read_ns);
    record.push(0, "clock", &threads::STEP, noise.clock_step_ns as f64);
    record.push(0, "clock", &threads::STEAL_STEP, noise.steal_step_ns as f64);
    for cpu in &noise.cpus {
        let (place, noted) = (format!("cpu-{}", cpu.cpu), &cpu.noted);
        let [shortest, longest] = noted.quantum_range_ns;
        for (metric, value) in [
            (&threads::WATCHED, Some(noted.watched_ns as f64)),
            (&threads::QUANTA, Some(noted.quanta as f64)),
            (&threads::QUANTUM, Some(noted.quantum_ns)),
            (&threads::QUANTUM_MIN, Some(shortest as f64)),
            (&threads::QUANTUM_MAX, Some(longest as f64)),
            (&threads::STEAL, cpu.steal_ns.map(|ns| ns as f64)),
            (&threads::RUN_DELAY, cpu.run_delay_ns.map(|ns| ns as f64)),
        ] {
            // A value that the kernel does not count has no sample.
            record.push(0, &place, metric, value.unwrap_or(f64::NAN));
        }
        for (kind, all) in [
            ("thread", &noted.thread),
            ("taken", &noted.taken),
            ("short", &noted.short),
            ("interval", &noted.intervals),
        ] {
            histogram(&mut record, &format!("{place}.{kind}"), all);
        }
    }
    record
}

/// Adds the counts, and the count of each length.
fn histogram(record: &mut Record, place: &str, all: &Histogram) {
    record.push(0, place, &threads::GAPS, all.count as f64);
    record.push(0, place, &threads::GAP_TIME, all.time_ns as f64);
    record.push(0, place, &threads::LONGEST, all.max_ns as f64);
    for bin in all.bins(EIGHTHS) {
        let place = format!("{place}.{}-{}ns", bin.from_ns, bin.to_ns);
        record.push(0, &place, &threads::BIN_GAPS, bin.count as f64);
        record.push(0, &place, &threads::BIN_TIME, bin.time_ns as f64);
    }
}

fn steal(noise: &Noise) -> String {
    let word = serde_json::to_value(noise.steal()).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}
