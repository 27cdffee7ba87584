//! The screen: the sentence, what helps, the counters beside their limits, and what could not be read.

use super::{Interval, Judgement};
use overspin_report::{Block, Grid, two_digits};

/// The screen of an interval.
#[must_use]
pub fn report(interval: &Interval, judgement: &Judgement) -> Vec<Block> {
    let mut blocks = vec![Block::Text(format!("{}.", judgement.sentence))];
    if !judgement.remedy.is_empty() {
        blocks.push(Block::Text(format!("Remedy: {}.", judgement.remedy)));
    }
    let mut grid = Grid::new(1, &["counted", "value", "limit", ""]);
    grid.notes = 1;
    for check in &judgement.checks {
        let over = if check.is_over { "over" } else { "" };
        grid.row([check.what.into(), check.value.clone(), check.limit.clone(), over.into()]);
    }
    blocks.push(Block::Grid(grid));
    blocks.push(Block::Lines(facts(interval).join("\n")));
    if !interval.unseen.is_empty() {
        blocks.push(Block::Text("Not readable here:".into()));
        for unseen in &interval.unseen {
            blocks.push(Block::Text(format!("- {}: {}.", unseen.what, unseen.remedy)));
        }
    }
    blocks
}

/// Lines of at most 80 columns.
fn facts(interval: &Interval) -> Vec<String> {
    let number = |value: f64| two_digits(value);
    let mut lines = Vec::new();
    let machine = &interval.machine;
    if let Some(shares) = machine.shares {
        let part = |value: f64| format!("{} %", number(value));
        lines.push(format!(
            "machine  {} CPUs: user {}, system {}, idle {}, steal {}",
            interval.cpus,
            part(shares.user),
            part(shares.system),
            part(shares.idle + shares.iowait),
            part(shares.steal)
        ));
    }
    if let Some(program) = &interval.program {
        lines.push(format!(
            "program  {} CPUs used, {} wanted; {}, {}",
            number(program.running),
            number(program.running + program.waiting),
            several(program.processes, "process", "es"),
            several(program.threads + program.left_out, "thread", "s")
        ));
        lines.push(format!(
            "         preempted {} times a second, slept {} times",
            number(program.preempted),
            number(program.slept)
        ));
    }
    if let Some(guests) = interval.guests {
        let rate = |count: u64| number(count as f64 / interval.length_s.max(1e-6));
        lines.push(format!(
            "guests   {} pause-loop exits a second, {} found another vCPU; polled {} s",
            rate(guests.yields),
            rate(guests.yielded),
            number(guests.halt_polling_ns as f64 / 1e9)
        ));
    }
    let own = interval.own_cpu.map_or_else(String::new, |own| {
        format!("; watching took {} % of a CPU", number(100.0 * own))
    });
    lines.push(format!("time     {} s{own}", number(interval.length_s)));
    lines
}

fn several(count: usize, what: &str, ending: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { ending })
}
