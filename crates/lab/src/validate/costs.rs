//! What the simulator is told of a world's costs on this machine.

use overspin_host::Refused;
use overspin_hv::HvCosts;
use overspin_native::measure::{KernelCosts, allowed_cpus};
use overspin_report::short;
use overspin_runs::catalog::AnyWorld;
use overspin_stats::Summary;

/// Measurements, of which the medians count.
const MEASUREMENTS: usize = 9;

/// Costs of a world, as `--set` arguments, and in words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// Settings for the simulator.
    pub sets: Vec<String>,
    /// What they are, in a sentence; empty without any.
    pub words: String,
}

/// One measurement: keys of `[host.costs]` with nanoseconds.
type Measurement = Vec<(&'static str, f64)>;

/// Measures the costs of `world` on this many CPUs by programs of their own, which are no cases.
///
/// # Errors
/// If the world refuses them.
pub fn costs(world: AnyWorld, cpus: u32) -> Result<Costs, Refused> {
    let measure = match world.name() {
        "hv" => of_hv,
        "threads" | "processes" => of_kernel,
        _ => return Ok(Costs::default()),
    };
    let all = (0..MEASUREMENTS).map(|_| measure(cpus)).collect::<Result<Vec<_>, _>>()?;
    Ok(summary(world.name(), &all))
}

fn of_hv(cpus: u32) -> Result<Measurement, Refused> {
    let costs = HvCosts::measure(cpus)?;
    let both = [
        ("hypercall", Some(costs.hypercall_ns)),
        ("context_switch", Some(costs.context_switch_ns)),
        // A vCPU that is preempted exits, and enters again later, as in a hypercall.
        ("preemption", Some(costs.hypercall_ns)),
        ("ipi", costs.ipi_ns),
        ("timer", costs.timer_ns),
    ];
    Ok(known(both))
}

/// The kernel is the hypervisor of threads: a system call is a hypercall.
fn of_kernel(cpus: u32) -> Result<Measurement, Refused> {
    let measured = allowed_cpus()
        .and_then(|allowed| KernelCosts::measure(&allowed[..allowed.len().min(cpus as usize)]));
    let costs = measured.map_err(|error| Refused::Machine {
        cause: format!("a thread cannot be kept to a CPU: {error}"),
        remedy: "allow this process to set its affinity (sched_setaffinity)".into(),
    })?;
    let both = [
        ("hypercall", Some(costs.call_ns)),
        ("context_switch", Some(costs.context_switch_ns)),
        ("ipi", costs.wake_ns),
        ("timer", costs.timer_ns),
    ];
    Ok(known(both))
}

fn known<const N: usize>(costs: [(&'static str, Option<f64>); N]) -> Measurement {
    costs.into_iter().filter_map(|(key, ns)| Some((key, ns?))).collect()
}

fn summary(world: &str, all: &[Measurement]) -> Costs {
    let mut costs = Costs::default();
    let mut words = Vec::new();
    let keys = all.first().map_or(&[][..], Vec::as_slice);
    for (i, (key, _)) in keys.iter().enumerate() {
        let column: Vec<f64> = all.iter().filter_map(|m| Some(m.get(i)?.1)).collect();
        let Some(of) = Summary::of(&column) else { continue };
        costs.sets.push(format!("host.costs.{key}={:.0}ns", of.median));
        let [low, middle, high] = [of.min, of.median, of.max].map(|ns| short(ns / 1e3));
        words.push(format!("{key} {middle} us ({low} to {high})"));
    }
    costs.words = format!(
        "Costs of `{world}` here, medians of {} measurements, least and greatest: {}.",
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
        let of = |ns: f64| vec![("hypercall", ns), ("context_switch", 2.0 * ns)];
        let costs = summary("hv", &[of(900.0), of(1000.0), of(5000.0)]);
        assert_eq!(costs.sets, ["host.costs.hypercall=1000ns", "host.costs.context_switch=2000ns"]);
        assert!(costs.words.contains("hypercall 1.00 us (0.900 to 5.00)"), "{}", costs.words);
        assert_eq!(known([("a", Some(1.0)), ("b", None)]), [("a", 1.0)]);
    }
}
