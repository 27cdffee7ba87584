//! The page: the answer first, then the curves, what moves them, how far to trust them, and how to repeat them.

use super::Question;
use super::measure::{Advice, AdvisedPoint};
use super::plan::Group;
use super::verdict::{Effect, ends};
use overspin_report::{Block, Grid, short, time, two_digits};
use overspin_scenario::Picos;
use overspin_stats::Spread;
use std::fmt::Write;

/// Effects that are worth a row.
const MOST_EFFECTS: usize = 8;
/// Width of the longest bar of the small picture.
const BAR: usize = 40;

/// The page; `file` is the name of the scenario in the commands that repeat its numbers, `host` says in paragraphs what was
/// read of a host that exists.
#[must_use]
pub fn report(advice: &Advice, file: &str, host: &[String]) -> Vec<Block> {
    let question = &advice.question;
    let mut blocks = vec![Block::Title("How far can this host be overcommitted?".into())];
    blocks.extend(in_short(advice).into_iter().map(Block::Text));
    blocks.push(Block::Heading("What was asked".into()));
    blocks.push(asked(question));
    blocks.extend(host.iter().cloned().map(Block::Text));
    blocks.push(Block::Heading("Work and waits against overcommit".into()));
    blocks.push(Block::Text(format!(
        "Work: {}. Waits: the {} that 99 % and 99.9 % did not exceed. Each is the mean over {} seeds with its 95 % interval. \
         Burned is the part of the running time that went into waiting for locks. Other ratios are the same guests \
         on more or fewer pCPUs.",
        question.work.unit(),
        question.work.wait(),
        question.seeds
    )));
    blocks.push(Block::Grid(curves(advice)));
    blocks.push(Block::Lines(bars(advice)));
    let (effects, doubts) = (advice.effects(), advice.doubts());
    if !effects.is_empty() {
        blocks.push(Block::Heading(format!(
            "What moves it most, at {:.1}:1",
            question.ratio(question.pcpus)
        )));
        blocks.push(Block::Grid(table(&effects, MOST_EFFECTS)));
        blocks.push(Block::Text("~: the difference may be chance, or is less than 2 % of the work or a quarter of the wait.".into()));
    }
    blocks.push(Block::Heading("How far to trust it".into()));
    if !doubts.is_empty() {
        blocks.push(Block::Grid(table(&doubts, MOST_EFFECTS)));
    }
    blocks.extend(trust(advice, &doubts).into_iter().map(Block::Text));
    blocks.push(Block::Heading("To repeat a number".into()));
    blocks.push(Block::Text(format!(
        "Add `--scenario {file}` to this command, which writes the scenario. Then each row is:"
    )));
    blocks.push(Block::Lines(commands(advice, file)));
    blocks
}

/// The label of a point in the tables and in the list of commands.
fn label(number: usize) -> String {
    format!("[{}]", number + 1)
}

fn asked(question: &Question) -> Block {
    let Question { machine, pcpus, work, lock, .. } = question;
    Block::Text(format!(
        "{} on {pcpus} pCPUs of {machine}: {:.1} vCPUs for each pCPU. Each guest runs \
         {}. Their kernels use {lock}. Every run lasts {} ms of simulated time.",
        question.guests_in_words(),
        question.ratio(*pcpus),
        work.brief(),
        question.milliseconds(),
    ))
}

fn in_short(advice: &Advice) -> Vec<String> {
    let question = &advice.question;
    let mut texts: Vec<String> = today(advice).into_iter().collect();
    texts.extend(question.schedulers.iter().map(|scheduler| match advice.breaks(scheduler) {
        Some(found) => format!(
            "- {scheduler}: fine up to {:.1}:1, breaks at {:.1}:1: {}.{}",
            found.fine,
            found.ratio,
            found.why,
            waits(advice, scheduler)
        ),
        None => {
            let last = advice.of(Group::Curve).filter(|m| m.point.scheduler == *scheduler).last();
            let ratio = last.map_or(1.0, |m| question.ratio(m.point.pcpus));
            let unclear = advice.unclear(scheduler).map_or_else(String::new, |ratio| {
                format!(" But at {ratio:.1}:1 some runs have long p99.9 waits: more --seeds would tell.")
            });
            format!(
                "- {scheduler}: does not break up to {ratio:.1}:1, the highest ratio that was run.{}{unclear}",
                waits(advice, scheduler)
            )
        }
    }));
    texts.push(format!(
        "A break is less than {} % of the work of {} at the lowest ratio, or a p99.9 wait more than {} times as long (and \
         over 0.1 ms): --least-work, --longest-wait.",
        question.least_work_percent,
        question.whose_work(),
        question.longest_wait_times
    ));
    let effects = advice.effects();
    let best = effects
        .iter()
        .filter(|e| e.certain)
        .max_by(|a, b| a.work_percent[0].total_cmp(&b.work_percent[0]));
    let worst = effects
        .iter()
        .filter(|e| e.certain)
        .min_by(|a, b| a.work_percent[0].total_cmp(&b.work_percent[0]));
    texts.push(match best.filter(|e| e.work_percent[0] > 0.0) {
        Some(e) => format!("- The change that helps most is {}: {} % work.", e.name, margin(e)),
        None => "- No change that was tried helps beyond chance.".into(),
    });
    if let Some(e) = worst.filter(|e| e.work_percent[0] < 0.0) {
        texts.push(format!("- The change that hurts most is {}: {} % work.", e.name, margin(e)));
    }
    let waits = effects.iter().filter(|e| e.wait_certain);
    let logarithm = |e: &&Effect| e.wait_factor.max(1e-9).ln().abs();
    if let Some(e) = waits.max_by(|a, b| logarithm(a).total_cmp(&logarithm(b))) {
        texts.push(format!(
            "- The p99.9 wait changes most with {}: {} times as long.",
            e.name,
            two_digits(e.wait_factor)
        ));
    }
    texts
}

/// The state of the operator's own host, and what to do: scheduler, lock, ratio, price and certainty.
fn today(advice: &Advice) -> Option<String> {
    let question = &advice.question;
    let here = advice.here()?;
    let (work, wait) = (here.work_per_s.as_ref()?, here.wait_p999_us.as_ref()?);
    let own = question.schedulers.first()?;
    let ratio = question.ratio(question.pcpus);
    let beyond = advice.breaks(own).is_some_and(|found| ratio >= found.ratio - 1e-9);
    let part = advice.percent(here).map_or_else(String::new, |[_, mean, _]| {
        format!(" ({mean:.0} % of the work of {} at 1:1)", question.whose_work())
    });
    let percent = |of: &Option<Spread>| of.as_ref().map_or(0.0, |s| 100.0 * s.summary.mean);
    let mut text = format!(
        "Your host, at {ratio:.1}:1, is {} its limit: {} {} a second{part}, and 99.9 % of the waits end within {}. Its vCPUs \
         have no pCPU for {} % of the time, and {} % of their running goes into waiting for locks.",
        if beyond { "BEYOND" } else { "within" },
        interval(work),
        question.work.unit().split(" (").next().unwrap_or_default(),
        microseconds(wait),
        two_digits(percent(&here.steal)),
        two_digits(percent(&here.burned)),
    );
    let (scheduler, bears) = advice.best_scheduler()?;
    let locks = advice.effects();
    let lock = locks.iter().filter(|e| e.certain && e.work_percent[0] > 0.0);
    let lock = lock.filter_map(|e| Some((e, e.name.strip_prefix("lock ")?)));
    let lock = lock.max_by(|(a, _), (b, _)| a.work_percent[0].total_cmp(&b.work_percent[0]));
    let (lock, more) = match lock {
        Some((e, lock)) => (lock, format!(" ({} % work at your ratio)", margin(e))),
        None => (question.lock.as_str(), String::new()),
    };
    let costs = advice.doubts().iter().map(|e| e.work_percent[0].abs()).fold(0.0, f64::max);
    text += &format!(
        " Recommended: scheduler {scheduler}, lock {lock}{more}, at most {bears:.1}:1. This is the mean of {} seeds; costs that \
         nobody measured move the work by up to {costs:.0} %.",
        question.seeds
    );
    Some(text)
}

/// A mean of microseconds in the unit that suits it.
fn microseconds(spread: &Spread) -> String {
    time(Picos((spread.summary.mean * 1e6) as u64))
}

/// How the p99.9 wait grows along a curve, in a sentence after another.
fn waits(advice: &Advice, scheduler: &str) -> String {
    let mut curve = advice
        .of(Group::Curve)
        .filter(|m| m.point.scheduler == *scheduler)
        .filter_map(|m| Some((m.wait_p999_us.as_ref()?.summary.mean, m.point.pcpus)));
    let (Some(first), Some(last)) = (curve.next(), curve.last()) else { return String::new() };
    let shown = |us: f64| time(Picos((us * 1e6) as u64));
    format!(
        " The p99.9 wait goes from {} to {} at {:.1}:1.",
        shown(first.0),
        shown(last.0),
        advice.question.ratio(last.1)
    )
}

/// A mean with half its interval.
fn interval(spread: &Spread) -> String {
    let ([low, high], mean) = (ends(spread), spread.summary.mean);
    let half = (high - low) / 2.0;
    // Equal samples differ from their mean by its rounding.
    let half = if half < 1e-9 * mean.abs() { 0.0 } else { half };
    format!("{} ± {}", short(mean), two_digits(half))
}

fn margin(effect: &Effect) -> String {
    format!("{:+.0} ± {}", effect.work_percent[0], two_digits(effect.work_percent[1]))
}

fn curves(advice: &Advice) -> Grid {
    let header = [
        "scheduler",
        "ratio",
        "pCPUs",
        "work/s",
        match advice.question.saturates() {
            true => "per pCPU % of 1:1",
            false => "% of 1:1",
        },
        "p99 wait us",
        "p99.9 wait us",
        "burned %",
        "steal %",
        "run",
    ];
    let mut grid = Grid { notes: 1, ..Grid::new(1, &header) };
    for (number, m) in
        advice.points.iter().enumerate().filter(|(_, m)| m.point.group == Group::Curve)
    {
        let none = || "-".to_owned();
        let shown = |spread: &Option<Spread>| spread.as_ref().map_or_else(none, interval);
        let percent = |spread: &Option<Spread>| {
            spread.as_ref().map_or_else(none, |s| two_digits(100.0 * s.summary.mean))
        };
        let part = advice
            .percent(m)
            .map_or_else(none, |[low, mean, high]| format!("{mean:.0} ({low:.0} to {high:.0})"));
        grid.row([
            m.point.scheduler.clone(),
            format!("{:.1}:1", advice.question.ratio(m.point.pcpus)),
            m.point.pcpus.to_string(),
            shown(&m.work_per_s),
            part,
            shown(&m.wait_p99_us),
            shown(&m.wait_p999_us),
            percent(&m.burned),
            percent(&m.steal),
            label(number),
        ]);
    }
    grid
}

/// Work of a pCPU, in percent of 1:1, as bars of text.
fn bars(advice: &Advice) -> String {
    let points: Vec<&AdvisedPoint> = advice.of(Group::Curve).collect();
    let values: Vec<Option<[f64; 3]>> = points.iter().map(|m| advice.percent(m)).collect();
    let most = values.iter().flatten().map(|[.., high]| *high).fold(100.0, f64::max);
    let names = advice.question.schedulers.iter().map(|s| s.chars().count()).max().unwrap_or(0);
    let place = |value: f64| ((value / most * BAR as f64).round() as usize).min(BAR);
    let mut text = format!(
        "Work of {}, in % of 1:1 (#: mean, |: ends of the 95 % interval)\n",
        advice.question.whose_work()
    );
    for (m, value) in points.iter().zip(values) {
        let ratio = advice.question.ratio(m.point.pcpus);
        // Writing to a String cannot fail, here and below.
        let _ = write!(text, "{:names$} {ratio:>4.1}:1 ", m.point.scheduler);
        let _ = match value {
            None => writeln!(text, "deadlocked or stopped"),
            Some([low, mean, high]) => {
                let mut bar: Vec<char> =
                    (0..=BAR).map(|i| if i < place(mean) { '#' } else { ' ' }).collect();
                bar[place(low)] = '|';
                bar[place(high)] = '|';
                let bar: String = bar.into_iter().collect();
                writeln!(text, "{bar} {mean:.0}")
            }
        };
    }
    text
}

fn table(effects: &[Effect], most: usize) -> Grid {
    let header = ["change", "work %", "p99.9 wait, times", "run"];
    let mut grid = Grid { notes: 1, ..Grid::new(1, &header) };
    for effect in effects.iter().take(most) {
        let mark = |certain| if certain { "" } else { "~" };
        grid.row([
            effect.name.clone(),
            format!("{}{}", mark(effect.certain), margin(effect)),
            format!("{}{}", mark(effect.wait_certain), two_digits(effect.wait_factor)),
            label(effect.point),
        ]);
    }
    grid
}

fn trust(advice: &Advice, doubts: &[Effect]) -> Vec<String> {
    let question = &advice.question;
    let mut texts = Vec::new();
    let moved =
        doubts.iter().filter(|e| e.certain).map(|e| e.work_percent[0].abs()).fold(0.0, f64::max);
    texts.push(match (doubts.is_empty(), moved > 0.0) {
        (true, _) => format!("All costs of {} have a source.", question.machine),
        (false, true) => format!(
            "Some costs of {} are assumed, not published. At the ends of their ranges the work at your ratio \
             differs by up to {moved:.0} %: trust absolute figures no further than that. `overspin list machines {}` \
             shows the ranges.",
            question.machine, question.machine
        ),
        (false, false) => format!(
            "Some costs of {} are assumed, not published. At the ends of their ranges the work at your ratio stays \
             the same, as far as {} seeds can tell.",
            question.machine, question.seeds
        ),
    });
    texts.push(
        "Simulated guests are alike and do one thing; their times are round figures, not measurements of your \
         programs. Orders of magnitude, the order of locks and schedulers, and the place where a curve breaks carry \
         over; single percents do not. Intervals say how much chance moves a figure, not how far the model is \
         from your host."
            .into(),
    );
    if question.seeds < 4 {
        texts.push(format!(
            "{} seeds give wide intervals: use --seeds 8 before you decide.",
            question.seeds
        ));
    }
    texts
}

fn commands(advice: &Advice, file: &str) -> String {
    let seeds = match advice.question.seeds {
        1 => "--seed 1".to_owned(),
        n => format!("--seed 1 --seeds {n}"),
    };
    let mut text = String::new();
    for (number, m) in advice.points.iter().enumerate() {
        let sets: Vec<String> = m.point.sets.iter().map(|set| format!("--set {set}")).collect();
        let _ =
            writeln!(text, "{:>4} overspin run {file} {seeds} {}", label(number), sets.join(" "));
    }
    text
}
