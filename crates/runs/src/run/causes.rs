//! Tables of the causes of waits for locks.

use overspin_report::{Grid, seconds, share};
use overspin_scenario::{Cause, DomainOutcome, WaitCauses};

/// Short headings, in the order of [`Cause::ALL`].
const COLUMNS: [&str; Cause::ALL.len()] = [
    "holder\nrunning %",
    "holder\npreempted %",
    "next waiter\npreempted %",
    "kick and\nwake-up %",
    "own pre-\nemption %",
    "line\ntransfer %",
    "holder, by\nguest %",
    "next, by\nguest %",
    "holder\nthrottled %",
    "next waiter\nthrottled %",
];

/// A table whose last columns are the causes.
pub fn grid(header: &[&str]) -> Grid {
    Grid::new(1, &[header, &COLUMNS].concat())
}

/// Adds a row to such a table.
pub fn row<const N: usize>(grid: &mut Grid, head: [String; N], causes: &WaitCauses) {
    let shares = Cause::ALL.map(|c| share(causes.of(c), causes.total()));
    grid.rows.push(head.into_iter().chain(shares).collect());
}

/// The table without the causes that few locks have, where no row has them.
#[must_use]
pub fn compact(mut grid: Grid) -> Grid {
    let first = grid.header.len() - (Cause::ALL.len() - Cause::OF_ANY_LOCK);
    let is_nothing = |cell: &String| cell.parse::<f64>().map_or(true, |share| share == 0.0);
    for column in (first..grid.header.len()).rev() {
        if grid.rows.iter().all(|row| is_nothing(&row[column])) {
            grid.header.remove(column);
            grid.rows.iter_mut().for_each(|row| _ = row.remove(column));
        }
    }
    grid
}

/// The locks of a domain for which some vCPU waited; `None` if there are none.
pub(super) fn locks(domain: &DomainOutcome) -> Option<Grid> {
    let mut grid = grid(&["lock", "waittime\ntotal s"]);
    for l in domain.locks.iter().filter(|l| l.contended > 0) {
        row(&mut grid, [l.name.clone(), seconds(l.wait_total)], &l.wait_causes);
    }
    Some(compact(grid)).filter(|grid| !grid.rows.is_empty())
}
