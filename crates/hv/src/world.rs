//! The trait [`World`] for real vCPUs.

use crate::NAME;
use overspin_host::{Cancel, Ignored, Observer, Refused, Unhonoured, World, admin};
use overspin_locks::find;
use overspin_scenario::{Domain, Outcome, Scenario};
use overspin_sched::Schedulers;
use overspin_workload::{Kinds, LayoutOf, Loads};
use std::borrow::Cow;

/// The guest image that comes with this crate.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const IMAGE: &[u8] = include_bytes!(env!("OVERSPIN_GUEST"));
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
const IMAGE: &[u8] = &[];

/// Most tasks of a guest at a time: their stacks are a part of the 1 GiB that it may have.
const MOST_TASKS: u64 = 4000;

/// The world of real vCPUs.
#[derive(Clone, Debug)]
pub struct Hv {
    pub(crate) schedulers: Schedulers,
    pub(crate) image: Cow<'static, [u8]>,
}

impl Default for Hv {
    fn default() -> Self {
        Self { schedulers: Schedulers::builtin(), image: Cow::Borrowed(IMAGE) }
    }
}

impl Hv {
    /// With these schedulers.
    #[must_use]
    pub fn with_schedulers(self, schedulers: Schedulers) -> Self {
        Self { schedulers, ..self }
    }

    /// With another guest program: a static ELF file for x86-64. It need not look at the workloads.
    ///
    /// # Errors
    /// Why it cannot be a guest.
    pub fn with_guest(self, program: Vec<u8>) -> Result<Self, String> {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        crate::image::Program::parse(&program)?;
        Ok(Self { image: Cow::Owned(program), ..self })
    }

    /// What the domains have to do.
    ///
    /// # Errors
    /// If a guest cannot do it.
    pub(crate) fn loads(&self, scenario: &Scenario) -> Result<Vec<Loads>, Refused> {
        if scenario.domains.is_empty() {
            return Err(Refused::Invalid("there is no domain".into()));
        }
        admin::rehearse(scenario, scenario.domains.len(), &self.schedulers)?;
        scenario.domains.iter().map(loads).collect()
    }
}

fn loads(domain: &Domain) -> Result<Loads, Refused> {
    let bad = |what: String| Err(Refused::Invalid(format!("domain `{}`: {what}", domain.name)));
    let Some(lock) = find(&domain.lock) else {
        let known: Vec<&str> = overspin_locks::infos().iter().map(|info| info.name).collect();
        let (lock, known) = (domain.lock.clone(), known.join(", "));
        return Err(Refused::UnknownLock { domain: domain.name.clone(), lock, known });
    };
    if let Err(error) = lock.check_capacity(domain.vcpus as usize) {
        return bad(error.to_string());
    }
    let loads = match Loads::of(domain, &Kinds::builtin()) {
        Ok(loads) => loads,
        Err(fault) => return bad(fault.to_string()),
    };
    let kinds: Vec<&str> = domain.workload.0.iter().map(|w| w.kind.as_str()).collect();
    let kinds = kinds.join(", ");
    let needs = match () {
        () if loads.ticks().next().is_some() => "waits for ticks of a kernel or a hypervisor",
        () if loads.has_devices() => "is interrupted by a device",
        () if loads.disk().is_some() => "writes to a disk of its own kernel",
        () if loads.layout(LayoutOf::types::<u64, u64>()).is_some() => {
            "has locks among kernel data"
        }
        () => "",
    };
    if !needs.is_empty() {
        return bad(format!(
            "the workload ({kinds}) {needs}, and the guests of `{NAME}` have no kernel for that; run it in the \
             world `sim`"
        ));
    }
    let shares = loads.starts_tasks(domain.vcpus);
    if shares && domain.workload.0.len() > 1 {
        return bad(format!(
            "one of the workloads ({kinds}) starts tasks while it runs, and a guest of `{NAME}`, which preempts no task, \
             runs such a workload only alone: give it a domain of its own"
        ));
    }
    if loads.most_tasks(domain.vcpus) > MOST_TASKS {
        return bad(format!(
            "the workload ({kinds}) has up to {} tasks at a time, and a guest of `{NAME}` has room for {MOST_TASKS}: \
             give it fewer",
            loads.most_tasks(domain.vcpus)
        ));
    }
    let mut taken = vec![false; domain.vcpus as usize];
    for (i, first) in loads.start(domain.vcpus).iter().enumerate() {
        let vcpu = first.start.vcpu.map_or(i, |vcpu| vcpu as usize);
        if !shares && (vcpu >= taken.len() || std::mem::replace(&mut taken[vcpu], true)) {
            return bad(format!(
                "a guest of `{NAME}` runs one task on each vCPU, and this workload ({kinds}) has more: give the \
                 domain more vCPUs, or the workload fewer threads"
            ));
        }
    }
    Ok(loads)
}

/// The keys that describe a simulated machine or kernel.
const IGNORED: [Ignored; 7] = [
    Ignored::MACHINE,
    Ignored::NOISE,
    Ignored::GOVERNOR,
    Ignored::THREADS,
    Ignored::new(
        "host.pause_loop_exiting and host.directed_yield",
        |s| s.host.pause_loop_exiting.is_some() || s.host.directed_yield,
        "KVM and the processor decide",
    ),
    Ignored::halt_polling("a vCPU that halts leaves at once"),
    Ignored::always("domain.kernel", "these guests have no kernel with ticks and run queues"),
];

impl World for Hv {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports(&self, scenario: &Scenario) -> Result<Vec<Unhonoured>, Refused> {
        self.loads(scenario)?;
        Ok(Ignored::of(&IGNORED, scenario))
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
        cancel: &dyn Cancel,
    ) -> Result<Outcome, Refused> {
        crate::run::run(self, scenario, seed, observer, cancel)
    }

    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    fn run(
        &self,
        _: &Scenario,
        _: u64,
        _: &mut dyn Observer,
        _: &dyn Cancel,
    ) -> Result<Outcome, Refused> {
        Err(Refused::Machine {
            cause: format!("the world `{NAME}` needs Linux on x86-64"),
            remedy: "use `--world threads`, which works on every Linux, or `--world sim`".into(),
        })
    }
}
