//! The scenario of a recording.

use super::figures::{Delays, TaskFigures, TraceFigures};
use super::tasks::{Step, Task, Tasks};
use super::{Choice, LONGEST, LeftOut, Recording};
use crate::rt_app::{Imported, weight};
use std::fmt::Write;

/// Names of the kernel's threads that belong to the CPU whose number follows the slash.
const OF_A_CPU: [&str; 5] = ["ksoftirqd/", "migration/", "kworker/", "cpuhp/", "rcuc/"];
/// The kernel's priority of nice 0; less is more urgent, and below 100 is real-time.
const ORDINARY: i32 = 120;
const REAL_TIME: i32 = 100;
/// The most events without a meaning that are named one by one.
const MOST_NAMED: usize = 6;

/// The costs of the host that the recorded run times contain already.
const COSTS: [&str; 5] = ["context_switch", "preemption", "hypercall", "interrupt", "migration"];

pub(super) fn recording(
    path: &str,
    tasks: &Tasks,
    left_out: &LeftOut,
    choice: &Choice,
    chosen: &[bool],
) -> Recording {
    let cpus: Vec<u32> = tasks.cpus().collect();
    let mut writer = Writer { tasks, numbers: Vec::new(), unknown: 0, left: 0 };
    let mut number = 0;
    for chosen in chosen {
        writer.numbers.push(chosen.then_some(number));
        number += usize::from(*chosen);
    }
    let taken: Vec<usize> = (0..tasks.all.len()).filter(|i| chosen[*i]).collect();
    let of_taken: Vec<&Task> = taken.iter().map(|i| &tasks.all[*i]).collect();
    let names: Vec<String> = of_taken.iter().map(|task| name(task)).collect();
    let steps: Vec<String> = taken.iter().map(|i| writer.text(*i)).collect();
    let dropped = dropped(&writer, left_out, choice, &of_taken);
    let measured = measured(tasks, &writer.numbers, &taken);
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
    let limit = tasks.elapsed.saturating_mul(10).saturating_add(1_000_000_000);
    let _ = write!(
        out,
        "name = {}\nlimit = \"{}ms\"\n\n[host]\ncores = {}\nscheduler = \"eevdf-6.18\"\nstagger = \"0\"\n\n\
         [host.noise]\nplacement = \"none\"\n\n[host.costs]\n",
        quoted(path),
        limit.min(LONGEST).div_ceil(1_000_000),
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
    let weights: Vec<String> = of_taken.iter().map(|t| weight_of(t).to_string()).collect();
    if of_taken.iter().any(|task| nice(task).is_some_and(|nice| nice != 0)) {
        let _ = writeln!(out, "weights = [{}]", weights.join(", "));
    }
    let places: Vec<String> = of_taken.iter().map(|task| place(task, &cpus)).collect();
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
    Recording { imported: Imported { scenario: out, dropped }, names, measured }
}

/// The figures of the tasks with these indices, which have `numbers` in the scenario.
fn measured(tasks: &Tasks, numbers: &[Option<usize>], taken: &[usize]) -> TraceFigures {
    let is_taken = |task: &Option<usize>| task.is_some_and(|i| numbers[i].is_some());
    let switches = tasks.switches.iter().filter(|(from, to)| is_taken(from) || is_taken(to));
    let mut delays = Delays::default();
    for i in taken {
        let of = &tasks.all[*i].delays;
        delays.woken.extend(&of.woken);
        delays.preempted.extend(&of.preempted);
    }
    let of_task = |i: &usize| {
        let task = &tasks.all[*i];
        let delays = || task.delays.woken.iter().chain(&task.delays.preempted);
        TaskFigures {
            name: task.name.clone(),
            ran: task.ran,
            dispatches: delays().count() as u64,
            delay: delays().fold(0, |sum, delay| sum.saturating_add(*delay)),
            longest: delays().max().copied().unwrap_or_default(),
        }
    };
    TraceFigures {
        elapsed: tasks.elapsed,
        cpus: tasks.cpus().count(),
        switches: switches.count() as u64,
        delays,
        ran: taken.iter().map(|i| tasks.all[*i].ran).collect(),
        tasks: taken.iter().map(of_task).collect(),
        accounted: taken.iter().fold(0, |sum, i| sum.saturating_add(tasks.accounted(*i))),
    }
}

/// The nice value of a task; `None` if it is a real-time task, or if nothing is known.
fn nice(task: &Task) -> Option<i32> {
    task.prio.filter(|prio| *prio >= REAL_TIME).map(|prio| prio - ORDINARY)
}

fn weight_of(task: &Task) -> u32 {
    weight(nice(task).unwrap_or_default())
}

/// `comm-pid`, without the separator of names and steps.
fn name(task: &Task) -> String {
    format!("{}-{}", task.name.replace(": ", ":_"), task.pid)
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

/// Writes the steps of the chosen tasks.
struct Writer<'a> {
    tasks: &'a Tasks,
    /// The number of each task in the scenario; `None` for a task that is not chosen.
    numbers: Vec<Option<usize>>,
    /// Waits for locks of which nothing shows how long their sections are.
    unknown: u64,
    /// Wake-ups by tasks that are not chosen.
    left: u64,
}

impl Writer<'_> {
    /// The steps of a task, with its name.
    fn text(&mut self, i: usize) -> String {
        let tasks = self.tasks;
        let task = &tasks.all[i];
        let mut texts: Vec<String> = Vec::with_capacity(task.steps.len());
        // CPU time that is not written yet, and CPU time of a section that the recorded run after it contains.
        let (mut work, mut owed) = (0_u64, 0_u64);
        for (place, step) in task.steps.iter().enumerate() {
            let text = match *step {
                Step::Run(time) => {
                    let paid = owed.min(time);
                    owed -= paid;
                    work = work.saturating_add(time - paid);
                    continue;
                }
                Step::Wake { real: false, .. } => continue,
                Step::Wake { task, .. } => match self.numbers[task] {
                    Some(number) => format!("wake {number}"),
                    None => continue,
                },
                Step::Wait { by, .. } if self.numbers[by].is_some() => "wait".to_owned(),
                // A task that is not chosen cannot wake it: it sleeps for as long as it did.
                Step::Wait { slept, .. } => {
                    self.left += 1;
                    if slept == 0 {
                        continue;
                    }
                    format!("sleep {}", time_of(slept))
                }
                Step::Sleep(time) => format!("sleep {}", time_of(time)),
                Step::Hold { lock, spun } => match tasks.holds.length(i, place, lock) {
                    Some(length) => {
                        owed = owed.saturating_add(length);
                        format!("hold {} {}", tasks.holds.names[lock], time_of(length))
                    }
                    None => {
                        self.unknown += 1;
                        work = work.saturating_add(spun);
                        continue;
                    }
                },
            };
            if work > 0 {
                texts.push(format!("run {}", time_of(work)));
                work = 0;
            }
            if matches!(step, Step::Wait { .. } | Step::Sleep(_)) {
                owed = 0;
            }
            texts.push(text);
        }
        if work > 0 || texts.is_empty() {
            texts.push(format!("run {}", time_of(work)));
        }
        format!("{}: {}", name(task), texts.join(", "))
    }
}

/// Nanoseconds in the unit that needs least room, at most as long as times of scenarios may be.
fn time_of(ns: u64) -> String {
    match ns.min(LONGEST) {
        0 => "0ns".to_owned(),
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

/// What the scenario does not have of the recording, a line each.
fn dropped(
    writer: &Writer<'_>,
    left_out: &LeftOut,
    choice: &Choice,
    taken: &[&Task],
) -> Vec<String> {
    let tasks = writer.tasks;
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
    let idle =
        left_out.cpus.map_or(0, |n| u64::from(n).saturating_sub(tasks.cpus().count() as u64));
    tell(
        idle,
        format!(
            "{idle} CPUs of the recorded machine, on which nothing was recorded (host.cores has the others)"
        ),
    );
    if !choice.is_all() {
        let of = |sum: u64, task: &Task| sum.saturating_add(task.ran);
        let all = tasks.all.iter().fold(0, of);
        let ran = taken.iter().copied().fold(0, of);
        let n = (tasks.all.len() - taken.len()) as u64;
        let share = 100.0 * (all - ran) as f64 / all.max(1) as f64;
        tell(
            n,
            format!(
                "{n} tasks that were not chosen, with {share:.1} % of the recorded CPU time. What was measured of the chosen \
                 tasks contains their waits behind these"
            ),
        );
        let n = writer.left;
        tell(
            n,
            format!(
                "the causes of {n} wake-ups by tasks that were not chosen: the woken tasks sleep for as long as they did"
            ),
        );
        if !choice.pids.is_empty() && !tasks.know_processes() {
            tell(
                1,
                "threads of the processes that were chosen by number: the recording does not say to which process a thread \
                 belongs (perf script -F +pid, or --show-task-events, does)"
                    .into(),
            );
        }
    }
    let of = |is: &dyn Fn(&Task) -> bool| {
        taken.iter().filter(|task| is(task)).map(|task| name(task)).collect::<Vec<_>>()
    };
    let few = |names: &[String]| {
        let shown =
            names.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        if names.len() > MOST_NAMED { format!("{shown}, ...") } else { shown }
    };
    let names = of(&|task| task.prio.is_some_and(|prio| prio < REAL_TIME));
    tell(
        names.len() as u64,
        format!(
            "the real-time priority of {} tasks, which are ordinary ones here: {}",
            names.len(),
            few(&names)
        ),
    );
    let names = of(&|task| task.prio_changed);
    tell(
        names.len() as u64,
        format!(
            "the earlier priorities of {} tasks, which have their last one here: {}",
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
            n - writer.unknown - holds.shown() as u64
        ),
    );
    let n = writer.unknown;
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
