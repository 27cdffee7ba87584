//! Simulated beside measured: differences, goals, verdicts, and the order of locks.

use overspin_record::validation::{Agreement, FigureKind, Goals};
use overspin_stats::difference::welch;
use overspin_stats::{CONFIDENCE, Spread, Summary};

/// The samples of a figure on both sides.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    pub simulated: Vec<(u64, f64)>,
    pub measured: Vec<(u64, f64)>,
}

/// A difference with its verdict.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    pub simulated: Spread,
    pub measured: Spread,
    pub difference: f64,
    pub margin: Option<f64>,
    pub agreement: Agreement,
    /// How they were compared.
    pub kind: FigureKind,
    pub goal: f64,
}

/// Compares the two sides of a figure. A throughput that does not repeat is compared by its logarithm. `None` if one of them
/// has no sample.
pub(super) fn compare(samples: &Samples, kind: FigureKind, goals: &Goals) -> Option<Difference> {
    let spread = |side: &[(u64, f64)]| {
        let (seeds, values): (Vec<u64>, Vec<f64>) = side.iter().copied().unzip();
        Spread::of(&seeds, &values)
    };
    let (simulated, measured) = (spread(&samples.simulated)?, spread(&samples.measured)?);
    let base = measured.summary.mean.abs();
    let half = measured.interval.map_or(0.0, |i| (i.high - i.low) / 2.0);
    let varies = kind == FigureKind::Throughput && 100.0 * half > FigureKind::REPEATS * base;
    let kind = if varies { FigureKind::Varying } else { kind };
    let goal = goals.of(kind);
    // Less than one item is none.
    let octaves = |side: &[(u64, f64)]| {
        let all: Vec<f64> = side.iter().map(|(_, value)| value.max(1.0).log2()).collect();
        Summary::of(&all)
    };
    let [of_simulated, of_measured] = match kind {
        FigureKind::Varying => [octaves(&samples.simulated)?, octaves(&samples.measured)?],
        _ => [simulated.summary, measured.summary],
    };
    let scaled = |difference: f64| match kind {
        FigureKind::State | FigureKind::Varying => difference,
        // Both are 0, or the simulator does what the machine never did.
        _ if base == 0.0 => {
            if difference == 0.0 {
                0.0
            } else {
                100.0 * difference.signum()
            }
        }
        _ => 100.0 * difference / base,
    };
    let difference = scaled(of_simulated.mean - of_measured.mean);
    let margin =
        welch(&of_measured, &of_simulated, CONFIDENCE).map(|means| scaled(means.margin).abs());
    let nearest = difference.abs() - margin.unwrap_or(0.0);
    let agreement = if difference.abs() <= goal {
        Agreement::Within
    } else if nearest <= goal {
        Agreement::Unclear
    } else {
        Agreement::Miss
    };
    Some(Difference { simulated, measured, difference, margin, agreement, kind, goal })
}

/// Finds the pairs of `locks` (a name, the simulated and the measured throughput) whose order is measured
/// beyond doubt, and those of them that the simulator has the wrong way round.
pub(super) fn order<'a>(locks: &[(&'a str, &Spread, &Spread)]) -> (usize, Vec<[&'a str; 2]>) {
    let mut decided = 0;
    let mut wrong = Vec::new();
    for (i, a) in locks.iter().enumerate() {
        for b in &locks[i + 1..] {
            let (Some(of_a), Some(of_b)) = (a.2.interval, b.2.interval) else { continue };
            let (faster, slower) = match () {
                () if of_a.low > of_b.high => (a, b),
                () if of_b.low > of_a.high => (b, a),
                () => continue,
            };
            decided += 1;
            if faster.1.summary.mean < slower.1.summary.mean {
                wrong.push([faster.0, slower.0]);
            }
        }
    }
    (decided, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    fn samples(simulated: &[f64], measured: &[f64]) -> Samples {
        let side = |values: &[f64]| (1..).zip(values.iter().copied()).collect();
        Samples { simulated: side(simulated), measured: side(measured) }
    }

    fn compared(simulated: &[f64], measured: &[f64], kind: FigureKind) -> Difference {
        compare(&samples(simulated, measured), kind, &Goals::FULL).unwrap()
    }

    #[test]
    fn a_throughput_is_compared_in_percent_and_a_state_in_points() {
        // 104 is 4 % above 100, and 4 points.
        let of = compared(&[103.0, 104.0, 105.0], &[99.0, 100.0, 101.0], FigureKind::Throughput);
        assert_eq!((of.difference, of.agreement), (4.0, Agreement::Within));
        let of = compared(&[43.0, 44.0, 45.0], &[49.0, 50.0, 51.0], FigureKind::State);
        assert_eq!(of.difference, -6.0);
        // Welch by hand: both variances are 1, so the error is sqrt(1/3 + 1/3) = 0.8165 with 4 degrees of
        // freedom; t is 2.7764. The interval -6 +- 2.267 reaches into the goal of 5.
        assert!((of.margin.unwrap() - 2.267).abs() < 1e-3, "{of:?}");
        assert_eq!(of.agreement, Agreement::Unclear);
    }

    #[test]
    fn a_miss_is_beyond_the_goal_with_its_whole_interval() {
        let of = compared(&[20.0, 20.1, 19.9], &[10.0, 10.1, 9.9], FigureKind::Latency);
        assert_eq!(of.agreement, Agreement::Miss);
        assert!((of.difference - 100.0).abs() < 1e-9);
        // Without an interval, the means alone decide.
        let of = compared(&[20.0], &[10.0], FigureKind::Latency);
        assert_eq!((of.margin, of.agreement), (None, Agreement::Miss));
        assert_eq!(compared(&[11.0], &[10.0], FigureKind::Latency).agreement, Agreement::Within);
    }

    #[test]
    fn what_does_not_repeat_is_compared_by_its_logarithm() {
        // Measured 1, 2 and 4 thousand: the mean logarithm is that of 2 thousand. Simulated twice as much, and as varied.
        let measured = [1000.0, 2000.0, 4000.0];
        let of = compared(&[2000.0, 4000.0, 8000.0], &measured, FigureKind::Throughput);
        assert_eq!((of.kind, of.goal, of.agreement), (FigureKind::Varying, 1.0, Agreement::Within));
        assert!((of.difference - 1.0).abs() < 1e-9, "{of:?}");
        // Both variances are 1, so Welch's margin is that of the run states above.
        assert!((of.margin.unwrap() - 2.267).abs() < 1e-3, "{of:?}");
        // Eight times as much: three octaves, whose interval reaches into the goal.
        let of = compared(&[8000.0, 16000.0, 32000.0], &measured, FigureKind::Throughput);
        assert_eq!(of.agreement, Agreement::Unclear);
        // A hundred times as much does not, and nothing at all counts as one item.
        let of = compared(&[2e5, 2e5, 2e5], &measured, FigureKind::Throughput);
        assert_eq!(of.agreement, Agreement::Miss);
        assert!(
            (compared(&[0.0, 0.0, 0.0], &measured, FigureKind::Throughput).difference
                + 2000_f64.log2())
            .abs()
                < 1e-9
        );
    }

    #[test]
    fn nothing_is_compared_with_nothing() {
        assert_eq!(compared(&[0.0, 0.0], &[0.0, 0.0], FigureKind::Throughput).difference, 0.0);
        assert_eq!(compared(&[5.0], &[0.0], FigureKind::Throughput).difference, 100.0);
        assert_eq!(compare(&samples(&[], &[1.0]), FigureKind::State, &Goals::FULL), None);
        assert_eq!(compare(&samples(&[1.0], &[]), FigureKind::State, &Goals::FULL), None);
    }

    #[test]
    fn only_orders_beyond_doubt_are_judged() {
        let spread = |values: &[f64]| Spread::of(&[1, 2, 3], values).unwrap();
        // Measured: a is faster than c beyond doubt; b may be as fast as either.
        let (fast, wide, slow) = (
            spread(&[99.0, 100.0, 101.0]),
            spread(&[20.0, 80.0, 140.0]),
            spread(&[49.0, 50.0, 51.0]),
        );
        let locks = [("a", &slow, &fast), ("b", &fast, &wide), ("c", &fast, &slow)];
        assert_eq!(order(&locks), (1, vec![["a", "c"]]));
        let locks = [("a", &fast, &fast), ("b", &fast, &wide), ("c", &slow, &slow)];
        assert_eq!(order(&locks), (1, vec![]));
    }
}
