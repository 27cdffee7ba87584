//! The report of an experiment: first the output of the benchmark itself, then every published figure beside
//! the simulated one, and the claims.

use super::{Experiment, Role};
use crate::{Compared, Grade, Judged, Reproduction};
use overspin_report::{Block, Grid, Markup, short};
use std::fmt::Write;

/// The whole report of `result`, for documents.
#[must_use]
pub fn reproduction(result: &Reproduction) -> Vec<Block> {
    let title = Block::Title(format!("{}: {}", result.experiment.id, result.experiment.title));
    [vec![title], detail(result), reproduction_claims(result), parameters(result)].concat()
}

/// The report of `result` for a terminal: its answer first. Formulas are for a verbose user.
#[must_use]
pub fn reproduction_answer_first(result: &Reproduction, verbose: bool) -> Vec<Block> {
    let claims = if verbose { reproduction_claims(result) } else { Vec::new() };
    [reproduction_in_brief(result), detail(result), claims, parameters(result)].concat()
}

/// Where it was published, how it ran, the output of the benchmark, and all figures.
fn detail(result: &Reproduction) -> Vec<Block> {
    let mut blocks = vec![
        Block::Text(format!("Published in: {}.", result.experiment.source)),
        Block::Text(conditions(result)),
    ];
    blocks.extend(result.details.iter().cloned());
    if !result.experiment.figures.is_empty() {
        blocks.push(Block::Heading("Figures".into()));
        blocks.push(Block::Grid(figures(&result.experiment.figures)));
        blocks.push(Block::Text(tally(result)));
    }
    blocks
}

/// The claims as they were published, with every comparison that decides them.
#[must_use]
pub fn reproduction_claims(result: &Reproduction) -> Vec<Block> {
    vec![Block::Heading("Claims".into()), Block::Lines(claims(&result.experiment.claims))]
}

/// The answer of an experiment: how many claims hold, and for each the numbers that decide it. At most 80 columns wide.
#[must_use]
pub fn reproduction_in_brief(result: &Reproduction) -> Vec<Block> {
    let lines = in_columns(&format!("{}: {}", result.experiment.id, answer(&[result])));
    vec![Block::Lines(lines + &claims_in_brief(&result.experiment.claims))]
}

/// Lines that say for each claim whether it holds, and the numbers that decide it. At most 80 columns wide.
#[must_use]
pub fn claims_in_brief(claims: &[Judged]) -> String {
    let line = |claim: &Judged| {
        let words = claim.in_words.as_ref().unwrap_or(&claim.text);
        in_columns(&format!("({}) {}: {words}", claim.id, verdict_of(claim)))
    };
    claims.iter().map(line).collect()
}

/// A sentence in lines; those of a claim are indented after the first. A number stays beside its unit.
fn in_columns(text: &str) -> String {
    // For private use: no text has it, and it does not break a line.
    const NO_BREAK: &str = "\u{e000}";
    let indent = if text.starts_with('(') { "    " } else { "" };
    let whole = text.replace(" %", &format!("{NO_BREAK}%"));
    let lines = overspin_report::wrap_to(&whole, COLUMNS - indent.len());
    lines.replace('\n', &format!("\n{indent}")).replace(NO_BREAK, " ") + "\n"
}

/// The last table of several experiments.
#[must_use]
pub fn reproductions(all: &[Reproduction]) -> Vec<Block> {
    vec![
        Block::Lines(in_columns(&format!(
            "All experiments: {}",
            answer(&all.iter().collect::<Vec<_>>())
        ))),
        Block::Grid(summary(all)),
        Block::Lines(in_columns(
            "Predicted figures are good within 10 % and fair within 25 %. Parameters were set by the fitted ones. \
             Those computed again follow from other published figures, to every digit.",
        )),
    ]
}

/// Widest line of an answer.
const COLUMNS: usize = 80;

fn verdict_of(claim: &Judged) -> &'static str {
    match claim.holds {
        Some(true) => "holds",
        Some(false) => "DOES NOT HOLD",
        None => "UNDECIDED",
    }
}

/// How many claims hold, and how many figures are near.
fn answer(all: &[&Reproduction]) -> String {
    let claims = || all.iter().flat_map(|e| &e.experiment.claims);
    let open = claims().filter(|c| c.holds.is_none()).count();
    let open = match open {
        0 => String::new(),
        n => format!(" ({n} undecided)"),
    };
    let predicted = all.iter().map(|e| e.experiment.tally(Role::Predict));
    let (good, figures) = predicted
        .fold((0, 0), |(good, of), tally| (good + tally[0], of + tally.iter().sum::<usize>()));
    let figures = match figures {
        0 => String::new(),
        n => format!("; {good} of {n} predicted figures are within 10 %"),
    };
    let hold = claims().filter(|c| c.holds == Some(true)).count();
    format!("{hold} of {} claims hold{open}{figures}.", claims().count())
}

fn summary(all: &[Reproduction]) -> Grid {
    let header = ["experiment", "good", "fair", "missed", "fit", "again", "claims"];
    let mut grid = Grid::new(1, &header);
    let mut total = [0; 7];
    for result in all {
        let [good, fair, missed] = result.experiment.tally(Role::Predict);
        let fitted = result.experiment.tally(Role::Fit).iter().sum();
        let [same, ..] = result.experiment.tally(Role::Recompute);
        let hold = result.experiment.claims.iter().filter(|c| c.holds == Some(true)).count();
        let row = [good, fair, missed, fitted, same, hold, result.experiment.claims.len()];
        total.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        grid.rows.push(cells(&result.experiment.id, row));
    }
    grid.rows.push(cells("all", total));
    grid
}

fn cells(name: &str, [good, fair, missed, fitted, same, hold, claims]: [usize; 7]) -> Vec<String> {
    let counts = [good, fair, missed, fitted, same].map(|n| n.to_string());
    let hold = format!("{hold} of {claims}");
    std::iter::once(name.to_owned()).chain(counts).chain([hold]).collect()
}

fn conditions(result: &Reproduction) -> String {
    let seeds = match result.experiment.seeds.as_slice() {
        [] => "none".to_owned(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
    };
    let length = match result.experiment.scale {
        1 => "Runs had the published length.".to_owned(),
        n => format!(
            "Runs had 1/{n} of the published length; times and counts are multiplied by {n}."
        ),
    };
    let limit = result.experiment.limit_s.map_or_else(String::new, |limit| {
        format!(
            "A run that had not finished after {} simulated seconds counts as one that did not \
             finish. ",
            short(limit)
        )
    });
    format!("{length} Seeds: {seeds}. {limit}{}.", overspin_record::environment::program())
}

fn figures(figures: &[Compared]) -> Grid {
    let header =
        ["where", "metric", "role", "grade", "published", "sd", "simulated", "sd", "error", "note"];
    let mut grid = Grid::new(4, &header);
    grid.notes = 1;
    let number = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), short);
    for f in figures {
        grid.row([
            f.place.clone(),
            f.metric.clone(),
            match f.role {
                Role::Fit => "fit".into(),
                Role::Predict => "predict".into(),
                Role::Recompute => "recompute".into(),
            },
            match f.grade {
                Grade::Good => "good".into(),
                Grade::Fair => "fair".into(),
                Grade::Missed => "MISSED".into(),
            },
            f.published.map_or_else(|| "never".into(), short),
            number(f.published_stddev),
            match f.simulated {
                Some(value) => short(value),
                None if f.published.is_none() && f.grade == Grade::Good => "never".into(),
                None => "not computed".into(),
            },
            number(f.simulated_stddev),
            f.error.map_or_else(|| "-".into(), |e| format!("{:+.1} %", 100.0 * e)),
            f.note.clone().unwrap_or_default(),
        ]);
    }
    grid
}

fn tally(result: &Reproduction) -> String {
    let line = |role| {
        let [good, fair, missed] = result.experiment.tally(role);
        format!("{good} good, {fair} fair, {missed} missed of {}", good + fair + missed)
    };
    let has = |role| result.experiment.figures.iter().any(|f| f.role == role);
    let mut sentences = Vec::new();
    if has(Role::Predict) || has(Role::Fit) {
        sentences.push(format!(
            "Predicted: {}. Fitted: {}. Good is within 10 %, fair within 25 %.",
            line(Role::Predict),
            line(Role::Fit)
        ));
    }
    if has(Role::Recompute) {
        let [good, fair, missed] = result.experiment.tally(Role::Recompute);
        let all = good + fair + missed;
        sentences
            .push(format!("Computed again: {good} of {all} are the same in every printed digit."));
    }
    sentences.join(" ")
}

fn claims(claims: &[Judged]) -> String {
    let mut out = String::new();
    for c in claims {
        let verdict = verdict_of(c);
        let _ = writeln!(out, "({}) {verdict}: {}\n    {}", c.id, c.text, c.evidence);
    }
    out
}

fn parameters(result: &Reproduction) -> Vec<Block> {
    let mut out = String::new();
    for p in &result.experiment.parameters {
        let _ = writeln!(
            out,
            "{} = {} (plausible: {} to {})\n    {}; {}",
            p.key, p.value, p.low, p.high, p.meaning, p.reason
        );
    }
    let all = if out.is_empty() { Block::Text("None.".into()) } else { Block::Lines(out) };
    vec![Block::Heading("Fitted parameters".into()), all]
}

/// The curves of an experiment as SVG; `None` if it varies nothing by steps.
#[must_use]
pub fn reproduction_curves(experiment: &Experiment, result: &Reproduction) -> Option<Markup> {
    let mut pictures = experiment.kind.along().into_iter().map(|along| along.draw(result));
    let (axis, mut plots) = pictures.next()?;
    for (_, more) in pictures {
        plots.extend(more);
    }
    let title = format!("{}: {}", result.experiment.id, result.experiment.title);
    let note = match result.experiment.seeds.len() {
        1 => String::new(),
        n => format!("Means of {n} seeds; whiskers are their 95 % intervals."),
    };
    Some(overspin_report::curves(&title, &note, &axis, &plots, 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict_of_all;

    fn figure(role: Role, grade: Grade) -> Compared {
        Compared {
            metric: "m".into(),
            place: "p".into(),
            published: Some(1.0),
            published_stddev: None,
            simulated: Some(1.0),
            simulated_stddev: None,
            error: Some(0.0),
            role,
            grade,
            note: None,
        }
    }

    fn claim(holds: Option<bool>) -> Judged {
        Judged { id: 1, text: "t".into(), holds, in_words: None, evidence: "e".into() }
    }

    fn result(name: &str, figures: Vec<Compared>, claims: Vec<Judged>) -> Reproduction {
        let experiment = overspin_record::Experiment {
            id: name.into(),
            figures,
            claims,
            ..overspin_record::Experiment::default()
        };
        Reproduction { experiment, ..Reproduction::default() }
    }

    #[test]
    fn the_last_table_counts_figures_and_claims_and_adds_them_up() {
        use Grade::{Fair, Good, Missed};
        let first = vec![
            figure(Role::Predict, Good),
            figure(Role::Predict, Fair),
            figure(Role::Predict, Missed),
            figure(Role::Fit, Missed),
        ];
        let second = vec![figure(Role::Recompute, Good), figure(Role::Recompute, Missed)];
        let all = [
            result("one", first, vec![claim(Some(true)), claim(None)]),
            result("two", second, vec![claim(Some(false))]),
        ];
        assert_eq!(verdict_of_all(&all), Some(false));
        let grid = summary(&all);
        let rows: Vec<String> = grid.rows.iter().map(|r| r.join(" ")).collect();
        assert_eq!(rows, ["one 1 1 1 1 0 1 of 2", "two 0 0 0 0 1 0 of 1", "all 1 1 1 1 1 1 of 3"]);
        let text = overspin_report::text(&reproductions(&all));
        let answer = "All experiments: 1 of 3 claims hold (1 undecided); 1 of 3 predicted figures";
        assert!(text.starts_with(answer) && text.contains(" again "), "{text}");
        let undecided = [result("one", Vec::new(), vec![claim(None)])];
        assert_eq!(verdict_of_all(&undecided), None);
        assert_eq!(verdict_of_all(&[]), Some(true));
    }

    #[test]
    fn an_answer_says_what_decides_each_claim_in_eighty_columns() {
        let words = "byte over xen-pv 1.19 (published 1.21), ticket over byte 1.41 (published 1.22), all of it";
        let long = Judged { in_words: Some(words.into()), ..claim(Some(false)) };
        let blocks = reproduction_in_brief(&result("one", Vec::new(), vec![long, claim(None)]));
        assert_eq!(
            overspin_report::text(&blocks),
            "one: 0 of 2 claims hold (1 undecided).\n\
             (1) DOES NOT HOLD: byte over xen-pv 1.19 (published 1.21), ticket over byte\n    \
             1.41 (published 1.22), all of it\n\
             (1) UNDECIDED: t\n"
        );
    }

    #[test]
    fn an_experiment_that_only_computes_again_does_not_speak_of_predictions() {
        let only = result("x", vec![figure(Role::Recompute, Grade::Good)], Vec::new());
        assert_eq!(tally(&only), "Computed again: 1 of 1 are the same in every printed digit.");
    }
}
