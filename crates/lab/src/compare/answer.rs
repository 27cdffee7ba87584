//! The answer of a comparison: a sentence, and a line for each figure.

use super::{Better, Comparison, Finding};
use overspin_report::{Block, Grid, tenths, three_digits};

/// Lines of the table; `--verbose` has all figures.
const MOST: usize = 16;
/// From this ratio on, a change is told as a multiple.
const MULTIPLE: f64 = 2.0;

/// The answer of `all` comparisons at this confidence. `better` is the direction that the user named.
#[must_use]
pub fn answer(all: &[Comparison], confidence: f64, better: Option<Better>) -> Vec<Block> {
    let mut shown: Vec<&Comparison> = all.iter().filter(|c| is_worth_a_line(c)).collect();
    if shown.is_empty() {
        shown = all.iter().collect();
    }
    // What is proven comes first, and of both the largest change.
    shown.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal));
    let mut blocks = vec![Block::Text(sentence(&shown, confidence, better))];
    let several = all.iter().any(|c| c.files != all[0].files);
    let mut grid = Grid::new(1, &["figure", "A", "B", "change", ""]);
    grid.notes = 1;
    for c in shown.iter().take(MOST) {
        let name = if c.name.is_empty() { "samples" } else { &c.name };
        let name = match c.unit.as_str() {
            "" => name.to_owned(),
            unit => format!("{name}, {unit}"),
        };
        grid.row([
            if several { format!("{name}\n{}", c.files[1]) } else { name },
            three_digits(c.summaries[0].mean),
            three_digits(c.summaries[1].mean),
            change(c, false),
            verdict(c, better),
        ]);
    }
    blocks.push(Block::Grid(grid));
    if shown.iter().take(MOST).any(|c| c.few_waits) {
        let text = "few waits: the side with the shorter waits acquired the lock less than half as often. A lock \
                    that collapses makes few waits, and so few long ones: that is no improvement.";
        blocks.push(Block::Text(text.into()));
    }
    let left = all.len() - shown.len().min(MOST);
    let more = match left {
        0 => "--verbose adds spreads, tests and box plots.".to_owned(),
        n => format!("{n} more figures, spreads, tests and box plots: --verbose."),
    };
    blocks.push(Block::Text(more));
    blocks
}

/// A run queue's lock, or a figure that is 0 on both sides, says nothing to most readers.
fn is_worth_a_line(c: &Comparison) -> bool {
    !c.place.contains("/runqueue/") && c.summaries.iter().any(|s| s.mean != 0.0)
}

/// Whether a difference is proven, and how large it is.
fn key(c: &Comparison) -> (bool, f64) {
    let proven = matches!(c.finding, Finding::Different | Finding::Improved | Finding::Regressed);
    let size = if c.ratio > 0.0 { c.ratio.ln().abs() } else { f64::MAX };
    (proven, size)
}

/// Whether it tells how much was done, or how long that took: what most readers ask first.
fn is_work(c: &Comparison) -> bool {
    matches!(c.metric.as_str(), "items" | "elapsed" | "throughput") || c.metric.is_empty()
}

/// Which direction is good: as the user says, or else rates up and times down.
fn direction(c: &Comparison, better: Option<Better>) -> Option<Better> {
    better.or(match c.unit.as_str() {
        "1/s" => Some(Better::Higher),
        "s" | "ms" | "us" | "ns" => Some(Better::Lower),
        _ => None,
    })
}

/// Whether B is better; `None` without a direction or a difference.
fn is_better(c: &Comparison, better: Option<Better>) -> Option<bool> {
    let more = c.summaries[1].mean > c.summaries[0].mean;
    let less = c.summaries[1].mean < c.summaries[0].mean;
    match direction(c, better).filter(|_| !c.few_waits)? {
        Better::Higher => (more || less).then_some(more),
        Better::Lower => (more || less).then_some(less),
    }
}

fn is_single(c: &Comparison) -> bool {
    c.summaries.iter().all(|s| s.n == 1)
}

fn sentence(shown: &[&Comparison], confidence: f64, better: Option<Better>) -> String {
    let Some(first) = shown.first() else { return String::new() };
    let change_in_words = |c: &Comparison| {
        let word = match is_better(c, better) {
            Some(true) => "is better than",
            Some(false) => "is WORSE than",
            None => "differs from",
        };
        let name = if c.name.is_empty() { String::new() } else { format!("{}, ", c.name) };
        format!("B, `{}`, {word} A, `{}`: {name}{}", c.files[1], c.files[0], change(c, true))
    };
    let changed = shown.iter().filter(|c| c.ratio != 1.0 && !c.ratio.is_nan());
    let Some(main) = changed.rev().max_by_key(|c| is_work(c)) else {
        return format!(
            "Nothing differs between A, `{}`, and B, `{}`.",
            first.files[0], first.files[1]
        );
    };
    if shown.iter().all(|c| is_single(c)) {
        return format!(
            "{}. One run each: `run --seeds 5` on both sides says how sure this is.",
            change_in_words(main)
        );
    }
    let proven: Vec<&&Comparison> = shown.iter().filter(|c| key(c).0).collect();
    let percent = 100.0 * confidence;
    let Some(largest) = proven.iter().rev().max_by_key(|c| is_work(c)) else {
        let undecided = shown.iter().filter(|c| c.finding == Finding::Undecided).count();
        let few = match undecided {
            0 => String::new(),
            n => format!(", {n} with too few samples to tell: `run --seeds 5` makes more"),
        };
        let figures = if shown.len() == 1 {
            "the only figure".into()
        } else {
            format!("{} figures", shown.len())
        };
        return format!("No difference is proven at {percent} % confidence in {figures}{few}.");
    };
    let count = |of: bool| proven.iter().filter(|c| is_better(c, better) == Some(of)).count();
    format!(
        "{}. Proven at {percent} % confidence: {} better, {} worse, {} different; not proven: {}.",
        change_in_words(largest),
        count(true),
        count(false),
        proven.len() - count(true) - count(false),
        shown.len() - proven.len(),
    )
}

/// How much B differs from A; the interval of a multiple is told only if `whole`.
fn change(c: &Comparison, whole: bool) -> String {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    if !c.ratio.is_finite() {
        return "from 0".into();
    }
    if c.ratio == 1.0 {
        return "equal".into();
    }
    let text = match c.ratio {
        ratio if ratio >= MULTIPLE => format!("{} times", three_digits(ratio)),
        ratio if ratio > 0.0 && ratio <= 1.0 / MULTIPLE => {
            format!("1/{}", three_digits(1.0 / ratio))
        }
        0.0 => return "to 0".into(),
        ratio => {
            let sign = if ratio > 1.0 { "+" } else { "" };
            let text = format!("{sign}{} %", tenths(percent(ratio)));
            let margin = c.ratio_interval.map(|i| percent(1.0 + (i.high - i.low) / 2.0));
            return margin.map_or(text.clone(), |m| format!("{text} ± {}", tenths(m)));
        }
    };
    match c.ratio_interval {
        Some(i) if whole && c.ratio >= MULTIPLE => {
            format!("{text} ({} to {})", three_digits(i.low), three_digits(i.high))
        }
        _ => text,
    }
}

fn verdict(c: &Comparison, better: Option<Better>) -> String {
    if c.ratio == 1.0 {
        return String::new();
    }
    if c.few_waits {
        return "few waits".into();
    }
    let direction = match is_better(c, better) {
        Some(true) => "better",
        Some(false) => "WORSE",
        None => "different",
    };
    match c.finding {
        Finding::Same => "not proven".into(),
        Finding::Undecided if is_single(c) && is_better(c, better).is_none() => "(1 run)".into(),
        Finding::Undecided if is_single(c) => format!("{direction} (1 run)"),
        Finding::Undecided => "too few samples".into(),
        Finding::Different | Finding::Improved | Finding::Regressed => direction.into(),
    }
}
