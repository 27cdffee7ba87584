//! The report page: one HTML file with everything that records hold, for a browser without a network.
//!
//! Rust writes the text, the tables and the charts, so the page can be read and printed without its script. The script
//! sorts tables, draws timelines, switches the theme, and hands out the raw data. The style sheets, `page.js` and the
//! `timeline*.js` files are inlined as they are.

#![forbid(unsafe_code)]

mod axis;
mod charts;
mod detail;
mod fragment;
mod html;
pub mod listing;
pub mod metrics;
mod panels;

pub use detail::{Detail, DetailError, MakeRun, detail};
pub use fragment::fragment;
pub use html::escape;

use html::{blocks, json, table};
use overspin_record::environment::made_by;
use overspin_report::{Grid, short};
use overspin_runs::record::{Kind, Record, csv};
use overspin_runs::scenario_file;
use overspin_scenario::{Outcome, Scenario};
use overspin_stats::Summary;
use overspin_watch::timeline::{MOST_BYTES, pack};
use std::fmt::Write;

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

/// The page of these records. Equal records give equal bytes.
#[must_use]
pub fn page(entries: &[Entry]) -> String {
    let title = match entries {
        [one] => title(&one.record),
        many => format!("{} results", many.len()),
    };
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"Overspin {}\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <title>{} - Overspin</title>\n<style>\n{COLOURS}{CHARTS}{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{1}</h1><button type=\"button\" id=\"theme\" title=\"light or dark\">◐ theme</button></header>\n",
        env!("CARGO_PKG_VERSION"),
        escape(&title),
    );
    let mut contents = String::new();
    let mut body = String::new();
    for (i, entry) in entries.iter().enumerate() {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            contents,
            "<li><a href=\"#result-{i}\">{}</a> <span class=\"faint\">{}</span></li>",
            escape(&entry.record.name),
            entry.record.kind.words()
        );
        body += &section(i, entry);
    }
    if entries.len() > 1 {
        let _ = writeln!(out, "<nav><ol>{contents}</ol></nav>");
    }
    let _ = writeln!(out, "<main>\n{body}</main>");
    let _ =
        writeln!(out, "<script type=\"module\">\n{}</script>\n</body>\n</html>", SCRIPT.join("\n"));
    out
}

fn title(record: &Record) -> String {
    match record.experiments.as_slice() {
        [one] => format!("{}: {}", one.id, one.title),
        _ => record.name.clone(),
    }
}

/// A panel: a heading and its content, which may be empty.
fn panel(out: &mut String, id: &str, heading: &str, about: &str, content: &str) {
    if content.is_empty() {
        return;
    }
    let about =
        if about.is_empty() { String::new() } else { format!("<p class=\"about\">{about}</p>\n") };
    let _ = writeln!(
        out,
        "<section id=\"{id}\"><h3>{}</h3>\n{about}{content}</section>",
        escape(heading)
    );
}

fn section(number: usize, Entry { record, detail }: &Entry) -> String {
    let mut out = format!("<article id=\"result-{number}\"><h2>{}</h2>\n", escape(&record.name));
    let _ = writeln!(
        out,
        "<p>{} <span class=\"faint\">This is a record of {}, by {}.</span></p>",
        escape(&record.description),
        record.kind.words(),
        made_by(&record.version, record.model_version)
    );
    for warning in &record.warnings {
        let _ = writeln!(out, "<p class=\"warning\">Doubtful: {}.</p>", escape(warning));
    }
    let id = |name: &str| format!("{name}-{number}");
    for experiment in &record.experiments {
        let several = record.experiments.len() > 1;
        if several {
            let _ = writeln!(
                out,
                "<h3 class=\"experiment\">{}: {}</h3>",
                escape(&experiment.id),
                escape(&experiment.title)
            );
        }
        let _ =
            writeln!(out, "<p class=\"about\">Published in: {}.</p>", escape(&experiment.source));
        let id = |name: &str| {
            if several { format!("{name}-{number}-{}", experiment.id) } else { id(name) }
        };
        panel(&mut out, &id("claims"), "Claims", "", &panels::claims(experiment));
        panel(
            &mut out,
            &id("figures"),
            "Published beside simulated",
            "",
            &panels::figures(experiment),
        );
    }
    panel(
        &mut out,
        &id("validation"),
        "Simulated beside measured",
        "",
        &panels::validation(record),
    );
    panel(&mut out, &id("curves"), "Curves", "", &panels::curves(record).unwrap_or_default());
    if record.kind != Kind::Run {
        panel(
            &mut out,
            &id("waits-of-runs"),
            "What the runs waited for",
            "Waits of all locks, in percent of the time of all vCPUs. A vCPU may wait for two locks at once.",
            &panels::waits_of_runs(record).unwrap_or_default(),
        );
        panel(
            &mut out,
            &id("samples"),
            "Samples",
            "A dot is a sample, the filled circle the median, the whisker goes from the least to the greatest.",
            &panels::samples(record),
        );
    }
    panel(
        &mut out,
        &id("machine"),
        "The machine, second by second",
        "What all CPUs together did while each run lasted.",
        &panels::machine(record),
    );
    match (detail, shown(record)) {
        (Some(detail), _) => in_detail(&mut out, number, detail),
        // What the record holds; a timeline needs a run that can be made again.
        (None, Some((_, outcome))) => {
            if let Some(why) = record.unrepeatable() {
                let _ =
                    writeln!(out, "<p class=\"faint\">There is no timeline: {}.</p>", escape(&why));
            }
            waits(&mut out, number, outcome);
            states(&mut out, number, outcome);
        }
        (None, None) => {}
    }
    panel(
        &mut out,
        &id("report"),
        "In words and numbers",
        "Click a heading of a table to sort by it.",
        &panels::tables(
            record,
            detail.as_ref().map(|d| (&d.scenario, &d.outcome)).or_else(|| shown(record)),
        ),
    );
    panel(&mut out, &id("numbers"), "All samples", "", &samples(record));
    panel(&mut out, &id("origin"), "Where it comes from", "", &origin(number, record));
    out + "</article>\n"
}

/// The panels of one run.
fn in_detail(out: &mut String, number: usize, detail: &Detail) {
    let id = |name: &str| format!("{name}-{number}");
    if !detail.name.is_empty() {
        let _ =
            writeln!(out, "<h3 class=\"experiment\">The worst run: {}</h3>", escape(&detail.name));
    }
    if detail.differs {
        let _ = writeln!(
            out,
            "<p class=\"warning\">The run was made again for this page, and differs from the one in the record: another model made that one.</p>"
        );
    }
    panel(
        out,
        &id("timeline-panel"),
        "Timeline",
        "Drag to move, use the wheel to zoom. Keys: <kbd>w</kbd> <kbd>s</kbd> zoom, <kbd>a</kbd> <kbd>d</kbd> move, <kbd>n</kbd> next worst wait, <kbd>/</kbd> search, <kbd>0</kbd> all, <kbd>Esc</kbd> no selection.",
        &timeline(number, detail),
    );
    waits(out, number, &detail.outcome);
    panel(
        out,
        &id("histograms"),
        "Waits by length",
        "Five bars for each factor of ten. A bar is at least two pixels high, so that a single wait can be seen.",
        &panels::histograms(detail).unwrap_or_default(),
    );
    states(out, number, &detail.outcome);
}

/// The run of a record that has only one, with everything about it.
fn shown(record: &Record) -> Option<(&Scenario, &Outcome)> {
    Some((record.scenario.as_deref()?, record.runs.first()?.outcome.as_deref()?))
}

fn waits(out: &mut String, number: usize, outcome: &Outcome) {
    panel(
        out,
        &format!("waits-{number}"),
        "What waits were spent on",
        "Time from the first look at a lock that was not free to its acquisition.",
        &panels::waits(outcome).unwrap_or_default(),
    );
}

fn states(out: &mut String, number: usize, outcome: &Outcome) {
    panel(
        out,
        &format!("states-{number}"),
        "Where time went",
        "In percent of the run.",
        &panels::run_states(outcome),
    );
}

fn timeline(number: usize, detail: &Detail) -> String {
    let timeline = &detail.timeline;
    let packed = pack(timeline, MOST_BYTES);
    let seconds = |t: overspin_scenario::Picos| short(t.seconds());
    let mut words = format!(
        "Seed {}. {} slices and {} marks. Times are rounded to {} ns.",
        detail.outcome.seed,
        timeline.slices(),
        timeline.marks.len(),
        packed.head.quantum_ns
    );
    if timeline.is_cut() {
        let _ = write!(
            words,
            " The timeline is cut: it shows {} to {} s of a run of {} s. `overspin report --slices N` shows more.",
            seconds(timeline.from),
            seconds(timeline.until),
            seconds(timeline.end)
        );
    }
    format!(
        "<p class=\"faint\">{words}</p>\n<div class=\"timeline\" id=\"timeline-{number}\"><p class=\"loading\">The timeline needs the page's script.</p></div>\n\
         <script type=\"application/json\" id=\"timeline-{number}-head\">{}</script>\n\
         <script type=\"text/plain\" id=\"timeline-{number}-data\">{}</script>\n",
        json(&packed.head),
        packed.data
    )
}

/// Statistics of all samples.
fn samples(record: &Record) -> String {
    let groups = record.groups();
    let header = ["where", "metric", "unit", "N", "mean", "deviation", "min", "median", "max"];
    let mut grid = Grid::new(3, &header);
    for group in groups.iter().take(MOST_SAMPLES) {
        let Some(s) = Summary::of(&group.values) else { continue };
        grid.row([
            group.place.to_owned(),
            group.metric.to_owned(),
            group.unit.to_owned(),
            s.n.to_string(),
            short(s.mean),
            short(s.stddev),
            short(s.min),
            short(s.median),
            short(s.max),
        ]);
    }
    if grid.rows.is_empty() {
        return String::new();
    }
    let cut = match groups.len() > MOST_SAMPLES {
        true => format!(
            "<p class=\"faint\">The first {MOST_SAMPLES} of {}; the raw data has all.</p>",
            groups.len()
        ),
        false => String::new(),
    };
    format!(
        "<details><summary>{} metrics in their places</summary>{}{cut}</details>",
        groups.len(),
        table(&grid)
    )
}

/// Command, environment, seeds, scenario, raw data.
fn origin(number: usize, record: &Record) -> String {
    let mut grid = Grid::new(2, &["what", "value"]);
    let mut row = |what: &str, value: String| grid.row([what.to_owned(), value]);
    row("program", made_by(&record.version, record.model_version));
    if let Some(command) = &record.command {
        row("command", command.clone());
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
    row("runs", record.runs.len().to_string());
    let mut out = table(&grid);
    if let Some(scenario) = &record.scenario {
        let _ = write!(
            out,
            "<details><summary>The scenario with all defaults, as a scenario file</summary><pre>{}</pre></details>",
            escape(&scenario_file::toml(scenario))
        );
    }
    for experiment in &record.experiments {
        if let Some(text) = overspin_experiment::text(&experiment.id) {
            let _ = write!(
                out,
                "<details><summary>The experiment's file, {}.toml, as this version of the program has it</summary><pre>{}</pre></details>",
                escape(&experiment.id),
                escape(text)
            );
        }
    }
    if let Some(noise) = &record.noise {
        out += &blocks(&[overspin_report::Block::Lines(noise.toml.clone())], 4);
    }
    let _ = write!(
        out,
        "<p class=\"raw\">Raw data: <button type=\"button\" data-raw=\"csv-{number}\" data-name=\"{0}.csv\">every sample as CSV</button> \
         <button type=\"button\" data-raw=\"json-{number}\" data-name=\"{0}.json\">the record as JSON</button></p>\n\
         <script type=\"text/plain\" id=\"csv-{number}\">{1}</script>\n<script type=\"text/plain\" id=\"json-{number}\">{2}</script>\n",
        escape(&file_name(&record.name)),
        overspin_watch::timeline::deflate(csv(record).as_bytes()),
        overspin_watch::timeline::deflate(record.to_json().as_bytes()),
    );
    out
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
