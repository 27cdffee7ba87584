//! A worker's command line, as in plans.

use super::{Again, BenchItem, Schedbench};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use overspin_scenario::{MS, NS, Picos, SEC};

/// Most operations of an item, in thousands: some 1,000 hours on any machine.
const MOST_KOPS: u64 = 1_000_000_000_000;
/// Longest wait: 1,000 hours, in nanoseconds.
const LONGEST_WAIT: u64 = 1_000 * 3_600 * 1_000_000_000;

/// What a worker's command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerArgs {
    /// Time between two reports.
    pub report_interval: Picos,
    /// Items: thousands of operations, and when they are due again.
    pub items: Vec<(u64, Again)>,
}

/// What is wrong with a worker's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerError {
    /// The cause.
    pub message: String,
    /// The index of the wrong word, from 0.
    pub word: usize,
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for WorkerError {}

/// The legal commands, for messages.
const COMMANDS: &str = "kHZ N, report_interval MS, burnwait KOPS WAIT_NS ..., \
                        deadline KOPS PERIOD_NS ...";

impl WorkerArgs {
    /// Reads `kHZ N` (the rate of the time stamp counter, which a simulated clock does not need),
    /// `report_interval MS`, `burnwait KOPS WAIT_NS ...` and, as our own extension, `deadline KOPS PERIOD_NS
    /// ...`, in any order.
    ///
    /// # Errors
    /// If there is anything else, or no item.
    pub fn parse<S: AsRef<str>>(args: &[S]) -> Result<Self, WorkerError> {
        let fail = |word, message| Err(WorkerError { message, word });
        let number = |word: usize, what: &str, least: u64, most: u64| {
            let text = args.get(word).map(AsRef::as_ref);
            match text.and_then(|t| t.parse::<u64>().ok()).filter(|n| (least..=most).contains(n)) {
                Some(n) => Ok(n),
                None => Err(WorkerError {
                    message: match text {
                        Some(text) => {
                            format!("`{text}` is not {what}: a whole number, {least} to {most}")
                        }
                        None => format!("{what} is missing at the end"),
                    },
                    word,
                }),
            }
        };
        let mut worker = Self { report_interval: SEC, items: Vec::new() };
        let mut at = 0;
        while let Some(command) = args.get(at) {
            let command = command.as_ref();
            match command {
                "kHZ" => {
                    number(at + 1, "a rate in kHz", 1, u64::MAX)?;
                    at += 2;
                }
                "report_interval" => {
                    let ms = number(at + 1, "a time in ms", 1, 3_600_000)?;
                    worker.report_interval = ms * MS;
                    at += 2;
                }
                "burnwait" | "deadline" => {
                    at += 1;
                    let first = at;
                    let is_number = |t: &S| t.as_ref().starts_with(|c: char| c.is_ascii_digit());
                    while at == first || args.get(at).is_some_and(is_number) {
                        let kops = number(at, "work in kops", 1, MOST_KOPS)?;
                        let (what, least) = match command {
                            "burnwait" => ("a wait in ns", 0),
                            _ => ("a period in ns", 1),
                        };
                        let time = number(at + 1, what, least, LONGEST_WAIT)? * NS;
                        let again = match command {
                            "burnwait" => Again::After(time),
                            _ => Again::Every(time),
                        };
                        worker.items.push((kops, again));
                        at += 2;
                    }
                }
                _ => {
                    return fail(
                        at,
                        format!("`{command}` is not a command; commands are {COMMANDS}"),
                    );
                }
            }
        }
        if worker.items.is_empty() {
            return fail(
                args.len(),
                format!("the worker has nothing to do; commands are {COMMANDS}"),
            );
        }
        Ok(worker)
    }

    /// The worker's load on a machine that does `rate` million operations in a second of CPU time at full
    /// speed.
    #[must_use]
    pub fn workload(&self, rate: u32) -> Schedbench {
        let burn = |kops: u64| {
            let time = u128::from(kops) * 1_000 * u128::from(SEC.0)
                / (u128::from(rate.max(1)) * 1_000_000);
            u64::try_from(time).map_or(Picos::MAX, Picos).max(Picos(1))
        };
        let item = |&(kops, again): &(u64, Again)| BenchItem { kops, burn: burn(kops), again };
        Schedbench {
            items: self.items.iter().map(item).collect(),
            report_interval: self.report_interval,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::US;

    fn parse(text: &str) -> Result<WorkerArgs, WorkerError> {
        WorkerArgs::parse(&text.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn published_workers() {
        let a = parse("kHZ 2261062 burnwait 70 200000").unwrap();
        assert_eq!(a.items, [(70, Again::After(200 * US))]);
        assert_eq!(a.report_interval, SEC);
        // 70,000 operations at 350 million a second.
        assert_eq!(a.workload(350).items[0].burn, 200 * US);
        let b = parse("burnwait 10 300000 20 300000 10 300000").unwrap();
        assert_eq!(b.items.iter().map(|(kops, _)| *kops).sum::<u64>(), 40);
    }

    #[test]
    fn deadlines_and_intervals() {
        let w = parse("report_interval 250 deadline 10 1000000 burnwait 5 0").unwrap();
        assert_eq!(w.report_interval, 250 * MS);
        assert_eq!(w.items, [(10, Again::Every(MS)), (5, Again::After(Picos::ZERO))]);
    }

    #[test]
    fn errors_name_the_word() {
        let cases = [
            ("burnwait", 1, "work in kops is missing"),
            ("burnwait 70", 2, "a wait in ns is missing"),
            ("burnwait 70 2e5", 2, "`2e5` is not a wait in ns"),
            ("burnwait 0 5", 1, "`0` is not work in kops: a whole number, 1 to"),
            ("burnwait 99999999999999999999 5", 1, "is not work in kops"),
            ("deadline 5 0", 2, "`0` is not a period in ns"),
            ("spin 5", 0, "`spin` is not a command"),
            ("kHZ 5", 2, "nothing to do"),
            ("report_interval 0 burnwait 1 1", 1, "`0` is not a time in ms"),
        ];
        for (text, word, message) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!(error.word, word, "{text}");
            assert!(error.message.contains(message), "{text}: {error}");
        }
    }
}
