//! The metrics of notification, in long form. Places are `test.host.help.load.rate`, such as
//! `count.bvt.all.pings.1000` and `pft.cfs.deferral.busy`.

use super::measure::NotificationSample;
use super::{Case, Help, Load, Notification, Test};
use overspin_claims::{Samples, Vocabulary};
use overspin_record::metric::{Metric, Table};

static FINISHED: Metric =
    Metric::new("finished", "", "1 if the guest was done before the limit, else 0");
static ELAPSED: Metric = Metric::new("elapsed", "s", "time until the guest was done");
static CPU: Metric = Metric::new("cpu", "s", "CPU time of the guest's tasks");
static FAULTS: Metric =
    Metric::new("faults", "1/s", "of pft: page faults in a second of wall time");
static FAULTS_CPU: Metric =
    Metric::new("faults-cpu", "1/s", "of pft: page faults in a second of CPU time");
static REQUESTS: Metric = Metric::new("requests", "1/s", "requests that the other domain answers");
static HOLDERS: Metric =
    Metric::new("holders-preempted", "", "holds of a lock during which the holder was descheduled");
static OFFERED: Metric = Metric::new("windows", "", "windows that the host offered");
static USED: Metric =
    Metric::new("windows-used", "", "windows in which the guest gave the CPU up by itself");
static EXPIRED: Metric = Metric::new("windows-expired", "", "windows that ran out");
static EVENTS: Metric = Metric::new(
    "events",
    "",
    "a number that is equal for runs with the same events: the first 52 bits of their hash",
);

static ALWAYS: [&Metric; 7] = [&FINISHED, &REQUESTS, &HOLDERS, &OFFERED, &USED, &EXPIRED, &EVENTS];

/// What is measured, for the reference.
pub(crate) static TABLES: [Table; 1] = [Table {
    heading: "A case",
    places: "The place is `test.host.help.load.rate`, for example `count.bvt.all.pings.1000` and \
             `pft.cfs.deferral.busy`. `test` is `count` or `pft`, and `host` is the host's scheduler. `help` is \
             `none`, `smp`, `all`, `deferral` or `directed-yield`. `load` is `pings` (whole milliseconds), \
             `exact-pings` or, without a rate, `busy`. The last four metrics are of finished runs only.",
    metrics: || ALWAYS.into_iter().chain([&ELAPSED, &CPU, &FAULTS, &FAULTS_CPU]).collect(),
}];

fn place(test: Test, host: &str, help: Help, load: Load) -> Vec<String> {
    let test = match test {
        Test::Count => "count",
        Test::Pft => "pft",
    };
    let help = match help {
        Help::None => "none",
        Help::Smp => "smp",
        Help::All => "all",
        Help::Deferral => "deferral",
        Help::DirectedYield => "directed-yield",
    };
    let (load, rate) = match load {
        Load::Pings(rate) => ("pings", Some(rate)),
        Load::ExactPings(rate) => ("exact-pings", Some(rate)),
        Load::Busy => ("busy", None),
    };
    let mut place = [test, host, help, load].map(str::to_owned).to_vec();
    place.extend(rate.map(|rate| rate.to_string()));
    place
}

pub(super) fn vocabulary(experiment: &Notification) -> Vocabulary {
    let mut names = Vocabulary::default();
    for Case { test, host, help, load } in experiment.cases() {
        let place = place(test, &host, help, load);
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        names.measured(&place, &ALWAYS);
        names.measured(&place, &[&ELAPSED, &CPU]);
        if test == Test::Pft {
            names.measured(&place, &[&FAULTS, &FAULTS_CPU]);
        }
    }
    names
}

pub(super) fn samples(runs: &[NotificationSample]) -> Samples {
    let mut samples = Samples::default();
    for run in runs {
        let place = place(run.test, &run.host, run.help, run.load);
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        let mut of = samples.run(Some(run.seed));
        of.add(&place, &FINISHED, f64::from(u8::from(run.elapsed_s.is_some())))
            .add(&place, &REQUESTS, run.requests_per_s)
            .add(&place, &HOLDERS, run.holders_preempted as f64)
            .add(&place, &OFFERED, run.windows.offered as f64)
            .add(&place, &USED, run.windows.used as f64)
            .add(&place, &EXPIRED, run.windows.expired as f64)
            .add(&place, &EVENTS, (run.trace_hash >> 12) as f64);
        let Some(elapsed) = run.elapsed_s else { continue };
        of.add(&place, &ELAPSED, elapsed).add(&place, &CPU, run.cpu_s);
        if run.test == Test::Pft {
            of.add(&place, &FAULTS, run.items as f64 / elapsed).add(
                &place,
                &FAULTS_CPU,
                run.items as f64 / run.cpu_s,
            );
        }
    }
    samples
}
