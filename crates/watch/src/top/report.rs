//! A frame as text.

use super::{Frame, Lock, Spent, Vcpu};
use overspin_host::VcpuState;
use overspin_report::{Block, Grid};
use overspin_scenario::Picos;

/// Most rows of each table.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Rows of the table of vCPUs.
    pub vcpus: usize,
    /// Rows of the table of locks.
    pub locks: usize,
}

impl Room {
    /// What fits a terminal of this many lines, besides the other tables of this frame.
    #[must_use]
    pub fn of(lines: usize, frame: &Frame) -> Self {
        // The title, the pCPUs, and three tables with four lines around their rows.
        let others = 5 + 3 * 5 + frame.domains.len();
        let left = lines.saturating_sub(others).max(6);
        let locks = (left / 3).min(frame.locks.len()).max(2);
        Self { vcpus: left.saturating_sub(locks + 2), locks }
    }
}

/// The tables of a frame, with as many rows as there is room for.
#[must_use]
pub fn report(frame: &Frame, room: Room) -> Vec<Block> {
    let length = frame.length();
    let mut blocks = vec![Block::Text(pcpus(frame)), Block::Grid(domains(frame, length))];
    blocks.push(Block::Grid(vcpus(frame, length, room.vcpus)));
    blocks.extend(more(frame.vcpus.len(), room.vcpus, "vCPUs"));
    if !frame.locks.is_empty() {
        blocks.push(Block::Grid(locks(frame, length, room.locks)));
        blocks.extend(more(frame.locks.len(), room.locks, "locks"));
    }
    blocks
}

fn more(all: usize, shown: usize, what: &str) -> Option<Block> {
    let hidden = all.checked_sub(shown).filter(|n| *n > 0)?;
    Some(Block::Text(format!("and {hidden} more {what}")))
}

/// A part in percent.
fn percent(part: Picos, of: Picos) -> String {
    match of {
        Picos::ZERO => "-".into(),
        of => format!("{:.1}", 100.0 * part.ratio(of)),
    }
}

/// Events for each second of simulated time.
fn rate(count: u64, length: Picos) -> String {
    match length {
        Picos::ZERO => "-".into(),
        length => format!("{:.0}", count as f64 / length.seconds()),
    }
}

fn mean(total: Picos, count: u64) -> String {
    total.checked_div(count).map_or_else(|| "-".into(), |time| format!("{:.1}", time.micros()))
}

fn pcpus(frame: &Frame) -> String {
    let length = frame.length();
    let one = |(number, pcpu): (usize, &super::Pcpu)| {
        let vcpu = pcpu.vcpu.as_deref().unwrap_or("idle");
        format!("{number}: {vcpu} {} %", percent(pcpu.busy, length))
    };
    const MOST: usize = 8;
    let shown: Vec<String> = frame.pcpus.iter().enumerate().take(MOST).map(one).collect();
    let hidden = frame.pcpus.len().saturating_sub(MOST);
    let rest = if hidden > 0 { format!(", and {hidden} more") } else { String::new() };
    let switches: u64 = frame.pcpus.iter().map(|p| p.switches).sum();
    format!("pCPUs {}{rest}; {} switches a second", shown.join(", "), rate(switches, length))
}

/// A vCPU's times, in percent of one vCPU's time.
fn times(spent: &Spent, of: Picos) -> [String; 4] {
    [spent.running, spent.spinning, spent.runnable, spent.blocked].map(|part| percent(part, of))
}

fn domains(frame: &Frame, length: Picos) -> Grid {
    let header = [
        "domain",
        "vCPUs",
        "run %",
        "spin %",
        "steal %",
        "blocked %",
        "acq/s",
        "waits/s",
        "avg wait us",
    ];
    let mut grid = Grid::new(1, &header);
    for d in &frame.domains {
        // As xentop counts: 100 % is one CPU.
        let [run, spin, steal, blocked] = times(&d.spent, length);
        grid.row([
            d.name.clone(),
            d.vcpus.to_string(),
            run,
            spin,
            steal,
            blocked,
            rate(d.acquisitions, length),
            rate(d.waits, length),
            mean(d.waited, d.waits),
        ]);
    }
    grid
}

fn vcpus(frame: &Frame, length: Picos, most: usize) -> Grid {
    let header = ["vCPU", "state", "pCPU", "run %", "spin %", "steal %", "blocked %", "waits for"];
    let mut grid = Grid { notes: 1, ..Grid::new(2, &header) };
    for v in frame.vcpus.iter().take(most) {
        let [run, spin, steal, blocked] = times(&v.spent, length);
        let pcpu = v.pcpu.map_or_else(|| "-".into(), |pcpu| pcpu.to_string());
        let waits_for = v.waits_for.clone().unwrap_or_default();
        grid.row([v.name.clone(), state(v).into(), pcpu, run, spin, steal, blocked, waits_for]);
    }
    grid
}

/// The state in a word; a vCPU that waits for a lock on a pCPU spins.
fn state(v: &Vcpu) -> &'static str {
    match v.state {
        VcpuState::Running if v.waits_for.is_some() => "spinning",
        VcpuState::Running => "running",
        VcpuState::Runnable => "runnable",
        VcpuState::Blocked => "blocked",
        VcpuState::Offline => "offline",
    }
}

/// The locks with the longest waits first.
fn locks(frame: &Frame, length: Picos, most: usize) -> Grid {
    let header = ["lock", "acq/s", "waits/s", "avg wait us", "max wait us", "waiters", "holder"];
    let mut grid = Grid { notes: 1, ..Grid::new(1, &header) };
    let mut locks: Vec<&Lock> = frame.locks.iter().collect();
    locks.sort_by_key(|l| (std::cmp::Reverse(l.waited), std::cmp::Reverse(l.acquisitions)));
    for l in locks.into_iter().take(most) {
        grid.row([
            l.name.clone(),
            rate(l.acquisitions, length),
            rate(l.waits, length),
            mean(l.waited, l.waits),
            mean(l.longest, u64::from(l.waits > 0)),
            l.waiters.to_string(),
            l.holder.clone().unwrap_or_default(),
        ]);
    }
    grid
}
