//! What the figures mean: where it breaks, and what moves it.

use super::measure::{Advice, AdvisedPoint};
use super::plan::Group;
use overspin_report::three_digits;
use overspin_stats::difference::welch;
use overspin_stats::{CONFIDENCE, Spread};
use serde::Serialize;

/// A p99.9 wait that is no longer than this, in microseconds, is no break, however many times as long it became: no guest
/// notices it.
///
/// Breaks and effects compare p99.9 waits although the curves show p99 too: waits for a preempted vCPU can be rarer than
/// one in a hundred. The p99 wait of a guest that seldom contends is zero, which has no multiples.
const UNNOTICED_US: f64 = 100.0;

/// Where a scheduler breaks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Break {
    /// vCPUs for each pCPU at the first broken point.
    pub ratio: f64,
    /// vCPUs for each pCPU at the last point before it.
    pub fine: f64,
    /// Why, in words.
    pub why: String,
}

/// How much a change moves the operator's own point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The change, in words.
    pub name: String,
    /// Change of the work, in percent, with its 95 % margin.
    pub work_percent: [f64; 2],
    /// Factor of the p99.9 wait.
    pub wait_factor: f64,
    /// Whether that wait differs beyond chance, by more than a quarter.
    pub wait_certain: bool,
    /// Whether the work differs beyond chance, by more than 2 %.
    pub certain: bool,
    /// Index of its point.
    pub point: usize,
}

impl Advice {
    /// Work of a pCPU at this point, or of all guests if they leave pCPUs idle, in percent of the first point of the curve, with
    /// the ends of its interval.
    #[must_use]
    pub fn percent(&self, measured: &AdvisedPoint) -> Option<[f64; 3]> {
        let first =
            self.of(Group::Curve).find(|m| m.point.scheduler == measured.point.scheduler)?;
        let part_of = |m: &AdvisedPoint| match self.question.saturates() {
            true => f64::from(m.point.pcpus),
            false => 1.0,
        };
        let base = first.work_per_s.as_ref()?.summary.mean / part_of(first);
        let spread = measured.work_per_s.as_ref()?;
        let percent = |work: f64| 100.0 * work / part_of(measured) / base;
        let [low, high] = ends(spread);
        (base > 0.0).then(|| [percent(low.max(0.0)), percent(spread.summary.mean), percent(high)])
    }

    /// Where the curve of a scheduler breaks, if it does.
    #[must_use]
    pub fn breaks(&self, scheduler: &str) -> Option<Break> {
        let curve: Vec<&AdvisedPoint> =
            self.of(Group::Curve).filter(|m| m.point.scheduler == scheduler).collect();
        let ratio = |m: &AdvisedPoint| self.question.ratio(m.point.pcpus);
        for pair in curve.windows(2) {
            let [before, at] = pair else { continue };
            let found = |why: String| Some(Break { ratio: ratio(at), fine: ratio(before), why });
            if at.work_per_s.is_none() {
                return found("a run deadlocked or was stopped".into());
            }
            let why =
                [self.works_too_little(at), curve.first().and_then(|f| self.waits_too_long(f, at))];
            let why: Vec<String> = why.into_iter().flatten().collect();
            if !why.is_empty() {
                return found(why.join(", and "));
            }
        }
        None
    }

    /// Why the work at a point is a break.
    fn works_too_little(&self, at: &AdvisedPoint) -> Option<String> {
        let limit = f64::from(self.question.least_work_percent);
        // The whole interval must lie below, so that chance does not break it.
        let [.., high] = self.percent(at)?;
        let whose = self.question.whose_work();
        (high < limit).then(|| format!("the work of {whose} is at most {high:.0} % of that at 1:1"))
    }

    /// Why the waits at a point are a break, beside those of the `first` point of the curve.
    fn waits_too_long(&self, first: &AdvisedPoint, at: &AdvisedPoint) -> Option<String> {
        let least = ends(at.wait_p999_us.as_ref()?)[0];
        let base = first.wait_p999_us.as_ref()?.summary.mean.max(1.0);
        let limit = f64::from(self.question.longest_wait_times);
        (least > UNNOTICED_US && least / base > limit).then(|| {
            format!("the p99.9 wait is at least {} times as long", three_digits(least / base))
        })
    }

    /// The first ratio at which the mean p99.9 wait of a scheduler is a break and its interval is not: chance may have made it.
    #[must_use]
    pub fn unclear(&self, scheduler: &str) -> Option<f64> {
        let mut curve = self.of(Group::Curve).filter(|m| m.point.scheduler == scheduler);
        let base = curve.next()?.wait_p999_us.as_ref()?.summary.mean.max(1.0);
        let limit = (base * f64::from(self.question.longest_wait_times)).max(UNNOTICED_US);
        let is_long = |wait: &Spread| wait.summary.mean > limit && ends(wait)[0] <= limit;
        let at = curve.find(|m| m.wait_p999_us.as_ref().is_some_and(is_long))?;
        Some(self.question.ratio(at.point.pcpus))
    }

    /// The scheduler that bears the highest ratio without a break, and that ratio; among equals the one with the shorter p99.9
    /// wait at the operator's ratio.
    #[must_use]
    pub fn best_scheduler(&self) -> Option<(&str, f64)> {
        let question = &self.question;
        let bears = |scheduler: &str| match self.breaks(scheduler) {
            Some(found) => found.fine,
            None => {
                let curve = self.of(Group::Curve).filter(|m| m.point.scheduler == scheduler);
                curve.map(|m| question.ratio(m.point.pcpus)).fold(1.0, f64::max)
            }
        };
        let wait = |scheduler: &str| {
            let here = self.on_curve(scheduler, question.pcpus)?.wait_p999_us.as_ref()?;
            Some(here.summary.mean)
        };
        let all = question.schedulers.iter().map(|s| (s.as_str(), bears(s)));
        all.max_by(|(a, bears_a), (b, bears_b)| {
            let waits = |s| wait(s).unwrap_or(f64::INFINITY);
            bears_a.total_cmp(bears_b).then(waits(b).total_cmp(&waits(a)))
        })
    }

    /// What moves the operator's own point: other locks and knobs, and the other schedulers. Those that move the
    /// work beyond chance come first, then those that move the wait, each with the strongest first.
    #[must_use]
    pub fn effects(&self) -> Vec<Effect> {
        let own = &self.question;
        let is_other = |m: &AdvisedPoint| match m.point.group {
            Group::Curve => {
                m.point.pcpus == own.pcpus && Some(&m.point.scheduler) != own.schedulers.first()
            }
            Group::Lock | Group::Knob => true,
            Group::Costs => false,
        };
        let mut effects = self.effects_of(is_other);
        let rank = |e: &Effect| (!e.certain, !e.wait_certain);
        let strength = |e: &Effect| match e.certain || !e.wait_certain {
            true => e.work_percent[0].abs(),
            false => e.wait_factor.max(1e-9).ln().abs(),
        };
        effects.sort_by(|a, b| rank(a).cmp(&rank(b)).then(strength(b).total_cmp(&strength(a))));
        effects
    }

    /// How much assumed costs move the operator's own point.
    #[must_use]
    pub fn doubts(&self) -> Vec<Effect> {
        self.effects_of(|m| m.point.group == Group::Costs)
    }

    fn effects_of(&self, wanted: impl Fn(&AdvisedPoint) -> bool) -> Vec<Effect> {
        let Some(here) = self.here() else { return Vec::new() };
        let effect = |(point, m): (usize, &AdvisedPoint)| {
            let (a, b) = (here.work_per_s.as_ref()?, m.work_per_s.as_ref()?);
            let (before, after) = (here.wait_p999_us.as_ref()?, m.wait_p999_us.as_ref()?);
            let base = a.summary.mean;
            let wait_factor = after.summary.mean / before.summary.mean.max(1e-3);
            let waits = welch(&before.summary, &after.summary, CONFIDENCE)?;
            let means = welch(&a.summary, &b.summary, CONFIDENCE)?;
            let percent = |x: f64| if base > 0.0 { 100.0 * x / base } else { 0.0 };
            let change = [percent(means.difference), percent(means.margin)];
            let name = match m.point.group {
                Group::Curve => format!("scheduler {}", m.point.scheduler),
                _ => m.point.name.clone(),
            };
            Some(Effect {
                name,
                work_percent: change,
                wait_factor,
                wait_certain: waits.difference.abs() > waits.margin
                    && !(0.8..=1.25).contains(&wait_factor),
                certain: change[0].abs() > change[1].max(2.0),
                point,
            })
        };
        self.points.iter().enumerate().filter(|(_, m)| wanted(m)).filter_map(effect).collect()
    }
}

/// The ends of the interval of a mean; the least and the greatest value if there is no interval.
pub(super) fn ends(spread: &Spread) -> [f64; 2] {
    spread.interval.map_or([spread.summary.min, spread.summary.max], |i| [i.low, i.high])
}
