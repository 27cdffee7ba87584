//! The experiments of this kind, judged by results that are made up.

mod aligned_2001;
mod notification_2005;
mod spinlocks_2008;

use super::*;
use crate::claim::judged;
use crate::figure::compared;
use crate::{Compared, Judged};
use overspin_scenario::{DomainOutcome, Picos, SEC};

/// An experiment, and what came out.
struct Made {
    head: Head,
    sweep: Sweep,
    result: KindResult,
}

impl Made {
    /// An experiment whose runs have these outcomes. `outcome` gets the labels of a point and a seed; no outcome means
    /// that the run was not made.
    fn new(
        text: &str,
        scale: u32,
        seeds: u64,
        outcome: impl Fn(&[&str], u64) -> Option<Outcome>,
    ) -> Self {
        let document = Document::parse("e.toml", text).unwrap();
        let (head, sweep) = crate::registry::read_as(&document, text, Sweep::parse)
            .unwrap_or_else(|e| panic!("{e} {}", e.help));
        let mut measured = Vec::new();
        for (number, point) in sweep.points.all.iter().enumerate() {
            let at: Vec<&str> = point.at.iter().map(String::as_str).collect();
            let (scenario, factor) = sweep.points.scenario(point, scale).unwrap();
            for outcome in (1..=seeds).filter_map(|seed| outcome(&at, seed)) {
                measured.push(sweep.measure(number, &scenario, &outcome, factor, &[]));
            }
        }
        let result = sweep.assemble(&head, scale, measured);
        Self { head, sweep, result }
    }

    fn figures(&self) -> Vec<Compared> {
        compared(&self.head.figures, &self.result.samples)
    }

    fn figure(&self, place: &str, metric: &str) -> Compared {
        let is = |f: &Compared| f.place == place && f.metric == metric;
        self.figures().into_iter().find(is).unwrap()
    }

    fn claims(&self) -> Vec<Judged> {
        judged(&self.head.claims, &self.result.samples)
    }

    fn verdicts(&self) -> Vec<Option<bool>> {
        self.claims().iter().map(|c| c.holds).collect()
    }
}

/// So many seconds at a part of the published length.
fn picos(seconds: f64, scale: u32) -> Picos {
    Picos((seconds / f64::from(scale) * SEC.0 as f64).round() as u64)
}

fn outcome(seed: u64, elapsed: Picos, domains: Vec<DomainOutcome>) -> Outcome {
    let finished = domains.iter().all(|d| d.finished.is_some());
    Outcome {
        seed,
        ending: if finished { Ending::Finished } else { Ending::Limit },
        elapsed,
        warmup: Picos::ZERO,
        progress_step: Picos::ZERO,
        events: 1,
        run_ahead: 0,
        trace_hash: seed << 60,
        pcpus: Vec::new(),
        domains,
        changes: Vec::new(),
        worst_waits: Vec::new(),
        noise: None,
        measurement: None,
    }
}

const MINE: &str = r#"
id = "mine"
kind = "sweep"
title = "Two locks"
source = "me"
scale = 2
seeds = 2

[setup]
measure = ["run.elapsed", "locks"]
scaled = ["domain.guest.workload.count"]
tools = ["lockmeter"]
[[setup.runs]]
lock = ["ticket"]
vcpus = ["*"]
[[setup.runs]]
lock = ["mcs"]
[[setup.curves]]
along = "vcpus"
title = "vCPUs"
metrics = [["elapsed", "time"]]
only = { lock = "ticket" }
[[setup.tables]]
title = "How long"
rows = [{ each = "vcpus" }]
columns = [{ title = "time", value = "ticket.$vcpus.elapsed / mean($lock.$vcpus.elapsed for $lock)", digits = 1 }]

[scenario]
limit = "1s"
[scenario.host]
cores = 2
[[scenario.domain]]
name = "guest"
vcpus = 2
lock = "ticket"
workload = { kind = "lock-loop", count = 80 }
[[scenario.vary]]
name = "lock"
set = "domain.guest.lock"
to = ["ticket", "mcs"]
[[scenario.vary]]
name = "vcpus"
set = "domain.guest.vcpus"
to = ["1", "2"]
"#;

#[test]
fn a_file_alone_is_an_experiment() {
    let experiment = crate::parse("mine.toml", MINE).unwrap_or_else(|e| panic!("{e}"));
    let settings = Settings { threads: 1, ..Settings::default() };
    let result = crate::reproduce(&experiment, settings, &|_, _| {}).unwrap();
    let places: Vec<&str> = result.runs.iter().map(|r| r.place.as_str()).collect();
    assert_eq!(places, ["ticket.1", "ticket.1", "ticket.2", "ticket.2", "mcs", "mcs"]);
    let of_mcs = result.samples.iter().filter(|s| s.place == "mcs");
    let metrics: Vec<&str> = of_mcs.take(3).map(|s| s.metric.as_str()).collect();
    assert_eq!(metrics, ["elapsed", "throughput", "wait-p50"]);
    // Half of the sections are made, and the time is doubled; rates are not.
    let full =
        crate::reproduce(&experiment, Settings { full: true, ..settings }, &|_, _| {}).unwrap();
    let elapsed = |r: &crate::Reproduction| r.samples[0].value;
    assert!((0.8..1.2).contains(&(elapsed(&result) / elapsed(&full))), "{}", elapsed(&full));
    let text = overspin_report::text(&result.details);
    for words in ["ticket, 1: lockmeter, simulated, seed 1", "How long", "mcs: lockmeter"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(experiment.kind.along()[0].draw(&result).1[0].curves.len(), 1);
}

#[test]
fn the_file_of_the_documentation_is_an_experiment() {
    let page = include_str!("../../../../../docs/claims.md");
    let (_, text) = page.split_once("```toml\nid = ").expect("the page has a whole file");
    let text = format!("id = {}", text.split("```").next().unwrap_or_default());
    let experiment = crate::parse("my-spinlocks.toml", &text).unwrap_or_else(|e| panic!("{e}"));
    let result = crate::reproduce(&experiment, Settings::default(), &|_, _| {}).unwrap();
    assert_eq!((result.runs.len(), result.verdict()), (12, Some(true)), "{:#?}", result.experiment);
}

#[test]
fn faults_of_a_file_have_a_place_and_a_remedy() {
    // What is replaced by what, the line of the fault, its message and the remedy.
    let faults = r#"
"run.elapsed" => "run.elapsd" => measure => no metric `elapsd` => did you mean `elapsed`?
"locks"] => "lock"] => measure => no instrument `lock` => did you mean `locks`?
["lockmeter"] => ["lockmetre"] => tools => no tool `lockmetre` => it can be: vmstat,
lock = ["mcs"] => lock = ["mac"] => lock = [ => no label `mac` => it can be: ticket, mcs
vcpus = ["*"] => cpus = ["*"] => cpus => no axis `cpus` => did you mean `vcpus`?
count"] => sections"] => scaled => no scenario sets `domain.guest.workload.sections` => name a key
to = ["ticket", "mcs"] => to = ["ticket", "mics"] => to = => there is no lock `mics` => mcs
along = "vcpus" => along = "cores" => along => no axis `cores` => it can be: lock, vcpus
only = { lock = "ticket" => only = { lock = "tiket" => only => no label `tiket` => ticket
each = "vcpus" => each = "cpus" => each => no axis `cpus` => did you mean `vcpus`?
ticket.$vcpus.elapsed / => ticket.$vcpus.late / => columns => no `late` at `ticket.1` => elapsed
set = "domain.guest.vcpus" => set = "seed" => [[scenario.vary]] => varies no seed => seeds = 5
measure = => meter = => meter => unknown field `meter`, expected one of `measure` => compare"#;
    for fault in faults.trim().lines() {
        let [from, to, line, message, help] = fault.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{fault}")
        };
        let text = MINE.replacen(from, to, 1);
        let text = if message.contains("mics") {
            text.replace("lock = [\"mcs\"]", "lock = [\"mics\"]")
        } else {
            text
        };
        let error = crate::parse("mine.toml", &text).expect_err(to);
        let at = text.lines().nth(error.line - 1).unwrap_or_default();
        assert!(
            error.message.contains(message) && error.help.contains(help),
            "{to}: {error} {}",
            error.help
        );
        assert!(at.contains(line), "{to}: line {}: {at}", error.line);
    }
    let none = MINE.split("[[scenario.vary]]").next().unwrap();
    let error = crate::parse("mine.toml", none).expect_err("it varies nothing");
    assert!(error.message.contains("nothing is varied"), "{error}");
}
