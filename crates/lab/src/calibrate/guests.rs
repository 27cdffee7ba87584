//! What a guest costs on this machine, where it can run guests.

use overspin_hv::HvCosts;
use overspin_native::calibrate::{Costs, Extra};
use overspin_native::measure::allowed_cpus;

/// Exits and kicks, by guests of a few instructions. The switch between vCPUs is not among them: the switch between
/// threads, which is part of it, is measured everywhere, and the exit and the entry beside it are the `hypercall`.
pub const GUESTS: Extra = Extra { keys: &["hypercall", "ipi"], sample };

fn sample() -> Result<Costs, String> {
    let cpus = allowed_cpus().map_or(1, |cpus| cpus.len().min(2));
    let costs = HvCosts::measure(cpus as u32).map_err(|refused| refused.to_string())?;
    let kick = costs.ipi_ns.map(|ns| ("ipi", ns));
    Ok([("hypercall", costs.hypercall_ns)].into_iter().chain(kick).collect())
}
