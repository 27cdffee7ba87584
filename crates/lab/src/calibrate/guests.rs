//! What a guest costs on this machine, where it can run guests.

use super::{Singles, costs};
use overspin_host::Refused;
use overspin_hv::HvCosts;
use overspin_native::calibrate::{Cost, Extra};
use overspin_native::measure::allowed_cpus;

/// Exits and kicks, by guests of a few instructions. The switch between vCPUs is not among them: the switch between
/// threads, which is part of it, is measured everywhere, and the exit and the entry beside it are the `hypercall`.
pub const GUESTS: Extra = Extra { keys: &["hypercall", "ipi"], sample };

fn sample() -> Result<Vec<Cost>, String> {
    let cpus = allowed_cpus().map_or(1, |cpus| cpus.len().min(2));
    let all = of_guests(cpus as u32).map_err(|refused| refused.to_string())?;
    Ok(all.into_iter().filter(|cost| GUESTS.keys.contains(&cost.key)).collect())
}

/// All costs of the micro-hypervisor.
pub(crate) fn of_guests(cpus: u32) -> Result<Vec<Cost>, Refused> {
    let HvCosts { hypercall_ns, context_switch_ns, host_timer_ns, ipi_ns, timer_ns, singles } =
        HvCosts::measure(cpus)?;
    let single = Singles {
        calls: &singles.calls,
        rounds_here: &singles.rounds_here,
        rounds_there: &singles.rounds_there,
        sleeps: &singles.sleeps,
        busy: &singles.slices,
    };
    Ok(costs([hypercall_ns, context_switch_ns, host_timer_ns], [ipi_ns, timer_ns], single))
}
