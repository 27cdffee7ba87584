//! The curves as tables.

use super::measure::Measured;
use super::{Help, Load, Test};
use overspin_report::{Block, Grid};
use overspin_stats::Summary;

/// The kinds of help that are compared on each host.
pub(super) const HELPS: [Help; 4] = [Help::None, Help::Smp, Help::Deferral, Help::DirectedYield];

pub(super) fn blocks(m: &Measured<'_>) -> Vec<Block> {
    let title = |text: &str| Block::Heading(text.into());
    vec![
        title("count on one vCPU"),
        Block::Grid(count(m)),
        title("pft on several vCPUs"),
        Block::Text(
            "Faults are means over the seeds, changes are medians of the changes of each seed. \
             Windows and preempted holders are sums."
                .into(),
        ),
        Block::Grid(pft(m)),
        title("The same, if ping keeps every rate"),
        Block::Grid(exact(m)),
        title("pft under other hosts"),
        Block::Grid(hosts(m)),
    ]
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |v| format!("{v:.digits$}"))
}

fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "-".into(), |p| format!("{:+.2}", 100.0 * p))
}

fn change(from: Option<f64>, to: Option<f64>) -> String {
    percent(from.zip(to).map(|(from, to)| to / from - 1.0))
}

fn mean(summary: Option<Summary>) -> Option<f64> {
    summary.map(|s| s.mean)
}

/// Standard deviation over the seeds, in percent of the mean.
fn spread(summary: Option<Summary>) -> Option<f64> {
    summary.map(|s| 100.0 * s.stddev / s.mean)
}

fn count(m: &Measured<'_>) -> Grid {
    let header = [
        "asked [1/s]",
        "answered [1/s]",
        "no notification [s]",
        "all guests [s]",
        "change [%]",
        "SMP only [s]",
        "change [%]",
    ];
    let mut grid = Grid::new(0, &header);
    for rate in &m.experiment.sweep.rates {
        let load = Load::Pings(*rate);
        let [none, all, smp] = [Help::None, Help::All, Help::Smp].map(|h| m.count(h, load));
        grid.row([
            rate.to_string(),
            number(m.requests(Test::Count, Help::None, load), 0),
            number(none, 3),
            number(all, 3),
            change(none, all),
            number(smp, 3),
            change(none, smp),
        ]);
    }
    grid
}

fn pft(m: &Measured<'_>) -> Grid {
    let header = [
        "asked [1/s]",
        "answered [1/s]",
        "faults [1/s]",
        "sd [%]",
        "holders preempted",
        "answered",
        "with notification",
        "change [%]",
        "sd [%]",
        "windows",
        "used",
        "expired",
        "holders preempted",
    ];
    let mut grid = Grid::new(0, &header);
    let host = m.experiment.published_host();
    for rate in &m.experiment.sweep.rates {
        let load = Load::Pings(*rate);
        let sum = |help, value: fn(&super::NotificationSample) -> u64| {
            m.of(Test::Pft, host, help, load).map(value).sum::<u64>().to_string()
        };
        let [none, smp] = [Help::None, Help::Smp].map(|h| m.faults_on(host, h, load));
        grid.row([
            rate.to_string(),
            number(m.requests(Test::Pft, Help::None, load), 0),
            number(mean(none), 0),
            number(spread(none), 2),
            sum(Help::None, |r| r.holders_preempted),
            number(m.requests(Test::Pft, Help::Smp, load), 0),
            number(mean(smp), 0),
            percent(m.change_of_faults(host, Help::Smp, load)),
            number(spread(smp), 2),
            sum(Help::Smp, |r| r.windows.offered),
            sum(Help::Smp, |r| r.windows.used),
            sum(Help::Smp, |r| r.windows.expired),
            sum(Help::Smp, |r| r.holders_preempted),
        ]);
    }
    grid
}

fn exact(m: &Measured<'_>) -> Grid {
    let header = [
        "asked [1/s]",
        "answered [1/s]",
        "count [s]",
        "all guests [s]",
        "change [%]",
        "pft faults [1/s]",
        "SMP [1/s]",
        "change [%]",
    ];
    let mut grid = Grid::new(0, &header);
    let host = m.experiment.published_host();
    for rate in &m.experiment.sweep.rates {
        let load = Load::ExactPings(*rate);
        let (none, all) = (m.count(Help::None, load), m.count(Help::All, load));
        let (without, with) = (m.faults(Help::None, load), m.faults(Help::Smp, load));
        grid.row([
            rate.to_string(),
            number(m.requests(Test::Count, Help::None, load), 0),
            number(none, 3),
            number(all, 3),
            change(none, all),
            number(without, 0),
            number(with, 0),
            percent(m.change_of_faults(host, Help::Smp, load)),
        ]);
    }
    grid
}

fn hosts(m: &Measured<'_>) -> Grid {
    let header = [
        "host",
        "beside",
        "help",
        "faults [1/s]",
        "change [%]",
        "sd [%]",
        "holders preempted",
        "windows",
        "used",
        "expired",
        "refused",
    ];
    let mut grid = Grid::new(3, &header);
    for host in &m.experiment.sweep.hosts {
        for load in m.experiment.host_loads() {
            for help in HELPS {
                let faults = m.faults_on(host, help, load);
                let sum = |value: fn(&super::NotificationSample) -> u64| {
                    m.of(Test::Pft, host, help, load).map(value).sum::<u64>().to_string()
                };
                grid.row([
                    host.clone(),
                    load.rate().map_or_else(|| "a busy vCPU".into(), |r| format!("{r} pings/s")),
                    match help {
                        Help::None => "none",
                        Help::Smp | Help::All => "upcall",
                        Help::Deferral => "deferral",
                        Help::DirectedYield => "yield of spinners",
                    }
                    .into(),
                    number(mean(faults), 0),
                    percent(m.change_of_faults(host, help, load)),
                    number(spread(faults), 2),
                    sum(|r| r.holders_preempted),
                    sum(|r| r.windows.offered),
                    sum(|r| r.windows.used),
                    sum(|r| r.windows.expired),
                    sum(|r| r.windows.refused),
                ]);
            }
        }
    }
    grid
}
