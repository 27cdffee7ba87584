//! The blocks of this kind: the published table, the cost on threads, rates and waits in guests.

use super::measure::{Measured, Sample as Guest};
use super::published::{self, Average};
use super::threads::Cost;
use super::{Load, PvTicket};
use crate::Figure;
use overspin_claims::{Samples, place};
use overspin_native::bench::PairedReport;
use overspin_report::{Bar, Block, Grid, Panel, Row, short};
use overspin_runs::record::Sample;
use overspin_stats::Summary;

pub(super) fn blocks(
    figures: &[Figure],
    samples: &Samples,
    measured: &Measured<'_>,
    threads: &PairedReport,
    cost: &[Cost],
) -> Vec<Block> {
    let experiment = measured.experiment;
    let mut blocks = vec![
        Block::Heading("Published: pgbench under three kernels, without a hypervisor".into()),
        Block::Text(significance(experiment)),
        Block::Grid(improvements(experiment, figures, samples)),
        Block::Heading("On threads of this machine: the cost of the branch when it is off".into()),
        Block::Text(conditions(threads)),
        Block::Grid(costs(cost)),
        Block::Heading("In a guest: rate of work".into()),
        Block::Text(
            "Transactions, or processes of the compile, per second, in percent of the best lock of the \
             row, mean of the seeds, with the worst and the best seed."
                .into(),
        ),
        Block::Grid(guests(measured, &|m, lock, load, pcpus| {
            let best = m.best(load, pcpus)?;
            let s = m.summary(lock, load, pcpus, |s| s.rate)?;
            let percent = |rate: f64| format!("{:.0}", 100.0 * rate / best);
            Some(format!("{} ({}-{})", percent(s.mean), percent(s.min), percent(s.max)))
        })),
    ];
    blocks.push(Block::Heading("In a guest: CPU time burned".into()));
    blocks.push(Block::Text(
        "Percent of the vCPUs' running time spent on spinning on locks, mean of the seeds.".into(),
    ));
    blocks.push(Block::Grid(guests(measured, &mean(|s| 100.0 * s.spinning))));
    blocks.push(Block::Heading("In a guest: p99.9 wait".into()));
    blocks.push(Block::Text(
        "The wait that 99.9 % of the acquisitions of the worst lock did not exceed, in ms, mean of the seeds."
            .into(),
    ));
    blocks.push(Block::Grid(guests(measured, &mean(|s| 1e3 * s.wait_p999_s))));
    blocks
}

/// The rate of work in guests by lock; it was published without figures.
pub(super) fn overcommit(experiment: &PvTicket, samples: &[Sample]) -> Panel {
    let labels: Vec<String> = experiment.locks.iter().map(|lock| lock.label.clone()).collect();
    let rates = |lock: &str, load: &str, pcpus: u32| -> Option<Summary> {
        let at = place(&[lock, load, &pcpus.to_string()]);
        let of = samples.iter().filter(|s| s.place == at && s.metric == "rate");
        Summary::of(&of.map(|s| s.value).collect::<Vec<_>>())
    };
    let mut rows = Vec::new();
    for load in &experiment.loads {
        let domains = &experiment.scenario.domains;
        let vcpus = domains.iter().find(|d| d.name == load.domain).map_or(0, |d| d.vcpus);
        for &pcpus in &experiment.pcpus {
            let all: Vec<Option<Summary>> =
                labels.iter().map(|lock| rates(lock, &load.name, pcpus)).collect();
            let best = all.iter().flatten().map(|s| s.mean).fold(0.0, f64::max);
            let percent = |rate: f64| 100.0 * rate / best;
            let bar = |s: &Option<Summary>| match s {
                Some(s) if best > 0.0 => {
                    Bar::Value(percent(s.mean), Some([percent(s.min), percent(s.max)]))
                }
                _ => Bar::None,
            };
            rows.push(Row {
                label: format!("{}, {vcpus} vCPUs on {pcpus} CPUs", load.name),
                bars: all.iter().map(bar).collect(),
            });
        }
    }
    Panel {
        title:
            "rate of work in a guest, simulated (published without figures) [% of the best lock]"
                .into(),
        note: "whiskers: worst and best seed".into(),
        series: Panel::series_of(&labels),
        rows,
    }
}

/// Averages to compare with the base kernel's.
fn compared(experiment: &PvTicket) -> impl Iterator<Item = &Average> {
    experiment.averages.iter().filter(|a| a.kernel != experiment.base)
}

fn significance(experiment: &PvTicket) -> String {
    let [mut better, mut worse, mut all] = [0, 0, 0];
    for test in compared(experiment).filter_map(|a| published::test(experiment, a)) {
        all += 1;
        match test.sign() {
            "+" => better += 1,
            "-" => worse += 1,
            _ => {}
        }
    }
    format!(
        "Improvement over the base kernel in percent, computed from the averages, +/- half the 95 % \
         confidence interval by Student's t as in ministat. Of {all} differences, {better} are \
         significant improvements (+), {worse} significant losses (-), each by itself."
    )
}

fn improvements(experiment: &PvTicket, figures: &[Figure], samples: &Samples) -> Grid {
    let mut kernels: Vec<&str> = Vec::new();
    let mut points: Vec<(u32, u32)> = Vec::new();
    for a in compared(experiment) {
        if !kernels.contains(&a.kernel.as_str()) {
            kernels.push(&a.kernel);
        }
        if !points.contains(&(a.scale, a.clients)) {
            points.push((a.scale, a.clients));
        }
    }
    let mut header = vec!["scale", "clients"];
    for kernel in &kernels {
        header.extend([*kernel, "+/-", ""]);
    }
    let mut grid = Grid::new(0, &header);
    for point in points {
        let mut row = vec![point.0.to_string(), point.1.to_string()];
        for kernel in &kernels {
            let mut here = compared(experiment).filter(|a| (a.scale, a.clients) == point);
            let average = here.find(|a| a.kernel == *kernel);
            let figure = average.and_then(|a| {
                let place = a.place();
                figures.iter().find(|f| f.place == place)
            });
            let test = average.and_then(|a| published::test(experiment, a));
            row.push(figure.and_then(|f| f.again(samples)).unwrap_or_default());
            row.push(test.map_or_else(String::new, |t| format!("{:.2}", t.margin)));
            row.push(test.map_or("", |t| t.sign()).into());
        }
        grid.rows.push(row);
    }
    grid
}

fn conditions(threads: &PairedReport) -> String {
    let branch = if threads.patched_branch {
        "a no-operation in the code (static branch)"
    } else {
        "a flag that the release reads (a build with the feature `static-branch` patches the code instead)"
    };
    let mut text = format!(
        "This part depends on the machine and differs from run to run. Ticket lock against PV \
         ticket lock whose waiters never sleep, in pairs of runs; the branch is {branch}. Throughput of PV \
         ticket over that of ticket, with its 95 % confidence interval, by Student's t of the logarithms; p \
         counts all situations (Holm)."
    );
    for warning in &threads.warnings {
        text.push_str(&format!(" Doubtful: {warning}."));
    }
    text
}

fn costs(cost: &[Cost]) -> Grid {
    let header = [
        "threads",
        "section ns",
        "outside ns",
        "ticket 1000/s",
        "pairs",
        "void",
        "ratio",
        "from",
        "to",
        "p",
    ];
    let mut grid = Grid::new(0, &header);
    for c in cost {
        let part = |value: Option<f64>| value.map_or_else(|| "-".into(), |v| format!("{v:.4}"));
        grid.row([
            c.threads.to_string(),
            c.section_ns.to_string(),
            c.outside_ns.to_string(),
            short(c.rate / 1e3),
            c.pairs.to_string(),
            c.void.to_string(),
            part(c.ratio.map(|r| r.middle)),
            part(c.ratio.map(|r| r.low)),
            part(c.ratio.map(|r| r.high)),
            part(c.p),
        ]);
    }
    grid
}

type Cell<'a> = dyn Fn(&Measured<'_>, &super::Variant, &Load, u32) -> Option<String> + 'a;

fn mean(
    metric: fn(&Guest) -> f64,
) -> impl Fn(&Measured<'_>, &super::Variant, &Load, u32) -> Option<String> {
    move |m, lock, load, pcpus| Some(short(m.summary(lock, load, pcpus, metric)?.mean))
}

/// A row for each load and number of pCPUs, with a column for each lock.
fn guests(measured: &Measured<'_>, cell: &Cell<'_>) -> Grid {
    let experiment = measured.experiment;
    let mut header = vec!["load", "vCPUs per CPU"];
    header.extend(experiment.locks.iter().map(|lock| lock.label.as_str()));
    let mut grid = Grid::new(1, &header);
    for load in &experiment.loads {
        for &pcpus in &experiment.pcpus {
            let mut row =
                vec![load.name.clone(), format!("{:.0}", measured.overcommit(load, pcpus))];
            row.extend(experiment.locks.iter().map(|lock| {
                // There is no run, or one deadlocked, or no lock got any work done.
                cell(measured, lock, load, pcpus).unwrap_or_else(|| "none".into())
            }));
            grid.rows.push(row);
        }
    }
    grid
}
