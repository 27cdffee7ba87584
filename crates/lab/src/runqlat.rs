//! Histograms of run-queue latencies, by `runqlat` of bcc and libbpf-tools or by bpftrace: read, and put beside the
//! delays of a scenario's vCPUs.
//!
//! ```text
//!      usecs               : count    distribution              bcc; msecs with -m; one for each process with -P
//!          8 -> 15         : 170      |***********         |
//! @usecs:                                                       bpftrace
//! [8, 16)              383 |@@@@@@@@@@@@@                    |  hist: powers of two
//! [0, 100)             480 |@@@@@@@@@@@@@                    |  lhist: equal steps, open at both ends:
//! [1000, ...)           50 |@                                |  1000 and all above
//! (..., 0)               2 |                                 |  all below 0, as of a clock that went back
//! ```
//!
//! The brackets are those of intervals: `[` and `]` contain the time beside them, `(` and `)` do not.

use crate::perf_sched::Delays;
use overspin_located::LocatedError;
use overspin_report::{Block, Grid, short};
use std::collections::BTreeMap;

/// The end of a bucket that has none.
const OPEN: u64 = u64::MAX;

/// Latencies in buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// The number of latencies from a time on up to another, in nanoseconds.
    buckets: BTreeMap<(u64, u64), u64>,
    /// Histograms that were added up.
    pub histograms: u32,
}

/// Percentiles that are shown, in thousandths.
const SHOWN: [(u64, &str); 4] = [(500, "p50"), (900, "p90"), (990, "p99"), (999, "p99.9")];

impl Latencies {
    /// Number of latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.values().sum()
    }

    /// The bucket of the latency that so many of a thousand do not exceed.
    #[must_use]
    pub fn of(&self, thousandths: u64) -> Option<(u64, u64)> {
        let rank = (u128::from(self.count()) * u128::from(thousandths)).div_ceil(1_000).max(1);
        let mut seen = 0;
        self.buckets.iter().find_map(|(bucket, n)| {
            seen += u128::from(*n);
            (seen >= rank).then_some(*bucket)
        })
    }
}

/// Reads the text of `runqlat`, which messages call `path`. Several histograms are added up.
///
/// # Errors
/// If it has no histogram of times.
pub fn read(path: &str, text: &str) -> Result<Latencies, LocatedError> {
    let help = "give what `runqlat` of bcc, libbpf-tools or bpftrace printed, and nothing else";
    let mut all = Latencies::default();
    // The unit of the present histogram, in nanoseconds.
    let (mut unit, mut at) = (None, 0);
    for line in text.split_inclusive('\n') {
        let span = at..at + line.trim_end().len();
        at += line.len();
        let error = |message: String| LocatedError::at(path, text, span.clone(), "", message, help);
        let trimmed = line.trim();
        if let Some(new) = header(trimmed) {
            let Some(new) = new else {
                return Err(error("the unit of this histogram is not known: its name ends with nsecs, usecs or msecs".into()));
            };
            unit = Some(new);
            all.histograms += 1;
            continue;
        }
        if is_chatter(trimmed) {
            continue;
        }
        let Some((from, to, n)) = bucket(trimmed) else {
            return Err(error("this is no line of a histogram of run-queue latencies".into()));
        };
        let Some(unit) = unit else {
            return Err(error(
                "there is no unit before this bucket, such as `usecs : count`".into(),
            ));
        };
        let scaled = |time: u64| if time == OPEN { Some(OPEN) } else { time.checked_mul(unit) };
        let (Some(from), Some(to)) = (scaled(from), scaled(to)) else {
            return Err(error("this latency is too long".into()));
        };
        let count = all.buckets.entry((from, to)).or_default();
        *count = count.checked_add(n).ok_or_else(|| error("there are too many".into()))?;
    }
    let count = all.buckets.values().try_fold(0_u64, |sum, n| sum.checked_add(*n));
    if count.is_none() {
        let message = "there are more latencies than a counter can have";
        return Err(LocatedError::at(path, text, 0..0, "", message, help));
    }
    if count == Some(0) {
        let message = "there is no latency in this text";
        return Err(LocatedError::at(path, text, 0..0, "", message, help));
    }
    all.buckets.retain(|_, n| *n > 0);
    Ok(all)
}

/// The unit that a histogram begins with; `Some(None)` if it is not known.
fn header(line: &str) -> Option<Option<u64>> {
    let unit = |name: &str| match name {
        _ if name.ends_with("nsecs") || name.ends_with("ns") => Some(1),
        _ if name.ends_with("usecs") || name.ends_with("us") => Some(1_000),
        _ if name.ends_with("msecs") || name.ends_with("ms") => Some(1_000_000),
        _ => None,
    };
    if let Some(name) = line.strip_prefix('@') {
        // `@usecs:`, or `@usecs[7, sh]:`.
        return Some(unit(name.strip_suffix(':')?.split('[').next()?));
    }
    let (name, rest) = line.split_once(':')?;
    rest.trim_start().starts_with("count ").then(|| unit(name.trim()))
}

/// What stands around the histograms: times, processes, and what the tools say at the start.
fn is_chatter(line: &str) -> bool {
    let is_time = line.len() == 8 && line.bytes().all(|b| b.is_ascii_digit() || b == b':');
    let begins = ["Tracing ", "Attaching ", "Attached ", "pid = ", "pidns = ", "tid = ", "#"];
    line.is_empty() || is_time || line == "^C" || begins.iter().any(|begin| line.starts_with(begin))
}

/// From, up to and number of `8 -> 15 : 170 |***|`, `[8, 16) 383 |@@|`, `[1] 141 |@|`, `[1000, ...) 50 |@|` or `(..., 0) 2 ||`.
fn bucket(line: &str) -> Option<(u64, u64, u64)> {
    if line.starts_with(['[', '(']) {
        let end = line.find([')', ']'])?;
        let (open, close) = (&line[..1], &line[end..=end]);
        let n = line[end + 1..].split_whitespace().next()?.parse().ok()?;
        // The first time after those of the bucket.
        let after = |time: u64| if close == "]" { time.checked_add(1) } else { Some(time) };
        let (from, to) = match line[1..end].split_once(',').map(|(a, b)| (a.trim(), b.trim())) {
            None if (open, close) == ("[", "]") => {
                let only = binary(&line[1..end])?;
                (only, after(only)?)
            }
            None => return None,
            // No time is below 0. What a clock calls so counts as 0.
            Some(("...", to)) if open == "(" => (0, after(binary(to)?)?.max(1)),
            Some((from, "...")) if (open, close) == ("[", ")") => (binary(from)?, OPEN),
            Some((from, to)) if open == "[" => (binary(from)?, after(binary(to)?)?),
            Some(_) => return None,
        };
        return (from < to).then_some((from, to, n));
    }
    let (range, rest) = line.split_once(':')?;
    let (from, to) = range.split_once("->")?;
    let n = rest.split_whitespace().next()?.parse().ok()?;
    // The last time of a bucket is inside.
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse::<u64>().ok()?.checked_add(1)?);
    (from < to).then_some((from, to, n))
}

/// `16`, `1K`, `2M`: powers of 1024.
fn binary(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let power = match &text[digits..] {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        "E" => 6,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(1024_u64.pow(power))
}

/// The percentiles, and those of a run's vCPUs beside them.
#[must_use]
pub fn report(latencies: &Latencies, run: Option<(&Delays, &str)>) -> Vec<Block> {
    let ms = |ns: u64| if ns == OPEN { "no end".into() } else { short(ns as f64 / 1e6) };
    let mut blocks = Vec::new();
    let added = match latencies.histograms {
        0 | 1 => String::new(),
        n => format!(", of {n} histograms together"),
    };
    match run {
        None => {
            let mut grid = Grid::new(1, &["run-queue latency", "from ms", "up to ms"]);
            for (thousandths, name) in SHOWN {
                if let Some((from, to)) = latencies.of(thousandths) {
                    grid.row([name.to_owned(), ms(from), ms(to)]);
                }
            }
            blocks.push(Block::Title(format!("{} run-queue latencies{added}", latencies.count())));
            blocks.push(Block::Grid(grid));
            blocks.push(Block::Text(
                "--scenario FILE puts the delays of a scenario's vCPUs beside these.".into(),
            ));
        }
        Some((delays, how)) => {
            let mut grid =
                Grid::new(1, &["run-queue latency", "from ms", "up to ms", "run ms", "the run is"]);
            for (thousandths, name) in SHOWN {
                let Some((from, to)) = latencies.of(thousandths) else { continue };
                let run = delays.per_mille(thousandths);
                let verdict = match run {
                    None => "-",
                    Some(run) if run < from => "below",
                    Some(run) if run >= to => "above",
                    Some(_) => "inside",
                };
                let run = run.map_or_else(|| "-".to_owned(), ms);
                grid.row([name.to_owned(), ms(from), ms(to), run, verdict.to_owned()]);
            }
            blocks.push(Block::Title(format!("Run-queue latencies{added}, and {how}")));
            blocks.push(Block::Grid(grid));
            blocks.push(Block::Text(format!(
                "Measured: {} latencies after wake-ups and preemptions. The run: {}, of all its vCPUs.",
                latencies.count(),
                delays.woken.len() + delays.preempted.len()
            )));
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `runqlat 2 1` of libbpf-tools, and the script of bpftrace, while two CPUs compiled.
    const BCC: &str = include_str!("../../../examples/runqlat.txt");
    const BPFTRACE: &str = include_str!("perf_sched/recordings/runqlat-bpftrace.txt");

    /// In the form of `lhist(@usecs, 0, 1000, 100)`; no row for steps without a latency at the ends, as bpftrace does.
    const LINEAR: &str = include_str!("perf_sched/recordings/runqlat-bpftrace-lhist.txt");

    #[test]
    fn histograms_of_both_tools_are_read() {
        let bcc = read("r.txt", BCC).unwrap();
        // The sum of the column, and the buckets that hold the ranks 874 and 1730 of it.
        assert_eq!((bcc.count(), bcc.histograms), (1_747, 1));
        assert_eq!(bcc.of(500), Some((4_096_000, 8_192_000)));
        assert_eq!(bcc.of(990), Some((16_384_000, 32_768_000)));
        let bpftrace = read("r.txt", BPFTRACE).unwrap();
        assert_eq!((bpftrace.count(), bpftrace.histograms), (3_278, 1));
        assert_eq!(bpftrace.of(0), Some((1_000, 2_000)));
        assert_eq!(bpftrace.of(1_000), Some((131_072_000, 262_144_000)));
        let milliseconds = BCC.replace("usecs", "msecs");
        assert_eq!(
            read("r.txt", &milliseconds).unwrap().of(500),
            Some((4_096_000_000, 8_192_000_000))
        );
        let twice = format!("{BCC}\n09:56:51\n\npid = 7 my task\n{BCC}");
        let twice = read("r.txt", &twice).unwrap();
        assert_eq!((twice.count(), twice.histograms), (2 * 1_747, 2));
    }

    #[test]
    fn linear_histograms_are_open_at_both_ends() {
        let linear = read("r.txt", LINEAR).unwrap();
        assert_eq!((linear.count(), linear.histograms), (1_000, 1));
        // Of 1000: 2 below zero, 480, 300, 118 and 50 below 1 ms, and 50 above.
        assert_eq!(linear.of(2), Some((0, 1_000)));
        assert_eq!(linear.of(500), Some((100_000, 200_000)));
        assert_eq!(linear.of(950), Some((900_000, 1_000_000)));
        assert_eq!(linear.of(951), Some((1_000_000, OPEN)));
        let text = overspin_report::text(&report(&linear, None));
        let last = text.lines().map(str::trim).find(|line| line.starts_with("p99.9")).unwrap();
        assert!(last.contains(" 1.00 ") && last.ends_with("no end"), "{text}");
        let delays = Delays { woken: vec![5_000_000; 90], preempted: Vec::new() };
        let text = overspin_report::text(&report(&linear, Some((&delays, "a run"))));
        let last = text.lines().map(str::trim).find(|line| line.starts_with("p99.9")).unwrap();
        assert!(last.ends_with("inside"), "{text}");
        // The forms of all versions.
        for (row, bucket_of_it) in [
            ("(..., 100) 7 ||", Some((0, 100, 7))),
            ("(...,0] 7 ||", Some((0, 1, 7))),
            ("[1000,...) 7 ||", Some((1000, OPEN, 7))),
            ("[1M, ...) 7 ||", Some((1 << 20, OPEN, 7))),
            ("[0, 1] 7 ||", Some((0, 2, 7))),
            ("[0] 7 ||", Some((0, 1, 7))),
            ("[1P, 2P) 7 ||", Some((1 << 50, 1 << 51, 7))),
            ("[5, 5) 7 ||", None),
            ("[8, 5) 7 ||", None),
            ("(5, 8) 7 ||", None),
            ("(..., ...) 7 ||", None),
            ("[..., 5) 7 ||", None),
            ("[5, ...] 7 ||", None),
            ("[5) 7 ||", None),
            ("(] 7 ||", None),
            ("[é, 5) 7 ||", None),
            ("[18446744073709551615] 7 ||", None),
        ] {
            assert_eq!(bucket(row), bucket_of_it, "{row}");
        }
    }

    #[test]
    fn a_run_is_below_inside_or_above() {
        let latencies = read("r.txt", BCC).unwrap();
        let delays = Delays { woken: vec![5_000_000; 90], preempted: vec![100_000_000; 10] };
        let text = overspin_report::text(&report(&latencies, Some((&delays, "a run"))));
        assert!(
            text.contains("inside") && text.contains("below") && text.contains("above"),
            "{text}"
        );
    }

    #[test]
    fn faults_have_a_line() {
        for (text, line, message) in [
            ("hello\n", 1, "no line of a histogram"),
            ("\n 0 -> 1 : 3 |*|\n", 2, "no unit"),
            ("@x:\n[1] 3 |@|\n", 1, "the unit of this histogram"),
            (" usecs : count    distribution\n 0 -> x : 3 |*|\n", 2, "no line of a histogram"),
            (" usecs : count    distribution\n 0 -> 1 : 0 | |\n", 1, "no latency"),
            (" usecs : count    distribution\n 8 -> 5 : 3 |*|\n", 2, "no line of a histogram"),
            ("@usecs:\n[1, 99999999999T) 3 |@|\n", 2, "no line of a histogram"),
            ("@usecs:\n[1] 18446744073709551615 |@|\n[2] 1 |@|\n", 1, "more latencies than"),
            ("@usecs:\n[1] 18446744073709551615 |@|\n[1] 1 |@|\n", 3, "too many"),
        ] {
            let e = read("r.txt", text).unwrap_err();
            assert_eq!(e.line, line, "{e}");
            assert!(e.message.contains(message), "{e}");
        }
    }
}
