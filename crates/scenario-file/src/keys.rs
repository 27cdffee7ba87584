//! The keys of a scenario file: those of a scenario, which `overspin_scenario` declares, and those of sweeps. The keys of a
//! workload are in its own file (`overspin_workload`), those of a scheduler in its own.

pub(crate) use overspin_scenario::keys::{
    Absent, Key, Kind, NONE, Section, Whose, expected, key, legal,
};
pub(crate) use overspin_scenario::{COSTS, DOMAIN, HOST, WORKLOAD};

use Absent::{Means, Required};
use Kind::{Tables, Text, Texts};
use overspin_scenario::{
    CPU_NOISE, EVENT, GOVERNOR, HALT_POLLING, KERNEL, NOISE, PAUSE_LOOP_EXITING, POOL,
    PREEMPTION_NOTIFICATION, QUANTILES, SCENARIO, STEAL_GOVERNOR,
};

/// The keys of a file: those of a scenario, and what to vary.
pub(crate) const ROOT: Section = Section { keys: &ROOT_KEYS, ..SCENARIO };

const ROOT_KEYS: [Key; SCENARIO.keys.len() + 1] = {
    let mut keys = [key(
        "vary",
        Tables(&VARY),
        Means("one run"),
        "What to vary, one `[[vary]]` each: every combination is run, and all are printed: a sweep.",
    ); SCENARIO.keys.len() + 1];
    keys.split_last_mut().expect("one more").1.copy_from_slice(SCENARIO.keys);
    keys
};

pub(crate) const VARY: Section = Section {
    heading: "[[vary]]",
    doc: "One axis of a sweep. The values of the first axis become the rows.",
    keys: &[
        key("name", Text, Required, "Name of the axis in the sweep."),
        key(
            "set",
            Text,
            Required,
            "The key to set, as for `--set`; or several keys, with `/` between them. `seed` by itself is no \
             axis: every point runs with each seed, and means are printed.",
        ),
        key(
            "to",
            Texts,
            Required,
            "Its values, with `/` between those of several keys; an empty one leaves its key as it is. `[\"every lock\"]`, \
             `[\"every scheduler\"]` and `[\"every machine\"]` stand for all names.",
        ),
        key("labels", Texts, Means("the values"), "Names of the values in the sweep."),
    ],
};

/// All sections except those of schedulers and of workloads, in the order of the documentation.
pub(crate) const SECTIONS: &[&Section] = &[
    &ROOT,
    &HOST,
    &GOVERNOR,
    &POOL,
    &PAUSE_LOOP_EXITING,
    &HALT_POLLING,
    &PREEMPTION_NOTIFICATION,
    &NOISE,
    &CPU_NOISE,
    &COSTS,
    &QUANTILES,
    &DOMAIN,
    &KERNEL,
    &STEAL_GOVERNOR,
    &WORKLOAD,
    &EVENT,
    &VARY,
];
