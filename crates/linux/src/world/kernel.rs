//! Sections of the workload `lock-loop`, done by threads of a guest's kernel (`kernel/overspin_work.c`).

use std::fmt::Write as _;

use overspin_histogram::{Histogram, bucket};
use overspin_scenario::{Domain, DomainOutcome, LockOutcome, Picos, Scenario, TaskOutcome};
use overspin_workload::{Loads, LockLoop, Mode};

use super::NAME;

/// Threads times locks: each pair has a histogram, 18 KB.
const MOST_PAIRS: u64 = 4096;

/// What the threads of a guest's kernel do.
#[derive(Clone, Debug)]
pub(super) struct KernelJob {
    work: LockLoop,
    /// The names of its tasks and of its locks.
    tasks: Vec<String>,
    locks: Vec<String>,
    /// vCPUs that the tasks may use.
    vcpus: u64,
}

impl KernelJob {
    /// The job of a domain that has one workload, or all that are not of its kind.
    ///
    /// # Errors
    /// In words.
    pub(super) fn of(domain: &Domain, loads: &Loads) -> Result<Self, String> {
        let of_kind = |workload: &overspin_scenario::Workload| workload.get::<LockLoop>();
        let [(workload, Some(work))] =
            &domain.workload.0.iter().map(|w| (w, of_kind(w))).collect::<Vec<_>>()[..]
        else {
            let kinds: Vec<&str> = domain.workload.0.iter().map(|w| w.kind.as_str()).collect();
            return Err(format!(
                "threads of a kernel do one workload of the kind `lock-loop`, and programs of a guest what has no locks; \
                 these are neither: {}; run it in the world `sim`",
                kinds.join(", ")
            ));
        };
        if work.mode == Mode::User {
            return Err("with `mode = \"user\"` the lock is a program's, and here it is the kernel's: write `mode = \
                        \"kernel\"`, or run it in the world `threads`"
                .into());
        }
        if work.requests {
            return Err("threads of a kernel tell no latencies: leave `requests` out, or run it in the world `sim`, `hv` or \
                        `threads`"
                .into());
        }
        if loads.unmaps() {
            return Err("threads of a kernel have no memory of their own to unmap: leave `unmap_every` out, or run it in the \
                        world `sim`, `hv` or `threads`"
                .into());
        }
        let tasks: Vec<String> =
            loads.start(domain.vcpus).into_iter().map(|first| first.start.name).collect();
        let pairs = tasks.len() as u64 * u64::from(work.locks);
        if pairs > MOST_PAIRS {
            return Err(format!(
                "{} threads with {} locks are too many for a guest of `{NAME}`: threads times locks is up to {MOST_PAIRS}",
                tasks.len(),
                work.locks
            ));
        }
        let all = u64::MAX >> (u64::BITS - domain.vcpus);
        let vcpus = match workload.vcpus.iter().fold(0, |mask, vcpu| mask | 1 << vcpu) {
            0 => all,
            some => some,
        };
        Ok(Self { work: work.clone(), tasks, locks: loads.lock_names(), vcpus })
    }

    pub(super) fn is_endless(&self) -> bool {
        self.work.count == 0
    }

    /// The line that the kernel reads.
    pub(super) fn line(
        &self,
        scenario: &Scenario,
        warmup: Picos,
        (seed, notes): (u64, u64),
    ) -> String {
        let LockLoop { section, outside, idle, .. } = self.work;
        let ns = |time: Picos| time.0.div_ceil(1_000);
        let LockLoop { locks, fixed, idle_every, irqs_off, count, .. } = self.work;
        let mut line = format!("job {} {:x} {locks}", self.tasks.len(), self.vcpus);
        let numbers = [
            ns(section),
            ns(outside),
            fixed.into(),
            ns(idle),
            idle_every,
            irqs_off.into(),
            count,
            ns(scenario.host.stagger),
            ns(warmup),
            ns(scenario.limit),
            seed,
            notes,
        ];
        // Writing to a String cannot fail.
        numbers.iter().for_each(|number| _ = write!(line, " {number}"));
        line
    }
}

/// What the kernel tells of its threads, in ticks of its counter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KernelReport {
    khz: u64,
    /// Whether each acquisition was noted.
    pub(super) noted: bool,
    /// The counter at the begin.
    pub(super) begun: u64,
    /// Steps in 2^20 ticks.
    rate: u64,
    /// When the last thread ended, or the limit.
    end: u64,
    /// Items of each task, and when it had done all of them; 0 if it had not.
    tasks: Vec<(u64, u64)>,
    locks: Vec<Seen>,
    /// Items in each part of the limit.
    progress: Vec<u64>,
}

/// What was seen at a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    acquisitions: u64,
    contended: u64,
    wait_total: u64,
    wait_max: u64,
    hold_total: u64,
    hold_max: u64,
    /// Waits of those that had to.
    waits: Histogram,
}

impl KernelReport {
    /// Reads what `kernel/overspin_work.c` writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut report = Self::default();
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let numbers = || rest.split(' ').map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>();
            match word {
                "clock" => [report.khz, report.rate, report.end] = numbers()?.try_into().ok()?,
                "notes" => {
                    let [noted, begun] = numbers()?.try_into().ok()?;
                    (report.noted, report.begun) = (noted == 1, begun);
                }
                "task" => {
                    let [items, ended] = numbers()?.try_into().ok()?;
                    report.tasks.push((items, ended));
                }
                "lock" => {
                    let [acquisitions, contended, wait_total, wait_max, hold_total, hold_max] =
                        numbers()?.try_into().ok()?;
                    let waits = Histogram::default();
                    report.locks.push(Seen {
                        acquisitions,
                        contended,
                        wait_total,
                        wait_max,
                        hold_total,
                        hold_max,
                        waits,
                    });
                }
                "waits" => {
                    let waits = &mut report.locks.last_mut()?.waits;
                    for word in rest.split_whitespace() {
                        let (number, count) = word.split_once(':')?;
                        let (number, count) = (number.parse().ok()?, count.parse().ok()?);
                        // The histogram grows up to the bucket, and adds all counts up.
                        if number > bucket(u64::MAX) || waits.count().checked_add(count).is_none() {
                            return None;
                        }
                        waits.add([(number, count)]);
                    }
                }
                "progress" => report.progress = numbers()?,
                _ => return None,
            }
        }
        (report.khz > 0).then_some(report)
    }

    fn time(&self, ticks: u64) -> Picos {
        let picos = u128::from(ticks) * 1_000_000_000 / u128::from(self.khz.max(1));
        Picos(u64::try_from(picos).unwrap_or(u64::MAX))
    }

    pub(super) fn end(&self) -> Picos {
        self.time(self.end)
    }

    pub(super) fn steps_per_us(&self) -> f64 {
        self.rate as f64 / f64::from(1 << 20) * self.khz as f64 / 1e3
    }

    pub(super) fn has_finished(&self) -> bool {
        self.tasks.iter().all(|(_, ended)| *ended > 0)
    }

    /// Completes the outcome of a domain with `steps` values of its curve.
    pub(super) fn of_domain(
        &self,
        job: &KernelJob,
        steps: usize,
        outcome: DomainOutcome,
    ) -> DomainOutcome {
        let ended = |ticks: u64| (ticks > 0).then(|| self.time(ticks));
        let task = |(name, (items, at)): (&String, &(u64, u64))| TaskOutcome {
            name: name.clone(),
            items: *items,
            ended: ended(*at),
            ..TaskOutcome::default()
        };
        let progress = self.progress.iter().scan(0, |sum, items| {
            *sum = items.saturating_add(*sum);
            Some(*sum)
        });
        DomainOutcome {
            finished: self.has_finished().then(|| self.end()),
            tasks: job.tasks.iter().zip(&self.tasks).map(task).collect(),
            locks: job.locks.iter().zip(&self.locks).map(|(n, seen)| self.lock(n, seen)).collect(),
            progress: progress.take(steps).collect(),
            ..outcome
        }
    }

    fn lock(&self, name: &str, seen: &Seen) -> LockOutcome {
        let quantile =
            |one_in| self.time(seen.waits.of_all_but(one_in, seen.acquisitions).min(seen.wait_max));
        LockOutcome {
            name: name.to_owned(),
            acquisitions: seen.acquisitions,
            contended: seen.contended,
            wait_total: self.time(seen.wait_total),
            wait_max: self.time(seen.wait_max),
            wait_p50: quantile(2),
            wait_p99: quantile(100),
            wait_p999: quantile(1000),
            hold_total: self.time(seen.hold_total),
            hold_max: self.time(seen.hold_max),
            ..LockOutcome::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::scenario;
    use super::*;
    use overspin_scenario::US;
    use overspin_workload::Kinds;

    fn job(domain: &Domain) -> Result<KernelJob, String> {
        KernelJob::of(domain, &Loads::of(domain, &Kinds::builtin()).unwrap())
    }

    #[test]
    fn a_job_is_a_line_of_numbers() {
        let work = LockLoop {
            threads: 3,
            locks: 2,
            section: US,
            outside: US * 3,
            fixed: true,
            idle: US * 5,
            idle_every: 7,
            irqs_off: true,
            count: 11,
            ..LockLoop::default()
        };
        let mut scenario = scenario("ticket", 6, work.clone());
        scenario.host.stagger = US * 13;
        let line = |s: &Scenario| job(&s.domains[0]).unwrap().line(s, US * 17, (19, 23));
        let rest = "2 1000 3000 1 5000 7 1 11 13000 17000 1000000000 19 23";
        // Six vCPUs, of which all may be used.
        assert_eq!(line(&scenario), format!("job 3 3f {rest}"));
        scenario.domains[0].workload.0[0].vcpus = vec![4, 1];
        assert_eq!(line(&scenario), format!("job 3 12 {rest}"));
        scenario.domains[0].vcpus = 64;
        scenario.domains[0].workload.0[0].vcpus.clear();
        assert_eq!(line(&scenario), format!("job 3 ffffffffffffffff {rest}"));
    }

    /// 2 GHz: two ticks are a nanosecond.
    const REPORT: &str = "clock 2000000 524288 2000000\nnotes 1 77\ntask 5 0\ntask 7 1500000\n\
                          lock 12 3 600 400 2400 300\nwaits 80:1 100:1 328:1\nprogress 1 2 3\n";

    #[test]
    fn a_report_is_times_and_numbers() {
        let report = KernelReport::parse(REPORT).unwrap();
        assert_eq!(report.end(), Picos::ms(1));
        // Half a step a tick, 2000 ticks a microsecond.
        assert!((report.steps_per_us() - 1000.0).abs() < 1e-9);
        assert!(!report.has_finished());
        assert!(report.noted && report.begun == 77);
        let job = job(&scenario("ticket", 2, LockLoop::default()).domains[0]).unwrap();
        let domain = report.of_domain(&job, 2, DomainOutcome::default());
        assert_eq!(domain.progress, [1, 3], "as many as the run lasted");
        let tasks: Vec<_> =
            domain.tasks.iter().map(|t| (t.name.as_str(), t.items, t.ended)).collect();
        assert_eq!(tasks, [("loop0", 5, None), ("loop1", 7, Some(Picos::us(750)))]);
        let [lock] = &domain.locks[..] else { panic!("{:?}", domain.locks) };
        let ns = |n: u64| Picos(n * 1_000);
        assert_eq!((lock.name.as_str(), lock.acquisitions, lock.contended), ("section", 12, 3));
        assert_eq!((lock.wait_total, lock.wait_max), (ns(300), ns(200)));
        assert_eq!((lock.hold_total, lock.hold_max), (ns(1200), ns(150)));
        // Nine of twelve did not wait. Bucket 328 begins with 400 ticks, and no wait was longer.
        assert_eq!((lock.wait_p50, lock.wait_p99, lock.wait_p999), (ns(0), ns(200), ns(200)));
    }

    #[test]
    fn what_is_no_report_is_refused() {
        let lock = "clock 1 1 1\nlock 1 1 1 1 1 1\n";
        let texts = ["waits 99999999999999:1", "waits 1:18446744073709551615 2:1", "waits 1"];
        let of_locks = texts.map(|waits| format!("{lock}{waits}\n"));
        assert!(KernelReport::parse(lock).is_some());
        let others = ["", "clock 1 2", "clock 1 2 x", "lock 1 2 3", "waits 1:1", "what 1"];
        for text in of_locks.iter().map(String::as_str).chain(others) {
            assert_eq!(KernelReport::parse(text), None, "{text}");
        }
    }
}
