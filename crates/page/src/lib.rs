//! The report page: one HTML file with everything that records hold, for a browser without a network.
//!
//! Rust writes the text, the tables and the charts, so the page can be read and printed without its script. The script
//! sorts tables, draws timelines, switches the theme, and hands out the raw data. The style sheets, `page.js` and the
//! `timeline*.js` files are inlined as they are. A [live](live_result) page has the same panels.

#![forbid(unsafe_code)]

mod answer;
mod charts;
mod detail;
mod fragment;
mod html;
pub mod listing;
mod live;
pub mod metrics;
mod panels;

pub use detail::{Detail, DetailError, MakeRun, Watched, detail};
pub use fragment::fragment;
pub use live::{live_answer, live_result, live_words, script, style};

use html::{json, table};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use overspin_record::environment::{Environment, made_by};
use overspin_report::{Grid, short};
use overspin_runs::record::{Experiment, Kind, Record, csv};
use overspin_runs::run::Beside;
use overspin_runs::scenario_file;
use overspin_scenario::{Outcome, Scenario};
use overspin_stats::Summary;
use overspin_watch::timeline::{MOST_BYTES, deflate, pack};

/// Most slices and marks of a timeline, unless others are asked for.
pub const MOST_SLICES: usize = 1_000_000;

/// A record of a page, and one of its runs in detail.
#[derive(Debug)]
pub struct Entry {
    /// The record.
    pub record: Record,
    /// A run of it.
    pub detail: Option<Detail>,
}

/// Most rows of the table of samples; the raw data has all.
const MOST_SAMPLES: usize = 2000;

const COLOURS: &str = include_str!("colours.css");
const CHARTS: &str = include_str!("charts.css");
const STYLE: &str = include_str!("page.css");
const SCRIPT: [&str; 5] = [
    include_str!("timeline-data.js"),
    include_str!("timeline-chain.js"),
    include_str!("timeline-draw.js"),
    include_str!("timeline.js"),
    include_str!("page.js"),
];

/// The page of these records. Equal records give equal bytes, but for the last line, which says who wrote it and when.
#[must_use]
pub fn page(entries: &[Entry]) -> String {
    let title = match entries {
        [one] => title(&one.record),
        many => format!("{} results", many.len()),
    };
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "Overspin " (env!("CARGO_PKG_VERSION")) };
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
                title { (title) " - Overspin" }
                // Style sheets and scripts are files of this crate, and end no element.
                style { "\n" (PreEscaped(style())) }
            }
            "\n"
            body {
                header {
                    h1 { (title) }
                    button type="button" id="theme" title="light or dark" { "◐ theme" }
                }
                "\n"
                @if entries.len() > 1 {
                    nav {
                        ol {
                            @for (i, Entry { record, .. }) in entries.iter().enumerate() {
                                li {
                                    a href={ "#result-" (i) } { (record.name) } " "
                                    span class="faint" { (record.kind.words()) }
                                }
                            }
                        }
                    }
                }
                main { @for (i, entry) in entries.iter().enumerate() { "\n" (section(i, entry, None)) } }
                "\n"
                footer class="faint" { p { "This page is of " (written()) "." } }
                "\n"
                script type="module" { "\n" (PreEscaped(script())) }
            }
        }
        "\n"
    };
    page.0
}

/// The program that writes the page, and when.
fn written() -> String {
    let here = Environment::here();
    let on = here.date.map_or_else(String::new, |date| format!(", written on {date}"));
    format!("{} ({}){on}", made_by(&here.overspin, here.model_version), here.build.words())
}

fn title(record: &Record) -> String {
    match record.experiments.as_slice() {
        [one] => format!("{}: {}", one.id, one.title),
        _ => record.name.clone(),
    }
}

/// A panel: a heading, what it is about, and its content, if there is any.
fn panel(id: &str, heading: &str, about: Markup, content: Option<Markup>) -> Markup {
    html! {
        @if let Some(content) = content {
            section id=(id) {
                h3 { (heading) }
                @if !about.0.is_empty() { p class="about" { (about) } }
                "\n" (content)
            }
            "\n"
        }
    }
}

/// The panels of a result. A live page has something `below` the answer.
fn section(number: usize, entry: &Entry, below: Option<&Markup>) -> Markup {
    let Entry { record, detail } = entry;
    let id = |name: &str| format!("{name}-{number}");
    let none = || html! {};
    let shown = shown(record);
    let run = of_run(entry);
    // A saved page has nothing beside its record.
    let beside = below.map(|_| Beside::default());
    html! {
        article id=(id("result")) {
            @if below.is_some() {
                // The name is the title of the page, and the reader has just made the record.
                h2 { (if record.description.is_empty() { &record.name } else { &record.description }) } "\n"
            } @else {
                h2 { (record.name) } "\n"
                p {
                    (record.description) " "
                    span class="faint" {
                        "This is a record of " (record.kind.words()) ", by "
                        (made_by(&record.version, record.model_version))
                        @if let Some(date) = date(record) { ", of " (date) } "."
                    }
                }
                "\n"
            }
            (answer_of(number, entry, beside.as_ref()))
            @if let Some(below) = below { (below) }
            @for warning in &record.warnings { p class="warning" { "Doubtful: " (warning) "." } "\n" }
            @for experiment in &record.experiments { (of_experiment(number, record, experiment)) }
            (panel(&id("validation"), "Simulated beside measured", none(), panels::validation(record)))
            (panel(&id("curves"), "Figures", none(), panels::curves(record)))
            @if record.kind != Kind::Run {
                @let about = html! { "Waits of all locks, in percent of the time of all vCPUs. A vCPU may wait for two locks at once." };
                (panel(&id("waits-of-runs"), "What the runs waited for", about, panels::waits_of_runs(record)))
                @let about = html! { "A dot is a sample, the filled circle the median, the whisker goes from the least to the greatest." };
                (panel(&id("samples"), "Samples", about, panels::samples(record)))
            }
            @let about = html! { "What all CPUs together did while each run lasted." };
            (panel(&id("machine"), "The machine, second by second", about, panels::machine(record)))
            @match (detail, shown) {
                (Some(detail), _) => (in_detail(number, detail)),
                // What the record holds; a timeline needs a run that can be made again.
                (None, Some((_, outcome))) => {
                    @if let Some(why) = record.unrepeatable() {
                        p class="faint" { "There is no timeline: " (why) "." } "\n"
                    }
                    (waits(number, outcome))
                    (work(number, outcome))
                    (states(number, outcome))
                },
                (None, None) => {},
            }
            @let about = html! { "Click a heading of a table to sort by it." };
            (panel(&id("report"), "In words and numbers", about, panels::tables(record, run)))
            (panel(&id("numbers"), "All samples", none(), samples(record)))
            (panel(&id("origin"), "Where it comes from", none(), Some(origin(number, record))))
        }
        "\n"
    }
}

/// The panel of the answer.
fn answer_of(number: usize, entry: &Entry, beside: Option<&Beside>) -> Markup {
    let answer = answer::answer(&entry.record, of_run(entry), beside);
    panel(&format!("answer-{number}"), "The answer", html! {}, answer)
}

/// The run of a result that is shown in words.
fn of_run(entry: &Entry) -> Option<(&Scenario, &Outcome)> {
    let detail = entry.detail.as_ref();
    detail.map(|d| (&d.scenario, &d.outcome)).or_else(|| shown(&entry.record))
}

/// The panels of an experiment; of several ones, each has a heading.
fn of_experiment(number: usize, record: &Record, experiment: &Experiment) -> Markup {
    let several = record.experiments.len() > 1;
    let of = if several { format!("-{}", experiment.id) } else { String::new() };
    let id = |name: &str| format!("{name}-{number}{of}");
    let figures = Some(panels::figures(experiment));
    html! {
        @if several { h3 class="experiment" { (experiment.id) ": " (experiment.title) } "\n" }
        p class="about" { "Published in: " (experiment.source) "." } "\n"
        (panel(&id("claims"), "Claims", html! {}, Some(panels::claims(experiment))))
        (panel(&id("figures"), "Published beside simulated", html! {}, figures))
    }
}

/// The panels of one run.
fn in_detail(number: usize, detail: &Detail) -> Markup {
    let id = |name: &str| format!("{name}-{number}");
    let keys = [
        (&["w", "s"][..], "zoom"),
        (&["a", "d"], "move"),
        (&["n"], "next worst wait"),
        (&["/"], "search"),
        (&["0"], "all"),
        (&["Esc"], "no selection"),
    ];
    let help = html! {
        "Drag to move, use the wheel to zoom. Keys:"
        @for (i, (keys, does)) in keys.iter().enumerate() {
            @if i > 0 { "," }
            @for key in *keys { " " kbd { (key) } }
            " " (does)
        }
        "."
    };
    let lengths = html! { "Five bars for each factor of ten. A bar is at least two pixels high, so that a single wait can be seen." };
    html! {
        @if !detail.name.is_empty() {
            h3 class="experiment" { "The worst run: " (detail.name) } "\n"
        }
        @if detail.differs {
            p class="warning" {
                "The run was made again for this page, and differs from the one in the record: another model made that one."
            }
            "\n"
        }
        (panel(&id("timeline-panel"), "Timeline", help, Some(timeline(number, detail))))
        (waits(number, &detail.outcome))
        (panel(&id("histograms"), "Waits by length", lengths, panels::histograms(detail)))
        (work(number, &detail.outcome))
        (states(number, &detail.outcome))
    }
}

/// When a record was made, if it says so.
fn date(record: &Record) -> Option<String> {
    let date = record.environment.as_ref()?.date.as_ref()?;
    // `2026-11-28T09:39:11Z`
    Some(date.replace('T', " ").replace('Z', " UTC"))
}

/// The run of a record that has only one, with everything about it.
fn shown(record: &Record) -> Option<(&Scenario, &Outcome)> {
    Some((record.scenario.as_deref()?, record.runs.first()?.outcome.as_deref()?))
}

fn waits(number: usize, outcome: &Outcome) -> Markup {
    let about =
        html! { "Time from the first look at a lock that was not free to its acquisition." };
    let id = format!("waits-{number}");
    panel(&id, "What waits were spent on", about, panels::waits(outcome))
}

fn states(number: usize, outcome: &Outcome) -> Markup {
    let (id, about) = (format!("states-{number}"), html! { "In percent of the run." });
    panel(&id, "Where time went", about, Some(panels::run_states(outcome)))
}

fn work(number: usize, outcome: &Outcome) -> Markup {
    let about = html! { "Items of each domain, from the start of the run." };
    panel(&format!("work-{number}"), "Work over time", about, panels::work(outcome))
}

fn timeline(number: usize, detail: &Detail) -> Markup {
    let timeline = &detail.timeline;
    let packed = pack(timeline, MOST_BYTES);
    let seconds = |t: overspin_scenario::Picos| short(t.seconds());
    html! {
        p class="faint" {
            "Seed " (detail.outcome.seed) ". " (timeline.slices()) " slices and " (timeline.marks.len())
            " marks. Times are rounded to " (packed.head.quantum_ns) " ns."
            @if timeline.is_cut() {
                " The timeline is cut: it shows " (seconds(timeline.from)) " to " (seconds(timeline.until))
                " s of a run of " (seconds(timeline.end)) " s, the marked part of its work. " code { "overspin report --slices N" } " shows more."
            }
        }
        "\n"
        @if timeline.is_cut() { (charts::overview(&detail.outcome, timeline.from, timeline.until)) }
        div class="timeline" id={ "timeline-" (number) } {
            p class="loading" { "The timeline needs the page's script." }
        }
        "\n"
        script type="application/json" id={ "timeline-" (number) "-head" } { (json(&packed.head)) }
        "\n"
        // Base 64, in which no character has a meaning.
        script type="text/plain" id={ "timeline-" (number) "-data" } { (packed.data) }
        "\n"
    }
}

/// Statistics of all samples.
fn samples(record: &Record) -> Option<Markup> {
    let groups = record.groups();
    let header = ["where", "metric", "unit", "N", "mean", "deviation", "min", "median", "max"];
    let mut grid = Grid::new(3, &header);
    for group in groups.iter().take(MOST_SAMPLES) {
        let Some(s) = Summary::of(&group.values) else { continue };
        grid.row([
            group.place.to_owned(),
            panels::in_words(group.metric),
            group.unit.to_owned(),
            s.n.to_string(),
            short(s.mean),
            short(s.stddev),
            short(s.min),
            short(s.median),
            short(s.max),
        ]);
    }
    (!grid.rows.is_empty()).then(|| {
        html! {
            details {
                summary { (groups.len()) " metrics in their places" }
                (table(&grid))
                @if groups.len() > MOST_SAMPLES {
                    p class="faint" { "The first " (MOST_SAMPLES) " of " (groups.len()) "; the raw data has all." }
                }
            }
        }
    })
}

/// Command, environment, seeds, scenario, raw data.
fn origin(number: usize, record: &Record) -> Markup {
    let mut grid = Grid::new(2, &["what", "value"]);
    let mut row = |what: &str, value: String| grid.row([what.to_owned(), value]);
    row("program", made_by(&record.version, record.model_version));
    if let Some(here) = &record.environment {
        row("build", here.build.words());
        row("date", here.date.clone().unwrap_or_else(|| "not recorded".into()));
    }
    let again = || match record.kind {
        Kind::Run | Kind::Seeds | Kind::Sweep => Some("overspin run RECORD.json".to_owned()),
        _ => None,
    };
    if let Some(command) = record.command.clone().or_else(again) {
        row("made again by", command);
    }
    if !record.set.is_empty() {
        row("set", record.set.join(" "));
    }
    let mut seeds: Vec<u64> = record.runs.iter().filter_map(|r| r.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    if !seeds.is_empty() {
        row("seeds", overspin_stats::ranges(&seeds));
    }
    match (&record.world, &record.machine) {
        (Some(world), _) => row("world", world.clone()),
        (None, Some(machine)) => row("simulated machine", machine.clone()),
        (None, None) => {}
    }
    if let Some(here) = &record.environment {
        row("made on", here.words());
    }
    if let Some(date) = date(record) {
        row("date", date);
    }
    row("runs", record.runs.len().to_string());
    let raw = [
        ("csv", "every sample as CSV", csv(record)),
        ("json", "the record as JSON", record.to_json()),
    ];
    html! {
        (table(&grid))
        @if let Some(scenario) = &record.scenario {
            details {
                summary { "The scenario with all defaults, as a scenario file" }
                pre { (scenario_file::toml(scenario)) }
            }
        }
        @for experiment in &record.experiments {
            @if let Some(text) = overspin_experiment::text(&experiment.id) {
                details {
                    summary {
                        "The experiment's file, " (experiment.id) ".toml, as this version of the program has it"
                    }
                    pre { (text) }
                }
            }
        }
        @if let Some(noise) = &record.noise { pre { (noise.toml.trim_end()) } "\n" }
        p class="raw" {
            "Raw data:"
            @for (kind, words, _) in &raw {
                " "
                button type="button" data-raw={ (kind) "-" (number) } data-name={ (file_name(&record.name)) "." (kind) } { (words) }
            }
        }
        @for (kind, _, data) in &raw {
            "\n" script type="text/plain" id={ (kind) "-" (number) } { (deflate(data.as_bytes())) }
        }
        "\n"
    }
}

/// A name as a file name: letters, digits, dots and dashes.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let name: String = name.chars().map(plain).take(60).collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "overspin".into() } else { name.to_owned() }
}

#[cfg(test)]
mod tests;
