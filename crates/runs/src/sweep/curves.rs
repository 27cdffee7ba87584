//! The curves of a sweep: every measure against one axis, a curve for each value of another axis.

use crate::run::FEW_WAITS;
use crate::scenario_file::{Point, Sweep};
use crate::sweep::{MEASURES, Outcome, THROUGHPUT};
use overspin_report::{At, Curve, Horizontal, Markup, Plot};
use overspin_scenario::{Picos, parse_time};

/// Draws every measure of a sweep as SVG. The horizontal axis is the overcommit ratio (vCPUs for each pCPU) if an
/// axis of the sweep varies it, otherwise the first axis of numbers, otherwise the first axis. The first other
/// axis gives the curves; each combination of the rest has a row of plots.
#[must_use]
pub fn curves(sweep: &Sweep, outcome: &Outcome) -> Markup {
    let across = across(sweep);
    let series = (0..sweep.axes.len()).find(|i| *i != across.axis);
    // What is neither horizontal nor a curve: the rows.
    let mut rows: Vec<Vec<String>> = Vec::new();
    let row_of = |point: &Point| {
        let rest = (0..sweep.axes.len()).filter(|i| *i != across.axis && Some(*i) != series);
        let mut row: Vec<String> = rest
            .map(|i| format!("{} {}", sweep.axes[i].name, sweep.axes[i].values[point.at[i]]))
            .collect();
        row.extend(across.group(point));
        row
    };
    for point in &sweep.points {
        let row = row_of(point);
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let names: &[String] = series.map_or(&[], |i| &sweep.axes[i].values);
    let mut plots = Vec::new();
    for row in &rows {
        for (m, measure) in MEASURES.iter().enumerate() {
            let unit = if m == THROUGHPUT { "1/s" } else { measure.metric.unit };
            let place =
                if row.is_empty() { String::new() } else { format!(", {}", row.join(", ")) };
            let mut of: Vec<Curve> = Vec::new();
            for (point, measured) in sweep.points.iter().zip(&outcome.points) {
                let Some(spread) = measured.spread(m).filter(|_| row_of(point) == *row) else {
                    continue;
                };
                let name = series.map_or("", |i| names[point.at[i]].as_str());
                let ends = spread.interval.map(|i| [i.low, i.high]);
                let at = At { x: across.position(point), y: spread.summary.mean, ends };
                match of.iter_mut().find(|c| c.name == name) {
                    Some(curve) => curve.points.push(at),
                    None => of.push(Curve { name: name.into(), points: vec![at] }),
                }
            }
            for curve in &mut of {
                curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
            }
            let most = (measure.metric.unit == "%").then_some(100.0);
            plots.push(Plot {
                most,
                title: format!("{} [{unit}]{place}", measure.title),
                curves: of,
            });
        }
    }
    let seeds = outcome.most_seeds();
    let note = match seeds {
        0 | 1 => FEW_WAITS.into(),
        n => format!("Means of {n} seeds; whiskers are their 95 % intervals. {FEW_WAITS}"),
    };
    overspin_report::curves(&outcome.name, &note, &across.horizontal(sweep), &plots, 3)
}

/// Whether some axis is one of numbers, along which a curve says something.
#[must_use]
pub fn is_along_numbers(sweep: &Sweep) -> bool {
    across(sweep).kind != Kind::Words
}

/// The horizontal axis.
struct Across {
    /// Index of the sweep's axis.
    axis: usize,
    kind: Kind,
}

#[derive(PartialEq)]
enum Kind {
    /// vCPUs for each pCPU. Several values of the axis may have one ratio; then the number of vCPUs tells them
    /// apart.
    Overcommit { several: bool },
    /// Numbers, each as it was written, with its unit.
    Numbers(Vec<(f64, String)>),
    /// One after another.
    Words,
}

/// Chooses the horizontal axis.
fn across(sweep: &Sweep) -> Across {
    let base = sweep.points.first();
    for axis in 0..sweep.axes.len() {
        // The points that differ from the first one on this axis alone.
        let alone = sweep.points.iter().filter(|p| {
            base.is_some_and(|b| (0..sweep.axes.len()).all(|i| i == axis || p.at[i] == b.at[i]))
        });
        let mut ratios: Vec<f64> = alone.map(overcommit).collect();
        let all = ratios.len();
        ratios.sort_by(f64::total_cmp);
        ratios.dedup();
        if ratios.len() > 1 {
            return Across { axis, kind: Kind::Overcommit { several: ratios.len() < all } };
        }
    }
    for axis in 0..sweep.axes.len() {
        if let Some(numbers) = numbers(sweep, axis) {
            return Across { axis, kind: Kind::Numbers(numbers) };
        }
    }
    Across { axis: 0, kind: Kind::Words }
}

impl Across {
    fn position(&self, point: &Point) -> f64 {
        let i = point.at.get(self.axis).copied().unwrap_or(0);
        match &self.kind {
            Kind::Overcommit { .. } => overcommit(point),
            Kind::Numbers(numbers) => numbers[i].0,
            Kind::Words => i as f64,
        }
    }

    /// What tells apart the values of one position.
    fn group(&self, point: &Point) -> Option<String> {
        match self.kind {
            Kind::Overcommit { several: true } => Some(format!("{} vCPUs", vcpus(point))),
            _ => None,
        }
    }

    fn horizontal(&self, sweep: &Sweep) -> Horizontal {
        let axis = sweep.axes.get(self.axis);
        let title = axis.map_or_else(String::new, |a| a.name.clone());
        let labels = axis.map_or(&[][..], |a| &a.values);
        match &self.kind {
            Kind::Overcommit { .. } => {
                let mut ratios: Vec<f64> = sweep.points.iter().map(overcommit).collect();
                ratios.sort_by(f64::total_cmp);
                ratios.dedup();
                let label = |x: f64| (x, format!("{}x", (x * 100.0).round() / 100.0));
                let ticks = ratios.into_iter().map(label).collect();
                Horizontal::of_numbers("vCPUs for each pCPU".into(), ticks)
            }
            Kind::Numbers(numbers) => Horizontal::of_numbers(title, numbers.clone()),
            Kind::Words => Horizontal {
                title,
                log: false,
                ticks: (0..labels.len()).map(|i| (i as f64, labels[i].clone())).collect(),
            },
        }
    }
}

fn vcpus(point: &Point) -> u32 {
    point.scenario.vcpus()
}

/// vCPUs of all domains for each pCPU.
fn overcommit(point: &Point) -> f64 {
    let host = &point.scenario.host;
    let pcpus = f64::from(host.sockets) * f64::from(host.cores) * f64::from(host.threads);
    f64::from(vcpus(point)) / pcpus.max(1.0)
}

/// The numbers of an axis: its values. If they are labels, those of the only key that it sets.
fn numbers(sweep: &Sweep, axis: usize) -> Option<Vec<(f64, String)>> {
    let base = &sweep.points.first()?.at;
    let alone = |i: usize| {
        let is_at = |(at, n): (usize, &usize)| *n == if at == axis { i } else { base[at] };
        sweep.points.iter().find(|p| p.at.iter().enumerate().all(is_at))
    };
    // What a value sets and another one does not, if it is one key.
    let set = |i: usize| {
        let (sets, others) = (&alone(i)?.sets, &alone(usize::from(i == 0))?.sets);
        let mut own = sets.iter().filter(|set| !others.contains(set));
        own.next().filter(|_| own.next().is_none())?.split_once('=')
    };
    let of = |text: &str| Some((number(text)?, text.to_owned()));
    let labels = &sweep.axes[axis].values;
    labels.iter().map(|label| of(label)).collect::<Option<_>>().or_else(|| {
        let (key, _) = set(0)?;
        (0..labels.len()).map(|i| of(set(i).filter(|(k, _)| *k == key)?.1)).collect()
    })
}

/// The number that a value of an axis stands for: a plain one, or a time in microseconds.
fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().or_else(|| parse_time(text.trim()).ok().map(Picos::micros))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario_file::{Loaded, load_text};
    use crate::sweep::{Settings, run};
    use std::path::Path;

    const SCENARIO: &str = "limit = \"5ms\"\n[host]\ncores = 2\n[[domain]]\nname = \"guest\"\nvcpus = 2\n\
        lock = \"ticket\"\nworkload = { kind = \"lock-loop\" }\n";

    fn sweep(axes: &[&str]) -> Sweep {
        let axes: Vec<_> =
            axes.iter().map(|a| crate::scenario_file::AxisArgument::List((*a).into())).collect();
        match load_text(Path::new("t.toml"), SCENARIO, &[], &axes).unwrap() {
            Loaded::Sweep(sweep) => sweep,
            other => panic!("not a sweep: {other:?}"),
        }
    }

    #[test]
    fn the_overcommit_ratio_is_the_first_choice() {
        let locks = "domain.guest.lock=ticket,mcs";
        let ratio = across(&sweep(&[locks, "domain.guest.vcpus=2,4,8"]));
        assert!(ratio.axis == 1 && ratio.kind == Kind::Overcommit { several: false });
        let pairs = across(&sweep(&[locks, "domain.guest.vcpus/host.cores=2/2,2/1,4/4,4/2"]));
        assert!(pairs.axis == 1 && pairs.kind == Kind::Overcommit { several: true });
        let numbers = [(1.0, "1us".to_owned()), (5.0, "5us".to_owned()), (20.0, "20us".to_owned())];
        let times = across(&sweep(&[locks, "domain.guest.workload.section=1us,5us,20us"]));
        assert!(times.axis == 1 && times.kind == Kind::Numbers(numbers.into()));
        assert!(across(&sweep(&[locks])).kind == Kind::Words);
    }

    #[test]
    fn labels_hide_no_numbers_of_the_key_that_they_stand_for() {
        let kind = |set: &str, to: &str| {
            let labels = "labels = [\"half\", \"all\"]";
            let vary = format!("[[vary]]\nname = \"load\"\nset = \"{set}\"\nto = {to}\n{labels}\n");
            match load_text(Path::new("t.toml"), &format!("{SCENARIO}{vary}"), &[], &[]).unwrap() {
                Loaded::Sweep(sweep) => across(&sweep).kind,
                other => panic!("not a sweep: {other:?}"),
            }
        };
        let section = "domain.guest.workload.section";
        let numbers = [(3.0, "3us".to_owned()), (16.0, "16us".to_owned())];
        assert!(kind(section, "['3us', '16us']") == Kind::Numbers(numbers.into()));
        let two = format!("{section} / domain.guest.workload.outside");
        assert!(kind(&two, "['3us / 1us', '16us / 2us']") == Kind::Words, "two at once");
        assert!(kind(&two, "['3us /', '/ 16us']") == Kind::Words, "each of another key");
    }

    #[test]
    fn every_measure_has_a_plot_and_every_lock_a_curve() {
        let sweep = sweep(&["domain.guest.lock=ticket,mcs", "domain.guest.vcpus=2,4"]);
        let outcome = run(&sweep, Settings::default(), &|_, _| {}).unwrap();
        let svg = curves(&sweep, &outcome).0;
        for measure in MEASURES {
            assert!(svg.contains(&format!("<title>{} [", measure.title)), "{}", measure.title);
        }
        assert!(svg.contains(">ticket<") && svg.contains(">mcs<") && svg.contains(">2x<"));
        assert_eq!(curves(&sweep, &outcome).0, svg);
    }
}
