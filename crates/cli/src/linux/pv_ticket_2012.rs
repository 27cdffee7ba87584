//! `overspin reproduce 2012-pv-ticketlocks --world linux`: pgbench in guests whose kernel has the ticket lock, and in guests
//! whose kernel has the paravirtual one.

use super::measure::{WhichArgs, measured, of_host, work};
use crate::args::{Global, RecordArgs};
use crate::failure::{Failure, Verdict};
use crate::measure::real::RealArgs;
use overspin_experiment::{Experiment, against};
use overspin_lab::real::change;
use overspin_report::{Block, Grid, short};
use overspin_runs::record::Record;
use overspin_stats::Summary;

/// The lock of the kernel before the patches, and that of the patched one.
const LOCKS: [&str; 2] = ["ticket", "pv-ticket-2012"];
/// Numbers of clients: up to those of the guest's vCPUs, and twice as many.
const CLIENTS: [&str; 4] = ["1", "2", "4", "8"];
/// Runs of each place, if the user does not say. The post has ten.
const RUNS: u32 = 3;

pub(super) fn reproduce(
    experiment: &Experiment,
    runs: Option<u32>,
    record: RecordArgs,
    global: &Global,
) -> Result<Verdict, Failure> {
    let real = RealArgs::of(runs.unwrap_or(RUNS), record);
    let words = ["pgbench".to_owned(), "--clients".into(), CLIENTS.join(",")];
    let (inside, _) = of_host(&words)?;
    let work = work(&inside.prepared(global)?, &words)?;
    let beside = |record: &Record| beside(experiment, record);
    measured(work, &WhichArgs::of(&LOCKS), &real, RUNS, &beside, global)
}

/// What the patch changes at a number of clients, in percent of the rate before.
struct Change {
    clients: &'static str,
    before: f64,
    after: f64,
    /// The change, and its interval of 95 %; none of one run each.
    percent: f64,
    interval: Option<[f64; 2]>,
    published: Option<f64>,
}

fn changes(experiment: &Experiment, record: &Record) -> Vec<Change> {
    let (published, _) = against(experiment, record);
    let of = |clients: &'static str| {
        let rates = |lock: &str| {
            let place = format!("{lock}.clients-{clients}");
            let all = record.samples.iter().filter(|s| s.place == place && s.metric == "rate");
            Summary::of(&all.map(|s| s.value).collect::<Vec<f64>>())
        };
        let (before, after) = (rates(LOCKS[0])?, rates(LOCKS[1])?);
        let place = format!("patched-paravirt-y, scale 1, {clients} clients");
        let printed = published.iter().find(|figure| figure.place == place);
        Some(Change {
            clients,
            before: before.mean,
            after: after.mean,
            percent: 100.0 * (after.mean - before.mean) / before.mean,
            interval: change(&before, &after).map(|[_, from, to]| [from, to]),
            published: printed.and_then(|figure| figure.published),
        })
    };
    CLIENTS.into_iter().filter_map(of).collect()
}

fn beside(experiment: &Experiment, record: &Record) -> Vec<Block> {
    let changes = changes(experiment, record);
    if changes.is_empty() {
        return Vec::new();
    }
    let mut grid = Grid::new(
        1,
        &["clients", "ticket /s", "pv-ticket /s", "change", "from", "to", "published"],
    );
    for change in &changes {
        let [from, to] = match change.interval {
            Some(interval) => interval.map(signed),
            None => ["-".into(), "-".into()],
        };
        let published = change.published.map_or_else(|| "-".into(), signed);
        let rates = [change.before, change.after].map(short);
        let [before, after] = rates;
        grid.row([
            change.clients.into(),
            before,
            after,
            signed(change.percent),
            from,
            to,
            published,
        ]);
    }
    vec![
        Block::Title(experiment.head.title.clone()),
        Block::Text(answer(&changes)),
        Block::Text(
            "pgbench of a database that fits the memory, in guests of 4 vCPUs. The post has a machine of eight cores without a \
             hypervisor, where the patch should change nothing; its column is of the patched kernel with paravirtual locks on. \
             An interval on both sides of 0 decides nothing."
                .into(),
        ),
        Block::Grid(grid),
    ]
}

/// A change in percent.
fn signed(percent: f64) -> String {
    format!("{percent:+.1} %")
}

/// The sentence that answers.
fn answer(changes: &[Change]) -> String {
    let certain =
        |change: &&Change| change.interval.is_some_and(|[from, to]| from > 0.0 || to < 0.0);
    let told: Vec<String> = (changes.iter().filter(certain))
        .map(|change| format!("{} with {} clients", signed(change.percent), change.clients))
        .collect();
    let all = || changes.iter().map(|change| change.percent);
    let (least, most) =
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let range = format!("between {} and {}", signed(least), signed(most));
    let first =
        "In guests of this machine the paravirtual ticket lock changes the rate of pgbench by";
    if !told.is_empty() {
        return format!("{first} {}; the other changes are not certain.", told.join(", "));
    }
    format!("{first} {range}, and none of these changes is certain.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(percent: f64, interval: Option<[f64; 2]>) -> Change {
        Change {
            clients: "4",
            before: 100.0,
            after: 100.0 + percent,
            percent,
            interval,
            published: None,
        }
    }

    #[test]
    fn only_what_is_certain_is_told_as_a_change() {
        let unclear = [change(-3.0, Some([-9.0, 2.0])), change(5.0, None)];
        assert!(
            answer(&unclear).contains("between -3.0 % and +5.0 %, and none"),
            "{}",
            answer(&unclear)
        );
        let clear = [change(-3.0, Some([-4.0, -2.0])), change(5.0, None)];
        assert!(
            answer(&clear).contains("by -3.0 % with 4 clients; the other"),
            "{}",
            answer(&clear)
        );
    }
}
