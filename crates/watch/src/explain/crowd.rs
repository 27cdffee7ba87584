//! Waits for pCPUs, where no vCPU waited for a lock: which vCPUs waited, and which ones ran meanwhile. So it is with
//! recorded programs, whose tasks wait for CPUs and for each other.
//!
//! The run is repeated. While a vCPU wants a pCPU and has none, the time counts for those that run on the pCPUs that it
//! may use, in equal parts.

use overspin_host::{Interest, Moment, Observer, Refused, Timed, VcpuState};
use overspin_report::{Block, share};
use overspin_runs::runner::Runner;
use overspin_scenario::{Outcome, Picos, Scenario};

/// vCPUs whose waits are told.
const MOST: usize = 10;
/// Of those that ran meanwhile, so many are named.
const NAMED: usize = 3;
/// The times of each two vCPUs need some memory.
const MOST_VCPUS: usize = 512;

/// A vCPU's waits.
#[derive(Clone, Debug, Default)]
struct Waits {
    since: Option<Picos>,
    all: Picos,
    longest: Picos,
    longest_at: Picos,
    /// Time for each vCPU that ran meanwhile.
    behind: Vec<Picos>,
}

/// The observer.
#[derive(Debug)]
struct Crowd {
    /// What happens before does not count.
    from: Picos,
    counted: Picos,
    /// On each pCPU, the vCPU that runs.
    running: Vec<Option<u32>>,
    vcpus: Vec<Waits>,
    /// Where each vCPU may run; everywhere, if it is empty.
    affinity: Vec<Vec<u32>>,
}

impl Crowd {
    fn new(all: &Scenario, from: Picos) -> Self {
        let affinity: Vec<Vec<u32>> = (all.domains.iter())
            .flat_map(|d| {
                (0..d.vcpus as usize).map(|v| d.affinity.get(v).cloned().unwrap_or_default())
            })
            .collect();
        // No moment tells when a vCPU comes up. Without a stagger, as in recordings, they do so at the start, 10 us
        // apart.
        let since = (all.host.stagger == Picos::ZERO).then_some(Picos::ZERO);
        let waits = Waits { since, behind: vec![Picos::ZERO; affinity.len()], ..Waits::default() };
        Self {
            from,
            counted: Picos::ZERO,
            running: vec![None; all.host.pcpus() as usize],
            vcpus: vec![waits; affinity.len()],
            affinity,
        }
    }

    /// Counts the time until now, in which nothing has changed.
    fn count(&mut self, at: Picos) {
        let begin = self.counted.max(self.from);
        self.counted = at;
        if at <= begin {
            return;
        }
        let time = at - begin;
        for (vcpu, waits) in self.vcpus.iter_mut().enumerate().filter(|(_, w)| w.since.is_some()) {
            let may = &self.affinity[vcpu];
            let there = |pcpu: usize| may.is_empty() || may.contains(&(pcpu as u32));
            let others = || {
                self.running.iter().enumerate().filter(|(p, _)| there(*p)).filter_map(|(_, v)| *v)
            };
            waits.all += time;
            let share = time / (others().count() as u64).max(1);
            for other in others() {
                waits.behind[other as usize] += share;
            }
        }
    }

    fn begins(&mut self, at: Picos, vcpu: u32) {
        if let Some(waits) = self.vcpus.get_mut(vcpu as usize) {
            waits.since.get_or_insert(at);
        }
    }

    fn ends(&mut self, at: Picos, vcpu: u32) {
        let Some(waits) = self.vcpus.get_mut(vcpu as usize) else { return };
        let Some(since) = waits.since.take() else { return };
        let since = since.max(self.from);
        let time = at.saturating_sub(since);
        if time > waits.longest {
            (waits.longest, waits.longest_at) = (time, since);
        }
    }

    fn moment(&mut self, at: Picos, moment: &Moment) {
        match *moment {
            Moment::Switch { pcpu, prev, prev_state, next, .. } => {
                self.count(at);
                if let Some(prev) = prev {
                    match prev_state {
                        VcpuState::Runnable => self.begins(at, prev),
                        _ => self.ends(at, prev),
                    }
                }
                if let Some(next) = next {
                    self.ends(at, next);
                }
                if let Some(on) = self.running.get_mut(pcpu as usize) {
                    *on = next;
                }
            }
            Moment::Wake { vcpu, runnable: true, .. } if !self.running.contains(&Some(vcpu)) => {
                self.count(at);
                self.begins(at, vcpu);
            }
            _ => {}
        }
    }
}

impl Observer for Crowd {
    fn interest(&self) -> Interest {
        Interest::SCHEDULING
    }

    fn observe(&mut self, moments: &[Timed]) {
        for Timed { at, moment } in moments {
            self.moment(*at, moment);
        }
    }
}

/// Tells who waited for a pCPU, and for whom; nothing if nobody did.
pub(super) fn crowd(
    scenario: &Scenario,
    outcome: &Outcome,
    runner: Runner,
    progress: &dyn Fn(Picos),
) -> Result<Vec<Block>, Refused> {
    let all = overspin_workload::with_noise(scenario);
    let crowd = watched(scenario, &all, outcome, runner, progress)?;
    Ok(crowd.map(|crowd| told(&crowd, &names(&all, outcome))).unwrap_or_default())
}

/// The waits of a repeated run; `None` if there are none, or if `runner` ends first.
fn watched(
    scenario: &Scenario,
    all: &Scenario,
    outcome: &Outcome,
    runner: Runner,
    progress: &dyn Fn(Picos),
) -> Result<Option<Crowd>, Refused> {
    let vcpus: usize = all.domains.iter().map(|d| d.vcpus as usize).sum();
    let waited = outcome.domains.iter().flat_map(|d| &d.vcpus).any(|v| v.runnable > Picos::ZERO);
    if !waited || vcpus > MOST_VCPUS {
        return Ok(None);
    }
    let mut crowd = Crowd::new(all, outcome.warmup);
    let cancel = |now| {
        progress(now);
        runner.until.over()
    };
    let again = overspin_host::run(runner.world, scenario, outcome.seed, &mut crowd, &cancel)?;
    if runner.until.over().is_some() {
        return Ok(None);
    }
    crowd.count(again.elapsed);
    (0..vcpus).for_each(|vcpu| crowd.ends(again.elapsed, vcpu as u32));
    Ok(Some(crowd))
}

/// The names of all vCPUs. One on which a single task stays is called as its task.
fn names(all: &Scenario, outcome: &Outcome) -> Vec<String> {
    let mut names = Vec::new();
    for (i, domain) in all.domains.iter().enumerate() {
        let tasks = outcome.domains.get(i).map_or(&[][..], |d| &d.tasks);
        let stays = tasks.len() == domain.vcpus as usize && is_replayed(domain);
        for vcpu in 0..domain.vcpus as usize {
            names.push(match tasks.get(vcpu).filter(|_| stays) {
                Some(task) => task.name.clone(),
                None => format!("{}/v{vcpu}", domain.name),
            });
        }
    }
    names
}

/// Whether its vCPUs are recorded tasks.
fn is_replayed(domain: &overspin_scenario::Domain) -> bool {
    matches!(&domain.workload.0[..], [one] if one.kind == "replay")
}

fn told(crowd: &Crowd, names: &[String]) -> Vec<Block> {
    let mut waiters: Vec<(usize, &Waits)> =
        crowd.vcpus.iter().enumerate().filter(|(_, w)| w.all > Picos::ZERO).collect();
    waiters.sort_by_key(|(_, w)| std::cmp::Reverse(w.all));
    let mut blocks = Vec::new();
    if waiters.is_empty() {
        return blocks;
    }
    blocks.push(Block::Heading("Waits for pCPUs, the longest first".into()));
    let ms = |time: Picos| format!("{:.3} ms", time.millis());
    for (i, (vcpu, w)) in waiters.iter().enumerate().take(MOST) {
        let mut others: Vec<(usize, Picos)> =
            w.behind.iter().copied().enumerate().filter(|(_, time)| *time > Picos::ZERO).collect();
        others.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let mut meanwhile: Vec<String> = (others.iter().take(NAMED))
            .map(|(other, time)| format!("{} ({} %)", names[*other], share(*time, w.all)))
            .collect();
        if let more @ 1.. = others.len().saturating_sub(NAMED) {
            meanwhile.push(format!("{more} more"));
        }
        let behind = match &meanwhile[..] {
            [] => "while its pCPUs were idle".to_owned(),
            [one] => format!("while {one} ran"),
            [first @ .., last] => format!("while {} and {last} ran", first.join(", ")),
        };
        blocks.push(Block::Text(format!(
            "{}. {} waited {} in all, at most {} at once, from {} on, {behind}.",
            i + 1,
            names[*vcpu],
            ms(w.all),
            ms(w.longest),
            ms(w.longest_at),
        )));
    }
    if let more @ 1.. = waiters.len().saturating_sub(MOST) {
        blocks.push(Block::Text(format!("{more} other vCPUs waited for less time.")));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_report::text;
    use overspin_runs::scenario_file;

    /// Two tasks of 6 ms and 2 ms on one CPU, on which the first wakes the other when it begins; and one on a CPU of its own.
    const REPLAYED: &str = r#"
limit = "1s"
[host]
cores = 2
scheduler = "eevdf-6.18"
stagger = "0"
noise = { placement = "none" }
[host.costs]
context_switch = "0"
preemption = "0"
[[domain]]
name = "recorded"
vcpus = 3
lock = "ticket"
affinity = ["0", "0", "1"]
[domain.kernel]
hz = 0
[domain.workload]
kind = "replay"
tasks = ["make-7: wake 1, run 6ms", "cc1-8: wait, run 2ms", "alone-9: run 20ms"]
"#;

    #[test]
    fn a_recorded_task_waits_for_the_one_that_has_its_cpu() {
        let scenario = scenario_file::parse("t", "t", REPLAYED, &[]).unwrap();
        let outcome = overspin_sim::run(&scenario, 1).unwrap();
        let blocks = crowd(&scenario, &outcome, Runner::default(), &|_| {}).unwrap();
        let words = text(&blocks).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("Waits for pCPUs"), "{words}");
        // It is what the world says of each vCPU, but for the microseconds in which vCPUs come up.
        let crowd = watched(&scenario, &scenario, &outcome, Runner::default(), &|_| {}).unwrap();
        for (waits, vcpu) in crowd.unwrap().vcpus.iter().zip(&outcome.domains[0].vcpus) {
            let gap = waits.all.0.abs_diff(vcpu.runnable.0);
            assert!(gap < overspin_scenario::MS.0 / 20, "{} {}", waits.all, vcpu.runnable);
        }
        assert!(words.contains("while make-7 (100.0 %) ran"), "{words}");
        assert!(words.contains("while cc1-8 (100.0 %) ran"), "{words}");
        assert!(!words.contains("(50.0 %)"), "alone-9 has another CPU: {words}");
        assert!(text(&blocks).lines().all(|line| line.chars().count() <= 80), "{words}");
    }
}
