//! The results of `overspin measure`: reports, tables for scenarios, and raw counts.

mod record;
mod table;

pub use record::record;
pub use table::{noise_settings, noise_table};

use overspin_native::measure::{GapsByCause, Histogram, LONG_NS, Noise, SHORTEST_NS, Steal};
use overspin_report::{Block, Grid, MOST_LINES, short, time};
use overspin_scenario::Picos;
use std::fmt::Write;

/// Part of the CPU time above which other threads count as load, not noise.
const BUSY: f64 = 0.05;
/// With fewer gaps of threads, their rate and length are rough: the standard error of the rate is a tenth.
const FEW: u64 = 100;
/// If a larger part of the quanta has a gap, the quanta themselves vary.
const RESTLESS: f64 = 0.2;

type Kind = (&'static str, &'static str, fn(&GapsByCause) -> &Histogram);

/// Parts of a power of two that files tell apart.
const EIGHTHS: u64 = 8;

/// Kinds of gaps: name, description, histogram.
const KINDS: [Kind; 3] = [
    ("thread", "another thread of this kernel ran", |n| &n.thread),
    ("taken", "no switch, 0.1 ms or longer: hypervisor or firmware", |n| &n.taken),
    ("short", "no switch, shorter: ticks, interrupts, exits", |n| &n.short),
];

/// The report.
#[must_use]
pub fn noise(noise: &Noise) -> Vec<Block> {
    let system = &noise.system;
    let mut blocks = vec![Block::Title("Noise of this machine".into()), answer(noise)];
    blocks.push(Block::Text(format!(
        "{}. Linux {}, {}. {} of {} CPUs, {} s each, all at once.",
        system.cpu_model.as_deref().unwrap_or("Unknown CPU"),
        system.kernel.as_deref().unwrap_or("(unknown)"),
        if system.virtualised { "in a virtual machine" } else { "no hypervisor seen" },
        noise.cpus.len(),
        system.cpus,
        short(noise.duration_ns as f64 / 1e9),
    )));
    blocks.push(Block::Text(format!(
        "Quanta of {} us. The clock ({}) steps by {} ns and costs {} ns a reading. A gap is {} ns or more beyond \
         an unperturbed quantum.",
        us(mean_quantum_ns(noise)),
        system.clock_source.as_deref().unwrap_or("unknown source"),
        noise.clock_step_ns,
        short(noise.clock_read_ns),
        SHORTEST_NS,
    )));
    blocks.extend(noise.warnings.iter().map(|w| Block::Text(format!("Doubtful: {w}."))));
    blocks.extend(doubts(noise).into_iter().map(|d| Block::Text(format!("Doubtful: {d}."))));
    blocks.push(Block::Heading("Gaps by kind".into()));
    blocks.push(Block::Grid(kinds(noise)));
    blocks.push(Block::Text(stolen(noise)));
    for (name, what, of) in KINDS {
        let all = noise.all(of);
        if all.count > 0 {
            blocks.push(Block::Heading(format!("{name}: {what}")));
            blocks.push(Block::Grid(octaves(&all, noise.watched_ns())));
        }
    }
    blocks.push(Block::Heading("By CPU".into()));
    blocks.push(Block::Grid(by_cpu(noise)));
    blocks.push(Block::Heading("For a scenario".into()));
    blocks.push(Block::Lines(noise_table(noise)));
    blocks
}

/// How much of its time a program loses here, and to whom.
fn answer(noise: &Noise) -> Block {
    let watched = noise.watched_ns();
    let [threads, taken, brief] = KINDS.map(|(_, _, of)| noise.all(of));
    let lost = [&threads, &taken, &brief].map(|h| h.time_ns);
    let longest = [&threads, &taken, &brief].map(|h| h.max_ns).into_iter().max().unwrap_or(0);
    let percent = |ns: u64| format!("{} %", share(ns, watched));
    Block::Text(format!(
        "A program that wants a CPU of this machine all the time loses {} of it: {} to other threads, {} to the hypervisor or \
         the firmware, {} to ticks and interrupts. The longest gap was {}. The table at the end gives simulated hosts this noise.",
        percent(lost.iter().sum()),
        percent(lost[0]),
        percent(lost[1]),
        percent(lost[2]),
        time(Picos(longest.saturating_mul(1000))),
    ))
}

fn mean_quantum_ns(noise: &Noise) -> f64 {
    noise.cpus.iter().map(|c| c.noted.quantum_ns).sum::<f64>() / noise.cpus.len().max(1) as f64
}

fn us(ns: f64) -> String {
    short(ns / 1e3)
}

/// Percent of the watched time; small parts matter here.
fn share(ns: u64, watched_ns: u64) -> String {
    if watched_ns == 0 {
        "-".into()
    } else {
        format!("{:.4}", 100.0 * ns as f64 / watched_ns as f64)
    }
}

fn kinds(noise: &Noise) -> Grid {
    let header = [
        "kind",
        "gaps",
        "1/s\nper CPU",
        "CPU %",
        "mean us",
        "CV",
        "p50 us",
        "p90 us",
        "p99 us",
        "max us",
    ];
    let mut grid = Grid::new(1, &header);
    let watched = noise.watched_ns();
    for (name, _, of) in KINDS {
        let all = noise.all(of);
        let at = |one_in: u64| us(all.of_all_but(one_in) as f64);
        grid.row([
            name.into(),
            all.count.to_string(),
            short(all.count as f64 * 1e9 / watched.max(1) as f64),
            share(all.time_ns, watched),
            all.mean_ns().map_or_else(|| "-".into(), us),
            all.variation().map_or_else(|| "-".into(), short),
            at(2),
            at(10),
            at(100),
            us(all.max_ns as f64),
        ]);
    }
    grid
}

fn octaves(all: &Histogram, watched: u64) -> Grid {
    let mut grid = Grid::new(0, &["from us", "to us", "gaps", "time us", "CPU %"]);
    for bin in all.bins(1) {
        grid.row([
            us(bin.from_ns as f64),
            us(bin.to_ns as f64),
            bin.count.to_string(),
            us(bin.time_ns as f64),
            share(bin.time_ns, watched),
        ]);
    }
    grid
}

fn by_cpu(noise: &Noise) -> Grid {
    let header = [
        "CPU",
        "quantum us",
        "thread\n1/s",
        "thread\nCPU %",
        "taken\nCPU %",
        "short\nCPU %",
        "steal s\n(kernel)",
        "run delay s\n(kernel)",
    ];
    let mut grid = Grid::new(1, &header);
    let mut line = |cpu: String, n: &GapsByCause, [steal, run_delay]: [Option<u64>; 2]| {
        let counted =
            |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| format!("{:.3}", ns as f64 / 1e9));
        grid.row([
            cpu,
            us(n.quantum_ns),
            short(n.thread.count as f64 * 1e9 / n.watched_ns.max(1) as f64),
            share(n.thread.time_ns, n.watched_ns),
            share(n.taken.time_ns, n.watched_ns),
            share(n.short.time_ns, n.watched_ns),
            counted(steal),
            counted(run_delay),
        ]);
    };
    if noise.cpus.len() <= MOST_LINES {
        for c in &noise.cpus {
            line(c.cpu.to_string(), &c.noted, [c.steal_ns, c.run_delay_ns]);
        }
    }
    let all = GapsByCause {
        watched_ns: noise.watched_ns(),
        quantum_ns: mean_quantum_ns(noise),
        thread: noise.all(|n| &n.thread),
        taken: noise.all(|n| &n.taken),
        short: noise.all(|n| &n.short),
        ..GapsByCause::default()
    };
    line("all".into(), &all, [noise.steal_ns(), noise.cpus.iter().map(|c| c.run_delay_ns).sum()]);
    grid
}

/// Compares the long gaps without a switch with the kernel's count of stolen time.
fn stolen(noise: &Noise) -> String {
    let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
    let gaps = seconds(noise.all(|n| &n.taken).time_ns);
    let counted = noise.steal_ns().map_or_else(String::new, seconds);
    match noise.steal() {
        Steal::Unknown => {
            format!("Long gaps without a switch: {gaps}. The kernel does not count stolen time.")
        }
        Steal::Agrees => format!(
            "Long gaps without a switch: {gaps}; stolen by the kernel's count: {counted}. They agree."
        ),
        Steal::CountsLess => format!(
            "Long gaps without a switch: {gaps}; stolen by the kernel's count: {counted}. They do not agree: the \
             hypervisor does not report all that it takes, or the firmware has the CPU, or interrupts take long."
        ),
        Steal::CountsMore => format!(
            "Long gaps without a switch: {gaps}; stolen by the kernel's count: {counted}. They do not agree: time \
             was also stolen in gaps of the other kinds, which makes these look longer."
        ),
    }
}

/// Reasons to doubt the table.
fn doubts(noise: &Noise) -> Vec<String> {
    let mut doubts = Vec::new();
    let threads = noise.all(|n| &n.thread);
    let watched = noise.watched_ns().max(1) as f64;
    let had = threads.time_ns as f64 / watched;
    if had > BUSY {
        doubts.push(format!(
            "other threads had {:.0} % of the CPUs: that is load, not noise; stop them and measure again",
            100.0 * had
        ));
    }
    if threads.count < FEW {
        doubts.push(format!(
            "{} gaps of threads are too few to estimate a rate and a length; measure longer with --duration",
            threads.count
        ));
    }
    let (gaps, quanta) = noise
        .cpus
        .iter()
        .fold((0, 0), |(gaps, quanta), c| (gaps + c.noted.short.count, quanta + c.noted.quanta));
    if gaps as f64 > RESTLESS * quanta as f64 {
        doubts.push(
            "more than a fifth of the quanta have a short gap: either the CPUs' speed changes, as when sibling \
             threads share a core, or interrupts are very frequent"
                .into(),
        );
    }
    if noise.cpus.len() < noise.system.cpus {
        doubts.push(format!(
            "{} of {} CPUs were measured; the others may have more or less noise",
            noise.cpus.len(),
            noise.system.cpus
        ));
    }
    doubts
}

/// All counts as CSV: a line for each CPU, kind and length. `watched_ns` is the CPU's.
#[must_use]
pub fn noise_csv(noise: &Noise) -> String {
    let mut out = "cpu,kind,from_ns,to_ns,count,time_ns,watched_ns\n".to_owned();
    for c in &noise.cpus {
        for (name, _, of) in KINDS {
            for b in of(&c.noted).bins(EIGHTHS) {
                let _ = writeln!(
                    out,
                    "{},{name},{},{},{},{},{}",
                    c.cpu, b.from_ns, b.to_ns, b.count, b.time_ns, c.noted.watched_ns
                );
            }
        }
    }
    out
}

const _: () = assert!(LONG_NS == 100_000, "the kinds say 0.1 ms");

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_native::measure::{CpuNoise, System};
    use overspin_report::text;

    pub(super) fn histogram(lengths: &[u64]) -> Histogram {
        let mut h = Histogram::default();
        lengths.iter().for_each(|ns| h.record(*ns));
        h
    }

    /// Two CPUs for a second. On the first, a thread took 30 and 50 us; on the second, one took 40 us.
    pub(super) fn sample() -> Noise {
        let cpu = |cpu, thread: &[u64]| {
            let noted = GapsByCause {
                watched_ns: 1_000_000_000,
                quanta: 66_000,
                quantum_ns: 15_000.0,
                thread: histogram(thread),
                short: histogram(&[2_000; 250]),
                taken: histogram(&[3_000_000]),
                ..GapsByCause::default()
            };
            CpuNoise { cpu, noted, steal_ns: Some(0), run_delay_ns: Some(80_000) }
        };
        Noise {
            system: System {
                cpu_model: Some("Test".into()),
                kernel: Some("6.1".into()),
                virtualised: true,
                clock_source: Some("tsc".into()),
                cpus: 4,
            },
            warnings: Vec::new(),
            quantum_ns: 15_000,
            duration_ns: 1_000_000_000,
            clock_read_ns: 25.0,
            clock_step_ns: 10,
            steal_step_ns: 10_000_000,
            cpus: vec![cpu(0, &[30_000, 50_000]), cpu(3, &[40_000])],
        }
    }

    #[test]
    fn raw_counts_hold_every_gap() {
        let csv = noise_csv(&sample());
        let sums = |kind: &str, column: usize| -> u64 {
            let lines = csv.lines().skip(1).map(|l| l.split(',').collect::<Vec<_>>());
            lines.filter(|l| l[1] == kind).map(|l| l[column].parse::<u64>().unwrap()).sum()
        };
        assert_eq!((sums("thread", 4), sums("thread", 5)), (3, 120_000));
        assert_eq!((sums("short", 4), sums("taken", 5)), (500, 6_000_000));
        assert_eq!(csv.lines().next().unwrap().split(',').count(), 7);
    }

    #[test]
    fn the_report_says_what_is_known_and_what_is_doubtful() {
        // Words, wherever a line is broken.
        let shown = text(&noise(&sample())).split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "Test. Linux 6.1, in a virtual machine. 2 of 4 CPUs",
            "thread: another thread of this kernel ran",
            "They agree",
            "3 gaps of threads are too few",
            "2 of 4 CPUs were measured",
            "placement = \"per-cpu\"",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        let mut busy = sample();
        busy.cpus[0].noted.thread = histogram(&[3_000_000; 200]);
        busy.cpus[0].noted.taken = histogram(&[3_000_000; 100]);
        let shown = text(&noise(&busy)).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            shown.contains("had 30 % of the CPUs: that is load") && !shown.contains("too few"),
            "{shown}"
        );
        assert!(shown.contains("They do not agree: the hypervisor does not report"), "{shown}");
    }
}
