//! Why is it slow? The story of a run's waits for locks, in words and numbers: which locks, which causes,
//! whose vCPUs. For the longest waits, it names the holder, the descheduled vCPUs, the decisions that
//! descheduled them, and the times. `docs/attribution.md` defines the causes and shows how to read this.

mod crowd;
mod drawing;
mod many;
mod record;
mod reproduction;
mod samples;
mod waits;

pub use drawing::drawing;
pub use many::{Worst, many, point, worst};
pub use record::{ExplainError, Repeat, record};
pub use reproduction::reproduction;
pub use samples::samples;
pub(crate) use waits::why;

use overspin_report::{Block, Grid, MOST_LINES, micros, seconds, share};
use overspin_runs::catalog::catalog;
use overspin_runs::run::causes::{compact, grid, row};
use overspin_scenario::{
    Cause, DomainOutcome, Ending, ExtensionOutcome, FoldingOutcome, LongWait, Outcome, Picos,
    Scenario, ShootdownOutcome, VcpuId, VcpuOutcome, WaitCauses,
};

/// Most locks in a table.
const TOP_LOCKS: usize = 10;
/// A cause with at least 1/LARGE of the time is worth an explanation.
const LARGE: u64 = 5;

/// The meaning of a cause, for the reader of the report.
fn meaning(cause: Cause) -> &'static str {
    match cause {
        Cause::HolderRunning => {
            "The holder was running: sections are long, or many vCPUs want them. More CPUs or another \
             lock do not help; shorter sections, or fewer of them, do."
        }
        Cause::HolderPreempted => {
            "A holder was off its CPU (lock-holder preemption). All waiters wait for the scheduler; \
             waiters that sleep leave it the CPU."
        }
        Cause::HolderThrottled => {
            "A holder stood still because its domain, or container, had used its quota up on that CPU. All waiters wait for the \
             next period, and those that spin use up what is left of the quota. No lock cures that; a higher quota, fewer threads \
             than it has CPUs, or a lock that is not shared with the domain do."
        }
        Cause::NextThrottled => {
            "The lock was free, but kept for a waiter, or left to one that had been woken, whose domain, or container, had used its \
             quota up on that CPU. A lock that others may take, and that wakes another waiter, does not pay this price."
        }
        Cause::NextPreempted => {
            "The lock was free, but kept for a waiter that was off its CPU (lock-waiter preemption): the \
             price of first come, first served when vCPUs outnumber CPUs. A lock that others may take, \
             or whose waiters sleep and are woken in turn, does not pay this price."
        }
        Cause::HolderPreemptedByGuest => {
            "The guest ran another task in place of the holder: the lock is one of a program, and there are more threads \
             than vCPUs. Fewer threads, or waiters that sleep, leave the holder its vCPU."
        }
        Cause::NextPreemptedByGuest => {
            "The lock was free, but kept for a task in place of which the guest ran another one: the price of first come, \
             first served when threads outnumber vCPUs. A lock that others may take does not pay it."
        }
        Cause::KickWake => {
            "The next holder slept, and had to be woken and to get a CPU. If waiters spin longer before they \
             sleep, this happens less often; if the scheduler runs woken vCPUs soon, it takes less time."
        }
        Cause::OwnPreemption => {
            "The waiters themselves were off their CPUs, and could not have taken the lock. This is the price \
             of the overcommit; waiters that spin raise it for the others."
        }
        Cause::LineTransfer => {
            "The lock was free, and on its way to a running vCPU: cache lines moved between CPUs."
        }
    }
}

/// The cause with the most time; `None` if there is none.
fn main_cause(causes: &WaitCauses) -> Option<Cause> {
    Cause::ALL.into_iter().filter(|c| causes.of(*c) > Picos::ZERO).max_by_key(|c| causes.of(*c))
}

/// The causes with their shares, the largest first, without those under one percent.
fn shares(causes: &WaitCauses) -> String {
    let total = causes.total();
    let mut all = Cause::ALL.map(|c| (causes.of(c), c));
    all.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    let named = all.iter().filter(|(time, _)| *time > Picos::ZERO && *time >= total / 100);
    named
        .map(|(t, c)| format!("{} % {}", share(*t, total), c.words()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Names of things in messages.
struct Names<'a> {
    scenario: &'a Scenario,
    outcome: &'a Outcome,
}

impl Names<'_> {
    fn domain(&self, domain: u32) -> &str {
        self.scenario.domains.get(domain as usize).map_or("the host's noise", |d| &d.name)
    }

    fn vcpu(&self, v: VcpuId) -> String {
        format!("{}/v{}", self.domain(v.domain), v.vcpu)
    }

    /// One that waits for a lock, holds it, or is absent: a vCPU, or a task.
    fn waiter(&self, wait: &LongWait, number: u32) -> String {
        let domain = wait.domain;
        if !wait.of_tasks {
            return self.vcpu(VcpuId { domain, vcpu: number });
        }
        let tasks = self.outcome.domains.get(domain as usize).map(|d| &d.tasks);
        let name = tasks.and_then(|t| t.get(number as usize)).map_or("?", |t| &t.name);
        format!("{}/{name}", self.domain(domain))
    }

    fn lock(&self, domain: u32, lock: u32) -> &str {
        let locks = self.outcome.domains.get(domain as usize).map(|d| &d.locks);
        locks.and_then(|l| l.get(lock as usize)).map_or("?", |l| &l.name)
    }
}

/// The scheduler of a measured run, in words, if it was the scenario's and not that of a kernel.
fn own_scheduler(world: &str, scenario: &Scenario) -> String {
    match catalog().world(world).map(|world| world.supports(scenario)) {
        Some(Ok(keys)) if !keys.iter().any(|key| key.key.contains("host.scheduler")) => {
            format!(", scheduler {}", scenario.host.scheduler)
        }
        _ => String::new(),
    }
}

/// Explains a run; `trace` is the name of its trace, if there is one.
#[must_use]
pub fn run(scenario: &Scenario, outcome: &Outcome, trace: Option<&str>) -> Vec<Block> {
    let mut blocks = vec![
        Block::Title(format!("{}: why it waits", scenario.name)),
        Block::Text(format!(
            "{} {}, {} pCPUs.{}",
            seconds(outcome.elapsed),
            match &outcome.measurement {
                None => format!(
                    "simulated seconds, seed {}, scheduler {}",
                    outcome.seed, scenario.host.scheduler
                ),
                Some(measured) => format!(
                    "seconds in the world `{}`{}",
                    measured.world,
                    own_scheduler(&measured.world, scenario)
                ),
            },
            scenario.host.pcpus(),
            overspin_runs::run::counts(scenario, outcome),
        )),
    ];
    if let Ending::Deadlock { waits } = &outcome.ending {
        blocks.push(Block::Text(
            "The run ended in a deadlock: nothing could ever happen again.".into(),
        ));
        blocks.push(Block::Lines(waits.join("\n")));
    }
    for (asked, domain) in scenario.domains.iter().zip(&outcome.domains) {
        blocks.push(Block::Heading(format!("Domain {} ({})", domain.name, asked.lock)));
        domain_story(domain, outcome.counted(), &mut blocks);
    }
    let names = Names { scenario, outcome };
    if !outcome.worst_waits.is_empty() {
        blocks.push(Block::Heading("The longest waits".into()));
        for (i, wait) in outcome.worst_waits.iter().enumerate() {
            waits::story(i + 1, wait, &names, &mut blocks);
        }
        blocks.push(Block::Text(match trace {
            Some(trace) => format!(
                "Times in the trace are those of {trace}, in ns, as in ui.perfetto.dev and its SQL."
            ),
            None => "Times in the trace are those of `overspin run --trace FILE` with the same scenario and seed, \
                     in ns, as in ui.perfetto.dev and its SQL."
                .into(),
        }));
    }
    blocks
}

/// `time` is the time that counts.
fn domain_story(domain: &DomainOutcome, time: Picos, blocks: &mut Vec<Block>) {
    let all = WaitCauses::sum(domain.locks.iter().map(|l| &l.wait_causes));
    let vcpu_time = time.saturating_mul(domain.vcpus.len() as u64);
    if let Some(shootdowns) = &domain.shootdowns {
        blocks.push(Block::Text(shootdown_story(shootdowns, vcpu_time)));
    }
    blocks.extend(domain.extensions.map(|of| Block::Text(extension_story(of))));
    blocks.extend(domain.folding.map(|of| Block::Text(folding_story(of, time))));
    blocks.extend(domain.excursions.filter(|of| of.number > 0).map(|of| {
        Block::Text(format!(
            "Tasks entered the kernel {} times in the middle of sections; another task took over in {} of these.",
            of.number, of.preempted
        ))
    }));
    blocks.extend(exit_story(domain).map(Block::Text));
    if all.total() == Picos::ZERO {
        let waited: Picos = domain.locks.iter().map(|l| l.wait_total).sum();
        blocks.push(Block::Text(match waited {
            Picos::ZERO => {
                format!("No vCPU waited for a lock and then got it.{}", without_pcpu(domain))
            }
            // A real machine does not always tell who is absent.
            _ => format!(
                "Waits for locks took {} s in all. Their causes were not measured.",
                seconds(waited)
            ),
        }));
        return;
    }
    let contended: u64 = domain.locks.iter().map(|l| l.contended).sum();
    let acquisitions: u64 = domain.locks.iter().map(|l| l.acquisitions).sum();
    let spinning: Picos = domain.vcpus.iter().map(|v| v.spinning).sum();
    // Older records have only the spinning part.
    let waiting: Picos = domain.vcpus.iter().map(|v| v.waiting.max(v.spinning)).sum();
    let running: Picos = domain.vcpus.iter().map(|v| v.running).sum();
    let runnable: Picos = domain.vcpus.iter().map(|v| v.runnable).sum();
    blocks.push(Block::Text(format!(
        "{contended} of {acquisitions} acquisitions had to wait, {} s in all: {} % of the time of {} vCPUs. \
         The vCPUs wanted a pCPU but had none for {} s. They burned {} s of their {} s on pCPUs in waiting, \
         {} s of it in spinning.",
        seconds(all.total()),
        share(all.total(), vcpu_time),
        domain.vcpus.len(),
        seconds(runnable),
        seconds(waiting),
        seconds(running),
        seconds(spinning),
    )));
    blocks.push(Block::Text(format!("Causes of the waiting: {}.", shares(&all))));
    let mut causes = Grid::new(1, &["cause", "time s", "share %"]);
    let mut by_time = Cause::ALL;
    by_time.sort_by_key(|c| std::cmp::Reverse(all.of(*c)));
    for cause in by_time {
        if all.of(cause) >= all.total() / LARGE {
            blocks.push(Block::Text(format!("{}: {}", cause.words(), meaning(cause))));
        }
        let time = all.of(cause);
        if cause as usize >= Cause::OF_ANY_LOCK && time == Picos::ZERO {
            continue;
        }
        causes.row([cause.words().into(), seconds(time), share(time, all.total())]);
    }
    causes.row(["all".into(), seconds(all.total()), share(all.total(), all.total())]);
    blocks.push(Block::Grid(causes));
    blocks.push(Block::Grid(compact(top_locks(domain, all.total()))));
    if domain.vcpus.iter().any(|v| v.wait_causes.total() > Picos::ZERO) {
        blocks.push(Block::Grid(compact(vcpus(domain))));
    }
}

/// How long vCPUs waited for others to forget what was unmapped, and why.
fn shootdown_story(shootdowns: &ShootdownOutcome, vcpu_time: Picos) -> String {
    let ShootdownOutcome { shootdowns, interrupts, skipped, waited, preempted } = shootdowns;
    let told = match skipped {
        0 => String::new(),
        _ => {
            format!(" {skipped} without a pCPU were told by the host, and nobody waited for them.")
        }
    };
    format!(
        "{shootdowns} times memory was unmapped. Waits for the {interrupts} TLB flushes of other vCPUs took {} s in all: \
         {} % of the time of all vCPUs. For {} % of that the last one to answer had no pCPU.{told}",
        seconds(*waited),
        share(*waited, vcpu_time),
        share(*preempted, *waited),
    )
}

/// How often a task could finish its section first, and how that ended.
fn extension_story(of: ExtensionOutcome) -> String {
    let ExtensionOutcome { granted, yielded, aborted, expired, revoked } = of;
    format!(
        "The kernel granted {granted} extensions of time slices. Tasks gave {yielded} back after their sections and ended \
         {aborted} by other system calls; {expired} expired, and the next preemption ended {revoked}."
    )
}

/// How far the kernel folded its tasks, and how often it changed its mind.
fn folding_story(of: FoldingOutcome, time: Picos) -> String {
    let FoldingOutcome { samples, steal, narrowed, widened, pushed, preferred } = of;
    format!(
        "The kernel preferred {:.1} vCPUs on average. In {samples} looks it saw {} s stolen, removed a core {narrowed} times and \
         added one {widened} times. Ticks took {pushed} tasks off vCPUs that were no longer preferred.",
        preferred.ratio(time),
        seconds(steal),
    )
}

/// What pause-loop exits and interrupts of the host took from the vCPUs of a domain; `None` if there were none.
fn exit_story(domain: &DomainOutcome) -> Option<String> {
    let sum = |of: fn(&VcpuOutcome) -> Picos| domain.vcpus.iter().map(of).sum::<Picos>();
    let count = |of: fn(&VcpuOutcome) -> u64| domain.vcpus.iter().map(of).sum::<u64>();
    let (running, exiting, interrupted) =
        (sum(|v| v.running), sum(|v| v.exiting), sum(|v| v.interrupted));
    let exits = match count(|v| v.spin_exits) {
        0 => None,
        exits => Some(format!(
            "The vCPUs exited {exits} times because they spun, and the host yielded to one of them {} times. That took {} s: \
             {} % of their time on pCPUs.",
            count(|v| v.directed_yields),
            seconds(exiting),
            share(exiting, running),
        )),
    };
    let interrupts = (interrupted > Picos::ZERO).then(|| {
        format!(
            "Interrupts of the host that switched nothing kept them out of their guest for {} s: {} %.",
            seconds(interrupted),
            share(interrupted, running),
        )
    });
    let all: Vec<String> = exits.into_iter().chain(interrupts).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// How long the vCPUs of a domain wanted a pCPU and had none, as a second sentence; nothing if they never did.
fn without_pcpu(domain: &DomainOutcome) -> String {
    let runnable: Picos = domain.vcpus.iter().map(|v| v.runnable).sum();
    let running: Picos = domain.vcpus.iter().map(|v| v.running).sum();
    if runnable == Picos::ZERO {
        return String::new();
    }
    format!(
        " They wanted a pCPU but had none for {:.3} ms, {} % of the time in which they had work.",
        runnable.millis(),
        share(runnable, runnable + running)
    )
}

fn top_locks(domain: &DomainOutcome, all: Picos) -> Grid {
    let mut grid = grid(&["lock", "waits", "time s", "share %", "avg us", "max us"]);
    let mut locks: Vec<_> = domain.locks.iter().filter(|l| l.contended > 0).collect();
    locks.sort_by_key(|l| std::cmp::Reverse(l.wait_total));
    for l in locks.iter().take(TOP_LOCKS) {
        let head = [
            l.name.clone(),
            l.contended.to_string(),
            seconds(l.wait_total),
            share(l.wait_total, all),
            micros(l.wait_total.checked_div(l.contended).unwrap_or_default()),
            micros(l.wait_max),
        ];
        row(&mut grid, head, &l.wait_causes);
    }
    if let Some(others) = locks.get(TOP_LOCKS..).filter(|others| !others.is_empty()) {
        let time: Picos = others.iter().map(|l| l.wait_total).sum();
        let head = [
            format!("{} others", others.len()),
            others.iter().map(|l| l.contended).sum::<u64>().to_string(),
            seconds(time),
            share(time, all),
            String::new(),
            String::new(),
        ];
        let causes = WaitCauses::sum(others.iter().map(|l| &l.wait_causes));
        row(&mut grid, head, &causes);
    }
    grid
}

fn vcpus(domain: &DomainOutcome) -> Grid {
    let mut grid = grid(&["vCPU", "waited s"]);
    for (i, v) in domain.vcpus.iter().enumerate().take(MOST_LINES) {
        let head = [i.to_string(), seconds(v.wait_causes.total())];
        row(&mut grid, head, &v.wait_causes);
    }
    grid
}

#[cfg(test)]
mod tests;
