//! Why claims of an experiment do not hold, why figures are missed, and what the runs waited for.

use super::{main_cause, meaning, shares};
use overspin_record::{Compared, Grade, Judged};
use overspin_report::{Block, MOST_LINES, seconds, short};
use overspin_runs::record::{Experiment, Record, Run};
use overspin_runs::run::causes::{compact, grid, row};
use overspin_scenario::{Ending, Picos, WaitCauses};

/// Most configurations that are listed under a claim: a claim may refer to all of them.
const MOST: usize = 12;

/// All runs of one configuration.
struct Configuration<'a> {
    /// Its place, without the experiment.
    place: &'a str,
    runs: u64,
    unfinished: u64,
    vcpu_time: Picos,
    /// `None` if its runs do not record waits.
    causes: Option<WaitCauses>,
}

/// Explains every experiment of a record.
#[must_use]
pub fn reproduction(record: &Record) -> Vec<Block> {
    record.experiments.iter().flat_map(|experiment| one(record, experiment)).collect()
}

fn one(record: &Record, experiment: &Experiment) -> Vec<Block> {
    let configurations = configurations(&record.runs, experiment);
    let mut blocks = vec![
        Block::Title(format!("{}: what fails, and why it waits", experiment.id)),
        Block::Text(format!("{}.", experiment.title.trim_end_matches('.'))),
    ];
    blocks.push(Block::Heading("Claims".into()));
    let open: Vec<&Judged> = experiment.claims.iter().filter(|c| c.holds != Some(true)).collect();
    if open.is_empty() {
        blocks.push(Block::Text(format!("All {} hold.", experiment.claims.len())));
    }
    for claim in open {
        of_claim(claim, experiment, &configurations, &mut blocks);
    }
    let missed: Vec<&Compared> =
        experiment.figures.iter().filter(|f| f.grade == Grade::Missed).collect();
    if !missed.is_empty() {
        blocks.push(Block::Heading("Missed figures".into()));
        for figure in missed {
            of_figure(figure, &configurations, &mut blocks);
        }
    }
    blocks.push(Block::Heading("Waits for locks".into()));
    blocks.extend(waits(&configurations));
    blocks
}

/// The runs by their places, in the order of the record.
fn configurations<'a>(runs: &'a [Run], experiment: &Experiment) -> Vec<Configuration<'a>> {
    // Whether runs had to finish before a limit.
    let limited = experiment.limit_s.is_some();
    let mut all: Vec<Configuration<'a>> = Vec::new();
    for run in runs {
        let Some(place) = run.place.strip_prefix(&*experiment.id) else { continue };
        let place = place.strip_prefix('.').unwrap_or(place);
        let at = all.iter().position(|c| c.place == place).unwrap_or_else(|| {
            all.push(Configuration {
                place,
                runs: 0,
                unfinished: 0,
                vcpu_time: Picos::ZERO,
                causes: None,
            });
            all.len() - 1
        });
        let c = &mut all[at];
        c.runs += 1;
        c.unfinished += u64::from(match run.ending {
            // Loads without an end end at the limit.
            Some(Ending::Limit) => limited,
            ref ending => ending.as_ref().is_some_and(|e| !e.is_sound()),
        });
        c.vcpu_time = c.vcpu_time.saturating_add(run.vcpu_time.unwrap_or_default());
        if let Some(causes) = &run.wait_causes {
            *c.causes.get_or_insert_default() += *causes;
        }
    }
    all
}

fn of_claim(
    claim: &Judged,
    experiment: &Experiment,
    configurations: &[Configuration<'_>],
    blocks: &mut Vec<Block>,
) {
    let verdict = match claim.holds {
        Some(false) => "does not hold",
        Some(true) => "holds",
        None => "is undecided",
    };
    blocks.push(Block::Text(format!("Claim {} {verdict}: {}.", claim.id, claim.text)));
    blocks.push(Block::Text(format!("The deciding figures: {}.", claim.evidence)));
    let words = format!("{} {}", claim.text, claim.evidence);
    let concerned = concerned(&words, configurations);
    if claim.holds.is_none() {
        let unfinished: u64 = concerned.iter().map(|c| c.unfinished).sum();
        let of: u64 = concerned.iter().map(|c| c.runs).sum();
        blocks.push(Block::Text(match unfinished {
            0 => format!(
                "It needs figures that these runs do not have: {} seeds at 1/{} of the published length.",
                experiment.seeds.len(),
                experiment.scale
            ),
            n => format!("It needs runs that finish, and {n} of {of} did not."),
        }));
    }
    causes_of(&concerned, "    Waits of the runs that it names:\n", blocks);
}

fn of_figure(figure: &Compared, configurations: &[Configuration<'_>], blocks: &mut Vec<Block>) {
    let number = |value: Option<f64>, none: &str| value.map_or_else(|| none.to_owned(), short);
    let mut text = format!(
        "{}, {}: {} published, {} simulated",
        figure.place,
        figure.metric,
        number(figure.published, "never finished"),
        number(figure.simulated, "nothing"),
    );
    if let Some(error) = figure.error {
        text += &format!(" ({:+.1} %)", 100.0 * error);
    }
    if let Some(note) = &figure.note {
        text += &format!(": {note}");
    }
    blocks.push(Block::Text(text + "."));
    causes_of(&concerned(&figure.place, configurations), "", blocks);
}

/// The causes of the waits of these configurations' runs, in a sentence each.
fn causes_of(concerned: &[&Configuration<'_>], heading: &str, blocks: &mut Vec<Block>) {
    let mut waiting: Vec<(&Configuration<'_>, WaitCauses)> = concerned
        .iter()
        .filter_map(|c| Some((*c, c.causes.filter(|all| all.total() > Picos::ZERO)?)))
        .collect();
    let more = waiting.len().saturating_sub(MOST);
    if more > 0 {
        let part = |(c, causes): &(&Configuration<'_>, WaitCauses)| {
            u128::from(causes.total().0) * 1_000_000 / u128::from(c.vcpu_time.0).max(1)
        };
        waiting.sort_by_key(|with| std::cmp::Reverse(part(with)));
        waiting.truncate(MOST);
    }
    let mut lines = heading.to_owned();
    for (c, causes) in waiting {
        let part = match c.vcpu_time {
            Picos::ZERO => String::new(),
            of => format!("{:.1} % of the vCPUs' time in waits: ", causes.total().percent(of)),
        };
        lines += &format!("    {}: {part}{}\n", c.place, shares(&causes));
    }
    if more > 0 {
        lines += &format!("    and {more} more that waited less\n");
    }
    if lines != heading {
        blocks.push(Block::Lines(lines));
    }
}

/// The configurations that a text refers to: those with the most words of their places in it. A text says
/// `byte` for a place's `lock-byte`. A text that names none refers to all, if they are few.
fn concerned<'a, 'b>(text: &str, all: &'b [Configuration<'a>]) -> Vec<&'b Configuration<'a>> {
    if let Some(exactly) = all.iter().find(|c| c.place == text) {
        return vec![exactly];
    }
    let words = text
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '+' | '.')))
        .map(|word| word.trim_end_matches('.'));
    // A place in the text stands for all its words.
    let spoken: Vec<&str> = words
        .flat_map(|word| std::iter::once(word).chain(word.split('.')))
        .filter(|word| !word.is_empty())
        .collect();
    let named = |word: &str| {
        if word.contains(' ') {
            return text.contains(word);
        }
        let last = word.rsplit('-').next().filter(|w| w.chars().any(char::is_alphabetic));
        spoken.iter().any(|s| *s == word || last == Some(*s))
    };
    let count = |c: &Configuration<'_>| c.place.split('.').filter(|word| named(word)).count();
    let most = all.iter().map(count).max().unwrap_or(0);
    if most == 0 && all.len() > MOST {
        return Vec::new();
    }
    all.iter().filter(|c| count(c) == most).collect()
}

/// A row for each configuration, and the meaning of its main cause.
fn waits(configurations: &[Configuration<'_>]) -> Vec<Block> {
    let with: Vec<(&Configuration<'_>, WaitCauses)> =
        configurations.iter().filter_map(|c| Some((c, c.causes?))).collect();
    if with.is_empty() {
        let text = "The runs of this experiment do not record waits for locks.";
        return vec![Block::Text(text.into())];
    }
    let mut grid = grid(&["configuration", "runs", "vCPUs' time s", "waited s"]);
    for (c, causes) in with.iter().take(MOST_LINES) {
        let head =
            [c.place.into(), c.runs.to_string(), seconds(c.vcpu_time), seconds(causes.total())];
        row(&mut grid, head, causes);
    }
    let mut blocks = vec![
        Block::Text(
            "Times are in simulated seconds, summed over all runs of a configuration and all locks of the guests."
                .into(),
        ),
        Block::Grid(compact(grid)),
    ];
    if with.len() > MOST_LINES {
        let text = format!("Shown are the first {MOST_LINES} of {} configurations.", with.len());
        blocks.push(Block::Text(text));
    }
    // The meaning of a cause is explained once.
    let mut said = Vec::new();
    for (_, causes) in &with {
        if let Some(main) = main_cause(causes).filter(|main| !said.contains(main)) {
            said.push(main);
            blocks.push(Block::Text(format!("{}: {}", main.words(), meaning(main))));
        }
    }
    blocks
}
