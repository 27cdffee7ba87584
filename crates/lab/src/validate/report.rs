//! The report: how well both sides agree, what misses, and every figure.

use super::{Agreement, Compared, Comparison, Disturbance, FigureKind};
use overspin_report::{Block, Grid, short};
use overspin_stats::Spread;

/// Misses in the short report.
const MOST_MISSES: usize = 20;

/// The report; with `all`, every figure, and otherwise only the worst misses.
#[must_use]
pub fn report(result: &Comparison, all: bool) -> Vec<Block> {
    let mut blocks = vec![Block::Title("The simulator beside this machine".into())];
    blocks.extend(answer(result).map(Block::Text));
    blocks.push(Block::Text(load(result)));
    blocks.extend(result.notes.iter().cloned().map(Block::Text));
    for [world, reason] in &result.refused {
        blocks.push(Block::Text(format!("Not validated: the world `{world}`. {reason}")));
    }
    if result.compared.is_empty() {
        blocks.push(Block::Text("Nothing was run on both sides.".into()));
        return blocks;
    }
    blocks.push(Block::Heading("Agreement".into()));
    blocks.push(Block::Text(goals(result)));
    blocks.push(Block::Grid(summary(result)));
    if !result.orders.is_empty() {
        blocks.push(Block::Heading("The order of the locks".into()));
        blocks.push(Block::Text(
            "Of two locks whose measured intervals do not overlap, the simulator should have the same one ahead."
                .into(),
        ));
        blocks.push(Block::Grid(orders(result)));
    }
    if all {
        for (world, scheduler) in columns(result) {
            blocks.push(Block::Heading(format!("{world}, {scheduler}")));
            let of = |c: &&Compared| c.world == world && c.scheduler == scheduler;
            blocks.push(Block::Grid(figures(result.compared.iter().filter(of), false)));
        }
    } else {
        misses(result, &mut blocks);
    }
    blocks
}

/// Whether simulated figures hold on this machine, in a few sentences; `None` if nothing was compared.
#[must_use]
pub fn answer(result: &Comparison) -> Option<String> {
    let all = &result.compared;
    let count = |of: Agreement| all.iter().filter(|c| c.agreement == of).count();
    let worst = all.iter().filter(|c| c.agreement == Agreement::Miss);
    let worst = worst
        .max_by(|a, b| (a.difference / a.goal).abs().total_cmp(&(b.difference / b.goal).abs()));
    let words = match (count(Agreement::Miss), count(Agreement::Unclear)) {
        (0, 0) => "Simulated figures hold on this machine".to_owned(),
        (0, _) => "No simulated figure is proven wrong on this machine".into(),
        (misses, _) => {
            format!("{misses} of {} simulated figures do NOT hold on this machine", all.len())
        }
    };
    let mut text = format!(
        "{words}: {} are within their goals, {} are unclear{}.",
        count(Agreement::Within),
        count(Agreement::Unclear),
        if count(Agreement::Unclear) > 0 { " (more --repeats would tell)" } else { "" },
    );
    if let Some(c) = worst {
        text += &format!(
            " The worst miss is {} of {} under {} in `{}`: {} {}.",
            c.figure(),
            c.case,
            c.scheduler,
            c.world,
            signed(c.difference),
            c.kind.unit(),
        );
    }
    let decided: usize = result.orders.iter().map(|o| o.decided).sum();
    let wrong: usize = result.orders.iter().map(|o| o.wrong.len()).sum();
    if decided > 0 {
        text += &format!(" The order of locks is right in {} of {decided} pairs.", decided - wrong);
    }
    (!all.is_empty()).then_some(text)
}

/// The columns of the comparison: worlds with their schedulers, in the order of the plan.
pub(super) fn columns(result: &Comparison) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for c in &result.compared {
        let column = (c.world.clone(), c.scheduler.clone());
        if !all.contains(&column) {
            all.push(column);
        }
    }
    all
}

fn load(result: &Comparison) -> String {
    let load = &result.load;
    if load.told == 0 {
        let runs = load.runs;
        return format!("{runs} measured runs. This kernel does not tell what else used the CPUs.");
    }
    format!(
        "{} measured runs, in which other programs had {} % of the CPUs and the hypervisor below {} %. A run is \
         disturbed if both together had more than {} %: {} were repeated for that, and {} are disturbed \
         all the same.{}",
        load.runs,
        short(load.mean.others),
        short(load.mean.steal),
        Disturbance::QUIET,
        load.repeated,
        load.disturbed,
        match load.impossible {
            0 => String::new(),
            n => format!(
                " {n} did more work than their CPUs can do, and do not count: their loop was calibrated wrongly."
            ),
        },
    )
}

fn goals(result: &Comparison) -> String {
    let goals = &result.goals;
    format!(
        "The difference is simulated less measured: in percent of the measured value, or in percentage points for run \
         states. A throughput that repeats within {} % has a goal of {} %. One that does not, as that of a lock that \
         collapses, is compared by its logarithm, and its goal is {} octaves (1: twice or half). Run states have a goal \
         of {} points, wake-up latencies one of {} %. A figure \
         misses if the whole 95 % interval of its difference is beyond the goal; it is unclear if only the mean is.",
        FigureKind::REPEATS,
        goals.throughput,
        goals.varying,
        goals.state,
        goals.latency
    )
}

fn summary(result: &Comparison) -> Grid {
    let header = [
        "world",
        "scheduler",
        "figures",
        "compared",
        "within",
        "unclear",
        "missed",
        "median\ndifference",
        "greatest\ndifference",
        "where",
    ];
    let mut grid = Grid::new(3, &header);
    grid.notes = 1;
    for (world, scheduler) in columns(result) {
        for kind in FigureKind::ALL {
            let mut of: Vec<&Compared> = result
                .compared
                .iter()
                .filter(|c| c.world == world && c.scheduler == scheduler && c.kind == kind)
                .collect();
            of.sort_by(|a, b| a.difference.abs().total_cmp(&b.difference.abs()));
            let (Some(middle), Some(worst)) = (of.get(of.len() / 2), of.last()) else { continue };
            let count =
                |agreement| of.iter().filter(|c| c.agreement == agreement).count().to_string();
            grid.row([
                world.clone(),
                scheduler.clone(),
                kind.words().into(),
                of.len().to_string(),
                count(Agreement::Within),
                count(Agreement::Unclear),
                count(Agreement::Miss),
                format!("{} {}", short(middle.difference.abs()), kind.unit()),
                format!("{} {}", signed(worst.difference), kind.unit()),
                worst.case.clone(),
            ]);
        }
    }
    grid
}

fn orders(result: &Comparison) -> Grid {
    let header = [
        "world",
        "scheduler",
        "vCPUs\nper pCPU",
        "pairs\ndecided",
        "same\norder",
        "wrong: the first is faster",
    ];
    let mut grid = Grid::new(2, &header);
    grid.notes = 1;
    for order in &result.orders {
        let wrong: Vec<String> = order.wrong.iter().map(|[a, b]| format!("{a} > {b}")).collect();
        let cut = match wrong.len() {
            0..=4 => wrong.join(", "),
            more => format!("{}, and {} more", wrong[..4].join(", "), more - 4),
        };
        grid.row([
            order.world.clone(),
            order.scheduler.clone(),
            order.ratio.to_string(),
            order.decided.to_string(),
            (order.decided - order.wrong.len()).to_string(),
            cut,
        ]);
    }
    grid
}

/// The worst misses, in multiples of their goals.
fn misses(result: &Comparison, blocks: &mut Vec<Block>) {
    let mut all: Vec<&Compared> =
        result.compared.iter().filter(|c| c.agreement == Agreement::Miss).collect();
    if all.is_empty() {
        return;
    }
    let beyond = |c: &Compared| c.difference.abs() / c.goal;
    all.sort_by(|a, b| beyond(b).total_cmp(&beyond(a)));
    let heading = match all.len() > MOST_MISSES {
        true => format!("The {MOST_MISSES} worst of {} misses", all.len()),
        false => "Misses".to_owned(),
    };
    blocks.push(Block::Heading(heading));
    blocks.push(Block::Grid(figures(all.into_iter().take(MOST_MISSES), true)));
    blocks.push(Block::Text("--markdown, --json and the page of --out have every figure.".into()));
}

fn figures<'a>(all: impl Iterator<Item = &'a Compared>, with_column: bool) -> Grid {
    let columns = ["world", "scheduler"];
    let rest = [
        "case",
        "figure",
        "unit",
        "simulated",
        "+-",
        "measured",
        "+-",
        "difference",
        "+-",
        "verdict",
    ];
    let header: Vec<&str> = match with_column {
        true => columns.into_iter().chain(rest).collect(),
        false => rest.into(),
    };
    let mut grid = Grid::new(header.len() - 7, &header);
    grid.notes = 1;
    for c in all {
        let margin =
            |of: &Spread| of.interval.map_or_else(String::new, |i| short((i.high - i.low) / 2.0));
        let rest = [
            c.case.clone(),
            c.figure(),
            c.unit.clone(),
            short(c.simulated.summary.mean),
            margin(&c.simulated),
            short(c.measured.summary.mean),
            margin(&c.measured),
            format!("{} {}", signed(c.difference), c.kind.unit()),
            c.margin.map_or_else(String::new, short),
            c.verdict(),
        ];
        let column = with_column.then(|| [c.world.clone(), c.scheduler.clone()]);
        grid.rows.push(column.into_iter().flatten().chain(rest).collect());
    }
    grid
}

fn signed(value: f64) -> String {
    format!("{}{}", if value < 0.0 { "-" } else { "+" }, short(value.abs()))
}
