//! What the tasks of one domain do: one workload, or several side by side. Each workload has its own tasks,
//! its own locks, and the vCPUs that its tasks may use. If there are several, the names of tasks and locks
//! begin with their workload: `ping/ping`, `kernbench/dcache`.

use crate::part::{self, Part};
use crate::{Disk, Fault, Kinds, Layout, LayoutOf, Load, Start, Ticks};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use overspin_scenario::{Domain, Picos, Workload};

/// The workloads of a domain.
#[derive(Debug)]
pub struct Loads(Vec<One>);

#[derive(Debug)]
struct One {
    load: Box<dyn Load>,
    /// vCPUs that its tasks may use; all if empty.
    vcpus: Arc<[u32]>,
    /// Its label, if there are others.
    label: Option<Box<str>>,
    /// The world's number of its first lock.
    first_lock: usize,
}

/// A task that a domain begins with.
#[derive(Debug)]
pub struct First {
    /// The task itself. Its vCPU is one of the domain's.
    pub start: Start,
    /// vCPUs that this task and the tasks that it starts may use; all if empty.
    pub vcpus: Arc<[u32]>,
    /// The domain ends only after this task and the tasks that it starts have ended.
    pub awaited: bool,
}

impl Loads {
    /// The loads of `domain`'s workloads.
    ///
    /// # Errors
    /// Returns what is wrong and at which key of the domain.
    pub fn of(domain: &Domain, kinds: &Kinds) -> Result<Self, Fault> {
        let all = &domain.workload.0;
        if all.is_empty() {
            return Err(Fault::new("workload", "there is no workload", "the domain needs one"));
        }
        let place = |i: usize| match all.len() {
            1 => "workload".to_string(),
            _ => format!("workload.{i}"),
        };
        let mut loads = Vec::with_capacity(all.len());
        for (i, workload) in all.iter().enumerate() {
            let load = one(workload, domain, kinds).map_err(|fault| fault.within(&place(i)))?;
            let label = (all.len() > 1).then(|| label(all, i).into_boxed_str());
            let vcpus = workload.vcpus.as_slice().into();
            loads.push(One { load, vcpus, label, first_lock: 0 });
        }
        distinct(all)?;
        let has_layout = |one: &One| one.load.layout(LayoutOf::types::<usize, usize>()).is_some();
        let has_data = |one: &&One| has_layout(one) || one.load.disk().is_some();
        if let Some(second) = loads.iter().filter(has_data).nth(1) {
            let i = loads.iter().position(|one| core::ptr::eq(one, second)).unwrap_or(0);
            let message = "two workloads of this domain have a disk and data beside their locks";
            return Err(Fault::new(place(i), message, "a kernel has only one; use two domains"));
        }
        // Locks among data come first: a layout counts its own locks from 0.
        let mut locks = 0;
        let (among_data, others): (Vec<_>, Vec<_>) =
            loads.iter_mut().partition(|one| has_layout(one));
        for one in among_data.into_iter().chain(others) {
            one.first_lock = locks;
            locks += one.load.lock_names().len();
        }
        Ok(Self(loads))
    }

    /// Names of all locks, in the order of their [`LockId`](crate::LockId) in the world.
    #[must_use]
    pub fn lock_names(&self) -> Vec<String> {
        let mut by_number: Vec<&One> = self.0.iter().collect();
        by_number.sort_by_key(|one| one.first_lock);
        let names = |one: &One| {
            let name = |name: String| one.name(&name);
            one.load.lock_names().into_iter().map(name).collect::<Vec<_>>()
        };
        by_number.into_iter().flat_map(names).collect()
    }

    /// Whether it runs until the limit because no workload has an end of its own.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.0.iter().all(|one| one.load.is_endless())
    }

    /// Most tasks that may exist at a time in a guest with `vcpus` vCPUs.
    #[must_use]
    pub fn most_tasks(&self, vcpus: u32) -> u64 {
        self.0.iter().map(|one| one.load.most_tasks(one.number(vcpus))).sum()
    }

    /// CPUs that a lock of a guest with `vcpus` vCPUs knows. In the memory of a lock of user mode, each task is one of its own.
    #[must_use]
    pub fn lock_cpus(&self, vcpus: u32) -> usize {
        let tasks = if self.locks_in_user_mode() { self.most_tasks(vcpus) } else { 0 };
        vcpus as usize + tasks as usize
    }

    /// The mean CPU time of an item, if it is known and the same for all workloads.
    #[must_use]
    pub fn work_per_item(&self) -> Option<Picos> {
        let mut all = self.0.iter().map(|one| one.load.work_per_item());
        let first = all.next()??;
        all.all(|other| other == Some(first)).then_some(first)
    }

    /// The ticks that its workloads wait for.
    pub fn ticks(&self) -> impl Iterator<Item = Ticks> {
        self.0.iter().filter_map(|one| one.load.ticks())
    }

    /// Whether devices interrupt one of them.
    #[must_use]
    pub fn has_devices(&self) -> bool {
        self.0.iter().any(|one| one.load.has_devices())
    }

    /// What they do that only a simulated host and kernel can have, in words; nothing if they can run elsewhere.
    #[must_use]
    pub fn only_simulated(&self) -> Option<&'static str> {
        match () {
            () if self.ticks().next().is_some() => {
                Some("waits for ticks of a kernel or a hypervisor")
            }
            () if self.has_devices() => Some("is interrupted by a device"),
            () if self.disk().is_some() => Some("writes to a disk of its own kernel"),
            () if self.0.iter().any(|one| one.load.asks_for_extensions()) => {
                Some("asks for extensions of time slices (`slice_request`)")
            }
            () if self.make_excursions() => Some(
                "enters its kernel in sections, or is woken by another vCPU (`excursion`, `run_up`, `woken`)",
            ),
            () => None,
        }
    }

    /// Whether one of them [makes excursions](crate::Load::makes_excursions).
    #[must_use]
    pub fn make_excursions(&self) -> bool {
        self.0.iter().any(|one| one.load.makes_excursions())
    }

    /// Whether one of them unmaps memory.
    #[must_use]
    pub fn unmaps(&self) -> bool {
        self.0.iter().any(|one| one.load.unmaps())
    }

    /// Whether one of them takes locks in user mode.
    #[must_use]
    pub fn locks_in_user_mode(&self) -> bool {
        self.0.iter().any(|one| one.load.locks_in_user_mode())
    }

    /// Whether one of them touches pages of memory.
    #[must_use]
    pub fn touches_memory(&self) -> bool {
        self.0.iter().any(|one| one.load.touches_memory())
    }

    /// Whether tasks start others while they run.
    #[must_use]
    pub fn starts_tasks(&self, vcpus: u32) -> bool {
        self.most_tasks(vcpus) > self.start(vcpus).len() as u64
    }

    /// The disk that one of them writes to.
    #[must_use]
    pub fn disk(&self) -> Option<&Disk> {
        self.0.iter().find_map(|one| one.load.disk())
    }

    /// Where the first locks lie among data, if they do.
    #[must_use]
    pub fn layout(&self, of: LayoutOf) -> Option<Layout> {
        self.0.iter().find_map(|one| one.load.layout(of))
    }

    /// The first tasks, in a guest with `vcpus` vCPUs.
    #[must_use]
    pub fn start(&self, vcpus: u32) -> Vec<First> {
        let all_endless = self.is_endless();
        let tasks = |one: &One| {
            let awaited = all_endless || !one.load.is_endless();
            let stays = one.load.stays(one.number(vcpus));
            let first = |start| {
                let start = one.place(start);
                let vcpus = match start.vcpu {
                    Some(vcpu) if stays => Arc::from([vcpu]),
                    _ => Arc::clone(&one.vcpus),
                };
                First { start, vcpus, awaited }
            };
            one.load.start(one.number(vcpus)).into_iter().map(first).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(tasks).collect()
    }
}

/// Makes the load of a workload of `domain`.
fn one(workload: &Workload, domain: &Domain, kinds: &Kinds) -> Result<Box<dyn Load>, Fault> {
    for (i, vcpu) in workload.vcpus.iter().enumerate() {
        if *vcpu >= domain.vcpus {
            let last = domain.vcpus.saturating_sub(1);
            let help = format!("the domain has vCPUs 0 to {last}");
            return Err(Fault::new("vcpus", format!("there is no vCPU {vcpu}"), help));
        }
        if workload.vcpus[..i].contains(vcpu) {
            return Err(Fault::new(
                "vcpus",
                format!("vCPU {vcpu} is listed twice"),
                "list it once",
            ));
        }
    }
    kinds.find(&workload.kind)?.load(workload)
}

/// The label of the `i`-th of several workloads: its name, or its kind with a number if others of its kind
/// come before it.
fn label(all: &[Workload], i: usize) -> String {
    let of_the_kind = |w: &&Workload| w.name.is_none() && w.kind == all[i].kind;
    match (&all[i].name, all[..i].iter().filter(of_the_kind).count()) {
        (Some(name), _) => name.clone(),
        (None, 0) => all[i].kind.clone(),
        (None, before) => format!("{}-{}", all[i].kind, before + 1),
    }
}

/// Checks that no two workloads of a domain have the same label.
fn distinct(all: &[Workload]) -> Result<(), Fault> {
    let labels: Vec<String> = (0..all.len()).map(|i| label(all, i)).collect();
    match (0..all.len()).find(|i| labels[..*i].contains(&labels[*i])) {
        Some(i) => {
            let key = format!("workload.{i}.name");
            let message = format!("an earlier workload is also called `{}`", labels[i]);
            Err(Fault::new(key, message, "give each workload its own name"))
        }
        None => Ok(()),
    }
}

impl One {
    /// How many of a guest's `vcpus` vCPUs it may use.
    fn number(&self, vcpus: u32) -> u32 {
        if self.vcpus.is_empty() { vcpus } else { self.vcpus.len() as u32 }
    }

    fn name(&self, name: &str) -> String {
        part::named(self.label.as_deref(), name)
    }

    /// Its task, as the world sees it.
    fn place(&self, start: Start) -> Start {
        if self.label.is_none() && self.vcpus.is_empty() {
            return start;
        }
        let part = Part {
            label: self.label.clone(),
            vcpus: Arc::clone(&self.vcpus),
            first_lock: self.first_lock,
        };
        part::place(&Arc::new(part), start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BurnWait, Dbench, LockLoop, Pft};
    use overspin_scenario::{Parameters, Workloads};
    use std::vec;

    fn default<P: Parameters>() -> P {
        let keys = Kinds::builtin().find(P::KIND).unwrap().keys;
        let mut tree = keys.defaults();
        tree.entry("clients").or_insert(1.into());
        if P::KIND != Dbench::KIND {
            tree.remove("clients");
        }
        serde_json::from_value(tree.into()).unwrap()
    }

    fn domain(workloads: Vec<Workload>) -> Domain {
        Domain::new("guest", 4, "ticket", Workloads(workloads))
    }

    fn loads(workloads: Vec<Workload>) -> Result<Loads, Fault> {
        Loads::of(&domain(workloads), &Kinds::builtin())
    }

    fn loop_on(vcpus: &[u32]) -> Workload {
        Workload { vcpus: vcpus.to_vec(), ..default::<LockLoop>().into() }
    }

    #[test]
    fn one_alone_is_called_as_ever() {
        let one = loads(vec![loop_on(&[])]).unwrap();
        assert_eq!(one.lock_names(), ["section"]);
        let tasks: Vec<_> =
            one.start(4).into_iter().map(|f| (f.start.name, f.start.vcpu)).collect();
        let all: Vec<_> = (0..4).map(|i| (format!("loop{i}"), Some(i))).collect();
        assert_eq!(tasks, all);
    }

    #[test]
    fn several_have_their_names_locks_and_vcpus() {
        let hog = Workload { name: Some("hog".into()), ..BurnWait::default().into() };
        let file_server = default::<Dbench>().into();
        let all = loads(vec![loop_on(&[3, 1]), hog, loop_on(&[]), file_server]).unwrap();
        // Locks among data come first.
        let names = all.lock_names();
        assert_eq!(names.len(), 5 + 2);
        assert_eq!(names[0], "dbench/kernel_flag");
        assert_eq!(names[5..], ["lock-loop/section", "lock-loop-2/section"]);
        let firsts = all.start(4);
        let told: Vec<_> =
            firsts.iter().map(|f| (f.start.name.as_str(), f.start.vcpu, f.awaited)).collect();
        assert_eq!(
            told[..3],
            [
                ("lock-loop/loop0", Some(3), false),
                ("lock-loop/loop1", Some(1), false),
                ("hog/burn0", Some(0), false),
            ]
        );
        assert_eq!(told.last(), Some(&("dbench/dbench", None, true)));
        assert!(!all.is_endless() && all.disk().is_some());
        assert_eq!(all.most_tasks(4), 2 + 4 + 4 + 2);
        assert_eq!(firsts[0].vcpus[..], [3, 1]);
    }

    #[test]
    fn faults_name_the_key_in_the_domain() {
        let fault = |workloads| {
            let fault = loads(workloads).unwrap_err();
            (fault.key, fault.message)
        };
        let has = |workloads, key: &str, message: &str| {
            let (at, text) = fault(workloads);
            assert_eq!(at, key, "{text}");
            assert!(text.contains(message), "{text}");
        };
        let pft = || Workload::from(default::<Pft>());
        let mut none = pft();
        none.kind = "pfft".into();
        has(vec![none.clone()], "workload.kind", "no workload `pfft`");
        has(vec![pft(), none], "workload.1.kind", "no workload `pfft`");
        has(Vec::new(), "workload", "no workload");
        has(vec![loop_on(&[0, 4])], "workload.vcpus", "no vCPU 4");
        has(vec![pft(), loop_on(&[2, 2])], "workload.1.vcpus", "twice");
        let named = Workload { name: Some("pft".into()), ..loop_on(&[]) };
        has(vec![pft(), named], "workload.1.name", "also called `pft`");
        let file_server = || Workload::from(default::<Dbench>());
        has(vec![file_server(), file_server()], "workload.1", "two workloads");
        let mut slow = pft();
        slow.edit(|w: &mut Pft| w.fork = Picos::MAX);
        has(vec![slow], "workload.fork", "out of range");
    }
}
