//! One run: pCPUs as threads, and a main thread that looks after the limit, the caller and the observer.

use crate::Hv;
use crate::boot::{self, BootedMachine};
use crate::core::Core;
use crate::outcome::{End, WarmUp, items, outcome};
use crate::pcpu::Machine;
use overspin_host::{Cancel, Curve, Moment, Observer, Refused, nanos, picos};
use overspin_scenario::{Outcome, Picos, Scenario};
use overspin_workload::Loads;
use std::sync::PoisonError;
use std::time::Duration;

/// How often the main thread looks.
const LOOKS: Duration = Duration::from_millis(20);

/// Runs a scenario.
pub(crate) fn run(
    hv: &Hv,
    scenario: &Scenario,
    seed: u64,
    observer: &mut dyn Observer,
    cancel: &dyn Cancel,
) -> Result<Outcome, Refused> {
    let made = boot::make(hv, scenario, seed, observer.interest())?;
    run_made(made, scenario, seed, observer, cancel).map(|(outcome, _)| outcome)
}

/// Runs what was made. Returns the outcome, and what the hypervisor was at the end.
pub(crate) fn run_made(
    made: BootedMachine,
    scenario: &Scenario,
    seed: u64,
    observer: &mut dyn Observer,
    cancel: &dyn Cancel,
) -> Result<(Outcome, Core), Refused> {
    let BootedMachine { machine, vms, loads } = made;
    let mut counting = Counting {
        seed,
        loads: &loads,
        end_of_warmup: Some(scenario.warmup(loads.iter().all(Loads::is_endless)))
            .filter(|at| *at > Picos::ZERO),
        before: None,
        curve: Curve::new(loads.len()),
    };
    let (end, failures) = std::thread::scope(|scope| {
        // Also if the observer panics: the scope waits for all threads.
        let _stop = Stop(&machine);
        let threads: Vec<_> = (0..machine.bells.len() as u32)
            .map(|p| {
                let machine = &machine;
                std::thread::Builder::new()
                    .name(format!("pcpu{p}"))
                    .spawn_scoped(scope, move || {
                        let result = machine.be(p);
                        if result.is_err() {
                            machine.core().ended = true;
                            machine.ring_all();
                        }
                        result
                    })
                    .map_err(|error| format!("no thread for a pCPU: {error}"))
            })
            .collect();
        let all = threads.iter().all(Result::is_ok);
        let end = if all {
            watch(&machine, scenario, &mut counting, observer, cancel)
        } else {
            End::Limit
        };
        drop(Stop(&machine));
        let join =
            |thread: Result<std::thread::ScopedJoinHandle<'_, Result<(), String>>, String>| {
                thread.and_then(|thread| match thread.join() {
                    Ok(result) => result,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
            };
        (end, threads.into_iter().filter_map(|thread| join(thread).err()).collect::<Vec<_>>())
    });
    if let Some(cause) = failures.into_iter().next() {
        let remedy =
            "close other programs, or raise the limits of this process (`ulimit -a`)".into();
        return Err(Refused::Machine { cause, remedy });
    }
    let mut core = machine.core();
    let rest = core.tracing.ready(Picos::MAX);
    observer.observe(&rest);
    let Counting { before, mut curve, .. } = counting;
    curve.look(core.now(), items(&core));
    let mut outcome = outcome(&core, seed, end, (&loads, &machine.cpus), before.as_ref());
    curve.complete(&mut outcome);
    drop(core);
    // vCPUs first, then their virtual machines, then the memory.
    let Machine { core, vcpus, images, .. } = machine;
    drop(vcpus);
    drop(vms);
    drop(images);
    Ok((outcome, core.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// Ends the run when it is dropped.
struct Stop<'a>(&'a Machine);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.core().ended = true;
        self.0.ring_all();
    }
}

/// What counts.
struct Counting<'a> {
    seed: u64,
    loads: &'a [Loads],
    /// When the warm-up ends, if it is still to end.
    end_of_warmup: Option<Picos>,
    before: Option<WarmUp>,
    curve: Curve,
}

impl Counting<'_> {
    fn look(&mut self, core: &mut Core) {
        let now = core.now();
        if self.end_of_warmup.is_some_and(|at| at <= now) {
            self.end_of_warmup = None;
            core.tell(nanos(now), Moment::Counts);
            self.before = Some(WarmUp::ends(core, self.seed, self.loads));
        }
        if self.curve.due() <= now {
            self.curve.look(now, items(core));
        }
    }
}

/// Waits until the run is over. Tells the observer meanwhile.
fn watch(
    machine: &Machine,
    scenario: &Scenario,
    counting: &mut Counting<'_>,
    observer: &mut dyn Observer,
    cancel: &dyn Cancel,
) -> End {
    loop {
        let (ended, now, ready) = {
            let mut core = machine.core();
            counting.look(&mut core);
            let now = core.clock.now();
            // A vCPU that is in its guest may have traced moments since it entered.
            let on_pcpus = core.pcpus.iter().filter_map(|p| p.current);
            let until = on_pcpus.map(|v| core.vcpus[v as usize].entered).min().unwrap_or(now);
            (core.ended, now, core.tracing.ready(picos(until)))
        };
        observer.observe(&ready);
        if ended {
            return End::Finished;
        }
        if let Some(by) = cancel.asked(picos(now)) {
            return End::Asked(by);
        }
        let limit = nanos(scenario.limit);
        if now >= limit {
            return End::Limit;
        }
        let next = counting.end_of_warmup.map_or(limit, |at| nanos(at).min(limit));
        let left = Duration::from_nanos((next.0 - now.0).max(0).unsigned_abs());
        std::thread::sleep(left.min(LOOKS));
    }
}
