//! The panels of a record: charts of what it holds.

use super::charts::{self, Dots, Part, Stack};
use super::detail::Detail;
use super::html::escape;
use overspin_experiment::{Compared, Judged};
use overspin_runs::record::{Experiment, Kind, Record};
use overspin_runs::sweep::Outcome;
use overspin_scenario::Second;
use overspin_scenario::{
    Cause, DomainOutcome, LockOutcome, Outcome as RunOutcome, Picos, Scenario, WaitCauses,
};
use overspin_watch::explain;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Most rows of a chart. Beyond it, the rows with the largest values are shown.
const MOST_ROWS: usize = 48;
/// Most histograms.
const MOST_HISTOGRAMS: usize = 12;
/// Most charts of samples.
const MOST_METRICS: usize = 12;

/// The parts of a bar of waits.
fn causes() -> Vec<Part> {
    let classes = ["cause-0", "cause-1", "cause-2", "cause-3", "cause-4", "cause-5"];
    classes.into_iter().zip(Cause::ALL.map(Cause::words)).collect()
}

/// The claims of an experiment.
pub(super) fn claims(experiment: &Experiment) -> String {
    let mut out = "<ul class=\"claims\">\n".to_owned();
    for Judged { id, text, holds, in_words, evidence } in &experiment.claims {
        let (class, words) = match holds {
            Some(true) => ("holds", "✓ holds"),
            Some(false) => ("fails", "✗ does not hold"),
            None => ("undecided", "? undecided"),
        };
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            out,
            "<li class=\"{class}\"><strong>{words}</strong> ({id}) {}{}<p class=\"evidence\">{}</p></li>",
            escape(text),
            in_words.as_ref().map_or_else(String::new, |w| format!("<p>{}</p>", escape(w))),
            escape(evidence)
        );
    }
    out + "</ul>\n"
}

/// The published figures beside the simulated ones: a chart for each metric.
pub(super) fn figures(experiment: &Experiment) -> String {
    let mut metrics: Vec<&str> = Vec::new();
    for f in &experiment.figures {
        if !metrics.contains(&&*f.metric) {
            metrics.push(&f.metric);
        }
    }
    let mut out = "<p class=\"legend\"><span><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><circle class=\"published\" cx=\"7\" cy=\"7\" r=\"4.5\"/></svg> published</span> \
         <span><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><circle class=\"simulated\" cx=\"7\" cy=\"7\" r=\"4.5\"/></svg> simulated</span> \
         <span>whiskers: standard deviation of the runs</span> <span>✓ within 10 %, ≈ within 25 %, ✗ missed</span></p>\n"
        .to_owned();
    for metric in metrics {
        let of: Vec<&Compared> = experiment.figures.iter().filter(|f| f.metric == metric).collect();
        let _ = writeln!(out, "<h4>{}</h4>\n{}", escape(metric), charts::figures(metric, &of));
    }
    out
}

/// What the runs of a record waited for, in percent of their vCPUs' time: a bar for each configuration.
pub(super) fn waits_of_runs(record: &Record) -> Option<String> {
    let mut order: Vec<&str> = Vec::new();
    let mut sums: BTreeMap<&str, (WaitCauses, Picos)> = BTreeMap::new();
    for run in &record.runs {
        let Some(causes) = &run.wait_causes else { continue };
        let sum = sums.entry(&run.place).or_insert_with(|| {
            order.push(&run.place);
            Default::default()
        });
        sum.0 += *causes;
        sum.1 = sum.1.saturating_add(run.vcpu_time.unwrap_or_default());
    }
    let bar = |place: &&str| {
        let (causes, time) = sums[place];
        let label = if place.is_empty() { record.name.clone() } else { (*place).to_owned() };
        Stack { label, parts: Cause::ALL.map(|c| causes.of(c).percent(time)).into() }
    };
    let bars: Vec<Stack> =
        order.iter().map(bar).filter(|b| b.parts.iter().sum::<f64>() > 0.0).collect();
    (!bars.is_empty()).then(|| {
        let words = "what the vCPUs of each configuration waited for, in percent of their time";
        cut(bars, "configurations", |bars| charts::stacks(words, "%", &causes(), bars))
    })
}

/// The picture of a validation.
pub(super) fn validation(record: &Record) -> String {
    let picture = |result| {
        format!("<div class=\"curves\">{}</div>\n", overspin_lab::validate::picture(result))
    };
    record.validation.as_ref().map_or_else(String::new, picture)
}

/// The curves of a sweep, as `--svg` draws them.
pub(super) fn curves(record: &Record) -> Option<String> {
    let scenario = record.scenario.as_ref().filter(|_| record.kind == Kind::Sweep)?;
    let sweep = record.sweep(scenario).ok()?;
    let svg = overspin_runs::sweep::curves(&sweep, &Outcome::of(record));
    Some(format!("<div class=\"curves\">{svg}</div>\n"))
}

/// Draws the rows with the largest values, and says how many are left out.
fn cut(mut bars: Vec<Stack>, what: &str, draw: impl FnOnce(&[Stack]) -> String) -> String {
    let all = bars.len();
    if all > MOST_ROWS {
        let mut values: Vec<f64> = bars.iter().map(|b| b.parts.iter().sum()).collect();
        values.sort_by(|a, b| b.total_cmp(a));
        let least = values[MOST_ROWS - 1];
        bars.retain(|b| b.parts.iter().sum::<f64>() >= least);
        bars.truncate(MOST_ROWS);
    }
    let shown = bars.len();
    let mut out = draw(&bars);
    if shown < all {
        let _ = writeln!(out, "<p class=\"faint\">The {shown} largest of {all} {what}.</p>");
    }
    out
}

/// The charts of samples: every sample of each main metric, in each place.
pub(super) fn samples(record: &Record) -> String {
    let groups = record.groups();
    let main = record.kind.main_metrics();
    let is_main = |metric: &str| main.is_empty() || main.contains(&metric);
    let mut metrics: Vec<(&str, &str)> = Vec::new();
    for group in groups.iter().filter(|g| is_main(g.metric)) {
        if !metrics.contains(&(group.metric, group.unit)) {
            metrics.push((group.metric, group.unit));
        }
    }
    let mut out = String::new();
    for (metric, unit) in metrics.iter().take(MOST_METRICS) {
        let mut rows: Vec<Dots> = groups
            .iter()
            .filter(|g| g.metric == *metric && g.unit == *unit)
            .map(|g| Dots { label: g.place.to_owned(), values: g.values.clone() })
            .collect();
        // One number is no chart.
        if rows.len() < 2 && rows.iter().all(|r| r.values.len() < 2) {
            continue;
        }
        let all = rows.len();
        rows.truncate(MOST_ROWS);
        let name =
            if unit.is_empty() { (*metric).to_owned() } else { format!("{metric} [{unit}]") };
        let _ =
            writeln!(out, "<h4>{}</h4>\n{}", escape(&name), charts::samples(metric, unit, &rows));
        if all > MOST_ROWS {
            let _ = writeln!(
                out,
                "<p class=\"faint\">The first {MOST_ROWS} of {all} places; the table has the others.</p>"
            );
        }
    }
    out
}

/// The runstates of vCPUs and pCPUs, in percent of the run.
pub(super) fn run_states(outcome: &RunOutcome) -> String {
    const PARTS: [Part; 5] = [
        ("style-running", "running"),
        ("style-spinning", "on a pCPU, waiting for a lock"),
        ("style-preempted", "preempted: wants a pCPU and has none"),
        ("style-asleep", "asleep"),
        ("style-offline", "offline"),
    ];
    const HOST: [Part; 3] = [
        ("style-running", "runs a vCPU"),
        ("style-switching", "switches"),
        ("style-asleep", "idle"),
    ];
    let percent = |time: Picos| time.percent(outcome.elapsed);
    let mut vcpus = Vec::new();
    for domain in &outcome.domains {
        for (i, v) in domain.vcpus.iter().enumerate() {
            let waiting = v.waiting.max(v.spinning).min(v.running);
            vcpus.push(Stack {
                label: format!("{}/v{i}", domain.name),
                parts: [v.running - waiting, waiting, v.runnable, v.blocked, v.offline]
                    .map(percent)
                    .into(),
            });
        }
    }
    let pcpus = outcome.pcpus.iter().enumerate().map(|(i, p)| Stack {
        label: format!("pCPU {i}"),
        parts: [p.busy, p.switching, p.idle].map(percent).into(),
    });
    let words = "where the time of each vCPU went, in percent of the run";
    let mut out = cut(vcpus, "vCPUs", |bars| charts::stacks(words, "%", &PARTS, bars));
    let words = "where the time of each pCPU went, in percent of the run";
    out += &cut(pcpus.collect(), "pCPUs", |bars| charts::stacks(words, "%", &HOST, bars));
    out
}

/// What the machine did during each run of a real benchmark, in percent of all CPUs, by seconds for the last run.
pub(super) fn machine(record: &Record) -> String {
    const PARTS: [Part; 5] = [
        ("style-running", "user"),
        ("style-spinning", "system"),
        ("style-switching", "waits for a disk"),
        ("style-preempted", "stolen by the hypervisor"),
        ("style-asleep", "idle"),
    ];
    let Some(real) = &record.real else { return String::new() };
    // A rest that is shorter than a clock tick has no bar.
    let bar = |second: &Second| {
        let s = second.shares.as_ref()?;
        Some(Stack {
            label: format!("{:.0} s", second.until_s),
            parts: [s.user, s.system, s.iowait, s.steal, s.idle].into(),
        })
    };
    let mut out = String::new();
    for run in &real.seconds {
        let place = record.runs.iter().find(|r| r.number == run.run).map_or("", |r| &r.place);
        let bars = run.seconds.iter().filter_map(bar).collect();
        let words = "what all CPUs did in each second, in percent";
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<details{}><summary>Run {}: {}</summary>\n{}</details>",
            if run.run == 0 { " open" } else { "" },
            run.run,
            escape(place),
            cut(bars, "seconds", |bars| charts::stacks(words, "%", &PARTS, bars))
        );
    }
    out
}

/// What waits for each lock were spent on, in seconds; `None` if there were none.
pub(super) fn waits_by_lock(outcome: &RunOutcome) -> Option<String> {
    let of = |d: &DomainOutcome| -> Vec<Stack> {
        let bar = |l: &LockOutcome| waiting(format!("{}/{}", d.name, l.name), &l.wait_causes);
        d.locks.iter().filter_map(bar).collect()
    };
    let locks: Vec<Stack> = outcome.domains.iter().flat_map(of).collect();
    let words = "what vCPUs waited for at each lock, in seconds";
    (!locks.is_empty())
        .then(|| cut(locks, "locks", |bars| charts::stacks(words, "s", &causes(), bars)))
}

/// A bar of waits in seconds; `None` if there were none.
fn waiting(label: String, causes: &WaitCauses) -> Option<Stack> {
    let parts = Cause::ALL.map(|c| causes.of(c).seconds()).into();
    (causes.total() > Picos::ZERO).then_some(Stack { label, parts })
}

/// What waits were spent on, in seconds: for each lock, and for each vCPU.
pub(super) fn waits(outcome: &RunOutcome) -> Option<String> {
    let of = |d: &DomainOutcome| -> Vec<Stack> {
        let vcpus = d.vcpus.iter().enumerate();
        vcpus.filter_map(|(i, v)| waiting(format!("{}/v{i}", d.name), &v.wait_causes)).collect()
    };
    let mut out = format!("<h4>By lock</h4>\n{}", waits_by_lock(outcome)?);
    out += "<h4>By vCPU</h4>\n";
    let words = "what each vCPU waited for, in seconds";
    let vcpus = outcome.domains.iter().flat_map(of).collect();
    out += &cut(vcpus, "vCPUs", |bars| charts::stacks(words, "s", &causes(), bars));
    Some(out)
}

/// The waits for each lock by length, those with the longest waits in all first.
pub(super) fn histograms(detail: &Detail) -> Option<String> {
    let mut locks = Vec::new();
    for (d, domain) in detail.outcome.domains.iter().enumerate() {
        for (l, lock) in domain.locks.iter().enumerate() {
            if let Some(waits) = detail.waits.of(d, l) {
                locks.push((lock.wait_total, format!("{}/{}", domain.name, lock.name), waits));
            }
        }
    }
    locks.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut out = String::new();
    for (_, name, waits) in locks.iter().take(MOST_HISTOGRAMS) {
        out += &charts::histogram(name, waits);
    }
    if locks.len() > MOST_HISTOGRAMS {
        let _ = writeln!(
            out,
            "<p class=\"faint\">The {MOST_HISTOGRAMS} locks with the longest waits in all, of {}.</p>",
            locks.len()
        );
    }
    (!locks.is_empty()).then_some(out)
}

/// The report of a record in words and tables: what `run` prints about a run, what `explain` says of it, or its samples.
pub(super) fn tables(record: &Record, run: Option<(&Scenario, &RunOutcome)>) -> String {
    let mut blocks = Vec::new();
    if let (Kind::Run, Some((scenario, outcome))) = (record.kind, run) {
        blocks = overspin_runs::run::report(scenario, outcome);
    } else if record.kind == Kind::Reproduction {
        blocks = explain::reproduction(record);
    } else if let Some(result) = &record.validation {
        blocks = overspin_lab::validate::report(result, true);
    } else if record.kind == Kind::Real {
        blocks = overspin_lab::real::report(record);
    } else if matches!(record.kind, Kind::Seeds | Kind::Sweep) {
        blocks = explain::many(record);
    }
    blocks.retain(|b| !matches!(b, overspin_report::Block::Title(_)));
    super::html::blocks(&blocks, 3)
}
