//! kernbench: how long a kernel takes to compile, with few jobs, enough, and as many as there are. Con Kolivas's
//! benchmark of 2003 to 2009, which judged the spinlocks of 2008.

use crate::benchmark::{Benchmark, Outcome, Steps};
use crate::preload::{self, Locks};
use crate::program::{self, Usage, need};
use crate::scratch::Scratch;
use crate::source::{SourceOf, Tree};
use crate::{Cancel, Failed, cpus};
use overspin_scenario::Metric;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// Elapsed time.
pub static ELAPSED: Metric =
    Metric::new("elapsed", "s", "from the start of the program to its end");
/// User time.
pub static USER: Metric =
    Metric::new("user", "s", "user time of the program and of all processes that it waited for");
/// System time.
pub static SYSTEM: Metric = Metric::new("system", "s", "system time of the same processes");
/// Share of CPUs.
pub static CPU: Metric =
    Metric::new("cpu", "%", "(user + system) / elapsed in whole percent, truncated as by time(1)");
/// Involuntary switches.
pub static SWITCHES: Metric = Metric::new("context-switches", "", "involuntary switches");
/// Voluntary switches.
pub static SLEEPS: Metric = Metric::new("sleeps", "", "voluntary switches");
/// All of them, in kernbench's order.
pub static METRICS: [&Metric; 6] = [&ELAPSED, &USER, &SYSTEM, &CPU, &SWITCHES, &SLEEPS];

/// Adds these figures.
#[must_use]
pub fn with_usage(outcome: Outcome, usage: &Usage) -> Outcome {
    outcome
        .with(&ELAPSED, usage.elapsed_s)
        .with(&USER, usage.user_s)
        .with(&SYSTEM, usage.system_s)
        .with(&CPU, usage.percent())
        .with(&SWITCHES, usage.preempted as f64)
        .with(&SLEEPS, usage.slept as f64)
}

/// How many jobs `make` may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Half of the CPUs, at least 3.
    Half,
    /// Four times the CPUs.
    Optimal,
    /// As many as there are.
    Maximal,
    /// This number of jobs.
    Jobs(u32),
}

impl Load {
    /// The name, as a part of a place.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Half => "half".into(),
            Self::Optimal => "optimal".into(),
            Self::Maximal => "maximal".into(),
            Self::Jobs(n) => format!("jobs-{n}"),
        }
    }

    /// The load of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "half" => Some(Self::Half),
            "optimal" => Some(Self::Optimal),
            "maximal" => Some(Self::Maximal),
            _ => Some(Self::Jobs(name.strip_prefix("jobs-")?.parse().ok()?)),
        }
    }

    /// The argument of `make` on a machine with `cpus` CPUs, as kernbench chooses it.
    #[must_use]
    pub fn argument(self, cpus: usize) -> String {
        match self {
            Self::Half => format!("-j{}", (cpus / 2).max(3)),
            Self::Optimal => format!("-j{}", 4 * cpus),
            Self::Maximal => "-j".into(),
            Self::Jobs(n) => format!("-j{n}"),
        }
    }
}

/// The benchmark.
#[derive(Debug)]
pub struct Kernbench {
    /// What is built.
    pub source: SourceOf,
    /// What `make` is asked for; none: `vmlinux` of a kernel, and the first goal of any other tree.
    pub target: Option<String>,
    /// The loads to compare.
    pub loads: Vec<Load>,
    /// The locks to compare.
    pub locks: Locks,
    /// Where to build; none: where temporary files belong.
    pub scratch: Option<PathBuf>,
    steps: Steps,
    ready: Option<Ready>,
}

#[derive(Debug)]
struct Ready {
    /// Lines that `make` printed in the first build: how far another one is, its lines tell.
    lines: Option<usize>,
    tree: Tree,
    scratch: Arc<Scratch>,
}

impl Kernbench {
    /// The benchmark of this tree.
    #[must_use]
    pub fn new(source: SourceOf, loads: Vec<Load>) -> Self {
        Self {
            source,
            target: None,
            loads,
            locks: Locks::default(),
            scratch: None,
            steps: Steps::default(),
            ready: None,
        }
    }

    fn make(&self, ready: &Ready) -> Command {
        let mut make = Command::new("make");
        make.arg("-C").arg(&ready.tree.path);
        if ready.tree.kernel {
            make.arg(format!("O={}", ready.scratch.path().join("build").display()));
        }
        // What our own caller's make asked for is not for this one.
        make.env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("MAKELEVEL");
        make
    }

    fn place(&self, place: usize) -> (String, Load) {
        let variants = self.locks.variants();
        let (variant, load) = (place / self.loads.len(), place % self.loads.len());
        (variants[variant].clone(), self.loads[load])
    }
}

/// How far a build is that has printed so many lines.
fn far(lines: usize, all: Option<usize>) -> String {
    match all {
        Some(all @ 1..) => format!("{} % built", 100 * lines.min(all) / all),
        _ => format!("{lines} lines of make"),
    }
}

/// Reads all files of a tree, so that the first run does not wait for the disk. Returns their bytes.
fn read_all(path: &std::path::Path, cancel: Cancel) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    let mut bytes = 0;
    for entry in entries.flatten() {
        if cancel() {
            break;
        }
        bytes += match entry.file_type() {
            Ok(kind) if kind.is_dir() => read_all(&entry.path(), cancel),
            // A file that cannot be read now cannot be built either, and `make` says so better.
            Ok(kind) if kind.is_file() => {
                std::fs::read(entry.path()).map_or(0, |content| content.len() as u64)
            }
            _ => 0,
        };
    }
    bytes
}

impl Benchmark for Kernbench {
    fn name(&self) -> &'static str {
        "kernbench"
    }

    fn description(&self) -> String {
        let Some(ready) = &self.ready else { return String::new() };
        let target = match &self.target {
            Some(target) => format!(", target {target}"),
            None if ready.tree.kernel => ", tinyconfig, target vmlinux".into(),
            None => String::new(),
        };
        let loads: Vec<String> = (self.loads.iter())
            .map(|load| format!("{} load is make {}", load.name(), load.argument(cpus())))
            .collect();
        format!("{}{target}. On {} CPUs, {}.", ready.tree.words, cpus(), loads.join(", "))
    }

    fn places(&self) -> Vec<String> {
        let of = |variant: String| {
            self.loads.iter().map(move |load| Locks::place(&variant, &load.name()))
        };
        self.locks.variants().into_iter().flat_map(of).collect()
    }

    fn prepare(&mut self, cancel: Cancel) -> Result<(), Failed> {
        need("make", "builds the tree", "make")?;
        let scratch = Arc::new(Scratch::new(self.scratch.as_deref())?);
        let tree = self.source.prepare(&scratch, &self.steps, cancel)?;
        if tree.kernel {
            let compiler = std::env::var("CC").unwrap_or_else(|_| "gcc".into());
            need(&compiler, "compiles the kernel", "gcc")?;
            need("flex", "makes the kernel's configuration program", "flex")?;
            need("bison", "makes the kernel's configuration program", "bison")?;
            need("bc", "computes the kernel's constants", "bc")?;
        }
        self.steps.tell("reading the sources");
        read_all(&tree.path, cancel);
        let ready = Ready { lines: None, tree, scratch };
        if ready.tree.kernel {
            self.steps.tell("configuring");
            let mut make = self.make(&ready);
            make.arg("tinyconfig");
            program::run(make, &ready.scratch, cancel)?;
        }
        self.ready = Some(ready);
        Ok(())
    }

    /// One build makes the tools that `make clean` leaves, and fills the caches.
    fn warm_up(&self) -> Vec<usize> {
        vec![0]
    }

    fn tell_steps(&mut self, steps: Steps) {
        self.steps = steps;
    }

    fn run(&mut self, place: usize, _: bool, cancel: Cancel) -> Result<Outcome, Failed> {
        let (variant, load) = self.place(place);
        let Some(ready) = &self.ready else {
            return Err(Failed::usage("it was not prepared", "prepare it first"));
        };
        self.steps.tell("make clean");
        let mut clean = self.make(ready);
        clean.arg("clean");
        program::run(clean, &ready.scratch, cancel)?;
        let mut make = self.make(ready);
        make.arg(load.argument(cpus()));
        let kernel = ready.tree.kernel.then(|| "vmlinux".to_owned());
        make.args(self.target.clone().or(kernel));
        self.locks.apply(&variant, &mut make)?;
        let all = ready.lines;
        let tell = |lines: usize| self.steps.tell(&far(lines, all));
        tell(0);
        let make = program::start(make, &ready.scratch)?;
        let ended = make.finish_counting(cancel, &tell)?;
        if let Some(ready) = &mut self.ready {
            ready.lines = Some(ended.stdout.lines().count());
        }
        let outcome = Outcome { output: ended.stderr, ..Outcome::default() };
        Ok(with_usage(outcome, &ended.usage))
    }

    fn doubts(&self) -> Vec<String> {
        preload::doubt(&self.locks, "make").into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::{Plan, measure_all};

    #[test]
    fn loads_are_those_of_kernbench() {
        // 2008: four vCPUs, half load -j3, optimal load -j16.
        assert_eq!(Load::Half.argument(4), "-j3");
        assert_eq!(Load::Optimal.argument(4), "-j16");
        assert_eq!(Load::Half.argument(16), "-j8");
        assert_eq!(Load::Maximal.argument(4), "-j");
        for load in [Load::Half, Load::Optimal, Load::Maximal, Load::Jobs(7)] {
            assert_eq!(Load::named(&load.name()), Some(load));
        }
        assert_eq!(Load::named("quarter"), None);
    }

    #[test]
    fn any_tree_with_a_makefile_is_built_and_left_as_it_was() {
        if program::find("make").is_none() {
            overspin_testing::skip("there is no make");
            return;
        }
        let theirs = tempfile::tempdir().unwrap();
        let makefile = "all: a b\na b:\n\tsleep 0.2; touch $@\nclean:\n\trm -f a b\n";
        std::fs::write(theirs.path().join("Makefile"), makefile).unwrap();
        let source = SourceOf::Tree(theirs.path().into());
        let mut kernbench = Kernbench::new(source, vec![Load::Jobs(1), Load::Jobs(2)]);
        let plan = Plan { runs: 2, time: None, seed: 1 };
        let measured = measure_all(&mut kernbench, &plan, &|| false).unwrap();
        assert!(measured.failed.is_none(), "{:?}", measured.failed);
        assert_eq!(measured.places, ["jobs-1", "jobs-2"]);
        let elapsed = |place: &str| -> Vec<f64> {
            let runs = measured.runs.iter().filter(|r| r.place == place);
            let of = |r: &crate::Run| {
                r.outcome.figures.iter().find(|f| f.metric.name == "elapsed").unwrap().value
            };
            runs.map(of).collect()
        };
        // Two sleeps of 0.2 s, one after the other.
        assert!(elapsed("jobs-1").iter().all(|s| *s >= 0.4), "{:?}", elapsed("jobs-1"));
        assert!(elapsed("jobs-2").iter().all(|s| *s >= 0.2), "{:?}", elapsed("jobs-2"));
        assert_eq!(std::fs::read_dir(theirs.path()).unwrap().count(), 1, "only the Makefile");
    }

    #[test]
    fn a_build_tells_how_far_it_is() {
        assert_eq!([far(3, None), far(3, Some(0))], ["3 lines of make", "3 lines of make"]);
        assert_eq!([far(1, Some(4)), far(9, Some(4))], ["25 % built", "100 % built"]);
        if program::find("make").is_none() {
            overspin_testing::skip("there is no make");
            return;
        }
        let theirs = tempfile::tempdir().unwrap();
        // Three of six lines come before the pause.
        let makefile = "all:\n\techo a\n\tsleep 2.5\n\techo b\n\techo c\nclean:\n";
        std::fs::write(theirs.path().join("Makefile"), makefile).unwrap();
        let source = SourceOf::Tree(theirs.path().into());
        let mut kernbench = Kernbench::new(source, vec![Load::Jobs(1)]);
        let told = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let hear = std::rc::Rc::clone(&told);
        kernbench.tell_steps(Steps::to(move |step| hear.borrow_mut().push(step.to_owned())));
        let plan = Plan { runs: 1, time: None, seed: 1 };
        measure_all(&mut kernbench, &plan, &|| false).unwrap();
        let told = told.borrow();
        let steps = ["copying the tree", "reading the sources", "make clean"];
        assert!(steps.iter().all(|step| told.iter().any(|t| t == step)), "{told:?}");
        assert!(told.iter().any(|t| t.ends_with(" lines of make")), "the warm-up: {told:?}");
        // It says of the directory when it enters and leaves it, too.
        let built = |t: &String| t.ends_with(" % built") && !t.starts_with('0');
        assert!(told.iter().any(built), "{told:?}");
    }

    #[test]
    fn a_build_that_fails_shows_what_make_said() {
        if program::find("make").is_none() {
            overspin_testing::skip("there is no make");
            return;
        }
        let theirs = tempfile::tempdir().unwrap();
        std::fs::write(theirs.path().join("Makefile"), "all:\n\tno-such-compiler\nclean:\n")
            .unwrap();
        let mut kernbench = Kernbench::new(SourceOf::Tree(theirs.path().into()), vec![Load::Half]);
        let plan = Plan { runs: 1, time: None, seed: 1 };
        let measured = measure_all(&mut kernbench, &plan, &|| false).unwrap();
        let said = measured.failed.unwrap().to_string();
        assert!(said.contains("no-such-compiler"), "{said}");
    }
}
