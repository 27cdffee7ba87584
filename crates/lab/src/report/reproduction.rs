//! The report of an experiment: first the output of the benchmark itself, then every published figure beside
//! the simulated one, and the claims.

use super::{Block, Grid, short};
use crate::experiment::{Experiment, Role};
use crate::reproduce::{Compared, Grade, Judged, Reproduction};
use std::fmt::Write;

/// Report of `result`.
#[must_use]
pub fn reproduction(result: &Reproduction) -> Vec<Block> {
    let mut blocks = vec![
        Block::Title(format!("{}: {}", result.experiment, result.title)),
        Block::Text(format!("Published in: {}.", result.source)),
        Block::Text(conditions(result)),
    ];
    blocks.extend(result.details.iter().cloned());
    blocks.push(Block::Heading("Figures".into()));
    blocks.push(Block::Grid(figures(&result.figures)));
    blocks.push(Block::Text(tally(result)));
    blocks.push(Block::Heading("Claims".into()));
    blocks.push(Block::Lines(claims(&result.claims)));
    blocks.push(Block::Heading("Fitted parameters".into()));
    blocks.push(if result.parameters.is_empty() {
        Block::Text("None.".into())
    } else {
        Block::Lines(parameters(result))
    });
    blocks
}

/// Report of several experiments: the claims of each, and a table last.
#[must_use]
pub fn reproductions(all: &[Reproduction]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for result in all {
        blocks.push(Block::Heading(format!("{}: {}", result.experiment, result.title)));
        blocks.push(Block::Lines(claims(&result.claims)));
    }
    blocks.push(Block::Heading("All experiments".into()));
    blocks.push(Block::Text(
        "Predicted figures are good within 10 % and fair within 25 %. Parameters were set by the fitted \
         figures. Figures computed again follow from other published figures in every digit."
            .into(),
    ));
    blocks.push(Block::Grid(summary(all)));
    blocks
}

fn summary(all: &[Reproduction]) -> Grid {
    let header = [
        "experiment",
        "good",
        "fair",
        "missed",
        "fitted",
        "computed again",
        "claims hold",
        "fail",
        "undecided",
    ];
    let mut grid = Grid::new(1, &header);
    let mut total = [0; 8];
    for result in all {
        let [good, fair, missed] = result.tally(Role::Predict);
        let fitted = result.tally(Role::Fit).iter().sum();
        let [same, ..] = result.tally(Role::Recompute);
        let claims = |holds| result.claims.iter().filter(|c| c.holds == holds).count();
        let [hold, fail, undecided] = [Some(true), Some(false), None].map(claims);
        let row = [good, fair, missed, fitted, same, hold, fail, undecided];
        total.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        grid.rows.push(cells(&result.experiment, row));
    }
    grid.rows.push(cells("all", total));
    grid
}

fn cells(name: &str, counts: [usize; 8]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(counts.map(|n| n.to_string())).collect()
}

fn conditions(result: &Reproduction) -> String {
    let seeds = match result.seeds.as_slice() {
        [] => "none".to_owned(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
    };
    let length = match result.scale {
        1 => "Runs had the published length.".to_owned(),
        n => format!(
            "Runs had 1/{n} of the published length; times and counts are multiplied by {n}."
        ),
    };
    let limit = result.limit_s.map_or_else(String::new, |limit| {
        format!(
            "A run that had not finished after {} simulated seconds counts as one that did not \
             finish. ",
            short(limit)
        )
    });
    format!("{length} Seeds: {seeds}. {limit}{}.", super::program())
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
        let [good, fair, missed] = result.tally(role);
        format!("{good} good, {fair} fair, {missed} missed of {}", good + fair + missed)
    };
    let has = |role| result.figures.iter().any(|f| f.role == role);
    let mut sentences = Vec::new();
    if has(Role::Predict) || has(Role::Fit) {
        sentences.push(format!(
            "Predicted: {}. Fitted: {}. Good is within 10 %, fair within 25 %.",
            line(Role::Predict),
            line(Role::Fit)
        ));
    }
    if has(Role::Recompute) {
        let [good, fair, missed] = result.tally(Role::Recompute);
        let all = good + fair + missed;
        sentences
            .push(format!("Computed again: {good} of {all} are the same in every printed digit."));
    }
    sentences.join(" ")
}

fn claims(claims: &[Judged]) -> String {
    let mut out = String::new();
    for c in claims {
        let verdict = match c.holds {
            Some(true) => "holds",
            Some(false) => "DOES NOT HOLD",
            None => "UNDECIDED",
        };
        let _ = writeln!(out, "({}) {verdict}: {}\n    {}", c.id, c.text, c.evidence);
    }
    out
}

fn parameters(result: &Reproduction) -> String {
    let mut out = String::new();
    for p in &result.parameters {
        let _ = writeln!(
            out,
            "{} = {} (plausible: {} to {})\n    {}; {}",
            p.key, p.value, p.low, p.high, p.meaning, p.reason
        );
    }
    out
}

/// The curves of an experiment as SVG; `None` if it varies nothing by steps.
#[must_use]
pub fn reproduction_curves(experiment: &Experiment, result: &Reproduction) -> Option<String> {
    let mut pictures = experiment.along().iter().map(|along| along.draw(result));
    let (axis, mut plots) = pictures.next()?;
    for (_, more) in pictures {
        plots.extend(more);
    }
    let title = format!("{}: {}", result.experiment, result.title);
    let note = match result.seeds.len() {
        1 => String::new(),
        n => format!("Means of {n} seeds; whiskers are their 95 % intervals."),
    };
    Some(super::curves(&title, &note, &axis, &plots, 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::verdict_of_all;

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
        Judged { id: 1, text: "t".into(), holds, evidence: "e".into() }
    }

    fn result(name: &str, figures: Vec<Compared>, claims: Vec<Judged>) -> Reproduction {
        Reproduction { experiment: name.into(), figures, claims, ..Reproduction::default() }
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
        assert_eq!(rows, ["one 1 1 1 1 0 1 0 1", "two 0 0 0 0 1 0 1 0", "all 1 1 1 1 1 1 1 1"]);
        let text = super::super::text(&reproductions(&all));
        assert!(text.contains("(1) DOES NOT HOLD: t") && text.contains("computed again"), "{text}");
        let undecided = [result("one", Vec::new(), vec![claim(None)])];
        assert_eq!(verdict_of_all(&undecided), None);
        assert_eq!(verdict_of_all(&[]), Some(true));
    }

    #[test]
    fn an_experiment_that_only_computes_again_does_not_speak_of_predictions() {
        let only = result("x", vec![figure(Role::Recompute, Grade::Good)], Vec::new());
        assert_eq!(tally(&only), "Computed again: 1 of 1 are the same in every printed digit.");
    }
}
