//! Re-warming of caches, as a table and as `host.rewarm_permille`.

use super::{Median, QuantityInfo};
use overspin_native::calibrate::{Calibration, Quantity};
use overspin_report::{Grid, short};

/// Says what a loss is.
pub(super) fn told(
    place: &str,
    words: &str,
    bytes: u32,
    in_order: bool,
    away: u32,
) -> QuantityInfo {
    let set = set(bytes, in_order);
    QuantityInfo {
        words: format!("{words}, {set}, {away} us"),
        place: format!("{place}.{}.{away}us", set.replace(' ', "-")),
        unit: "ns",
        key: None,
    }
}

/// A working set in words.
fn set(bytes: u32, in_order: bool) -> String {
    format!("{} KiB {}", bytes >> 10, if in_order { "in order" } else { "at random" })
}

/// A loss: the working set, how long the other thread ran in microseconds, and medians in nanoseconds.
struct Loss {
    set: String,
    away_us: u32,
    ns: Median,
    control: Option<Median>,
}

impl Loss {
    /// Thousandths of the time that the other thread ran.
    fn permille(&self) -> f64 {
        self.ns.value / f64::from(self.away_us)
    }
}

fn losses(calibration: &Calibration) -> impl Iterator<Item = Loss> {
    let median = |quantity: Quantity| {
        let series = calibration.series.iter().find(|s| s.quantity == quantity)?;
        Median::of(&series.samples)
    };
    calibration.series.iter().filter_map(move |series| {
        let Quantity::Rewarm { bytes, in_order, away } = series.quantity else { return None };
        let ns = median(series.quantity)?;
        let control = median(Quantity::RewarmControl { bytes, in_order, away });
        Some(Loss { set: set(bytes, in_order), away_us: away, ns, control })
    })
}

/// What `host.rewarm_permille` is here, in words, for reports and profiles: the range after the shortest time, in which
/// most can be lost.
pub(super) fn permille(calibration: &Calibration) -> Option<String> {
    let away = losses(calibration).map(|loss| loss.away_us).min()?;
    let after = losses(calibration).filter(|loss| loss.away_us == away);
    let [low, high] = after.fold([f64::INFINITY, 0.0], |[low, high], loss| {
        // A control that lost more than the measurement: nothing is lost.
        [loss.permille().max(0.0).min(low), loss.permille().max(high)]
    });
    Some(format!(
        "`host.rewarm_permille` is {low:.0} to {high:.0} here, by the working set, when another thread ran for {away} us. \
         It is an upper bound: these threads do nothing but load"
    ))
}

/// The table.
pub(super) fn table(calibration: &Calibration) -> Grid {
    let columns = [
        "working set of each",
        "other ran [us]",
        "lost [us]",
        "from",
        "to",
        "permille",
        "control [us]",
    ];
    let mut grid = Grid::new(1, &columns);
    for loss in losses(calibration) {
        let us = |ns: f64| short(ns / 1e3);
        let [from, to] = loss.ns.interval.map(us);
        let control = loss.control.map_or_else(String::new, |ns| us(ns.value));
        let part = short(loss.permille());
        let (lost, away) = (us(loss.ns.value), loss.away_us.to_string());
        grid.row([loss.set, away, lost, from, to, part, control]);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_native::calibrate::Series;
    use overspin_native::measure::System;

    #[test]
    fn a_loss_is_a_part_of_the_time_that_the_other_ran() {
        let series = |bytes, away, ns: f64| Series {
            quantity: Quantity::Rewarm { bytes, in_order: false, away },
            samples: vec![ns; 3],
            singles: Vec::new(),
        };
        let calibration = Calibration {
            system: System {
                cpu_model: None,
                kernel: None,
                virtualised: false,
                clock_source: None,
                cpus: 1,
            },
            warnings: Vec::new(),
            cpus: vec![0],
            // 5 us of 10, 6 of 100; a control that lost more than the measurement counts as nothing lost.
            series: vec![
                series(32 << 10, 10, 5_000.0),
                series(32 << 10, 100, 6_000.0),
                series(64 << 10, 10, -100.0),
            ],
            missing: Vec::new(),
            elapsed: std::time::Duration::ZERO,
        };
        let told = permille(&calibration).unwrap();
        assert!(told.contains("is 0 to 500 here") && told.contains("ran for 10 us"), "{told}");
        let row = &table(&calibration).rows[1];
        assert_eq!(
            (row[0].as_str(), row[1].as_str(), row[5].as_str()),
            ("32 KiB at random", "100", "60.00")
        );
    }
}
