//! `overspin reproduce NAME --world linux`: what was published, beside guests of this machine.

use super::{pv_ticket_2012, spinlocks_2008};
use crate::args::{Global, RecordArgs};
use crate::failure::{Failure, Verdict};
use overspin_experiment::Experiment;

type Reproduce = fn(&Experiment, Option<u32>, RecordArgs, &Global) -> Result<Verdict, Failure>;

/// The experiments that real guests can repeat. A new one is one more line.
const EXPERIMENTS: [(&str, Reproduce); 2] = [
    ("2008-spinlocks", spinlocks_2008::reproduce),
    ("2012-pv-ticketlocks", pv_ticket_2012::reproduce),
];

/// Measures, and puts what came out beside what was published.
pub(crate) fn reproduce(
    experiment: &Experiment,
    runs: Option<u32>,
    record: RecordArgs,
    global: &Global,
) -> Result<Verdict, Failure> {
    let id = &experiment.head.id;
    match EXPERIMENTS.iter().find(|(name, _)| name == id) {
        Some((_, reproduce)) => reproduce(experiment, runs, record, global),
        None => {
            let names = EXPERIMENTS.map(|(name, _)| name).join(" and ");
            Err(Failure::usage(
                format!("`{id}` is not an experiment of real guests"),
                format!(
                    "{names} are, and docs/linux.md says why; without --world linux it is simulated"
                ),
            ))
        }
    }
}
