//! The panels of a record: charts of what it holds.

use super::charts::{self, Dots, Part, Stack};
use super::detail::Detail;
use super::html::blocks;
use maud::{Markup, html};
use overspin_experiment::{Compared, Judged, place_words};
use overspin_report::{At, Curve, Horizontal, Plot, short};
use overspin_runs::record::{Experiment, Kind, Record};
use overspin_runs::sweep::{self, Outcome};
use overspin_scenario::Second;
use overspin_scenario::{
    Cause, DomainOutcome, LockOutcome, Outcome as RunOutcome, Picos, Scenario, WaitCauses,
};
use overspin_stats::Spread;
use overspin_watch::explain;
use std::collections::{BTreeMap, BTreeSet};

/// Most rows of a chart. Beyond it, the rows with the largest values are shown.
const MOST_ROWS: usize = 48;
/// Most histograms.
const MOST_HISTOGRAMS: usize = 12;
/// Most charts of samples.
const MOST_METRICS: usize = 12;

/// The parts of bars of waits; those that few locks have, which are the last, only if some bar has them.
fn causes(bars: &[Stack]) -> Vec<Part> {
    const CLASSES: [&str; Cause::ALL.len()] = [
        "cause-0", "cause-1", "cause-2", "cause-3", "cause-4", "cause-5", "cause-6", "cause-7",
        "cause-8", "cause-9",
    ];
    let last = |bar: &Stack| bar.parts.iter().rposition(|part| *part > 0.0).map_or(0, |i| i + 1);
    let parts = bars.iter().map(last).max().unwrap_or(0).max(Cause::OF_ANY_LOCK);
    CLASSES.into_iter().zip(Cause::ALL.map(Cause::words)).take(parts).collect()
}

/// The claims of an experiment.
pub(super) fn claims(experiment: &Experiment) -> Markup {
    html! {
        ul class="claims" {
            @for Judged { id, text, holds, in_words, evidence } in &experiment.claims {
                @let (class, words) = match holds {
                    Some(true) => ("holds", "✓ holds"),
                    Some(false) => ("fails", "✗ does not hold"),
                    None => ("undecided", "? undecided"),
                };
                "\n"
                li class=(class) {
                    strong { (words) } " (" (id) ") " (text)
                    @if let Some(words) = in_words { p { (words) } }
                    details { summary { "the figures that decide it" } p class="evidence" { (evidence) } }
                }
            }
        }
        "\n"
    }
}

/// The published figures beside the simulated ones: a chart for each metric.
pub(super) fn figures(experiment: &Experiment) -> Markup {
    let mut metrics: Vec<&str> = Vec::new();
    for f in &experiment.figures {
        if !metrics.contains(&&*f.metric) {
            metrics.push(&f.metric);
        }
    }
    let of = |metric: &str| -> Vec<&Compared> {
        experiment.figures.iter().filter(|f| f.metric == metric).collect()
    };
    html! {
        p class="legend" {
            @for class in ["published", "simulated"] {
                (charts::sample(&html! { circle class=(class) cx="7" cy="7" r="4.5" {} }, class))
            }
            span { "whiskers: standard deviation of the runs" } " "
            span { "✓ within 10 %, ≈ within 25 %, ✗ missed" }
        }
        "\n"
        div class="charts" {
            @for metric in metrics {
                @let title = in_words(metric);
                figure { h4 { (title) } "\n" (charts::figures(&title, &of(metric))) }
            }
        }
    }
}

/// What the runs of a record waited for, in percent of their vCPUs' time: a bar for each configuration.
pub(super) fn waits_of_runs(record: &Record) -> Option<Markup> {
    let mut order: Vec<(&str, String)> = Vec::new();
    let mut sums: BTreeMap<&str, (WaitCauses, Picos)> = BTreeMap::new();
    for run in &record.runs {
        let Some(causes) = &run.wait_causes else { continue };
        let sum = sums.entry(&run.place).or_insert_with(|| {
            let words = explain::point(record, run).unwrap_or_else(|| in_place(record, &run.place));
            order.push((&run.place, words));
            Default::default()
        });
        sum.0 += *causes;
        sum.1 = sum.1.saturating_add(run.vcpu_time.unwrap_or_default());
    }
    let bar = |(place, label): (&str, String)| {
        let (causes, time) = sums[place];
        Stack { label, parts: Cause::ALL.map(|c| causes.of(c).percent(time)).into() }
    };
    let bars: Vec<Stack> =
        order.into_iter().map(bar).filter(|b| b.parts.iter().sum::<f64>() > 0.0).collect();
    (!bars.is_empty()).then(|| {
        let words = "what the vCPUs of each configuration waited for, in percent of their time";
        cut(bars, "configurations", |bars| charts::stacks(words, "%", &causes(bars), bars))
    })
}

/// The picture of a validation.
pub(super) fn validation(record: &Record) -> Option<Markup> {
    Some(drawn(&overspin_lab::validate::picture(record.validation.as_ref()?)))
}

/// The curves of a sweep, as `--svg` draws them, or those of a real benchmark. A sweep over names has its tables instead.
pub(super) fn curves(record: &Record) -> Option<Markup> {
    if record.kind == Kind::Real {
        return overspin_lab::real::curves(record).as_ref().map(drawn);
    }
    let scenario = record.scenario.as_ref().filter(|_| record.kind == Kind::Sweep)?;
    let sweep = record.sweep(scenario).ok()?;
    let outcome = Outcome::of(record);
    Some(match sweep::is_along_numbers(&sweep) {
        true => drawn(&sweep::curves(&sweep, &outcome)),
        false => blocks(&sweep::tables(&outcome)),
    })
}

/// A place in words: `2008-spinlocks.ticket.half` of the only experiment of a record is "ticket, half".
fn in_place(record: &Record, place: &str) -> String {
    let place = match record.experiments.as_slice() {
        [one] => place.strip_prefix(&*one.id).map_or(place, |rest| rest.trim_start_matches('.')),
        _ => place,
    };
    if place.is_empty() { record.name.clone() } else { place_words(place).join(", ") }
}

/// The name of a metric as a reader would say it: `throughput_total [Mops/s]` is "throughput total, Mops/s".
pub(super) fn in_words(metric: &str) -> String {
    let (name, unit) = match metric.split_once(" [") {
        Some((name, unit)) => (name, format!(", {}", unit.trim_end_matches(']'))),
        None => match metric.strip_suffix("_s") {
            Some(name) => (name, ", s".to_owned()),
            None => (metric, String::new()),
        },
    };
    format!("{}{unit}", name.replace(['_', '-'], " "))
}

fn drawn(picture: &Markup) -> Markup {
    html! { div class="curves wide" { (picture) } "\n" }
}

/// Draws the rows with the largest values, and says how many are left out.
fn cut(mut bars: Vec<Stack>, what: &str, draw: impl FnOnce(&[Stack]) -> Markup) -> Markup {
    let all = bars.len();
    if all > MOST_ROWS {
        let mut values: Vec<f64> = bars.iter().map(|b| b.parts.iter().sum()).collect();
        values.sort_by(|a, b| b.total_cmp(a));
        let least = values[MOST_ROWS - 1];
        bars.retain(|b| b.parts.iter().sum::<f64>() >= least);
        bars.truncate(MOST_ROWS);
    }
    html! {
        (draw(&bars))
        @if bars.len() < all {
            p class="faint" { "The " (bars.len()) " largest of " (all) " " (what) "." } "\n"
        }
    }
}

/// A chart of samples: its title with the unit, the unit, the rows.
type Samples<'a> = (String, &'a str, Vec<Dots>);

/// The charts of samples: every sample of each main metric, in each place.
pub(super) fn samples(record: &Record) -> Option<Markup> {
    // Its curves show the same.
    if record.kind == Kind::Sweep && curves(record).is_some() {
        return None;
    }
    let all = match record.kind {
        Kind::Schedbench => of_schedbench(record),
        _ => of_main_metrics(record),
    };
    // One number is no chart.
    let several =
        |(.., rows): &Samples<'_>| rows.len() > 1 || rows.iter().any(|r| r.values.len() > 1);
    let drawn: Vec<Samples<'_>> = all.into_iter().filter(several).take(MOST_METRICS).collect();
    (!drawn.is_empty()).then(|| {
        html! {
            div class="charts" {
                @for (title, unit, rows) in drawn {
                    figure {
                        h4 { (title) } "\n"
                        @if let Some(curves) = along_numbers(&title, &rows) { (curves) } @else {
                            (charts::samples(&title, unit, &rows[..rows.len().min(MOST_ROWS)]))
                            @if rows.len() > MOST_ROWS {
                                p class="faint" {
                                    "The first " (MOST_ROWS) " of " (rows.len()) " places; the table has the others."
                                }
                                "\n"
                            }
                        }
                    }
                }
            }
        }
    })
}

/// Means of samples as curves, if their places end with numbers: "ticket, 16" is at 16 of the curve `ticket`.
fn along_numbers(title: &str, rows: &[Dots]) -> Option<Markup> {
    let mut curves: Vec<Curve> = Vec::new();
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for row in rows {
        let (name, number) = row.label.rsplit_once(", ")?;
        let x: f64 = number.parse::<u32>().ok()?.into();
        let spread = Spread::of(&[], &row.values)?;
        let ends = spread.interval.map(|i| [i.low, i.high]);
        let at = At { x, y: spread.summary.mean, ends };
        match curves.iter_mut().find(|c| c.name == name) {
            Some(curve) => curve.points.push(at),
            None => curves.push(Curve { name: name.into(), points: vec![at] }),
        }
        ticks.push((x, number.into()));
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    ticks.dedup();
    let note = "Means; whiskers are their 95 % intervals.";
    let axis = Horizontal::of_numbers(String::new(), ticks);
    let plot = Plot { title: title.into(), most: None, curves };
    (axis.ticks.len() > 1).then(|| drawn(&overspin_report::curves(title, note, &axis, &[plot], 1)))
}

/// A title with its unit.
fn titled(title: &str, unit: &str) -> String {
    if unit.is_empty() { title.into() } else { format!("{title}, {unit}") }
}

fn of_main_metrics(record: &Record) -> Vec<Samples<'_>> {
    let main = record.kind.main_metrics();
    let mut all: Vec<Samples<'_>> = Vec::new();
    for group in record.groups() {
        if !main.is_empty() && !main.contains(&group.metric) {
            continue;
        }
        let row = Dots { label: in_place(record, group.place), values: group.values };
        let title = titled(&in_words(group.metric), group.unit);
        match all.iter_mut().find(|(known, ..)| *known == title) {
            Some((.., rows)) => rows.push(row),
            None => all.push((title, group.unit, vec![row])),
        }
    }
    all
}

/// What schedbench's workers did, how late they began, and how fair that was: a row for each set of workers. The first
/// second has a chart of its own, since a scheduler does not know its vCPUs then, and one long wait of it would hide
/// all others.
fn of_schedbench(record: &Record) -> Vec<Samples<'_>> {
    const CHARTS: [(&str, &str, Option<bool>); 6] = [
        ("throughput of a worker in each second", "throughput", None),
        ("CPU time of a worker in each second", "utilization", None),
        ("MaxDelta of a worker in the first second", "late", Some(true)),
        ("MaxDelta of a worker in each later second", "late", Some(false)),
        ("CPU time over the fair share, for each worker", "fair", None),
        ("throughput over that when alone, for each worker", "of-alone", None),
    ];
    let mut all: Vec<Samples<'_>> = Vec::new();
    for (title, metric, first) in CHARTS {
        let (mut rows, mut unit): (Vec<Dots>, &str) = (Vec::new(), "");
        let mut begun = BTreeSet::new();
        for s in record.samples.iter().filter(|s| s.metric == metric) {
            let is_first = begun.insert((s.run, &s.place));
            if first.is_some_and(|first| first != is_first) {
                continue;
            }
            unit = &s.unit;
            // `LABEL.SET:WORKER`, and a label may have any of these characters.
            let worker = s.place.rsplit_once(':').filter(|(_, id)| id.parse::<u32>().is_ok());
            let set = worker.map_or(&*s.place, |(set, _)| set);
            match rows.iter_mut().find(|row| row.label == set) {
                Some(row) => row.values.push(s.value),
                None => rows.push(Dots { label: set.to_owned(), values: vec![s.value] }),
            }
        }
        all.push((titled(title, unit), unit, rows));
    }
    all
}

/// The runstates of vCPUs and pCPUs, in percent of the time that counts.
pub(super) fn run_states(outcome: &RunOutcome) -> Markup {
    const PARTS: [Part; 5] = [
        ("style-running", "running"),
        ("style-spinning", "on a pCPU, waiting for a lock"),
        ("style-preempted", "preempted: wants a CPU and has none"),
        ("style-asleep", "asleep"),
        ("style-offline", "offline"),
    ];
    const HOST: [Part; 3] = [
        ("style-running", "runs a vCPU"),
        ("style-switching", "switches"),
        ("style-asleep", "idle"),
    ];
    let percent = |time: Picos| time.percent(outcome.counted());
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
    let of = |who| format!("where the time of each {who} went, in percent of the run");
    html! {
        (cut(vcpus, "vCPUs", |bars| charts::stacks(&of("vCPU"), "%", &PARTS, bars)))
        (cut(pcpus.collect(), "pCPUs", |bars| charts::stacks(&of("pCPU"), "%", &HOST, bars)))
    }
}

/// The work of each domain over time, from the start of the run; `None` if no domain's work goes on for ever.
pub(super) fn work(outcome: &RunOutcome) -> Option<Markup> {
    let step = outcome.progress_step.seconds();
    let of = |d: &DomainOutcome| {
        outcome.halves(d)?;
        let at = |(i, rate): (usize, &f64)| At { x: (i as f64 + 0.5) * step, y: *rate, ends: None };
        let points = outcome.rates(d).iter().enumerate().map(at).collect();
        Some(Curve { name: d.name.clone(), points })
    };
    let curves: Vec<Curve> = outcome.domains.iter().filter_map(of).collect();
    let end = outcome.elapsed.seconds();
    let ticks = [0.0, outcome.warmup.seconds(), end].map(|at| (at, short(at))).into();
    let axis = Horizontal { title: "s".into(), ticks, log: false };
    let counts = match outcome.warmup.is_zero() {
        true => String::new(),
        false => format!("The time that counts begins at {} s.", short(outcome.warmup.seconds())),
    };
    let warnings: Vec<String> = outcome
        .domains
        .iter()
        .filter_map(|d| Some(format!("{}: {}", d.name, overspin_runs::run::warning(outcome, d)?)))
        .collect();
    let plot = Plot { title: "items/s".into(), most: None, curves };
    (!plot.curves.is_empty()).then(|| {
        html! {
            @for warning in &warnings { p { (warning) } "\n" }
            div class="one" { (drawn(&overspin_report::curves("Work over time", &counts, &axis, &[plot], 1))) }
        }
    })
}

/// What the machine did during each run of a real benchmark, in percent of all CPUs, by seconds for the last run.
pub(super) fn machine(record: &Record) -> Option<Markup> {
    const PARTS: [Part; 5] = [
        ("style-running", "user"),
        ("style-spinning", "system"),
        ("style-switching", "waits for a disk"),
        ("style-preempted", "stolen by the hypervisor"),
        ("style-asleep", "idle"),
    ];
    let real = record.real.as_ref()?;
    // A rest that is shorter than a clock tick has no bar.
    let bar = |(second, label): (&Second, String)| {
        let s = second.shares.as_ref()?;
        Some(Stack {
            label: format!("{label} s"),
            parts: [s.user, s.system, s.iowait, s.steal, s.idle].into(),
        })
    };
    let place = |number| record.runs.iter().find(|r| r.number == number).map_or("", |r| &r.place);
    let words = "what all CPUs did in each second, in percent";
    Some(html! {
        @for run in &real.seconds {
            details open[run.run == 0] {
                summary { "Run " (run.run) ": " (place(run.run)) }
                "\n"
                @let labels = overspin_lab::real::labels(&run.seconds);
                (cut(run.seconds.iter().zip(labels).filter_map(bar).collect(), "seconds", |bars| {
                    charts::stacks(words, "%", &PARTS, bars)
                }))
            }
            "\n"
        }
    })
}

/// What waits for each lock were spent on, in seconds; `None` if there were none.
pub(super) fn waits_by_lock(outcome: &RunOutcome) -> Option<Markup> {
    let of = |d: &DomainOutcome| -> Vec<Stack> {
        let bar = |l: &LockOutcome| waiting(format!("{}/{}", d.name, l.name), &l.wait_causes);
        d.locks.iter().filter_map(bar).collect()
    };
    let locks: Vec<Stack> = outcome.domains.iter().flat_map(of).collect();
    let words = "what vCPUs waited for at each lock, in seconds";
    (!locks.is_empty())
        .then(|| cut(locks, "locks", |bars| charts::stacks(words, "s", &causes(bars), bars)))
}

/// A bar of waits in seconds; `None` if there were none.
fn waiting(label: String, causes: &WaitCauses) -> Option<Stack> {
    let parts = Cause::ALL.map(|c| causes.of(c).seconds()).into();
    (causes.total() > Picos::ZERO).then_some(Stack { label, parts })
}

/// What waits were spent on, in seconds: for each lock, and for each vCPU.
pub(super) fn waits(outcome: &RunOutcome) -> Option<Markup> {
    let of = |d: &DomainOutcome| -> Vec<Stack> {
        let vcpus = d.vcpus.iter().enumerate();
        vcpus.filter_map(|(i, v)| waiting(format!("{}/v{i}", d.name), &v.wait_causes)).collect()
    };
    let words = "what each vCPU waited for, in seconds";
    let vcpus = outcome.domains.iter().flat_map(of).collect();
    Some(html! {
        h4 { "By lock" } "\n"
        (waits_by_lock(outcome)?)
        h4 { "By vCPU" } "\n"
        (cut(vcpus, "vCPUs", |bars| charts::stacks(words, "s", &causes(bars), bars)))
    })
}

/// The waits for each lock by length, those with the longest waits in all first.
pub(super) fn histograms(detail: &Detail) -> Option<Markup> {
    let mut locks = Vec::new();
    for (d, domain) in detail.outcome.domains.iter().enumerate() {
        for (l, lock) in domain.locks.iter().enumerate() {
            if let Some(waits) = detail.waits.of(d, l) {
                locks.push((lock.wait_total, format!("{}/{}", domain.name, lock.name), waits));
            }
        }
    }
    locks.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    (!locks.is_empty()).then(|| {
        html! {
            @for (_, name, waits) in locks.iter().take(MOST_HISTOGRAMS) {
                (charts::histogram(name, waits))
            }
            @if locks.len() > MOST_HISTOGRAMS {
                p class="faint" {
                    "The " (MOST_HISTOGRAMS) " locks with the longest waits in all, of " (locks.len()) "."
                }
            }
        }
    })
}

/// The report of a record in words and tables: what `run` prints about a run, what `explain` says of it, or its samples.
pub(super) fn tables(record: &Record, run: Option<(&Scenario, &RunOutcome)>) -> Option<Markup> {
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
    (!blocks.is_empty()).then(|| super::html::blocks(&blocks))
}
