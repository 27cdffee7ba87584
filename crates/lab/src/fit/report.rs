//! What the scenario of a mutex shows: first whether it reproduces the recording, then what else could be.

use super::recording::{FEW_ACQUISITIONS, Mutex, Recording};
use super::scenario::Fitted;
use overspin_host::Refused;
use overspin_located::LocatedError;
use overspin_report::{Block, Grid, short};
use overspin_runs::runner::Runner;
use overspin_runs::scenario_file::parse;
use overspin_scenario::{LockOutcome, Outcome, Picos};

/// Seeds of each run; means are shown.
const SEEDS: u64 = 3;
/// Mutexes that are listed.
const MOST_MUTEXES: usize = 10;
/// Changes the scenario to 2:1 overcommit.
const CROWDED: &str = "domain.neighbour.workload.wait=0";

/// Figures of a lock.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    /// Acquisitions a second.
    rate: f64,
    /// Acquisitions in a second of CPU time: other programs on the machine do not change it much.
    per_cpu: f64,
    /// Part of the acquisitions that had to wait, in percent.
    contended: f64,
    /// Mean wait of all acquisitions, in microseconds.
    wait: f64,
    /// Its 99th percentile.
    p99: f64,
}

/// A scenario whose contention is further from the recording than this, in points, is not that of the program.
const FAR_CONTENDED: f64 = 10.0;
/// The same for its rate, in percent.
const FAR_RATE: f64 = 30.0;

/// What `overspin fit` shows.
#[derive(Clone, Debug)]
pub struct Report {
    /// The report.
    pub blocks: Vec<Block>,
    /// Whether the scenario agrees with the recording. If not, it predicts nothing.
    pub agrees: bool,
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// A setting does not fit the scenario, such as an unknown lock.
    #[error(transparent)]
    Scenario(#[from] Box<LocatedError>),
    /// The simulator refuses the scenario.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Runs `fitted`, the scenario of mutex `number` (from 0) of `recording`, as recorded and with `locks`.
///
/// # Errors
/// If the scenario cannot be run with one of them.
pub fn report(
    path: &str,
    recording: &Recording,
    number: usize,
    fitted: &Fitted,
    locks: &[String],
) -> Result<Report, Failed> {
    let text = &fitted.text;
    let mutex = &recording.mutexes[number];
    if mutex.acquisitions < FEW_ACQUISITIONS {
        return Ok(too_few(recording, number));
    }
    let was = recorded(recording, mutex);
    let is = run(path, text, &[])?;
    let contradiction = contradiction(&was, &is);
    let mut blocks = Vec::new();
    match &contradiction {
        None => blocks.push(Block::Title(format!("Locks of {}", recording.program))),
        Some(what) => {
            blocks.push(Block::Title(format!("No prediction for {}: {what}", recording.program)));
            blocks.push(Block::Text(what_to_do(recording, number, fitted)));
        }
    }
    blocks.push(Block::Grid(list(recording, number)));
    blocks.extend(fitted.doubts.iter().map(|doubt| Block::Text(format!("Doubtful: {doubt}."))));
    blocks.push(Block::Heading(format!("As recorded, with `{}`", recording.lock)));
    let mut grid = Grid::new(2, &["figure", "unit", "recorded", "simulated", "gap"]);
    for (name, unit, was, is) in [
        ("acquisitions", "1/s", was.rate, is.rate),
        ("acquisitions, by CPU time", "1/s", was.per_cpu, is.per_cpu),
        ("contended", "%", was.contended, is.contended),
        ("mean wait", "us", was.wait, is.wait),
        ("p99 of waits", "us", was.p99, is.p99),
    ] {
        let gap = match unit {
            "%" => format!("{:+.1} points", is - was),
            _ if was > 0.0 => format!("{:+.0} %", 100.0 * (is - was) / was),
            _ => "-".to_owned(),
        };
        grid.row([name.to_owned(), unit.to_owned(), short(was), short(is), gap]);
    }
    blocks.push(Block::Grid(grid));
    if contradiction.is_some() {
        return Ok(Report { blocks, agrees: false });
    }
    blocks.push(Block::Heading("With other locks, and at 2:1 overcommit".into()));
    let header = [
        "lock",
        "acquisitions/s",
        "p99 wait, us",
        "acquisitions/s\nat 2:1",
        "p99 wait, us\nat 2:1",
    ];
    let mut grid = Grid::new(1, &header);
    let mut all = vec![recording.lock.clone()];
    all.extend(locks.iter().filter(|lock| **lock != recording.lock).cloned());
    for lock in all {
        let set = format!("domain.program.lock={lock}");
        let alone = run(path, text, std::slice::from_ref(&set))?;
        let crowded = run(path, text, &[set, CROWDED.to_owned()])?;
        grid.row([
            lock,
            short(alone.rate),
            short(alone.p99),
            short(crowded.rate),
            short(crowded.p99),
        ]);
    }
    blocks.push(Block::Grid(grid));
    blocks.push(Block::Text(format!(
        "Simulated: means of {SEEDS} seeds. The neighbour of 2:1 computes on as many vCPUs as there are CPUs. Trust the second table \
         as far as the first one agrees."
    )));
    Ok(Report { blocks, agrees: true })
}

/// The report of a mutex of which nothing follows.
fn too_few(recording: &Recording, number: usize) -> Report {
    let title = match recording.mutexes[number].acquisitions {
        1 => "1 acquisition is too few".to_owned(),
        n => format!("{n} acquisitions are too few"),
    };
    let mut what_to_do = format!(
        "A fit needs {FEW_ACQUISITIONS}, so the mutex was not simulated. Record a longer run"
    );
    let other = recording.hottest();
    if recording.mutexes[other].acquisitions >= FEW_ACQUISITIONS {
        what_to_do += &format!(", or take another mutex: --mutex {other}");
    }
    let blocks = vec![
        Block::Title(format!("No prediction for {}: {title}", recording.program)),
        Block::Text(what_to_do + "."),
        Block::Grid(list(recording, number)),
    ];
    Report { blocks, agrees: false }
}

/// How the scenario contradicts the recording, if it does.
fn contradiction(was: &Figures, is: &Figures) -> Option<String> {
    if (is.contended - was.contended).abs() > FAR_CONTENDED {
        let [was, is] = [was.contended, is.contended].map(|it| format!("{it:.1} %"));
        return Some(format!("contended {was}, simulated {is}"));
    }
    let gap = 100.0 * (is.rate - was.rate) / was.rate.max(1e-9);
    (gap.abs() > FAR_RATE).then(|| format!("the simulated rate is off by {gap:+.0} %"))
}

/// What to do about a scenario that contradicts its recording.
fn what_to_do(recording: &Recording, number: usize, fitted: &Fitted) -> String {
    let mut text =
        "The scenario does not behave as the program did, so other locks were not tried. "
            .to_owned();
    if !fitted.doubts.is_empty() {
        text += "The doubts below say what differs. ";
    }
    text += "Record a longer run, with no other program on the CPUs";
    let busiest = recording.mutexes.iter().enumerate().filter(|(i, m)| {
        *i != number && m.mutexes == 1 && m.contended > 0 && !m.outside_looks.0.is_empty()
    });
    if let Some((other, _)) = busiest.max_by_key(|(_, m)| m.contended) {
        text += &format!(", or take another mutex: --mutex {other}");
    }
    text + "."
}

/// The mutexes of a recording; the fitted one is marked.
fn list(recording: &Recording, number: usize) -> Grid {
    let header = [
        "mutex",
        "threads",
        "acquisitions",
        "contended, %",
        "section, us",
        "outside, us",
        "first locked at",
    ];
    let mut grid = Grid::new(1, &header);
    grid.notes = 1;
    for (i, m) in recording.mutexes.iter().enumerate().take(MOST_MUTEXES.max(number + 1)) {
        grid.row([
            if i == number { format!("{i}, fitted") } else { i.to_string() },
            m.threads.to_string(),
            m.acquisitions.to_string(),
            short(recorded(recording, m).contended),
            short(m.section.usual() / 1e3),
            short(m.outside.usual() / 1e3),
            m.first_locked_at.clone(),
        ]);
    }
    grid
}

fn recorded(recording: &Recording, mutex: &Mutex) -> Figures {
    let seconds = mutex.to_ns.saturating_sub(mutex.from_ns).max(1) as f64 / 1e9;
    let all = mutex.acquisitions.max(1) as f64;
    Figures {
        rate: mutex.acquisitions as f64 / seconds,
        per_cpu: mutex.acquisitions as f64 / (recording.cpu_ns.max(1) as f64 / 1e9),
        contended: 100.0 * mutex.contended as f64 / all,
        wait: mutex.wait.mean() / 1e3,
        p99: mutex.wait.of_all_but(100) as f64 / 1e3,
    }
}

/// Means over seeds.
fn run(path: &str, text: &str, sets: &[String]) -> Result<Figures, Failed> {
    let scenario = parse(path, path, text, sets).map_err(Box::new)?;
    let mut sum = Figures::default();
    for seed in 1..=SEEDS {
        let figures = simulated(&Runner::default().run(&scenario, seed, &mut (), &|_| {})?);
        sum.rate += figures.rate;
        sum.per_cpu += figures.per_cpu;
        sum.contended += figures.contended;
        sum.wait += figures.wait;
        sum.p99 += figures.p99;
    }
    let n = SEEDS as f64;
    Ok(Figures {
        rate: sum.rate / n,
        per_cpu: sum.per_cpu / n,
        contended: sum.contended / n,
        wait: sum.wait / n,
        p99: sum.p99 / n,
    })
}

fn simulated(outcome: &Outcome) -> Figures {
    let Some(program) = outcome.domains.first() else { return Figures::default() };
    let locks: Vec<&LockOutcome> =
        program.locks.iter().filter(|lock| lock.name.starts_with("section")).collect();
    let cpu: f64 = program.vcpus.iter().map(|vcpu| vcpu.running.seconds()).sum();
    let sum = |of: &dyn Fn(&LockOutcome) -> f64| locks.iter().map(|lock| of(lock)).sum::<f64>();
    let acquisitions = sum(&|lock| lock.acquisitions as f64);
    let all = acquisitions.max(1.0);
    let us = |time: Picos| time.micros();
    Figures {
        per_cpu: acquisitions / cpu.max(1e-9),
        rate: acquisitions / outcome.counted().seconds().max(1e-9),
        contended: 100.0 * sum(&|lock| lock.contended as f64) / all,
        wait: sum(&|lock| us(lock.wait_total)) / all,
        // Locks that are taken equally often have about the same.
        p99: sum(&|lock| us(lock.wait_p99) * lock.acquisitions as f64) / all,
    }
}
