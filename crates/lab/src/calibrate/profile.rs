//! A calibration as a machine profile: a TOML file that `host.machine` can name.

use super::{Median, found, rewarm, text, varying, why_not};
use overspin_native::calibrate::Calibration;
use overspin_runs::scenario_file::cost_keys;
use overspin_scenario::{Picos, Varying};
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
    if let Some(told) = rewarm::permille(calibration) {
        let _ = writeln!(out, "# {told}.");
    }
    let _ = writeln!(out, "\n[costs]");
    for key in cost_keys() {
        let _ = match (value(key), cost(calibration, key)) {
            (Some((_, (interval, n))), Some(cost)) => {
                writeln!(out, "# {interval} ns, {n} samples\n{key} = {}", text(cost))
            }
            _ => writeln!(
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
    let set = |key: &str| Some(format!("host.costs.{key}={}", text(cost(calibration, key)?)));
    cost_keys().filter_map(set).collect()
}

/// The cost of a key, if it was measured.
fn cost(calibration: &Calibration, key: &str) -> Option<Varying> {
    let of = found(calibration, key)?;
    let ns = Median::of(&of.samples)?.value;
    Some(match of.singles.is_empty() {
        true => Picos((ns * 1e3).round() as u64).into(),
        false => varying(ns, &of.singles),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_native::calibrate::{Quantity, Series};
    use overspin_native::measure::System;

    #[test]
    fn a_profile_is_a_machine_with_the_measured_values_and_the_defaults_of_the_rest() {
        let series = |quantity, value: f64| Series {
            quantity,
            samples: vec![value; 7],
            singles: Vec::new(),
        };
        // 300 single switches, of which one in ten takes 4 us more.
        let singles: Vec<f64> = (0..300).map(|i| if i % 10 == 0 { 4000.0 } else { 0.0 }).collect();
        let switch = Series { singles, ..series(Quantity::ContextSwitch, 1230.0) };
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
            series: vec![series(Quantity::Atomic, 5.25), switch],
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
        let Varying::Drawn(switch) = machine.costs().context_switch else { panic!("{text}") };
        assert_eq!((switch.p50, switch.p95), (Picos(1_230_000), Some(Picos(5_230_000))));
        assert_eq!(machine.cost("hypercall"), DEFAULT.cost("hypercall"));
        assert_eq!(machine.smt_permille(), DEFAULT.smt_permille());
        assert!(machine.brief.contains("A \"quoted\" CPU"), "{}", machine.brief);
    }
}
