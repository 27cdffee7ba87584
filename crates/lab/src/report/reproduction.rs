//! The report of an experiment: kernbench's own blocks, vCPU times, then every published figure
//! beside the simulated one, and the claims.

use super::{Block, Grid, short};
use crate::experiment::{Experiment, Role};
use crate::reproduce::{Compared, Grade, Judged, Measured, Reproduction};
use crate::stats::Summary;
use std::fmt::Write;

/// kernbench's names of its metrics.
const METRICS: [(&str, &str); 6] = [
    ("Elapsed Time", "elapsed_s"),
    ("User Time", "user_s"),
    ("System Time", "system_s"),
    ("Percent CPU", "percent_cpu"),
    ("Context Switches", "context_switches"),
    ("Sleeps", "sleeps"),
];

/// Report of `result`, which `experiment` gave.
#[must_use]
pub fn reproduction(experiment: &Experiment, result: &Reproduction) -> Vec<Block> {
    let mut blocks = vec![
        Block::Title(format!("{}: {}", result.experiment, result.title)),
        Block::Text(format!("Published in: {}.", result.source)),
        Block::Text(conditions(result)),
    ];
    let measured = Measured::new(experiment, &result.runs);
    blocks.push(Block::Heading("As kernbench prints it".into()));
    for lock in &experiment.locks {
        blocks.push(Block::Lines(kernbench(experiment, &measured, lock)));
    }
    blocks.push(Block::Heading("vCPU times of a session".into()));
    blocks.push(Block::Grid(vcpu_list(experiment, &measured)));
    blocks.push(Block::Heading("Figures".into()));
    blocks.push(Block::Grid(figures(&result.figures)));
    blocks.push(Block::Text(tally(result)));
    blocks.push(Block::Heading("Claims".into()));
    blocks.push(Block::Lines(claims(&result.claims)));
    blocks.push(Block::Heading("Fitted parameters".into()));
    blocks.push(Block::Lines(parameters(result)));
    blocks
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
    format!(
        "{length} Seeds: {seeds}. A run that had not finished after {} simulated seconds is counted as one that \
         did not finish. Overspin {}.",
        short(result.limit_s),
        result.version
    )
}

fn kernbench(experiment: &Experiment, measured: &Measured<'_>, lock: &str) -> String {
    let mut out = format!("{lock}\n");
    for load in &experiment.loads {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "Average {} -j {} Run (std deviation):", load.title, load.jobs);
        let runs = measured.runs(lock, &load.name);
        let unfinished: Vec<_> = runs.iter().filter(|r| r.elapsed_s.is_none()).collect();
        if !unfinished.is_empty() {
            let spinning: Vec<f64> = unfinished.iter().map(|r| 100.0 * r.spinning).collect();
            let _ = writeln!(
                out,
                "({} of {} runs did not finish; {:.1} % of their vCPU time went into waiting for locks)",
                unfinished.len(),
                runs.len(),
                Summary::of(&spinning).map_or(0.0, |s| s.mean)
            );
        }
        if unfinished.len() < runs.len() {
            for (name, metric) in METRICS {
                let _ = match measured.kernbench(lock, &load.name, metric).0 {
                    Some(s) => writeln!(out, "{name} {} ({})", six(s.mean), six(s.stddev)),
                    None => writeln!(out, "{name} not computed"),
                };
            }
        }
        out.push('\n');
    }
    out
}

/// Six significant digits, as awk prints them and kernbench therefore does.
fn six(value: f64) -> String {
    let digits =
        if value == 0.0 { 0 } else { (5 - value.abs().log10().floor() as i32).clamp(0, 9) };
    let text = format!("{value:.*}", digits.unsigned_abs() as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn vcpu_list(experiment: &Experiment, measured: &Measured<'_>) -> Grid {
    let mut grid = Grid::new(2, &["Name", "Lock", "VCPU", "Time(s)", "published"]);
    let Some(domain) = experiment.scenario.domains.first() else { return grid };
    for lock in &experiment.locks {
        for vcpu in 0..domain.vcpus as usize {
            let (time, completion) = measured.vcpu_time(lock, vcpu);
            let time = match (time, completion.unfinished) {
                (Some(time), 0) => format!("{time:.1}"),
                _ => "never ended".into(),
            };
            let published =
                experiment.figures.iter().find(|f| f.vcpu == Some(vcpu) && f.lock == *lock);
            let published =
                published.and_then(|f| f.mean).map_or_else(|| "-".into(), |m| format!("{m:.1}"));
            grid.row([domain.name.clone(), lock.clone(), vcpu.to_string(), time, published]);
        }
    }
    grid
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
    format!(
        "Predicted: {}. Fitted: {}. Good is within 10 %, fair within 25 %.",
        line(Role::Predict),
        line(Role::Fit)
    )
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

#[cfg(test)]
mod tests {
    use super::six;

    #[test]
    fn numbers_look_like_kernbenchs() {
        let shown: Vec<String> =
            [503.002, 19.3737, 0.562_699, 141.0, 54_069.4, 0.0, 1_234_567.0].map(six).into();
        assert_eq!(shown, ["503.002", "19.3737", "0.562699", "141", "54069.4", "0", "1234567"]);
    }
}
