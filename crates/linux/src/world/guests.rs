//! The guests of a run: each is booted by a thread of its own, which follows it to its end.

use std::path::PathBuf;
use std::process::Command;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use overspin_host::{Refused, Unhonoured};
use overspin_native::world::{ControlGroup, Place, Share, narrowed_weights, own_nice, weights};
use overspin_real::scratch::Scratch;
use overspin_scenario::{Domain, Picos, Scenario};

use super::job::{Job, Report};
use super::notes::{Noted, Offset};
use crate::guest::{Guest, NoAnswer, vcpu_threads};
use crate::machine::{Accelerator, Files, Machine, accelerator};
use crate::program::output;
use crate::talk::{Ask, Say};
use crate::{LinuxError, alone, cache, guard_of, init, needs, source};

/// Memory of a guest, in MiB.
const MEMORY: u32 = 256;
/// Time to make the threads of a job, and for the last of them to come to its end: each waiter may need a turn.
const READY: Duration = Duration::from_secs(120);

/// What all guests of a run share.
pub(super) struct Made {
    kernel: PathBuf,
    init: PathBuf,
    accelerator: Accelerator,
    pub(super) why_emulated: Option<String>,
    scratch: Scratch,
    /// Whether the run is to end.
    pub(super) stop: AtomicBool,
}

impl Made {
    pub(super) fn here(guests: usize) -> Result<Self, Refused> {
        let cache = cache().map_err(|e| refused(&e))?;
        let kernel = cache.join(source::PACKAGE).join("vmlinux");
        if !kernel.exists() {
            return Err(Refused::Machine {
                cause: format!("there is no kernel with our locks: {}", kernel.display()),
                remedy: "compile it once, in five to ten minutes: overspin linux build".into(),
            });
        }
        for needed in [needs::TO_RUN, needs::TO_PIN] {
            needs::programs(&needed).map_err(|e| refused(&e))?;
        }
        needs::memory(MEMORY.saturating_mul(guests as u32)).map_err(|e| Refused::Machine {
            cause: e.to_string(),
            remedy: "end other programs, or leave some domains out".into(),
        })?;
        let failed = |f: overspin_real::Failed| Refused::Machine {
            cause: f.to_string(),
            remedy: f.remedy().to_owned(),
        };
        let scratch = Scratch::new(None).map_err(failed)?;
        // Another command may make the same files.
        let _alone = alone(&cache).map_err(|e| refused(&e))?;
        let init = init::compile(&cache.join("init")).map_err(|e| refused(&e))?;
        let found = accelerator(&kernel, &cache, &guard_of(&scratch)).map_err(|e| refused(&e))?;
        let (accelerator, why_emulated) = found;
        let stop = AtomicBool::new(false);
        Ok(Self { kernel, init, accelerator, why_emulated, scratch, stop })
    }

    fn stops(&self) -> bool {
        // Relaxed: the flag stands alone.
        self.stop.load(Ordering::Relaxed)
    }

    /// Boots a guest and gets its threads ready.
    pub(super) fn guest(
        &self,
        number: usize,
        domain: &Domain,
        ask: &Ask,
        (places, share): (&[Place], Option<Share>),
    ) -> Result<Guest, NoAnswer> {
        let folder = self.scratch.path().join(number.to_string());
        std::fs::create_dir_all(&folder).map_err(|cause| crate::program::file(&folder, cause))?;
        let machine = Machine::new(self.kernel.clone(), domain.vcpus, MEMORY, self.accelerator);
        let mut machine = machine.with_lock(&domain.lock);
        if let Some(budget) = domain.spin_budget {
            machine.parameters += &format!(" overspin_budget={budget}");
        }
        machine.cpus = Some(list(places.iter().flat_map(|place| &place.cpus)));
        machine.share = share;
        let (scratch, stop) = (&self.scratch, || self.stops());
        let mut guest = Guest::boot(&machine, &self.init, Files::None, &folder, scratch, &stop)?;
        for (thread, place) in vcpu_threads(guest.id()).iter().zip(places) {
            let id = thread.id.to_string();
            output(Command::new("taskset").args(["-cp", &list(&place.cpus), &id]))?;
            if place.nice != own_nice() {
                output(Command::new("renice").args(["-n", &place.nice.to_string(), "-p", &id]))?;
            }
        }
        guest.ask(ask, READY, &mut |_| {}, &stop)?;
        Ok(guest)
    }

    /// Lets the threads of a guest work to their end, or until the run is to end. If what they note is wanted, `before` is what
    /// its counter was ahead of ours.
    fn work(
        &self,
        guest: &mut Guest,
        (job, before): (&Job, Option<Offset>),
        limit: Picos,
    ) -> Result<Done, NoAnswer> {
        let limit = Duration::from_nanos(limit.0 / 1_000) + READY;
        let mut hear = |_: &str| {};
        let said = match guest.ask(&Ask::Go, limit, &mut hear, &|| self.stops()) {
            Err(NoAnswer::Stopped) => guest.ask(&Ask::Stop, READY, &mut hear, &|| false),
            said => said,
        };
        let text = match said? {
            Say::Worked(text) => text,
            other => format!("{other:?}"),
        };
        let strange = || LinuxError::Guest(format!("it says what is no result: {text}"));
        let report = job.report(&text).ok_or_else(strange).map_err(NoAnswer::Error)?;
        let noted = match before {
            Some(before) if report.is_noted() => Noted::of(guest, before)?,
            _ => None,
        };
        Ok((report, noted))
    }

    /// A guest from its boot to its end.
    pub(super) fn live(
        &self,
        boot: impl FnOnce() -> Result<Guest, NoAnswer>,
        (job, limit): (&Job, Picos),
        tell: &dyn Fn(News),
        go: &Receiver<()>,
    ) {
        let over = |result: Result<Done, NoAnswer>| match result {
            Ok(done) => tell(News::Over(Some(Box::new(done)))),
            Err(NoAnswer::Stopped) => tell(News::Over(None)),
            Err(no) => tell(News::Failed(no_answer(&no))),
        };
        // It takes tens of milliseconds, and all guests are to begin together.
        let offset = |guest: &mut Guest| (job.notes() > 0).then(|| Offset::of(guest)).transpose();
        let booted = boot().and_then(|mut guest| Ok((offset(&mut guest)?, guest)));
        let (before, mut guest) = match booted {
            Ok(booted) => booted,
            Err(no) => return over(Err(no)),
        };
        tell(News::Ready(guest.id()));
        let result = match go.recv() {
            Ok(()) => self.work(&mut guest, (job, before), limit),
            Err(_) => Err(NoAnswer::Stopped),
        };
        over(result);
        // Until its accounts were taken.
        let _ = go.recv();
        let qemu = guest.id();
        drop(guest);
        // Its number may soon be that of another process, which the guardian must not end.
        self.scratch.ended(qemu);
    }
}

/// What a guest did, with what its threads noted one by one if that was asked for and nothing was left out.
pub(super) type Done = (Report, Option<Noted>);

/// What happened to a guest.
pub(super) enum News {
    /// Its threads wait for their begin; the number of its process.
    Ready(u32),
    /// They have ended; nothing if they never began.
    Over(Option<Box<Done>>),
    /// It cannot do what is asked for.
    Failed(Refused),
}

/// What control groups give the domains, in their order; nothing if no domain has a cap or a weight of its own, or there can
/// be no groups: then nice values weigh.
pub(super) fn shares(scenario: &Scenario) -> Vec<Share> {
    let domains = &scenario.domains;
    let heaviest = f64::from(weights(domains).max().unwrap_or(1).max(1));
    // A weight is that of each vCPU.
    let weight = |d| Some(weights([d]).map(|w| f64::from(w) / heaviest).sum());
    let shares: Vec<Share> =
        domains.iter().map(|d| Share { cap: d.cap, weight: weight(d) }).collect();
    let equal = domains.iter().all(|d| d.cap == 0 && d.weight == domains[0].weight);
    let possible = || shares.iter().all(|share| ControlGroup::new(*share).is_ok());
    if equal || !possible() { Vec::new() } else { shares }
}

/// The weights, if they are nice values and there are too few of them, with the reason.
pub(super) fn refused_weights(scenario: &Scenario) -> Option<Unhonoured> {
    match shares(scenario).is_empty() {
        true => narrowed_weights(&scenario.domains),
        // A domain is weighed by its group, and nice values are for its vCPUs.
        false => scenario.domains.iter().find_map(|d| narrowed_weights(slice::from_ref(d))),
    }
}

/// CPUs as `taskset -c` reads them.
pub(super) fn list<'a>(cpus: impl IntoIterator<Item = &'a usize>) -> String {
    let mut all: Vec<usize> = cpus.into_iter().copied().collect();
    all.sort_unstable();
    all.dedup();
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn refused(error: &LinuxError) -> Refused {
    Refused::Machine { cause: error.to_string(), remedy: error.remedy() }
}

fn no_answer(no: &NoAnswer) -> Refused {
    match no {
        NoAnswer::Error(error) => refused(error),
        NoAnswer::TooLong | NoAnswer::Stopped => Refused::Machine {
            cause: "a guest gives no answer: it hangs, or this machine is too busy".into(),
            remedy: "run it again, with less beside".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::scenario;
    use super::*;
    use overspin_workload::LockLoop;

    #[test]
    fn a_group_weighs_as_much_as_its_vcpus() {
        let mut scenario = scenario("ticket", 2, LockLoop::default());
        let other = Domain { name: "e".into(), vcpus: 4, ..scenario.domains[0].clone() };
        scenario.domains.push(other);
        assert_eq!(shares(&scenario), [], "as threads without groups");
        scenario.domains[1].weight = scenario.domains[0].weight / 2;
        let found = shares(&scenario);
        // Not every system has groups for us.
        if ControlGroup::new(Share::default()).is_ok() {
            let of = |weight| Share { cap: 0, weight: Some(weight) };
            assert_eq!(found, [of(2.0), of(2.0)], "four vCPUs of half the weight");
        } else {
            assert_eq!(found, []);
        }
    }

    #[test]
    fn cpus_are_listed_once() {
        assert_eq!(list(&[3, 0, 3, 1]), "0,1,3");
    }
}
