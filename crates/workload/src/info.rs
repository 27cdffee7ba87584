//! What a workload is: its parameters, their description, and what they make a guest do.

use crate::{Disk, Layout, LayoutOf, Program, Ticks};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use overspin_scenario::keys::Section;
#[cfg(test)]
use overspin_scenario::keys::{Key, Kind};
use overspin_scenario::{Fault, Parameters, Picos, Tree, Value, Workload};

/// What a workload does with its parameters.
pub trait Load: fmt::Debug + Send + Sync {
    /// Checks what the ranges of single keys cannot say.
    ///
    /// # Errors
    /// Returns what is wrong and at which key.
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
    /// Names of the kernel locks that it takes, in the order of their [`LockId`](crate::LockId).
    fn lock_names(&self) -> Vec<String> {
        Vec::new()
    }
    /// Whether it runs until the limit because it has no end of its own.
    fn is_endless(&self) -> bool;
    /// The mean CPU time of an item, waits for locks aside; `None` if it is not known before the run.
    fn work_per_item(&self) -> Option<Picos> {
        None
    }
    /// Most tasks that may exist at a time in a guest with `vcpus` vCPUs.
    fn most_tasks(&self, vcpus: u32) -> u64;
    /// Whether each of its first tasks stays on the vCPU that it starts on, in a guest with `vcpus` vCPUs.
    fn stays(&self, _vcpus: u32) -> bool {
        false
    }
    /// The ticks that it waits for; a world without them cannot run it.
    fn ticks(&self) -> Option<Ticks> {
        None
    }
    /// Whether devices interrupt it; a world without interrupts cannot run it.
    fn has_devices(&self) -> bool {
        false
    }
    /// Whether its tasks call [`touch_page`](crate::Env::touch_page): a world with real memory makes some ready.
    fn touches_memory(&self) -> bool {
        false
    }
    /// Whether its tasks call [`unmap`](crate::Env::unmap).
    fn unmaps(&self) -> bool {
        false
    }
    /// Whether its tasks call [`ask_for_extensions`](crate::Env::ask_for_extensions); a kernel without extensions cannot run it.
    fn asks_for_extensions(&self) -> bool {
        false
    }
    /// Whether its tasks enter their kernel from user mode at given places: in sections ([`Env::trip`](crate::Env::trip)), or
    /// until another vCPU wakes them. Only a simulated kernel can have that.
    fn makes_excursions(&self) -> bool {
        false
    }
    /// The disk that it writes to.
    fn disk(&self) -> Option<&Disk> {
        None
    }
    /// Where its locks lie among other kernel data, if they do.
    fn layout(&self, _of: LayoutOf) -> Option<Layout> {
        None
    }
    /// Whether it takes locks in user mode ([`LockUse::User`](crate::LockUse)).
    fn locks_in_user_mode(&self) -> bool {
        false
    }
    /// Its first tasks, in a guest with `vcpus` vCPUs.
    fn start(&self, vcpus: u32) -> Vec<Start>;
}

/// A task that a workload begins with.
pub struct Start {
    /// Name.
    pub name: String,
    /// vCPU to start on; `None`: any.
    pub vcpu: Option<u32>,
    /// What it does.
    pub program: Program,
}

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A kind of workload: what `overspin list workloads` shows, and how to make one from its parameters.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadInfo {
    /// Name in scenarios.
    pub name: &'static str,
    /// One sentence: what it does.
    pub brief: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its keys in scenario files.
    pub keys: &'static Section,
    lower: fn(&mut Tree) -> Result<(), Fault>,
    load: fn(&Workload) -> Result<Box<dyn Load>, Fault>,
}

impl WorkloadInfo {
    /// The kind whose parameters are `W`. Its fields have the names of its keys. If they do not, see
    /// [`lowered_by`](Self::lowered_by).
    #[must_use]
    pub const fn of<W: Parameters + Load + 'static>(
        brief: &'static str,
        source: &'static str,
        keys: &'static Section,
    ) -> Self {
        Self { name: W::KIND, brief, source, keys, lower: |_| Ok(()), load: load::<W> }
    }

    /// A kind whose name and keys are known only while the program runs: `load` makes it from parameters that are
    /// within the ranges of `keys`.
    #[must_use]
    pub const fn made_by(
        name: &'static str,
        brief: &'static str,
        source: &'static str,
        keys: &'static Section,
        load: fn(&Workload) -> Result<Box<dyn Load>, Fault>,
    ) -> Self {
        Self { name, brief, source, keys, lower: |_| Ok(()), load }
    }

    /// Has `lower` turn its keys into the fields of its parameters.
    #[must_use]
    pub const fn lowered_by(self, lower: fn(&mut Tree) -> Result<(), Fault>) -> Self {
        Self { lower, ..self }
    }

    /// Makes the workload that a table of a scenario file states. `tree` has the values of
    /// [`keys`](Self::keys): numbers, times in picoseconds, texts, tables.
    ///
    /// # Errors
    /// Returns what is wrong and at which key.
    pub fn lower(&self, mut tree: Tree) -> Result<Workload, Fault> {
        (self.lower)(&mut tree)?;
        let workload =
            Workload { kind: self.name.into(), name: None, vcpus: Vec::new(), parameters: tree };
        self.load(&workload)?;
        Ok(workload)
    }

    /// Makes the load of `workload`, which is of this kind, from its parameters.
    ///
    /// # Errors
    /// Returns what is wrong and at which key.
    pub fn load(&self, workload: &Workload) -> Result<Box<dyn Load>, Fault> {
        self.keys.check(&workload.parameters)?;
        let load = (self.load)(workload)?;
        load.check()?;
        Ok(load)
    }
}

fn load<W: Parameters + Load + 'static>(workload: &Workload) -> Result<Box<dyn Load>, Fault> {
    match serde_json::from_value::<W>(Value::Object(workload.parameters.clone())) {
        Ok(parameters) => Ok(Box::new(parameters)),
        Err(error) => {
            let message = format!("invalid parameters for `{}`: {error}", W::KIND);
            Err(Fault::new("", message, "docs/scenario.md lists them all"))
        }
    }
}

/// All keys of a section and of the sections in it.
#[cfg(test)]
pub(crate) fn all_keys(section: &Section) -> Vec<Key> {
    let inner = |key: &Key| match key.kind {
        Kind::Table(inner) | Kind::Tables(inner) => all_keys(inner),
        _ => Vec::new(),
    };
    section.keys.iter().flat_map(|key| core::iter::once(*key).chain(inner(key))).collect()
}
