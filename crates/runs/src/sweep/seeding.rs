//! Which runs a sweep makes beyond one for each point: a part of them on this machine, or as many seeds as the
//! wanted precision takes.

use super::{Job, Measured, THROUGHPUT};
use crate::seeds::seeds_from;
use std::str::FromStr;

/// Seeds with which each point begins if the precision decides how many follow: an interval of fewer is wide
/// by chance.
pub(super) const FEWEST: u32 = 5;

/// Most seeds of a point. A point whose interval is still too wide is shown with the interval that it has.
pub const MOST_SEEDS: usize = 1000;

/// A part of a sweep: every `of`-th run, beginning with run `index`. All parts together are the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    of: usize,
}

impl Shard {
    /// The jobs of this part. Where the results of a point decide how many seeds follow, a part has whole
    /// points.
    pub(crate) fn of(self, jobs: Vec<Job>, whole_points: bool) -> Vec<Job> {
        let is_mine = |(i, (point, _)): &(usize, Job)| {
            (if whole_points { *point } else { *i }) % self.of == self.index
        };
        jobs.into_iter().enumerate().filter(is_mine).map(|(_, job)| job).collect()
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Reads `i/n`, with `i` from 1 to `n`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(i, n)| Some((i.parse::<usize>().ok()?, n.parse().ok()?)));
        match parts {
            Some((i, of)) if (1..=of).contains(&i) => Ok(Self { index: i - 1, of }),
            _ => Err("the part and the number of parts, from 1/4 to 4/4 for example".into()),
        }
    }
}

/// The wanted precision: half of the 95 % interval of the mean throughput, relative to the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Narrow(f64);

impl Narrow {
    /// The precision from a part of 1; `None` if it is not between 0 and 1.
    #[must_use]
    pub fn of(part: f64) -> Option<Self> {
        (part > 0.0 && part <= 1.0).then_some(Self(part))
    }

    /// The precision as a part of 1.
    #[must_use]
    pub fn part(self) -> f64 {
        self.0
    }

    /// Whether the point has it: no mean without at least two runs, and no interval if they are equal.
    #[must_use]
    pub fn is_met(self, point: &Measured) -> bool {
        half_width(point).is_none_or(|width| width <= self.0)
    }

    /// The runs that the points still need, at most `most`. The number depends on the results alone, so that
    /// a sweep that is resumed or merged makes the same runs.
    pub(super) fn more(self, points: &[Measured], most: usize) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (i, point) in points.iter().enumerate().filter(|(_, p)| !self.is_met(p)) {
            let have = point.cells.len();
            let Some(last) = point.cells.last().and_then(|c| c.run.seed) else { continue };
            // The interval shrinks with the root of the number. Half of what that predicts, because the
            // first intervals are estimates themselves; at least one more, at most as many again.
            let factor = (half_width(point).unwrap_or(0.0) / self.0).powi(2);
            let wanted = (have as f64 * f64::midpoint(1.0, factor)).ceil().min(1e9) as usize;
            let wanted = wanted.clamp(have + 1, 2 * have).min(MOST_SEEDS);
            let more = u32::try_from(wanted.saturating_sub(have)).unwrap_or(0);
            jobs.extend(seeds_from(last.wrapping_add(1), more).into_iter().map(|s| (i, s)));
        }
        jobs.truncate(most);
        jobs
    }
}

impl FromStr for Narrow {
    type Err = String;

    /// Reads a percentage from 0.01 to 100, such as `2%`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>() {
            Ok(percent) if (0.01..=100.0).contains(&percent) => Ok(Self(percent / 100.0)),
            _ => Err("a percentage from 0.01 to 100, for example 2%".into()),
        }
    }
}

/// Half of the interval of the mean throughput, relative to the mean; `None` if there is no interval.
fn half_width(point: &Measured) -> Option<f64> {
    let spread = point.spread(THROUGHPUT)?;
    let (interval, mean) = (spread.interval?, spread.summary.mean);
    (mean > 0.0).then(|| (interval.high - interval.low) / 2.0 / mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Run;
    use crate::sweep::{COUNT, Cell};
    use overspin_scenario::Ending;

    fn point(throughputs: &[f64]) -> Measured {
        let cell = |(i, value): (usize, &f64)| {
            let mut values = [0.0; COUNT];
            values[THROUGHPUT] = *value;
            let run =
                Run { seed: Some(10 + i as u64), ending: Some(Ending::Finished), ..Run::default() };
            Cell { run, values }
        };
        Measured { at: Vec::new(), cells: throughputs.iter().enumerate().map(cell).collect() }
    }

    #[test]
    fn all_parts_together_are_the_whole() {
        let jobs: Vec<Job> = (0..5).flat_map(|p| [(p, 1), (p, 2), (p, 3)]).collect();
        for whole_points in [false, true] {
            let part = |i: usize| Shard { index: i, of: 4 }.of(jobs.clone(), whole_points);
            let mut all: Vec<Job> = (0..4).flat_map(part).collect();
            all.sort_unstable();
            assert_eq!(all, jobs, "{whole_points}");
        }
        assert_eq!("2/4".parse(), Ok(Shard { index: 1, of: 4 }));
        for wrong in ["0/4", "5/4", "1", "a/b", "1/0", "-1/4"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    /// Two samples that differ by d have a mean with an interval of 12.7 d/2 to either side (t with one degree
    /// of freedom is 12.706 for 95 %).
    #[test]
    fn more_seeds_follow_where_the_interval_is_wide() {
        let narrow: Narrow = "2%".parse().unwrap();
        assert_eq!(narrow.part(), 0.02);
        let [same, near, far] =
            [[100.0, 100.0], [100.0, 100.1], [100.0, 120.0]].map(|samples| point(&samples));
        assert!(narrow.is_met(&same) && narrow.is_met(&near) && !narrow.is_met(&far));
        // As many again, because 12.7 * 10 % is far more than 2 %; the seeds continue.
        assert_eq!(narrow.more(&[same, near, far.clone()], 100), [(2, 12), (2, 13)]);
        assert_eq!(narrow.more(&[far], 1), [(0, 12)]);
        for wrong in ["0%", "101%", "two", ""] {
            assert!(wrong.parse::<Narrow>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_point_that_never_settles_ends_at_the_most_seeds() {
        let narrow: Narrow = "0.01%".parse().unwrap();
        let wild: Vec<f64> = (0..MOST_SEEDS).map(|i| (i % 2 * 100) as f64 + 1.0).collect();
        assert!(!narrow.is_met(&point(&wild)));
        assert_eq!(narrow.more(&[point(&wild)], 1000), []);
        assert_eq!(narrow.more(&[point(&wild[..999])], 1000).len(), 1);
    }
}
