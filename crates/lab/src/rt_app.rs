//! Imports rt-app's JSON as a scenario. Each task becomes a domain of one vCPU, so that the host's scheduler
//! takes the place of the scheduler that would run the tasks.
//!
//! Imported: `run`, `runtime`, `sleep`, `timer`, `yield`, `phases`, `loop`, `delay`, `instance`, `priority`
//! (nice values, as weights), `cpus`, and the duration. Features without a counterpart here are listed and
//! left out: see [`NOT_TAKEN`]. Everything else is an error with its place.

use crate::perf_sched::printable;
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use overspin_located::LocatedError;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Events and keys of rt-app that have no counterpart in a scenario.
pub const NOT_TAKEN: [&str; 26] = [
    "lock",
    "unlock",
    "wait",
    "signal",
    "broad",
    "sync",
    "sig_and_wait",
    "suspend",
    "resume",
    "barrier",
    "mem",
    "iorun",
    "fork",
    "policy",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "util_min",
    "util_max",
    "nodes_membind",
    "numa_policy",
    "taskgroup",
    "resources",
    "default_policy",
    "pi_enabled",
    "delay_on_fork",
];

/// Keys of `global` about calibration, files and tracing, which change nothing here.
const WITHOUT_EFFECT: [&str; 12] = [
    "calibration",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "logstats",
    "gnuplot",
    "ftrace",
    "frag",
    "cumulative_slack",
    "io_device",
    "mem_buffer_size",
];

/// Length of the scenario if the file gives none, or asks for ever.
const DURATION: &str = "10s";
/// Weight of nice 0, and the factor between neighbouring nice values (Linux).
const WEIGHT: f64 = 256.0;
const PER_NICE: f64 = 1.25;
/// Longest scenario that is written, in bytes: a few lines can ask for many copies of a long task.
const MOST_BYTES: usize = 64 << 20;
/// Bytes of a task in the scenario beside its phases and its name, roughly.
const BYTES_OF_TASK: usize = 200;

/// The result of an import.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The scenario, as TOML.
    pub scenario: String,
    /// The features that were left out, a line each, with their places.
    pub dropped: Vec<String>,
}

/// Imports the text of a file that messages call `path`.
///
/// # Errors
/// If it is not JSON, or has keys or values that rt-app does not have.
pub fn import(path: &str, text: &str) -> Result<Imported, LocatedError> {
    let mut import = Import {
        path,
        text,
        dropped: Vec::new(),
        highest_cpu: 0,
        room: MOST_BYTES,
        names: BTreeSet::new(),
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let value = match parsed {
        Ok(parsed) => parsed.value,
        Err(e) => {
            let range = e.range();
            return Err(import.error(&range, format!("this is not JSON: {}", e.kind()), ""));
        }
    };
    let Some(Value::Object(root)) = &value else {
        let whole = jsonc_parser::common::Range { start: 0, end: text.len().min(1) };
        return Err(import.error(
            &whole,
            "the file is not an object",
            "it needs `global` and `tasks`",
        ));
    };
    let (mut limit, mut domains) = (DURATION.to_owned(), String::new());
    for p in &root.properties {
        match p.name.as_str() {
            "global" => {
                if let Some(duration) = import.global(import.object(p)?)? {
                    limit = duration;
                }
            }
            "tasks" => domains = import.tasks(import.object(p)?)?,
            _ => import.other(p, &["global", "tasks"])?,
        }
    }
    if domains.is_empty() {
        return Err(import.error(&root.range, "there are no tasks", "add them under `tasks`"));
    }
    let name = toml::Value::String(path.to_owned());
    let dropped: String = import.dropped.iter().map(|d| format!("# left out: {d}\n")).collect();
    let scenario = format!(
        "# From rt-app's {name}; `run` and `runtime` are CPU time at full speed.\n{dropped}\
         name = {name}\nlimit = \"{limit}\"\nto_the_limit = true\n\n[host]\ncores = {}\nscheduler = \"eevdf\"\n{domains}",
        import.highest_cpu + 1
    );
    Ok(Imported { scenario, dropped: import.dropped })
}

/// The weight of a nice value.
pub(crate) fn weight(nice: i32) -> u32 {
    (WEIGHT * PER_NICE.powi(-nice)).round().clamp(1.0, 65_535.0) as u32
}

struct Import<'a> {
    path: &'a str,
    text: &'a str,
    dropped: Vec<String>,
    highest_cpu: u32,
    /// Bytes that the scenario may still get.
    room: usize,
    /// Names of its domains.
    names: BTreeSet<String>,
}

impl Import<'_> {
    fn error(
        &self,
        at: &jsonc_parser::common::Range,
        message: impl Into<String>,
        help: &str,
    ) -> LocatedError {
        LocatedError::at(self.path, self.text, at.start..at.end, "", message, help)
    }

    fn object<'v, 'j>(&self, p: &'v ObjectProp<'j>) -> Result<&'v Object<'j>, LocatedError> {
        match &p.value {
            Value::Object(object) => Ok(object),
            other => {
                let message = format!("`{}` is not an object", p.name.as_str());
                Err(self.error(&other.range(), message, "write { ... }"))
            }
        }
    }

    /// A whole number in these bounds.
    fn number(&self, p: &ObjectProp<'_>, least: i64, most: i64) -> Result<i64, LocatedError> {
        let number = match &p.value {
            Value::NumberLit(n) => n.value.parse::<i64>().ok(),
            _ => None,
        };
        number.filter(|n| (least..=most).contains(n)).ok_or_else(|| {
            let message = format!("`{}` is not a whole number in its range", p.name.as_str());
            self.error(&p.value.range(), message, &format!("{least} to {most}"))
        })
    }

    /// Handles a key that is not imported: lists it if rt-app has it, otherwise returns an error.
    fn other(&mut self, p: &ObjectProp<'_>, known: &[&str]) -> Result<(), LocatedError> {
        let name = p.name.as_str();
        let range = p.name.range();
        if NOT_TAKEN.contains(&base(name)) || NOT_TAKEN.contains(&name) {
            // It becomes a line of comment in the scenario.
            let place = self.error(&range, format!("`{}`", printable(name)), "");
            self.dropped.push(place.to_string());
            return Ok(());
        }
        let help = format!("known here: {}", known.join(", "));
        Err(self.error(&range, format!("`{name}` is not a key of rt-app"), &help))
    }

    fn global(&mut self, object: &Object<'_>) -> Result<Option<String>, LocatedError> {
        let mut limit = None;
        for p in &object.properties {
            match p.name.as_str() {
                "duration" => {
                    let seconds = self.number(p, -1, 3_600_000)?;
                    limit = (seconds > 0).then(|| format!("{seconds}s"));
                }
                name if WITHOUT_EFFECT.contains(&name) => {}
                _ => {
                    self.other(p, &["duration", "and keys about calibration, logs and tracing"])?
                }
            }
        }
        Ok(limit)
    }

    fn tasks(&mut self, object: &Object<'_>) -> Result<String, LocatedError> {
        let mut out = String::new();
        for p in &object.properties {
            let task = self.task(p.name.as_str(), self.object(p)?)?;
            out.push_str(&task);
        }
        Ok(out)
    }

    fn task(&mut self, name: &str, object: &Object<'_>) -> Result<String, LocatedError> {
        let (mut instances, mut count, mut nice) = (1, 0, 0);
        let (mut delay, mut cpus) = (None, None);
        let (mut phases, mut steps) = (Vec::new(), Vec::new());
        for p in &object.properties {
            match p.name.as_str() {
                "instance" => instances = self.number(p, 0, 10_000)?,
                // -1 is for ever.
                "loop" => count = self.number(p, -1, i64::MAX)?.max(0),
                "priority" => nice = self.number(p, -20, 99)?,
                "delay" => delay = Some(self.number(p, 0, 3_600_000_000_000)?),
                "cpus" => cpus = Some(self.cpus(p)?),
                "phases" => {
                    for phase in &self.object(p)?.properties {
                        let phase = self.phase(self.object(phase)?)?;
                        phases.extend(phase);
                    }
                }
                _ => steps.extend(self.step(p)?),
            }
        }
        if !steps.is_empty() {
            phases.push(steps.join(", "));
        }
        // Times are written in microseconds. Without one, no time would pass in the scenario.
        let is_time = |word: &str| word.ends_with("us") && word != "0us";
        if !phases.iter().any(|phase: &String| phase.split([' ', ',']).any(is_time)) {
            let message = format!("task `{name}` does nothing that takes time and can be imported");
            return Err(self.error(&object.range, message, "add run, runtime, sleep or timer"));
        }
        if nice > 19 {
            let message = format!("task `{name}`: {nice} is a real-time priority");
            let help =
                "nice values are -20 to 19; scenarios have weights, not real-time priorities";
            return Err(self.error(&object.range, message, help));
        }
        let phases: String = phases.iter().map(|p| format!("    \"{p}\",\n")).collect();
        let one = phases.len() + name.len() + BYTES_OF_TASK;
        let all = one.saturating_mul(instances as usize);
        let Some(room) = self.room.checked_sub(all) else {
            let message = format!("the instances of task `{name}` make the scenario too long");
            let help = "the most are 64 MiB: give it fewer instances, or fewer phases";
            return Err(self.error(&object.range, message, help));
        };
        self.room = room;
        let weight = weight(nice as i32);
        let mut out = String::new();
        for i in 0..instances {
            let name = if instances == 1 { name.to_owned() } else { format!("{name}-{i}") };
            if !self.names.insert(name.clone()) {
                let message = format!("two tasks are called `{name}`");
                let help =
                    "give each task its own name; instances are called NAME-0, NAME-1 and so on";
                return Err(self.error(&object.range, message, help));
            }
            let name = toml::Value::String(name);
            // Writing to a String cannot fail, here and below.
            let _ = write!(out, "\n[[domain]]\nname = {name}\nvcpus = 1\nlock = \"ticket\"\n");
            if weight != 256 {
                let _ = writeln!(out, "weight = {weight}");
            }
            if let Some(cpus) = &cpus {
                let _ = writeln!(out, "affinity = \"{cpus}\"");
            }
            let _ = write!(out, "[domain.kernel]\nhz = 0\n[domain.workload]\nkind = \"phases\"\n");
            if count > 0 {
                let _ = writeln!(out, "count = {count}");
            }
            if let Some(delay) = delay.filter(|d| *d > 0) {
                let _ = writeln!(out, "start = \"{delay}us\"");
            }
            let _ = writeln!(out, "phases = [\n{phases}]");
        }
        Ok(out)
    }

    fn cpus(&mut self, p: &ObjectProp<'_>) -> Result<String, LocatedError> {
        let Value::Array(array) = &p.value else {
            return Err(self.error(&p.value.range(), "`cpus` is not a list", "for example [0, 1]"));
        };
        let mut list = Vec::new();
        for element in &array.elements {
            let cpu = match element {
                Value::NumberLit(n) => n.value.parse::<u32>().ok().filter(|n| *n < 4096),
                _ => None,
            };
            let Some(cpu) = cpu else {
                return Err(self.error(&element.range(), "this is not a CPU", "0 to 4095"));
            };
            self.highest_cpu = self.highest_cpu.max(cpu);
            list.push(cpu.to_string());
        }
        if list.is_empty() {
            return Err(self.error(&array.range, "`cpus` is empty", "a task needs a CPU"));
        }
        Ok(list.join(","))
    }

    /// A phase in the format of scenarios; `None` if nothing in it can be imported.
    fn phase(&mut self, object: &Object<'_>) -> Result<Option<String>, LocatedError> {
        let (mut times, mut steps) = (1, Vec::new());
        for p in &object.properties {
            match p.name.as_str() {
                "loop" => times = self.number(p, 1, u32::MAX.into())?,
                "cpus" => {
                    let place = self.error(&p.name.range(), "`cpus` of a phase", "");
                    self.dropped.push(place.to_string());
                }
                _ => steps.extend(self.step(p)?),
            }
        }
        let steps = steps.join(", ");
        Ok((!steps.is_empty()).then(|| match times {
            1 => steps,
            n => format!("{n} x {steps}"),
        }))
    }

    fn step(&mut self, p: &ObjectProp<'_>) -> Result<Option<String>, LocatedError> {
        const HOUR_US: i64 = 3_600_000_000;
        Ok(match base(p.name.as_str()) {
            // `run` is a calibrated busy loop of this many us, `runtime` is time on the CPU: they are the
            // same here.
            "run" | "runtime" => Some(format!("run {}us", self.number(p, 0, HOUR_US)?)),
            "sleep" => Some(format!("sleep {}us", self.number(p, 0, HOUR_US)?)),
            "yield" => Some("yield".to_owned()),
            "timer" => {
                let mut period = None;
                for of_timer in &self.object(p)?.properties {
                    match of_timer.name.as_str() {
                        "period" => period = Some(self.number(of_timer, 1, HOUR_US)?),
                        // Timers of equal periods are one timer.
                        "ref" => {}
                        "mode" => {
                            let place = self.error(&of_timer.name.range(), "`mode` of a timer", "");
                            self.dropped.push(place.to_string());
                        }
                        _ => self.other(of_timer, &["period", "ref", "mode"])?,
                    }
                }
                let Some(period) = period else {
                    let help = "a timer needs a period in us";
                    return Err(self.error(&p.value.range(), "`period` is missing", help));
                };
                Some(format!("timer {period}us"))
            }
            _ => {
                let known = [
                    "run", "runtime", "sleep", "timer", "yield", "phases", "loop", "delay",
                    "instance", "priority", "cpus",
                ];
                self.other(p, &known)?;
                None
            }
        })
    }
}

/// An event's name without the suffix that makes it unique: `run0`, `run_b`.
fn base(name: &str) -> &str {
    let events = ["runtime", "run", "sleep", "timer", "yield"].into_iter().chain(NOT_TAKEN);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let short = name.split_once(['_', '-']).map_or(name, |(start, _)| start);
    let mut all = [name, plain, short].into_iter();
    let known: Vec<&str> = events.collect();
    all.find(|n| known.contains(n)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_runs::scenario_file;
    use overspin_scenario::MS;
    use overspin_workload::{Phases, Step};

    const GOOD: &str = r#"{
    /* comments are common in these files */
    "tasks": {
        "video": {
            "instance": 2, "priority": -5, "cpus": [0, 2], "loop": -1,
            "phases": {
                "decode": { "loop": 3, "run": 2000, "timer": { "ref": "unique", "period": 16000 } },
                "rest": { "sleep0": 5000, "run1": 10, "yield": "", "lock": "m" }
            }
        },
        "batch": { "loop": 1, "delay": 1000, "runtime": 50000 }
    },
    "global": { "duration": 3, "calibration": "CPU0", "pi_enabled": false }
}"#;

    #[test]
    fn tasks_become_domains() {
        let imported = import("video.json", GOOD).unwrap();
        let s = scenario_file::parse("i.toml", "i", &imported.scenario, &[]).unwrap();
        assert_eq!((s.host.cores, s.limit), (3, 3_000 * MS));
        let names: Vec<&str> = s.domains.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["video-0", "video-1", "batch"]);
        // 256 x 1.25^5.
        assert_eq!(s.domains[0].weight, 781);
        assert_eq!(s.domains[0].affinity, [[0, 2]]);
        let video = s.domains[0].workload.get::<Phases>().unwrap();
        assert_eq!((video.count, video.phases[0].times), (0, 3));
        assert_eq!(video.phases[0].steps, [Step::Run(2 * MS), Step::Timer(16 * MS)]);
        assert_eq!(video.phases[1].steps[0], Step::Sleep(5 * MS));
        assert_eq!(video.phases[1].steps[2], Step::Yield);
        let batch = s.domains[2].workload.get::<Phases>().unwrap();
        assert_eq!((batch.count, batch.start), (1, MS));
        assert_eq!(batch.phases[0].steps, [Step::Run(50 * MS)]);
        assert_eq!(imported.dropped.len(), 2, "{:?}", imported.dropped);
        assert!(
            imported.dropped[0].contains("video.json:8:") && imported.dropped[0].contains("lock")
        );
        assert!(imported.scenario.contains("# left out: "));
        let outcome = overspin_sim::run(&s, 1).unwrap();
        // The batch ran for its 50 ms, plus the cost of its switches.
        let batch = &outcome.domains[2].tasks[0];
        assert!((50 * MS..51 * MS).contains(&batch.cpu), "{}", batch.cpu);
        // Three periods of 16 ms a round, for 3 s; the remaining time is in the next round's first period.
        let rounds = outcome.domains[0].tasks[0].items;
        assert!((61..=62).contains(&rounds), "{rounds}");
    }

    #[test]
    fn faults_have_a_place() {
        for (from, to, line, message) in [
            ("\"sleep0\"", "\"slep0\"", 8, "`slep0` is not a key"),
            ("\"run\": 2000", "\"run\": -1", 7, "`run` is not a whole number"),
            ("\"run\": 2000", "\"run\": 1e99", 7, "`run` is not a whole number"),
            ("\"period\": 16000", "\"perod\": 16000", 7, "`perod` is not a key"),
            ("[0, 2]", "[]", 5, "`cpus` is empty"),
            ("\"priority\": -5", "\"priority\": 50", 4, "real-time priority"),
            ("\"runtime\": 50000", "\"lock\": \"m\"", 11, "does nothing"),
            (
                "\"runtime\": 50000",
                "\"run\": 0, \"yield\": \"\"",
                11,
                "does nothing that takes time",
            ),
            ("\"duration\": 3", "\"duration\": \"x\"", 13, "`duration` is not"),
            ("\"tasks\"", "\"task\"", 3, "`task` is not a key"),
            ("\"batch\"", "\"video-1\"", 11, "two tasks are called `video-1`"),
            ("{\n    /*", "[\n    /*", 1, ""),
        ] {
            let e = import("t.json", &GOOD.replacen(from, to, 1)).expect_err(to);
            assert!(e.message.contains(message), "{to}: {e}");
            assert!(e.line == line || from.starts_with('{'), "{to}: {e}");
        }
    }

    #[test]
    fn a_strange_name_stays_in_its_comment() {
        // A name of rt-app's with a suffix, in which JSON may have a new line.
        let text = GOOD.replace("\"lock\"", "\"lock-\\nlimit = 1\\nx\"");
        let imported = import("t.json", &text).unwrap();
        assert!(imported.scenario.contains("`lock-?limit = 1?x`"), "{}", imported.scenario);
        scenario_file::parse("i.toml", "i", &imported.scenario, &[]).unwrap();
    }

    #[test]
    fn a_short_file_cannot_ask_for_a_scenario_without_end() {
        let run = "\"run\": 2000";
        let many: String = (0..2000).map(|i| format!("\"run{i}\": 1, ")).collect();
        let text = GOOD
            .replace("\"instance\": 2", "\"instance\": 10000")
            .replace(run, &format!("{many}{run}"));
        let e = import("t.json", &text).unwrap_err();
        assert!(
            e.message.contains("instances of task `video`") && e.help.contains("64 MiB"),
            "{e}"
        );
    }
}
