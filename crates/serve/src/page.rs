//! The live page: the controls, and room for the results, which have the panels of the report page.

use crate::controls::{Control, Controls, Sets};
use crate::lesson::{self, STEPS, TICKET};
use crate::problem::Problem;
use crate::run::Made;
use crate::sources::{Sources, What};
use crate::state::{Side, State};
use maud::{DOCTYPE, Markup, html};
use overspin_page::{live_answer, live_result, live_words};
use overspin_record::Kind;
use overspin_report::Block;
use std::time::Duration;

/// The style sheet: that of the report page, and that of the controls.
pub(crate) fn style() -> String {
    overspin_page::style() + include_str!("live.css")
}

/// The script, likewise.
pub(crate) fn script() -> String {
    format!("{}\n{}", overspin_page::script(), include_str!("live.js"))
}

/// The whole page of a state, still without results.
pub(crate) fn page(state: &State, sources: &Sources) -> Result<String, Problem> {
    let controls = Controls::of(&state.source)?;
    let sides: &[Side] =
        if state.other.is_some() { &[Side::First, Side::Other] } else { &[Side::First] };
    let content = html! {
        (chooser(state, sources))
        @if let Some(step) = state.lesson { (lesson(step)) }
        @if sides.len() > 1 { section #compared aria-label="what the other setting does" {} }
        div #sides class=(if sides.len() > 1 { "two" } else { "one-side" }) {
            @for side in sides {
                section.side data-side=(side.number()) aria-label=(side_name(*side, sides.len())) {
                    (panel_of_controls(state, &controls, *side, side_name(*side, sides.len())))
                    progress hidden max="1" aria-label="how far the run is" {}
                    div.result aria-live="off" { p.faint { "Not yet run." } }
                }
            }
        }
    };
    Ok(document(&controls.title, &content))
}

/// The page of an address that is none.
pub(crate) fn page_of_problem(problem: &Problem) -> String {
    document("Overspin", &html! { (problem_shown(problem)) p { a href="?" { "Start again." } } })
}

fn document(title: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " - Overspin" }
                // Browsers would ask for another one.
                link rel="icon" href="data:,";
                link rel="stylesheet" href="page.css";
                script type="module" src="page.js" {}
            }
            body.live {
                header { h1 { (title) } button #theme type="button" title="light or dark" { "◐ theme" } }
                main {
                    noscript { p.warning { "This page needs its script." } }
                    (content)
                }
            }
        }
    };
    page.0
}

fn side_name(side: Side, of: usize) -> &'static str {
    match (side, of) {
        (_, 1) => "the setting",
        (Side::First, _) => "the first setting",
        (Side::Other, _) => "the other setting",
    }
}

/// What is chosen by going to another address.
fn chooser(state: &State, sources: &Sources) -> Markup {
    let beside = State {
        other: if state.other.is_some() { None } else { Some(state.first.clone()) },
        ..state.clone()
    };
    let words = if state.other.is_some() { "one setting" } else { "two side by side" };
    html! {
        nav.chooser aria-label="what to run" {
            label {
                "Run " select #source {
                    @for (heading, sources) in sources.groups().iter().filter(|(_, all)| !all.is_empty()) {
                        optgroup label=(heading) {
                            @for source in sources {
                                option value=(source.name) selected[source.name == state.source.name] { (source.name) }
                            }
                        }
                    }
                }
            }
            @if state.source.what == What::Scenario { " " a #beside href={ "?" (beside.query()) } { (words) } }
            " "
            @if state.lesson.is_none() { a #lesson href=(lesson::address(1, STEPS[0].begins)) { "lesson" } }
            @else { a #lesson href={ "?" (State { lesson: None, ..state.clone() }.query()) } { "end the lesson" } }
        }
    }
}

/// A step of the lesson.
fn lesson(number: usize) -> Markup {
    let step = &STEPS[number - 1];
    let to = |number: usize| lesson::address(number, STEPS[number - 1].begins);
    html! {
        section #step aria-label="the lesson" data-step=(number) {
            h2 { (number) " of " (STEPS.len()) ": " (step.heading) }
            @for words in step.words { p { (words) } }
            p {
                "Try: "
                @for (i, (words, settings)) in step.links.iter().enumerate() {
                    @if i > 0 { ", " }
                    a.try href=(lesson::address(number, settings)) { (words) }
                }
                "."
            }
            p {
                @if number > 1 { a rel="prev" href=(to(number - 1)) { "← " (STEPS[number - 2].heading) } " " }
                @if number < STEPS.len() { a rel="next" href=(to(number + 1)) { (STEPS[number].heading) " →" } }
                @else { "This is the end of the lesson. " a href={ "?" (TICKET) } { "Go on by yourself" } " from where it began." }
            }
        }
    }
}

/// The controls of a side. Those of the runs belong to both sides, and stand on the first.
fn panel_of_controls(state: &State, controls: &Controls, side: Side, name: &str) -> Markup {
    let is_shared = |control: &Control| !matches!(control.sets, Sets::Key(_));
    html! {
        form.controls aria-label={ "controls of " (name) } data-vcpus=(controls.other_vcpus) data-threads=(controls.threads_per_core) {
            @for group in &controls.groups {
                fieldset {
                    legend { (group.heading) }
                    @for control in group.controls.iter().filter(|c| side == Side::First || !is_shared(c)) {
                        (one_control(state, control, side))
                    }
                    @if group.heading == "Host" { (ratio()) }
                }
            }
        }
    }
}

fn one_control(state: &State, control: &Control, side: Side) -> Markup {
    let (parameter, key) = match &control.sets {
        Sets::Key(key) => (side.parameter(), key.as_str()),
        Sets::Seeds => ("seeds", ""),
        Sets::Vary => ("vary", ""),
    };
    let set = match &control.sets {
        Sets::Key(key) => {
            let settings = state.settings(side).iter();
            settings.rev().find(|(known, _)| known == key).map(|(_, value)| value.clone())
        }
        Sets::Seeds => state.seeds.map(|seeds| seeds.to_string()),
        Sets::Vary => state.vary.clone(),
    };
    let place = set.and_then(|set| control.values.iter().position(|value| *value == set));
    let place = place.unwrap_or(control.own);
    let own = &control.values[control.own];
    html! {
        label title=(if key.is_empty() { parameter } else { key }) {
            span { (control.label) }
            @if control.is_list {
                select data-parameter=(parameter) data-key=(key) data-own=(own) {
                    @for (i, value) in control.values.iter().enumerate() {
                        option value=(value) selected[i == place] { (shown(&control.sets, value)) }
                    }
                }
            } @else {
                input type="range" min="0" max=(control.values.len() - 1) value=(place) data-parameter=(parameter)
                    data-key=(key) data-own=(own) data-values=(control.values.join(" "));
                output { (control.values[place]) }
            }
        }
    }
}

/// vCPUs for each pCPU: it turns the number of cores.
fn ratio() -> Markup {
    html! {
        label title="vCPUs for each pCPU" {
            span { "ratio" }
            input.ratio type="range" min="0" max="6" value="0" data-values="1 1.5 2 3 4 6 8";
            output {}
        }
    }
}

/// The words of a value: those of an axis without its values.
fn shown(sets: &Sets, value: &str) -> String {
    match (sets, value.split_once('=')) {
        (Sets::Vary, None) => "nothing".into(),
        (Sets::Vary, Some((key, values))) if values.starts_with("every") => {
            format!("{key}: {values}")
        }
        (Sets::Vary, Some((key, values))) => {
            let (first, last) = (values.split(',').next(), values.rsplit(',').next());
            format!("{key}: {} to {}", first.unwrap_or_default(), last.unwrap_or_default())
        }
        _ => value.to_owned(),
    }
}

/// The result of one side, as the page shows it.
pub(crate) fn result(
    state: &State,
    side: Side,
    made: &Made,
    max_wall: Duration,
    keeps: bool,
) -> String {
    let limit = max_wall.as_secs_f64();
    let alone = state.alone(side).query();
    let is_new = state.source.what != What::Record;
    let below = html! {
        @if made.cut > 0 {
            p.warning {
                @match made.entry.record.runs.len() {
                    1 => {
                        "The run was stopped at its limit, " (limit) " s: this is of its beginning. Take a shorter length"
                    }
                    runs => {
                        "The limit of " (limit) " s came first: " (made.cut) " of " (runs) " runs did not come to their end. "
                        "Tables and charts leave these out. Take fewer seeds or a shorter length"
                    }
                }
                ", or start " code { "overspin serve --max-wall 5min" } "."
            }
        }
        // Of a single run, other runs tell more.
        p.share data-more[is_new && made.entry.record.kind == Kind::Run && made.cut == 0] {
            code { (state.command(side)) } " "
            button.copy type="button" { "copy" } " "
            a href={ "scenario.toml?" (alone) } download { "as a file" } " "
            a href={ "report.html?" (alone) } download { "as a page" }
            @if keeps && is_new {
                " " button.keep type="button" data-query=(alone) { "keep" }
            }
        }
    };
    live_result(side.number(), &made.entry, &below).0
}

/// What the other setting does to the first: the sentences, and behind them the figures.
pub(crate) fn compared(blocks: &[Block]) -> Markup {
    let (words, figures): (Vec<Block>, Vec<Block>) =
        blocks.iter().cloned().partition(|block| !matches!(block, Block::Grid(_)));
    html! {
        (live_words(&words))
        @if !figures.is_empty() { details { summary { "Figures: A is left, B is right" } (live_words(&figures)) } }
    }
}

/// The answer of one side, with what its runs beside tell.
pub(crate) fn answer(side: Side, made: &Made) -> String {
    live_answer(side.number(), &made.entry, &made.beside).0
}

/// A problem, as the page shows it.
pub(crate) fn problem_shown(problem: &Problem) -> Markup {
    html! {
        div.problem role="alert" {
            p.warning { (problem.cause) }
            @if let Some(place) = &problem.place { pre { (place) } }
            p { "Remedy: " (problem.remedy) "." }
        }
    }
}
