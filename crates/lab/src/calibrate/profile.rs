//! A calibration as a machine profile: a TOML file that `host.machine` can name.

use super::{Median, found, why_not};
use overspin_native::calibrate::Calibration;
use overspin_runs::scenario_file::cost_keys;
use overspin_scenario_file::machine::DEFAULT;
use std::fmt::Write as _;

/// The profile. A cost that was not measured stays out, with a comment that says why and which value applies.
#[must_use]
pub fn profile(calibration: &Calibration) -> String {
    let system = &calibration.system;
    let model = system.cpu_model.as_deref().unwrap_or("unknown CPU");
    let brief = format!(
        "{model}, Linux {}, {} CPUs, measured",
        system.kernel.as_deref().unwrap_or("(unknown)"),
        calibration.cpus.len()
    );
    let mut out = format!(
        "# A machine profile, measured in {:.0} s by overspin {}. Name this file as host.machine of a scenario.\n",
        calibration.elapsed.as_secs_f64(),
        env!("CARGO_PKG_VERSION"),
    );
    for warning in &calibration.warnings {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "# Doubtful: {warning}.");
    }
    let _ = writeln!(out, "\nbrief = {}", toml::Value::String(brief));
    let value = |key: &str| {
        let median = found(calibration, key).and_then(|s| Median::of(&s.samples))?;
        let [from, to] = median.interval;
        Some((median.value, (format!("{from:.2} to {to:.2}"), median.n)))
    };
    let _ = match value("smt_permille") {
        Some((permille, (interval, n))) => {
            writeln!(
                out,
                "# {interval}, {n} samples\nsmt_permille = {}",
                permille.round().clamp(1.0, 1000.0)
            )
        }
        None => writeln!(
            out,
            "# {}; as on {}:\n# smt_permille = {}",
            why_not(calibration, "smt_permille"),
            DEFAULT.name,
            DEFAULT.smt_permille()
        ),
    };
    let _ = writeln!(out, "\n[costs]");
    for key in cost_keys() {
        let _ = match value(key) {
            Some((ns, (interval, n))) => {
                writeln!(out, "# {interval} ns, {n} samples\n{key} = \"{}ps\"", (ns * 1e3).round())
            }
            None => writeln!(
                out,
                "# {}; as on {}:\n# {key} = \"{}ps\"",
                why_not(calibration, key),
                DEFAULT.name,
                DEFAULT.cost(key).0
            ),
        };
    }
    out
}

/// The costs that were measured, as `--set` arguments. Those that were not are the scenario's machine's.
#[must_use]
pub fn settings(calibration: &Calibration) -> Vec<String> {
    let value = |key: &str| Some(Median::of(&found(calibration, key)?.samples)?.value);
    let cost = |key: &str| Some(format!("host.costs.{key}={:.0}ps", (value(key)? * 1e3).round()));
    cost_keys().filter_map(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_native::calibrate::{Quantity, Series};
    use overspin_native::measure::System;

    #[test]
    fn a_profile_is_a_machine_with_the_measured_values_and_the_defaults_of_the_rest() {
        let series = |quantity, value: f64| Series { quantity, samples: vec![value; 7] };
        let calibration = Calibration {
            system: System {
                cpu_model: Some("A \"quoted\" CPU".into()),
                kernel: Some("6.1".into()),
                virtualised: false,
                clock_source: None,
                cpus: 2,
            },
            warnings: Vec::new(),
            cpus: vec![0, 1],
            series: vec![series(Quantity::Atomic, 5.25), series(Quantity::ContextSwitch, 1234.5)],
            missing: vec![(Quantity::SmtPermille, "no siblings".into())],
            elapsed: std::time::Duration::from_secs(3),
        };
        let text = profile(&calibration);
        assert!(text.contains("# not measured: no siblings; as on generic-2008"), "{text}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("here.toml");
        std::fs::write(&path, &text).unwrap();
        let machine = overspin_scenario_file::machine::file::load(path.to_str().unwrap()).unwrap();
        assert_eq!(machine.cost("atomic").0, 5_250);
        assert_eq!(machine.cost("context_switch").0, 1_234_500);
        assert_eq!(machine.cost("hypercall"), DEFAULT.cost("hypercall"));
        assert_eq!(machine.smt_permille(), DEFAULT.smt_permille());
        assert!(machine.brief.contains("A \"quoted\" CPU"), "{}", machine.brief);
    }
}
