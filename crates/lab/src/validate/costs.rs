//! What the simulator is told of a world's costs on this machine.

use crate::catalog::AnyWorld;
use crate::report::short;
use crate::stats::Summary;
use overspin_host::Refused;
use overspin_hv::HvCosts;

/// Measurements, of which the medians count.
const MEASUREMENTS: usize = 5;

/// Costs of a world, as `--set` arguments, and in words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// Settings for the simulator.
    pub sets: Vec<String>,
    /// What they are, in a sentence; empty without any.
    pub words: String,
}

/// Measures the costs of `world` on this many CPUs by programs of their own, which are no cases. Only the
/// micro-hypervisor has such programs.
///
/// # Errors
/// If the world refuses them.
pub fn costs(world: AnyWorld, cpus: u32) -> Result<Costs, Refused> {
    if world.name() != "hv" {
        return Ok(Costs::default());
    }
    let all: Vec<HvCosts> =
        (0..MEASUREMENTS).map(|_| HvCosts::measure(cpus)).collect::<Result<_, _>>()?;
    Ok(of_measured(&all))
}

fn of_measured(all: &[HvCosts]) -> Costs {
    let column = |of: fn(&HvCosts) -> Option<f64>| -> Option<Summary> {
        Summary::of(&all.iter().filter_map(of).collect::<Vec<_>>())
    };
    let values = [
        ("hypercall", column(|c| Some(c.hypercall_ns))),
        ("context_switch", column(|c| Some(c.context_switch_ns))),
        ("ipi", column(|c| c.ipi_ns)),
    ];
    let mut costs = Costs::default();
    let mut words = Vec::new();
    for (key, summary) in values.iter().filter_map(|(key, s)| Some((key, (*s)?))) {
        costs.sets.push(format!("host.costs.{key}={:.0}ns", summary.median));
        let [low, middle, high] =
            [summary.min, summary.median, summary.max].map(|ns| short(ns / 1e3));
        words.push(format!("{key} {middle} us ({low} to {high})"));
    }
    costs.words = format!(
        "Costs of `hv` here, medians of {} measurements, least and greatest: {}.",
        all.len(),
        words.join(", ")
    );
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts() {
        let of = |ns: f64| HvCosts {
            hypercall_ns: ns,
            context_switch_ns: 2.0 * ns,
            ipi_ns: None,
        };
        let costs = of_measured(&[of(900.0), of(1000.0), of(5000.0)]);
        assert_eq!(costs.sets, ["host.costs.hypercall=1000ns", "host.costs.context_switch=2000ns"]);
        assert!(costs.words.contains("hypercall 1.00 us (0.900 to 5.00)"), "{}", costs.words);
    }
}
