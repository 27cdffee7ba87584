//! Any program: its time and resource usage, with one lock or another in place of its pthread mutexes.

use crate::benchmark::{Benchmark, Outcome};
use crate::kernbench::with_usage;
use crate::left_behind::processes;
use crate::preload::{self, Locks, NONE};
use crate::scratch::Scratch;
use crate::{Cancel, Failed, program};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// The place, if no lock is named.
const PLACE: &str = "program";
/// A program that took fewer mutexes than this is hardly a test of them.
const FEW: u64 = 10_000;

/// The benchmark.
#[derive(Debug)]
pub struct AnyCommand {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// The locks to compare.
    pub locks: Locks,
    /// Where its output is kept while it runs; none: where temporary files belong.
    pub scratch: Option<PathBuf>,
    ready: Option<Arc<Scratch>>,
    doubts: Vec<String>,
}

impl AnyCommand {
    /// The benchmark of this program.
    #[must_use]
    pub fn new(words: Vec<OsString>, locks: Locks, scratch: Option<PathBuf>) -> Self {
        Self { words, locks, scratch, ready: None, doubts: Vec::new() }
    }

    fn program(&self) -> String {
        self.words.first().map_or_else(String::new, |w| w.to_string_lossy().into_owned())
    }
}

impl Benchmark for AnyCommand {
    fn name(&self) -> &'static str {
        "command"
    }

    fn description(&self) -> String {
        let words = self.words.iter().map(|w| w.to_string_lossy());
        format!("`{}`.", words.collect::<Vec<_>>().join(" "))
    }

    fn places(&self) -> Vec<String> {
        let named = |v: String| if v.is_empty() { PLACE.to_owned() } else { v };
        self.locks.variants().into_iter().map(named).collect()
    }

    fn prepare(&mut self, _: Cancel) -> Result<(), Failed> {
        let program = self.program();
        if program::find(&program).is_none() {
            let cause = format!("there is no program `{program}`");
            return Err(Failed::usage(cause, "give its path, or put its folder into PATH"));
        }
        self.doubts.extend(preload::doubt(&self.locks, &program));
        self.ready = Some(Arc::new(Scratch::new(self.scratch.as_deref())?));
        Ok(())
    }

    fn run(&mut self, place: usize, warm_up: bool, cancel: Cancel) -> Result<Outcome, Failed> {
        let Some(scratch) = &self.ready else {
            return Err(Failed::usage("it was not prepared", "prepare it first"));
        };
        let variant = &self.locks.variants()[place];
        let mut command = Command::new(self.program());
        command.args(self.words.iter().skip(1));
        if warm_up {
            self.locks.apply_counting(variant, &mut command)?;
        } else {
            self.locks.apply(variant, &mut command)?;
        }
        let ended = program::run(command, scratch, cancel)?;
        let counted = preload::acquisitions(&ended.stderr);
        // Why a program took none may be known already.
        let unknown = preload::doubt(&self.locks, &self.program()).is_none();
        if warm_up && !variant.is_empty() && variant != NONE && counted < FEW && unknown {
            self.doubts.push(format!(
                "the program took {counted} pthread mutexes through `{variant}`: a difference is hardly this lock's"
            ));
        }
        let outcome = Outcome { output: ended.stdout, ..Outcome::default() };
        Ok(with_usage(outcome, &ended.usage))
    }

    fn doubts(&self) -> Vec<String> {
        let left = self.ready.as_ref().map_or(0, |scratch| scratch.left_behind().len());
        let behind = (left > 0).then(|| {
            format!(
                "the program left {} behind, which were ended after each run: what they did is in no figure",
                processes(left)
            )
        });
        self.doubts.iter().cloned().chain(behind).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::{Plan, measure_all};

    #[test]
    fn a_program_is_timed_in_each_round() {
        let words = ["sh", "-c", "sleep 0.2"].map(OsString::from).into();
        let mut command = AnyCommand::new(words, Locks::default(), None);
        let plan = Plan { runs: 2, time: None, seed: 1 };
        let measured = measure_all(&mut command, &plan, &|| false).unwrap();
        assert_eq!((measured.places, measured.runs.len()), (vec!["program".to_owned()], 2));
        let elapsed = |r: &crate::Run| r.outcome.figures[0].value;
        assert!(measured.runs.iter().all(|r| (0.2..20.0).contains(&elapsed(r))));
    }

    #[test]
    fn a_program_that_is_not_there_is_the_users_mistake() {
        let words = vec![OsString::from("no-such-program")];
        let mut command = AnyCommand::new(words, Locks::default(), None);
        let error = command.prepare(&|| false).unwrap_err();
        assert!(matches!(error, Failed::Usage { .. }), "{error}");
    }
}
