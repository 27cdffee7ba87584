//! Curves of a real benchmark over the number in its places: clients, jobs, packets a second.

use overspin_report::{At, Curve, Horizontal, Markup, Plot};
use overspin_runs::record::{Group, Record};
use overspin_stats::Spread;

/// Plots in a row.
const COLUMNS: usize = 3;

/// A plot for each metric of the benchmark, a curve for each lock; `None` if its places do not differ in a number, as
/// `clients-1` and `clients-16` do.
#[must_use]
pub fn curves(record: &Record) -> Option<Markup> {
    let places = &record.real.as_ref()?.places;
    let parsed: Vec<Place<'_>> = places.iter().map(|p| Place::of(p)).collect::<Option<_>>()?;
    let what = parsed.first().filter(|first| parsed.iter().all(|p| p.what == first.what))?.what;
    let mut numbers: Vec<u32> = parsed.iter().map(|p| p.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let groups = record.groups();
    let of_benchmark = || groups.iter().filter(|g| !g.place.contains('/'));
    let mut plots: Vec<Plot> = Vec::new();
    for (place, group) in of_benchmark().filter_map(|g| Some((Place::of(g.place)?, g))) {
        let title = match group.unit {
            "" => group.metric.to_owned(),
            unit => format!("{} [{unit}]", group.metric),
        };
        let i = plots.iter().position(|p| p.title == title).unwrap_or_else(|| {
            plots.push(Plot { title, most: None, curves: Vec::new() });
            plots.len() - 1
        });
        let curves = &mut plots[i].curves;
        let Some(at) = point(place.number, group) else { continue };
        match curves.iter_mut().find(|c| c.name == place.series) {
            Some(curve) => curve.points.push(at),
            None => curves.push(Curve { name: place.series.into(), points: vec![at] }),
        }
    }
    for curve in plots.iter_mut().flat_map(|plot| &mut plot.curves) {
        curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    let (least, most) = (*numbers.first()?, *numbers.last()?);
    let axis = Horizontal {
        title: what.into(),
        ticks: numbers.iter().map(|n| (f64::from(*n), n.to_string())).collect(),
        // Doublings are equal steps; packets begin at 0.
        log: least > 0 && most / least >= 4,
    };
    let note = "Means; whiskers are their 95 % intervals.";
    (numbers.len() > 1 && !plots.is_empty())
        .then(|| overspin_report::curves(&record.name, note, &axis, &plots, COLUMNS))
}

/// The mean of a group, with its interval.
fn point(number: u32, group: &Group<'_>) -> Option<At> {
    let runs: Vec<u64> = (0..group.values.len() as u64).collect();
    let spread = Spread::of(&runs, &group.values)?;
    let ends = spread.interval.map(|i| [i.low, i.high]);
    Some(At { x: f64::from(number), y: spread.summary.mean, ends })
}

/// A place whose last word has a number: `mcs.clients-16`.
#[derive(Debug, PartialEq)]
struct Place<'a> {
    /// What comes before: a lock, or nothing.
    series: &'a str,
    /// The word.
    what: &'a str,
    /// Its number.
    number: u32,
}

impl<'a> Place<'a> {
    fn of(place: &'a str) -> Option<Self> {
        let (series, last) = place.rsplit_once('.').unwrap_or(("", place));
        let (what, number) = last.rsplit_once('-')?;
        Some(Self { series, what, number: number.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_runs::record::{Kind, RealConditions};

    fn record(places: &[&str]) -> Record {
        let mut record = Record::new(Kind::Real, "pgbench");
        for (run, place) in (0..).zip(places) {
            record.push_as(run, place, "rate", "1/s", 100.0);
            record.push_as(run, place, "latency-mean", "ms", 0.5);
            record.push_as(run, &format!("{place}/machine"), "user-share", "%", 50.0);
        }
        let places = places.iter().map(|p| (*p).to_owned()).collect();
        record.real = Some(RealConditions { locks: Vec::new(), places, seconds: Vec::new() });
        record
    }

    #[test]
    fn a_plot_for_each_metric_and_a_curve_for_each_lock() {
        let places = ["none.clients-1", "none.clients-16", "mcs.clients-1", "mcs.clients-16"];
        let svg = curves(&record(&places)).unwrap().0;
        for text in ["rate [1/s]", "latency-mean [ms]", ">none<", ">mcs<", ">clients<", ">16<"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert!(!svg.contains("user-share"), "the machine has its own chart");
    }

    #[test]
    fn without_numbers_there_are_no_curves() {
        for places in [&["half", "optimal"][..], &["program"], &["clients-4"], &["half", "jobs-2"]]
        {
            assert!(curves(&record(places)).is_none(), "{places:?}");
        }
    }
}
