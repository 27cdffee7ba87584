//! An interval in Prometheus' text format, version 0.0.4: gauges, as a scraper gets them from node_exporter's textfile
//! collector.

use super::{Cause, Interval, Judgement};
use std::fmt::Write;

/// All causes, so that a series exists before its cause occurs.
const CAUSES: [(Cause, &str); 9] = [
    (Cause::Steal, "steal"),
    (Cause::Quota, "quota"),
    (Cause::Cpus, "cpus"),
    (Cause::PauseLoops, "pause-loops"),
    (Cause::Mutexes, "mutexes"),
    (Cause::Memory, "memory"),
    (Cause::Disk, "disk"),
    (Cause::Nothing, "nothing"),
    (Cause::Unknown, "unknown"),
];

/// The text. What could not be read has no line.
#[must_use]
pub fn prometheus(interval: &Interval, judgement: &Judgement) -> String {
    let mut text = Text::default();
    let causes = CAUSES.map(|(cause, name)| {
        (labels(&[("cause", name)]), f64::from(u8::from(cause == judgement.cause)))
    });
    text.gauge("cause", "1 for the cause that the sentence names, else 0.", causes);
    let over = judgement.checks.iter().filter_map(|check| {
        let (_, name) = CAUSES.iter().find(|(cause, _)| *cause == check.cause)?;
        Some((labels(&[("cause", name)]), f64::from(u8::from(check.is_over))))
    });
    text.gauge("over_limit", "1 for a cause beyond its limit, else 0.", over);
    let machine = &interval.machine;
    let share = |of: fn(&overspin_scenario::Shares) -> f64| machine.shares.as_ref().map(of);
    let one = |value: Option<f64>| value.map(|value| (String::new(), value));
    let ratio = |percent: Option<f64>| one(percent.map(|percent| percent / 100.0));
    text.gauge("steal_ratio", "Stolen part of all CPU time.", ratio(share(|s| s.steal)));
    text.gauge("idle_ratio", "Idle part of all CPU time.", ratio(share(|s| s.idle + s.iowait)));
    text.gauge(
        "cpu_pressure_ratio",
        "Part of the time in which some thread waited for a CPU.",
        ratio(machine.cpu_pressure),
    );
    text.gauge(
        "run_delay_cpus",
        "Threads of the machine that were ready without a CPU, on average.",
        one(machine.run_delay),
    );
    if let Some(program) = &interval.program {
        let name = labels(&[("program", &program.name)]);
        let mut gauge = |metric: &str, help: &str, value: f64| {
            text.gauge(metric, help, [(name.clone(), value)]);
        };
        gauge("program_running_cpus", "CPUs that the program used.", program.running);
        gauge(
            "program_run_delay_cpus",
            "Its threads that were ready without a CPU, on average.",
            program.waiting,
        );
        gauge("program_preempted_per_second", "Involuntary switches.", program.preempted);
        if let Some(mutexes) = program.mutexes {
            gauge("program_mutex_waits_per_second", "Waits for its mutexes.", mutexes.waits);
            gauge(
                "program_mutex_waiting_threads",
                "Its threads that waited for mutexes, on average.",
                mutexes.waited,
            );
            if mutexes.holders.looks > 0 {
                gauge(
                    "program_mutex_holders_descheduled_ratio",
                    "Part of the time that holders held mutexes in which they were ready without a CPU.",
                    mutexes.holders.descheduled(),
                );
                gauge(
                    "program_mutex_holders_asleep_ratio",
                    "Part of the time that holders held mutexes in which they slept.",
                    mutexes.holders.asleep(),
                );
            }
        }
    }
    let quotas = |of: fn(&super::Quota, f64) -> f64| {
        let all = interval.quotas.iter();
        all.map(move |quota| (labels(&[("group", &quota.group)]), of(quota, interval.length_s)))
    };
    text.gauge(
        "throttled_periods_ratio",
        "Part of a group's periods in which it used up its quota.",
        quotas(|quota, _| quota.hit()),
    );
    text.gauge(
        "throttled_cpus",
        "Time for which a group stood still in a second, summed over the CPUs.",
        quotas(|quota, length| quota.counted.throttled_ns as f64 / 1e9 / length.max(1e-6)),
    );
    text.gauge(
        "pause_loop_exits_per_second",
        "Pause-loop exits of all guests.",
        one(interval.guests.map(|g| g.yields as f64 / interval.length_s.max(1e-6))),
    );
    text.gauge("own_cpus", "CPUs that overspin watch used.", one(interval.own_cpu));
    text.gauge(
        "unreadable",
        "Things that could not be read.",
        [(String::new(), interval.unseen.len() as f64)],
    );
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn gauge(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (String, f64)>) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(self.0, "# HELP overspin_{name} {help}\n# TYPE overspin_{name} gauge");
        for (labels, value) in values {
            let _ = writeln!(self.0, "overspin_{name}{labels} {value}");
        }
    }
}

fn labels(all: &[(&str, &str)]) -> String {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<String> =
        all.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", pairs.join(","))
}
