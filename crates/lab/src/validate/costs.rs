//! What the simulator is told of a world's costs on this machine.

use crate::calibrate::{self, Singles, of_guests, text, varying};
use overspin_host::Refused;
use overspin_native::calibrate::Cost;
use overspin_native::measure::{KernelCosts, allowed_cpus, packed_wakes};
use overspin_report::short;
use overspin_runs::catalog::AnyWorld;
use overspin_scenario::Varying;
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
    let mut costs = summary(world.name(), &all);
    if world.name() != "hv" && cpus > 1 {
        costs.words += &packing(packed_wakes());
    }
    Ok(costs)
}

fn of_hv(cpus: u32) -> Result<Vec<Cost>, Refused> {
    let mut all = of_guests(cpus)?;
    // A vCPU that is preempted exits, and enters again later, as in a hypercall.
    if let Some(call) = all.iter().find(|cost| cost.key == "hypercall") {
        all.push(Cost { key: "preemption", ..call.clone() });
    }
    Ok(all)
}

/// The kernel is the hypervisor of threads: a system call is a hypercall, too.
fn of_kernel(cpus: u32) -> Result<Vec<Cost>, Refused> {
    let measured = allowed_cpus()
        .and_then(|allowed| KernelCosts::measure(&allowed[..allowed.len().min(cpus as usize)]));
    let of = measured.map_err(|error| Refused::Machine {
        cause: format!("a thread cannot be kept to a CPU: {error}"),
        remedy: "allow this process to set its affinity (sched_setaffinity)".into(),
    })?;
    let single = Singles {
        calls: &of.singles.calls,
        rounds_here: &of.singles.rounds_here,
        rounds_there: &of.singles.rounds_there,
        sleeps: &of.singles.sleeps,
        busy: &of.singles.busy,
    };
    let always = [of.call_ns, of.context_switch_ns, of.host_timer_ns];
    let mut all = calibrate::costs(always, [of.wake_ns, of.timer_ns], single);
    all.push(Cost { key: "system_call", ns: of.call_ns, singles: Vec::new() });
    Ok(all)
}

/// What it means that a kernel keeps woken threads on the CPUs of their wakers; nothing if it does not.
fn packing(part: f64) -> String {
    if part.is_nan() || part < 0.5 {
        return String::new();
    }
    format!(
        " This kernel packs threads: {:.0} % of those that were woken ran on their waker's CPU although another one idled. The \
         simulator's Linux does not, as no published one does; locks whose waiters sleep differ by that.",
        100.0 * part
    )
}

fn summary(world: &str, all: &[Vec<Cost>]) -> Costs {
    let mut costs = Costs::default();
    let mut words = Vec::new();
    for Cost { key, .. } in all.first().map_or(&[][..], Vec::as_slice) {
        let of: Vec<&Cost> = all.iter().flatten().filter(|cost| cost.key == *key).collect();
        let medians: Vec<f64> = of.iter().map(|cost| cost.ns).collect();
        let singles: Vec<f64> = of.iter().flat_map(|cost| &cost.singles).copied().collect();
        let Some(summary) = Summary::of(&medians) else { continue };
        let cost = varying(summary.median, &singles);
        costs.sets.push(format!("host.costs.{key}={}", text(cost)));
        let [low, middle, high] =
            [summary.min, summary.median, summary.max].map(|ns| short(ns / 1e3));
        let tail = match cost {
            Varying::Always(_) => String::new(),
            Varying::Drawn(quantiles) => format!("; p99 {}", short(quantiles.p99.nanos() / 1e3)),
        };
        words.push(format!("{key} {middle} us ({low} to {high}{tail})"));
    }
    costs.words = format!(
        "Costs of `{world}` here, medians of {} measurements, least and greatest, and the 99th percentile of single \
         ones: {}.",
        all.len(),
        words.join(", ")
    );
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_packs_is_named() {
        assert!(packing(0.98).contains("98 % of those that were woken"));
        assert_eq!([f64::NAN, 0.02].map(packing), ["", ""]);
    }

    #[test]
    fn the_median_counts() {
        let cost = |key, ns| Cost { key, ns, singles: Vec::new() };
        let of = |ns: f64| vec![cost("hypercall", ns), cost("context_switch", 2.0 * ns)];
        let costs = summary("hv", &[of(900.0), of(1000.0), of(5000.0)]);
        let sets = ["host.costs.hypercall=\"1us\"", "host.costs.context_switch=\"2us\""];
        assert_eq!(costs.sets, sets);
        assert!(costs.words.contains("hypercall 1.00 us (0.900 to 5.00)"), "{}", costs.words);
    }
}
