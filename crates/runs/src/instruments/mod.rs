//! Instruments: what can be measured of a run for an experiment. Each is a list of metrics, with how each is computed. A
//! new metric is one more row.

mod list;
mod vmstat;

pub use list::INSTRUMENTS;
pub use vmstat::Trace;

use crate::run::vmstat::{lines, lockmeter, vmstat};
use overspin_record::metric::{Metric, Table};
use overspin_report::Grid;
use overspin_scenario::{Domain, DomainOutcome, Outcome, Scenario, VcpuOutcome};
use overspin_sched::suggestion;

/// A run, seen from one of its domains.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What ran.
    pub scenario: &'a Scenario,
    /// What came out.
    pub outcome: &'a Outcome,
    /// The number of the domain.
    pub domain: usize,
    /// The factor for times and counts, if the run was shorter than the published one.
    pub scale: f64,
}

impl<'a> Subject<'a> {
    fn domain(&self) -> &'a DomainOutcome {
        &self.outcome.domains[self.domain]
    }

    fn asked(&self) -> &'a Domain {
        &self.scenario.domains[self.domain]
    }

    /// Seconds that count in the life of the domain.
    fn seconds(&self) -> f64 {
        self.outcome.lifetime(self.domain()).seconds()
    }
}

/// The runs that have a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Has {
    /// All.
    Every,
    /// Those that ended as intended: finished, or at the limit.
    Sound,
    /// Those in which the domain finished its work.
    Finished,
}

/// A metric, and how it is computed.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The metric.
    pub metric: &'static Metric,
    has: Has,
    of: fn(&Subject<'_>) -> Option<f64>,
}

impl Row {
    /// The value, in the unit of the metric; `None` if the run has none.
    #[must_use]
    pub fn of(&self, subject: &Subject<'_>) -> Option<f64> {
        let has = match self.has {
            Has::Every => true,
            Has::Sound => subject.outcome.ending.is_sound(),
            Has::Finished => subject.domain().finished.is_some(),
        };
        if has { (self.of)(subject) } else { None }
    }
}

/// How a metric of a vCPU is computed.
type OfVcpu = fn(&Subject<'_>, &VcpuOutcome) -> f64;

/// What one tool measures.
#[derive(Clone, Copy, Debug)]
pub struct Instrument {
    /// Its name in experiments.
    pub name: &'static str,
    /// What it measures, for the reference.
    places: &'static str,
    metrics: fn() -> Vec<&'static Metric>,
    rows: fn() -> Vec<Row>,
    /// What it measures of each vCPU.
    of_vcpu: Option<(&'static Metric, OfVcpu)>,
    /// Whether a domain has what it measures.
    fits: fn(&Domain) -> bool,
}

fn metrics(rows: &[Row]) -> Vec<&'static Metric> {
    rows.iter().map(|row| row.metric).collect()
}

/// What each instrument measures, for the reference.
#[must_use]
pub fn tables() -> Vec<Table> {
    let table = |i: &Instrument| Table { heading: i.name, places: i.places, metrics: i.metrics };
    INSTRUMENTS.iter().map(table).collect()
}

/// The metrics that are measured of each run.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    rows: Vec<(&'static Instrument, Row)>,
    of_vcpu: Vec<&'static Instrument>,
}

impl Selection {
    /// Adds an instrument (`time`), or one of its metrics (`time.user`).
    ///
    /// # Errors
    /// With the cause and the remedy if there is none of this name, or if another metric of the same name was chosen.
    pub fn add(&mut self, name: &str) -> Result<(), (String, String)> {
        let (of, metric) = name.split_once('.').map_or((name, None), |(of, m)| (of, Some(m)));
        let Some(instrument) = INSTRUMENTS.iter().find(|i| i.name == of) else {
            let names: Vec<&str> = INSTRUMENTS.iter().map(|i| i.name).collect();
            let help = suggestion(of, "it can be", &names);
            return Err((format!("there is no instrument `{of}`"), help));
        };
        let rows = (instrument.rows)();
        let wanted: Vec<Row> = rows
            .iter()
            .filter(|row| metric.is_none_or(|m| m == row.metric.name))
            .copied()
            .collect();
        if let (Some(metric), true) = (metric, wanted.is_empty()) {
            let names: Vec<&str> = rows.iter().map(|row| row.metric.name).collect();
            return Err((
                format!("`{of}` has no metric `{metric}`"),
                suggestion(metric, "it can be", &names),
            ));
        }
        for row in wanted {
            let name = row.metric.name;
            if let Some((other, _)) = self.rows.iter().find(|(_, r)| r.metric.name == name) {
                let message = format!("`{}` measures `{name}`, too", other.name);
                return Err((
                    message,
                    format!("leave one of them out: `{of}.{name}` is one metric"),
                ));
            }
            self.rows.push((instrument, row));
        }
        if instrument.of_vcpu.is_some() {
            self.of_vcpu.push(instrument);
        }
        Ok(())
    }

    /// What is measured of a domain.
    pub fn of_domain(&self, domain: &Domain) -> impl Iterator<Item = Row> {
        self.rows.iter().filter(|(i, _)| (i.fits)(domain)).map(|(_, row)| *row)
    }

    /// What is measured of each vCPU.
    pub fn of_vcpus(&self) -> impl Iterator<Item = &'static Metric> {
        self.of_vcpu.iter().filter_map(|i| i.of_vcpu.map(|(metric, _)| metric))
    }

    /// All values of a run: the word below the place, for a vCPU, the metric, and its value.
    #[must_use]
    pub fn values(&self, subject: &Subject<'_>) -> Vec<(Option<String>, &'static Metric, f64)> {
        let own = self.of_domain(subject.asked());
        let mut values: Vec<_> =
            own.filter_map(|row| Some((None, row.metric, row.of(subject)?))).collect();
        if subject.domain().finished.is_some() {
            for (metric, of) in self.of_vcpu.iter().filter_map(|i| i.of_vcpu) {
                for (i, vcpu) in subject.domain().vcpus.iter().enumerate() {
                    values.push((Some(format!("v{i}")), metric, of(subject, vcpu)));
                }
            }
        }
        values
    }
}

/// The output of a tool, which a report shows.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Its name in experiments.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Its output of a run.
    pub show: fn(&Subject<'_>) -> Grid,
}

/// All tools.
pub static TOOLS: [Tool; 3] = [
    Tool {
        name: "vmstat",
        title: "vmstat 1",
        show: |s| vmstat(&Trace::of(s).unwrap_or_default().by_second()),
    },
    Tool {
        name: "lockmeter",
        title: "lockmeter",
        show: |s| lockmeter(s.domain(), s.outcome.counted()),
    },
    Tool { name: "cache-lines", title: "cache lines", show: |s| lines(s.domain()) },
];

/// The tool of this name.
///
/// # Errors
/// With the cause and the remedy if there is none.
pub fn tool(name: &str) -> Result<Tool, (String, String)> {
    let names = TOOLS.map(|t| t.name);
    let found = TOOLS.into_iter().find(|t| t.name == name);
    found.ok_or_else(|| {
        (format!("there is no tool `{name}`"), suggestion(name, "it can be", &names))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruments_and_metrics_are_chosen_by_name() {
        let mut selection = Selection::default();
        selection.add("run.elapsed").unwrap();
        selection.add("time").unwrap();
        let names: Vec<_> = selection.rows.iter().map(|(_, row)| row.metric.name).collect();
        assert_eq!(names, ["elapsed", "user", "system", "cpu", "context-switches", "sleeps"]);
        for (name, message, help) in [
            ("tame", "there is no instrument `tame`", "did you mean `time`?"),
            ("time.usr", "`time` has no metric `usr`", "did you mean `user`? it can be: user,"),
            ("vmstat.user", "`time` measures `user`, too", "leave one of them out"),
        ] {
            let (said, remedy) = selection.add(name).unwrap_err();
            assert!(said == message && remedy.starts_with(help), "{said}: {remedy}");
        }
    }

    #[test]
    fn names_and_metrics_are_unique() {
        for (i, instrument) in INSTRUMENTS.iter().enumerate() {
            assert!(INSTRUMENTS[..i].iter().all(|other| other.name != instrument.name));
            let metrics = (instrument.metrics)();
            for (j, metric) in metrics.iter().enumerate() {
                assert!(metrics[..j].iter().all(|m| m.name != metric.name), "{}", metric.name);
            }
        }
    }
}
