//! The scenario of a recording.

use super::tasks::{Step, Task, Tasks};
use super::{LeftOut, Recording};
use crate::rt_app::Imported;
use std::fmt::Write;

/// Names of the kernel's threads that belong to the CPU whose number follows the slash.
const OF_A_CPU: [&str; 5] = ["ksoftirqd/", "migration/", "kworker/", "cpuhp/", "rcuc/"];
/// The kernel's priority of nice 0; less is more urgent, and below 100 is real-time.
const ORDINARY: u32 = 120;
const REAL_TIME: u32 = 100;
/// The most events without a meaning that are named one by one.
const MOST_NAMED: usize = 6;

/// The costs of the host that the recorded run times contain already.
const COSTS: [&str; 5] = ["context_switch", "preemption", "hypercall", "interrupt", "migration"];

pub(super) fn recording(path: &str, tasks: Tasks, left_out: &LeftOut) -> Recording {
    let cpus: Vec<u32> = tasks.cpus().collect();
    let names: Vec<String> = tasks.all.iter().map(name).collect();
    let mut steps = Vec::new();
    let mut unknown = Unknown::default();
    for i in 0..tasks.all.len() {
        steps.push(text(&tasks, i, &mut unknown));
    }
    let dropped = dropped(&tasks, left_out, &unknown);
    let mut out = String::new();
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "# From {}, recorded by perf sched. Run times are CPU time from switch to switch: they contain\n\
         # the recorded machine's switches, interrupts and cold caches, which therefore cost nothing here.",
        quoted(path)
    );
    for line in &dropped {
        let _ = writeln!(out, "# dropped: {line}");
    }
    // A run that takes ten times as long has gone wrong.
    let limit = tasks.measured.elapsed.saturating_mul(10).saturating_add(1_000_000_000);
    let _ = write!(
        out,
        "name = {}\nlimit = \"{}ms\"\n\n[host]\ncores = {}\nscheduler = \"eevdf-6.18\"\nstagger = \"0\"\n\n\
         [host.noise]\nplacement = \"none\"\n\n[host.costs]\n",
        quoted(path),
        limit.div_ceil(1_000_000),
        cpus.len()
    );
    for cost in COSTS {
        let _ = writeln!(out, "{cost} = \"0ns\"");
    }
    // In Linux nothing preempts the holder of a spin lock. A vCPU needs leave for that.
    out.push_str("\n[host.preemption_notification]\nprotocol = \"deferral\"\nguests = \"all\"\n");
    let _ = write!(
        out,
        "\n[[domain]]\nname = \"recorded\"\nvcpus = {}\nlock = \"qspinlock\"\n",
        names.len()
    );
    let places: Vec<String> = tasks.all.iter().map(|task| place(task, &cpus)).collect();
    if places.iter().any(|place| !place.is_empty()) {
        let all = match cpus.len() {
            1 => "0".to_owned(),
            n => format!("0-{}", n - 1),
        };
        let one = |place: &String| format!("\"{}\"", if place.is_empty() { &all } else { place });
        let list: Vec<String> = places.iter().map(one).collect();
        let _ = writeln!(out, "affinity = [{}]", list.join(", "));
    }
    let _ = write!(
        out,
        "\n[domain.kernel]\nhz = 0\ntask_switch = \"0\"\n\n[domain.workload]\nkind = \"replay\"\ntasks = [\n"
    );
    for steps in &steps {
        let _ = writeln!(out, "    {},", quoted(steps));
    }
    out.push_str("]\n");
    Recording { imported: Imported { scenario: out, dropped }, names, measured: tasks.measured }
}

/// `comm-pid`, without the separator of names and steps.
fn name(task: &Task) -> String {
    format!("{}-{}", task.name.replace(": ", ":"), task.pid)
}

/// The CPU of a kernel thread that belongs to one; empty for a task that may run anywhere.
fn place(task: &Task, cpus: &[u32]) -> String {
    let number = OF_A_CPU.iter().find_map(|prefix| {
        let rest = task.name.strip_prefix(prefix)?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<u32>().ok()
    });
    match (number, task.cpu) {
        (Some(number), Some((cpu, false))) if number == cpu => {
            cpus.iter().position(|c| *c == cpu).map_or_else(String::new, |i| i.to_string())
        }
        _ => String::new(),
    }
}

/// Waits for locks of which nothing shows how long their sections are.
#[derive(Default)]
struct Unknown {
    waits: u64,
}

/// The steps of a task, with its name.
fn text(tasks: &Tasks, i: usize, unknown: &mut Unknown) -> String {
    let task = &tasks.all[i];
    let mut texts: Vec<String> = Vec::with_capacity(task.steps.len());
    // CPU time that is not written yet, and CPU time of a section that the recorded run after it contains.
    let (mut work, mut owed) = (0_u64, 0_u64);
    for (place, step) in task.steps.iter().enumerate() {
        let text = match *step {
            Step::Run(time) => {
                let paid = owed.min(time);
                owed -= paid;
                work += time - paid;
                continue;
            }
            Step::Wake { real: false, .. } => continue,
            Step::Wake { task, .. } => format!("wake {task}"),
            Step::Wait => "wait".to_owned(),
            Step::Sleep(time) => format!("sleep {}", time_of(time)),
            Step::Hold { lock, spun } => match tasks.holds.length(i, place, lock) {
                Some(length) => {
                    owed += length;
                    format!("hold {} {}", tasks.holds.names[lock], time_of(length))
                }
                None => {
                    unknown.waits += 1;
                    work += spun;
                    continue;
                }
            },
        };
        if work > 0 {
            texts.push(format!("run {}", time_of(work)));
            work = 0;
        }
        if matches!(step, Step::Wait | Step::Sleep(_)) {
            owed = 0;
        }
        texts.push(text);
    }
    if work > 0 || texts.is_empty() {
        texts.push(format!("run {}", time_of(work)));
    }
    format!("{}: {}", name(task), texts.join(", "))
}

/// Nanoseconds in the unit that needs least room.
fn time_of(ns: u64) -> String {
    match ns {
        0 => "0ns".to_owned(),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        _ => format!("{ns}ns"),
    }
}

/// What the scenario does not have of the recording, a line each.
fn dropped(tasks: &Tasks, left_out: &LeftOut, unknown: &Unknown) -> Vec<String> {
    let mut lines = Vec::new();
    let mut tell = |n: u64, text: String| {
        if n > 0 {
            lines.push(text);
        }
    };
    let (notes, holds) = (&tasks.notes, &tasks.holds);
    let n = left_out.outside;
    tell(n, format!("{n} events before --from or after --to"));
    let n = left_out.lost;
    tell(
        n,
        format!(
            "{n} events, by the recorder: some tasks did more than is known (perf record -m 16M loses fewer)"
        ),
    );
    let n = notes.unseen_switches;
    tell(
        n,
        format!(
            "the time of {n} switches that were not recorded: other events show that they happened"
        ),
    );
    let n = notes.by_interrupt;
    tell(
        n,
        format!(
            "the causes of {n} wake-ups by interrupts: these tasks sleep for as long as they did"
        ),
    );
    let n = notes.unseen;
    tell(n, format!("the causes of {n} wake-ups that were not recorded: the same"));
    let is = |prio: Option<u32>, real_time: bool| {
        prio.is_some_and(
            |p| if real_time { p < REAL_TIME } else { p >= REAL_TIME && p != ORDINARY },
        )
    };
    let of = |real_time| {
        let names = tasks.all.iter().filter(|t| is(t.prio, real_time)).map(name);
        names.collect::<Vec<_>>()
    };
    let few = |names: &[String]| {
        let shown =
            names.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        if names.len() > MOST_NAMED { format!("{shown}, ...") } else { shown }
    };
    let names = of(true);
    tell(
        names.len() as u64,
        format!(
            "the real-time priority of {} tasks, which are ordinary ones here: {}",
            names.len(),
            few(&names)
        ),
    );
    let names = of(false);
    tell(
        names.len() as u64,
        format!(
            "the nice value of {} tasks, which have the same weight as others here: {}",
            names.len(),
            few(&names)
        ),
    );
    let n = holds.taken;
    tell(
        n,
        format!(
            "what {n} waits for spin locks waited for, as far as the holder did not wait itself; of the sections behind \
             these waits {} have a length that the recording shows, and {} have the median of their lock",
            holds.shown(),
            n - unknown.waits - holds.shown() as u64
        ),
    );
    let n = unknown.waits;
    tell(
        n,
        format!(
            "the locks of {n} waits whose sections have no known length: the waits are CPU time"
        ),
    );
    let n = holds.others;
    tell(
        n,
        format!(
            "{n} waits for locks that let waiters sleep, or readers in: their sleeps and wake-ups are there"
        ),
    );
    let n = holds.in_interrupts;
    tell(n, format!("{n} waits for locks in interrupts"));
    let mut events: Vec<(&String, &u64)> = left_out.events.iter().collect();
    events.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    for (name, n) in events.iter().take(MOST_NAMED) {
        tell(**n, format!("{n} x {name}"));
    }
    let rest: u64 = events.iter().skip(MOST_NAMED).map(|(_, n)| **n).sum();
    tell(rest, format!("{rest} events of other kinds"));
    lines
}
