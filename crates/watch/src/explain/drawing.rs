//! The longest wait as a drawing of text: a lane for each vCPU involved, a character for each stretch of time.
//!
//! The run is repeated up to the end of the wait; equal scenario, seed and model give the same run. Nothing is
//! kept of it but the time that each vCPU spent in each way, for each character.

use super::Names;
use super::crowd::crowd;
use overspin_host::{Interest, Moment, Observer, Refused, Timed, VcpuState};
use overspin_report::Block;
use overspin_runs::runner::Runner;
use overspin_scenario::{LongWait, Outcome, Picos, Scenario, Stopped, VcpuId};
use std::fmt::Write;

/// Characters of a lane.
const CELLS: usize = 64;
/// Most lanes.
const LANES: usize = 12;
/// Fewest characters between two labels of the scale.
const TICK: usize = 12;

/// What a vCPU does, in the order in which the legend explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Holds,
    Spins,
    Runs,
    Preempted,
    Asleep,
}

impl Doing {
    const ALL: [Self; 5] = [Self::Holds, Self::Spins, Self::Runs, Self::Preempted, Self::Asleep];

    fn letter(self) -> char {
        match self {
            Self::Holds => '█',
            Self::Spins => '▒',
            Self::Runs => '━',
            Self::Preempted => '·',
            Self::Asleep => 'z',
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds the lock, on a pCPU",
            Self::Spins => "waits on a pCPU",
            Self::Runs => "runs",
            Self::Preempted => "wants a pCPU and has none",
            Self::Asleep => "asleep",
        }
    }
}

/// A vCPU while the run goes on, and its lane.
#[derive(Clone, Debug)]
struct Lane {
    state: VcpuState,
    holds: bool,
    /// Locks that it waits for: an interrupt may wait while the task below it waits.
    waits: Vec<u32>,
    counted: Picos,
    /// Whether it had to do with the lock in the drawn time.
    involved: bool,
    cells: [[Picos; Doing::ALL.len()]; CELLS],
}

impl Lane {
    fn doing(&self) -> Option<Doing> {
        match self.state {
            VcpuState::Running if self.holds => Some(Doing::Holds),
            VcpuState::Running if !self.waits.is_empty() => Some(Doing::Spins),
            VcpuState::Running => Some(Doing::Runs),
            VcpuState::Runnable => Some(Doing::Preempted),
            VcpuState::Blocked => Some(Doing::Asleep),
            VcpuState::Offline => None,
        }
    }

    /// What it did most in a cell; a space if it was offline.
    fn letter(&self, cell: usize) -> char {
        let most = Doing::ALL.into_iter().zip(self.cells[cell]).rev().max_by_key(|(_, time)| *time);
        most.filter(|(_, time)| *time > Picos::ZERO).map_or(' ', |(doing, _)| doing.letter())
    }
}

/// The observer: counts times in the drawn part of the run.
#[derive(Debug)]
struct Drawing {
    from: Picos,
    cell: Picos,
    /// The first vCPU of the domain, and the lock, whose holders are marked.
    first: u32,
    vcpus_of_domain: u32,
    lock: u32,
    /// The wait that must be found, or this is another run.
    waiter: u32,
    since: Picos,
    found: bool,
    lanes: Vec<Lane>,
}

impl Drawing {
    fn new(scenario: &Scenario, wait: &LongWait) -> Option<Self> {
        let all = overspin_workload::with_noise(scenario);
        let before = all.domains.get(..wait.domain as usize)?;
        let first: u32 = before.iter().map(|d| d.vcpus).sum();
        let lane = Lane {
            state: VcpuState::Offline,
            holds: false,
            waits: Vec::new(),
            counted: Picos::ZERO,
            involved: false,
            cells: [[Picos::ZERO; Doing::ALL.len()]; CELLS],
        };
        // A little before and after, so that the beginning and the end can be seen.
        let margin = wait.time / 16;
        let from = wait.since.saturating_sub(margin);
        let whole = (wait.since + wait.time + margin).saturating_sub(from);
        Some(Self {
            from,
            cell: (whole / CELLS as u64).max(Picos(1)),
            first,
            vcpus_of_domain: all.domains.get(wait.domain as usize)?.vcpus,
            lock: wait.lock,
            waiter: first + wait.vcpu,
            since: wait.since,
            found: false,
            lanes: vec![lane; all.domains.iter().map(|d| d.vcpus as usize).sum()],
        })
    }

    fn end(&self) -> Picos {
        self.from + self.cell.saturating_mul(CELLS as u64)
    }

    /// Counts what a vCPU did until now.
    fn count(&mut self, at: Picos, vcpu: usize) {
        let (from, cell, end) = (self.from, self.cell, self.end());
        let lane = &mut self.lanes[vcpu];
        let doing = lane.doing();
        let mut begin = lane.counted.max(from);
        lane.counted = at;
        let Some(doing) = doing else { return };
        while begin < at.min(end) {
            let number = ((begin - from).0 / cell.0) as usize;
            let until = at.min(from + cell.saturating_mul(number as u64 + 1));
            lane.cells[number][doing as usize] += until - begin;
            begin = until;
        }
    }

    fn change(&mut self, at: Picos, vcpu: u32, to: impl FnOnce(&mut Lane)) {
        let vcpu = vcpu as usize;
        if vcpu < self.lanes.len() {
            self.count(at, vcpu);
            to(&mut self.lanes[vcpu]);
        }
    }

    fn is_the_lock(&self, vcpu: u32, lock: u32) -> bool {
        lock == self.lock && (self.first..self.first + self.vcpus_of_domain).contains(&vcpu)
    }

    fn moment(&mut self, at: Picos, moment: &Moment) {
        match *moment {
            Moment::Switch { prev, prev_state, next, .. } => {
                if let Some(prev) = prev {
                    self.change(at, prev, |lane| lane.state = prev_state);
                }
                if let Some(next) = next {
                    self.change(at, next, |lane| lane.state = VcpuState::Running);
                }
            }
            Moment::Wake { vcpu, runnable: true, .. } => self.change(at, vcpu, |lane| {
                if lane.state != VcpuState::Running {
                    lane.state = VcpuState::Runnable;
                }
            }),
            Moment::LockWait { vcpu, lock, .. } => {
                self.found |= (at, vcpu, lock) == (self.since, self.waiter, self.lock);
                self.change(at, vcpu, |lane| lane.waits.push(lock));
            }
            Moment::LockAcquired { vcpu, lock, .. } => {
                let (the_lock, inside) = (self.is_the_lock(vcpu, lock), at >= self.from);
                self.change(at, vcpu, |lane| {
                    lane.holds |= the_lock;
                    lane.involved |= the_lock && inside;
                    lane.waits.retain(|of| *of != lock);
                });
            }
            Moment::LockReleased { vcpu, lock, .. } if self.is_the_lock(vcpu, lock) => {
                self.change(at, vcpu, |lane| lane.holds = false);
            }
            _ => {}
        }
    }
}

impl Observer for Drawing {
    fn interest(&self) -> Interest {
        Interest::SCHEDULING.and(Interest::LOCKS)
    }

    fn observe(&mut self, moments: &[Timed]) {
        for Timed { at, moment } in moments {
            if *at > self.end() {
                return;
            }
            self.moment(*at, moment);
        }
    }
}

/// Draws the longest wait for a lock of a run, which is repeated up to its end. Without one, it tells of the waits for
/// pCPUs. Nothing if nobody waited, or if `runner` ends first. Calls `progress` with the time of the repeated run.
///
/// # Errors
/// If the world refuses the scenario.
pub fn drawing(
    scenario: &Scenario,
    outcome: &Outcome,
    runner: Runner,
    progress: &dyn Fn(Picos),
) -> Result<Vec<Block>, Refused> {
    let Some(wait) = outcome.worst_waits.first() else {
        return crowd(scenario, outcome, runner, progress);
    };
    let Some(mut drawing) = Drawing::new(scenario, wait) else { return Ok(Vec::new()) };
    let end = drawing.end();
    let cancel = |now| {
        progress(now);
        if now > end { Some(Stopped::Interrupted) } else { runner.until.over() }
    };
    let again = overspin_host::run(runner.world, scenario, outcome.seed, &mut drawing, &cancel)?;
    if runner.until.over().is_some() {
        return Ok(Vec::new());
    }
    let last = end.min(again.elapsed);
    (0..drawing.lanes.len()).for_each(|vcpu| drawing.count(last, vcpu));
    let heading = Block::Heading("The longest wait, drawn".into());
    Ok(vec![
        heading,
        match drawing.found {
            true => Block::Lines(lines(&drawing, wait, &Names { scenario, outcome })),
            false => Block::Text(
                "The repeated run does not have this wait: another version of the program made the record.".into(),
            ),
        },
    ])
}

/// The vCPUs to draw: the waiter, then those that its story names, then others that held the lock.
fn involved(drawing: &Drawing, wait: &LongWait, scenario: &Scenario) -> Vec<u32> {
    let own = |vcpu: u32| drawing.first + vcpu;
    let any = |id: VcpuId| -> Option<u32> {
        let before = scenario.domains.get(..id.domain as usize)?;
        Some(before.iter().map(|d| d.vcpus).sum::<u32>() + id.vcpu)
    };
    let holders =
        wait.holder.into_iter().chain(wait.chain.iter().filter_map(|link| link.vcpu)).map(own);
    let by = wait.chain.iter().filter_map(|link| link.decision.as_ref()?.by).filter_map(any);
    let others = (0..drawing.lanes.len() as u32).filter(|v| drawing.lanes[*v as usize].involved);
    let mut lanes: Vec<u32> = Vec::new();
    for vcpu in std::iter::once(own(wait.vcpu)).chain(holders).chain(by).chain(others) {
        if !lanes.contains(&vcpu) && (vcpu as usize) < drawing.lanes.len() {
            lanes.push(vcpu);
        }
    }
    lanes
}

fn lines(drawing: &Drawing, wait: &LongWait, names: &Names<'_>) -> String {
    let all = overspin_workload::with_noise(names.scenario);
    let name = |vcpu: u32| {
        let mut left = vcpu;
        for domain in &all.domains {
            if left < domain.vcpus {
                return format!("{}/v{left}", domain.name);
            }
            left -= domain.vcpus;
        }
        format!("vCPU {vcpu}")
    };
    let lanes = involved(drawing, wait, names.scenario);
    let shown = &lanes[..lanes.len().min(LANES)];
    let width = shown.iter().map(|v| name(*v).chars().count()).max().unwrap_or(0);
    let waiter = name(drawing.waiter);
    let mut text = format!(
        "{waiter} waits for {} from 0 to {:.3} ms. Each character is {} ms.\n\n",
        names.lock(wait.domain, wait.lock),
        wait.time.millis(),
        overspin_report::two_digits(drawing.cell.millis()),
    );
    text += &scale(drawing, width);
    for vcpu in shown {
        let lane = &drawing.lanes[*vcpu as usize];
        let cells: String = (0..CELLS).map(|cell| lane.letter(cell)).collect();
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "{:>width$} {}", name(*vcpu), cells.trim_end());
    }
    if lanes.len() > LANES {
        let _ = writeln!(
            text,
            "{:>width$} and {} more vCPUs that held the lock",
            "",
            lanes.len() - LANES
        );
    }
    text.push('\n');
    for doing in Doing::ALL {
        let _ = writeln!(text, "{:>width$} {} {}", "", doing.letter(), doing.words());
    }
    let _ = writeln!(text, "{:>width$} A character shows what the vCPU did most in its time.", "");
    text
}

/// Times in ms since the beginning of the wait, and a mark under the first digit of each.
fn scale(drawing: &Drawing, width: usize) -> String {
    let step = step(drawing.cell.saturating_mul(TICK as u64));
    let (mut labels, mut marks) = (String::new(), String::new());
    for tick in 0.. {
        let at = drawing.since + step.saturating_mul(tick);
        let cell = ((at.saturating_sub(drawing.from)).0 / drawing.cell.0) as usize;
        if cell >= CELLS {
            break;
        }
        let time = overspin_report::short(step.millis() * tick as f64);
        // Writing to a String cannot fail.
        let _ = write!(labels, "{:pad$}{time}", "", pad = cell.saturating_sub(labels.len()));
        let _ = write!(marks, "{:pad$}|", "", pad = cell.saturating_sub(marks.len()));
    }
    format!("{:>width$} {labels} ms\n{:>width$} {marks}\n", "", "")
}

/// The least of 1, 2 and 5 times a power of ten that is at least this long.
fn step(least: Picos) -> Picos {
    let powers = (0..19).map(|power| Picos(10_u64.pow(power)));
    powers
        .flat_map(|power| [1, 2, 5].map(|n| power.saturating_mul(n)))
        .find(|s| *s >= least)
        .unwrap_or(least)
}
