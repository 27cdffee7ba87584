//! What commands share about worlds: which one, when to stop, and what to say about it.

use crate::args::Global;
use crate::failure::{Failure, Verdict};
use crate::signals;
use overspin_host::World;
use overspin_runs::catalog::catalog;
use overspin_runs::record::InWorld;
use overspin_runs::runner::{Runner, Until};
use overspin_scenario::{Scenario, Stopped};
use std::io::Write;
use std::time::{Duration, Instant};

/// Name of the world of real Xen hosts, which runs nothing but the plans of schedbench.
pub(crate) const XEN: &str = "xen";

/// When to stop and keep the results so far: at the first signal, or after this long.
pub(crate) fn until(max_wall: Option<Duration>) -> Until {
    Until {
        deadline: max_wall.and_then(|time| Instant::now().checked_add(time)),
        interrupted: Some(signals::first_interrupt()),
    }
}

/// The world of a command, by default the simulator, and when to stop and keep the results so far: at the first
/// signal, or after this long.
pub(crate) fn runner(world: Option<&str>, max_wall: Option<Duration>) -> Result<Runner, Failure> {
    let world = world.unwrap_or(catalog().simulator().name());
    if world == XEN {
        return Err(Failure::usage(
            "the world `xen` runs the plans of schedbench only: its guests are Linux with their own locks",
            "use overspin schedbench run FILE.bench --world xen; docs/xen.md describes it",
        ));
    }
    let world = catalog().world(world).ok_or_else(|| {
        let names: Vec<&str> = catalog().worlds().iter().map(|world| world.name()).collect();
        let remedy = format!("worlds are: {}", names.join(", "));
        Failure::usage(format!("there is no world `{world}`"), remedy)
    })?;
    Ok(Runner { world, until: until(max_wall) })
}

/// What records say about the world of runs of `scenarios`. Says what it ignores, once for all of them.
pub(crate) fn in_world<'a>(
    runner: &Runner,
    scenarios: impl IntoIterator<Item = &'a Scenario>,
    global: &Global,
) -> InWorld {
    let made = runner.in_world(scenarios);
    if let Some(warning) = made.warning().filter(|_| !global.quiet) {
        eprintln!("warning: {warning}");
    }
    made
}

/// Reports that a command ended early, with only results from before `until`.
pub(crate) fn stopped(by: Stopped) -> Verdict {
    // After SIGHUP the terminal is gone, which must not end us now.
    let _ = writeln!(std::io::stderr(), "stopped before the end: {}", by.words());
    Verdict::Stopped(by)
}
