//! The trait [`World`] for real vCPUs.

use crate::NAME;
use overspin_host::{Cancel, Ignored, Observer, Refused, Unhonoured, World, admin};
use overspin_locks::find;
use overspin_scenario::{Domain, NewProcess, Outcome, Scenario};
use overspin_sched::Schedulers;
use overspin_workload::{First, Kinds, LayoutOf, Loads};

/// Most tasks of a guest at a time: their stacks are a part of the 1 GiB that it may have.
const MOST_TASKS: u64 = 4000;

/// The world of real vCPUs.
#[derive(Clone, Debug)]
pub struct Hv {
    pub(crate) schedulers: Schedulers,
    #[cfg(kvm)]
    pub(crate) image: std::borrow::Cow<'static, [u8]>,
}

impl Default for Hv {
    fn default() -> Self {
        Self {
            schedulers: Schedulers::builtin(),
            #[cfg(kvm)]
            image: include_bytes!(env!("OVERSPIN_GUEST")).into(),
        }
    }
}

impl Hv {
    /// With these schedulers.
    #[must_use]
    pub fn with_schedulers(mut self, schedulers: Schedulers) -> Self {
        self.schedulers = schedulers;
        self
    }

    /// With another guest program: a static ELF file for x86-64. It need not look at the workloads.
    ///
    /// # Errors
    /// Why it cannot be a guest.
    #[cfg(kvm)]
    pub fn with_guest(self, program: Vec<u8>) -> Result<Self, String> {
        crate::program::Program::parse(&program)?;
        Ok(Self { image: program.into(), ..self })
    }

    /// With another guest program, which this build cannot run.
    ///
    /// # Errors
    /// Never: the run is refused.
    #[cfg(not(kvm))]
    pub fn with_guest(self, _: Vec<u8>) -> Result<Self, String> {
        Ok(self)
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
    let loads = match Loads::of(domain, &Kinds::builtin()) {
        Ok(loads) => loads,
        Err(fault) => return bad(fault.to_string()),
    };
    if let Err(error) = lock.check_capacity(lockers(&loads, domain.vcpus) as usize) {
        return bad(error.to_string());
    }
    if let Some(why) = domain.kernel.only_simulated() {
        return bad(why.into());
    }
    let kinds: Vec<&str> = domain.workload.0.iter().map(|w| w.kind.as_str()).collect();
    let kinds = kinds.join(", ");
    let among_data = loads.layout(LayoutOf::types::<u64, u64>()).is_some();
    let among_data = among_data.then_some("has locks among kernel data");
    if let Some(needs) = loads.only_simulated().or(among_data) {
        return bad(format!(
            "the workload ({kinds}) {needs}, and the guests of `{NAME}` have nothing of the kind; run it in the \
             world `sim`"
        ));
    }
    if loads.locks_in_user_mode() && domain.kernel.hz == 0 && shares(&loads, domain.vcpus) {
        return bad(format!(
            "with `kernel.hz` = 0 a task that spins in user mode never leaves its vCPU to the holder, and the tasks of the \
             workload ({kinds}) share the {} vCPUs; set `kernel.hz`, use fewer threads, or `mode = \"kernel\"`",
            domain.vcpus
        ));
    }
    if loads.most_tasks(domain.vcpus) > MOST_TASKS {
        return bad(format!(
            "the workload ({kinds}) has up to {} tasks at a time, and a guest of `{NAME}` has room for {MOST_TASKS}: \
             give it fewer",
            loads.most_tasks(domain.vcpus)
        ));
    }
    Ok(loads)
}

/// Whether tasks share vCPUs: one of them may have to wait until another one leaves.
pub(crate) fn shares(loads: &Loads, vcpus: u32) -> bool {
    let mut taken = vec![false; vcpus as usize];
    let mut collides = |(i, first): (usize, &First)| {
        let vcpu = first.start.vcpu.map_or(i, |vcpu| vcpu as usize);
        taken.get_mut(vcpu).is_none_or(|taken| std::mem::replace(taken, true))
    };
    loads.starts_tasks(vcpus) || loads.start(vcpus).iter().enumerate().any(&mut collides)
}

/// Those that are a CPU of their own to the locks: the vCPUs, and in user mode the tasks.
pub(crate) fn lockers(loads: &Loads, vcpus: u32) -> u32 {
    let tasks = if loads.locks_in_user_mode() { loads.start(vcpus).len() } else { 0 };
    vcpus + tasks as u32
}

/// Whether tasks of a domain share vCPUs, and so need a kernel.
fn has_kernel(domain: &Domain) -> bool {
    Loads::of(domain, &Kinds::builtin()).is_ok_and(|loads| shares(&loads, domain.vcpus))
}

/// The keys that describe a simulated machine or kernel.
const IGNORED: [Ignored; 13] = [
    Ignored::MACHINE,
    Ignored::NOISE,
    Ignored::GOVERNOR,
    Ignored::THREADS,
    Ignored::WEIGHTS,
    Ignored::PAUSE_LOOPS,
    Ignored::DEBOOSTER,
    Ignored::PV,
    Ignored::halt_polling("a vCPU that halts leaves at once"),
    Ignored::new(
        "domain.kernel",
        |s| s.domains.iter().any(|d| !has_kernel(d)),
        "a guest in which each task has a vCPU of its own has no ticks, and nobody to preempt",
    ),
    Ignored::new(
        "domain.kernel.task_switch and domain.kernel.tick_work",
        |s| s.domains.iter().any(has_kernel),
        "they take the time that they take here",
    ),
    Ignored::new(
        "domain.kernel.new_process",
        |s| {
            let gives = |d: &Domain| d.kernel.new_process != NewProcess::Balanced;
            s.domains.iter().any(|d| has_kernel(d) && gives(d))
        },
        "a new process starts on the vCPU with the fewest tasks",
    ),
    Ignored::new(
        "domain.kernel.vmstat",
        |s| s.domains.iter().any(|d| d.kernel.vmstat.is_some()),
        "these guests have no programs beside the workload",
    ),
];

impl World for Hv {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports(&self, scenario: &Scenario) -> Result<Vec<Unhonoured>, Refused> {
        self.loads(scenario)?;
        Ok(Ignored::of(&IGNORED, scenario))
    }

    #[cfg(kvm)]
    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
        cancel: &dyn Cancel,
    ) -> Result<Outcome, Refused> {
        crate::run::run(self, scenario, seed, observer, cancel)
    }

    #[cfg(not(kvm))]
    fn run(
        &self,
        _: &Scenario,
        _: u64,
        _: &mut dyn Observer,
        _: &dyn Cancel,
    ) -> Result<Outcome, Refused> {
        Err(absent())
    }
}

/// Why this build cannot run vCPUs.
#[cfg(not(kvm))]
pub(crate) fn absent() -> Refused {
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Refused::Machine {
            cause: format!(
                "this build of overspin is without `{NAME}`, its hypervisor for KVM, so that it takes less time to build"
            ),
            remedy: "build it with that, in the folder of its sources: `cargo build --release --features hv`; or use \
                     `--world threads`"
                .into(),
        };
    }
    Refused::Machine {
        cause: format!("the world `{NAME}` needs Linux on x86-64"),
        remedy: "use `--world threads`, which works on every Linux, or `--world sim`".into(),
    }
}
