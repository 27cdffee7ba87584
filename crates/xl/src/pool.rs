//! A cpupool for a run: takes pCPUs from `Pool-0`, and gives them back.

use crate::{Pool, Xl, XlError};
use std::collections::BTreeSet;
use std::path::Path;

/// The pool that every host has.
const HOST_POOL: &str = "Pool-0";

/// A pool that exists for as long as this. Dropping it restores the host as far as that works.
#[derive(Debug)]
pub(crate) struct TakenPool<'a> {
    xl: &'a Xl,
    name: String,
    /// pCPUs that no longer belong to `Pool-0`.
    taken: Vec<u32>,
    made: bool,
}

impl<'a> TakenPool<'a> {
    /// Makes the pool; `folder` is for its configuration file.
    ///
    /// # Errors
    /// If the pool exists, or its pCPUs are not free, or `xl` fails. The host is then as before.
    pub(crate) fn make(xl: &'a Xl, pool: &Pool, folder: &Path) -> Result<Self, XlError> {
        let pools = pools(&xl.run(&["cpupool-list", "-c"])?);
        if pools.iter().any(|(name, _)| *name == pool.name) {
            return Err(XlError::PoolExists(pool.name.clone()));
        }
        let host = pools.into_iter().find(|(name, _)| name == HOST_POOL);
        let host = host.map(|(_, cpus)| cpus).unwrap_or_default();
        let wanted: BTreeSet<u32> = pool.cpus.iter().copied().collect();
        if let Some(cpu) = wanted.difference(&host).next() {
            return Err(XlError::NoCpu { cpu: *cpu, has: words(&host) });
        }
        if wanted == host {
            return Err(XlError::AllCpus(words(&host)));
        }
        let mut taken = Self { xl, name: pool.name.clone(), taken: Vec::new(), made: false };
        for cpu in wanted {
            xl.run(&["cpupool-cpu-remove", HOST_POOL, &cpu.to_string()])?;
            taken.taken.push(cpu);
        }
        let file = folder.join("pool.cfg");
        let path = file.display().to_string();
        std::fs::write(&file, config(pool))
            .map_err(|cause| XlError::File { path: path.clone(), cause })?;
        xl.run(&["cpupool-create", &path])?;
        taken.made = true;
        Ok(taken)
    }

    /// Destroys the pool and gives its pCPUs back.
    ///
    /// # Errors
    /// The first failure; the other steps are tried all the same.
    pub(crate) fn restore(mut self) -> Result<(), XlError> {
        self.give_back()
    }

    fn give_back(&mut self) -> Result<(), XlError> {
        let mut result = Ok(());
        if std::mem::take(&mut self.made) {
            result = self.xl.run(&["cpupool-destroy", &self.name]).map(|_| ());
        }
        for cpu in std::mem::take(&mut self.taken) {
            let added = self.xl.run(&["cpupool-cpu-add", HOST_POOL, &cpu.to_string()]);
            result = result.and(added.map(|_| ()));
        }
        result
    }
}

impl Drop for TakenPool<'_> {
    fn drop(&mut self) {
        // An error of the run itself is already on its way to the user.
        let _ = self.give_back();
    }
}

fn config(pool: &Pool) -> String {
    let cpus: Vec<String> = pool.cpus.iter().map(|cpu| format!("\"{cpu}\"")).collect();
    let scheduler =
        pool.scheduler.as_ref().map_or_else(String::new, |name| format!("sched = \"{name}\"\n"));
    format!("name = \"{}\"\n{scheduler}cpus = [{}]\n", pool.name, cpus.join(", "))
}

/// Names and pCPUs in the output of `xl cpupool-list -c`: a heading, then a line for each pool.
fn pools(output: &str) -> Vec<(String, BTreeSet<u32>)> {
    let pool = |line: &str| {
        let (name, cpus) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let cpus = cpus.split([',', ' ']).filter_map(|part| {
            let part = part.trim();
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
        });
        (name.to_owned(), cpus.flatten().collect())
    };
    output.lines().skip(1).filter(|line| !line.trim().is_empty()).map(pool).collect()
}

fn words(cpus: &BTreeSet<u32>) -> String {
    let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
    if list.is_empty() { "none".into() } else { list.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_of_cpus() {
        let text = "Name               CPU list\nPool-0             0,1,4-6\nempty              \n";
        let pools = pools(text);
        assert_eq!(pools[0], ("Pool-0".into(), BTreeSet::from([0, 1, 4, 5, 6])));
        assert_eq!(pools[1], ("empty".into(), BTreeSet::new()));
    }
}
