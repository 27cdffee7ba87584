//! Reports and profiles of `overspin calibrate`: what the operations of this machine cost.

mod guests;
mod profile;
mod record;
mod report;
mod rewarm;
mod varying;

pub use guests::GUESTS;
pub(crate) use guests::of_guests;
pub use profile::{profile, settings};
pub use record::record;
pub use report::report;
pub(crate) use varying::{FEWEST, MANY, Singles, costs, rounded, text, varying};

use overspin_native::calibrate::{Calibration, Quantity, Series};

/// A median with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// An interval that has the median of all possible samples with 95 % confidence. With fewer than six samples
    /// there is none, and this is their range.
    pub interval: [f64; 2],
    /// Number of samples.
    pub n: usize,
}

impl Median {
    /// The median of `samples`; `None` if there are none.
    ///
    /// The interval is that of order statistics: it makes no assumption about the distribution. (W. Conover,
    /// Practical Nonparametric Statistics, section 3.2.)
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.iter().copied().filter(|s| s.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let last = n.checked_sub(1)?;
        let value = f64::midpoint(sorted[last / 2], sorted[n / 2]);
        let below = if n < 6 { 0 } else { rank(n) };
        Some(Self { value, interval: [sorted[below], sorted[last - below]], n })
    }
}

/// The number of samples below an interval of 95 % for the median of `n`: the largest number such that a binomial
/// with `n` trials and chance 1/2 is at most that with a probability of at most 2.5 %.
fn rank(n: usize) -> usize {
    // Logarithms: the chance of no success is too small for a double if there are more than a thousand trials.
    let mut log = -(n as f64) * std::f64::consts::LN_2;
    let (mut sum, mut k) = (0.0, 0);
    loop {
        sum += log.exp();
        if sum > 0.025 || k >= n / 2 {
            return k.saturating_sub(1);
        }
        log += ((n - k) as f64 / (k + 1) as f64).ln();
        k += 1;
    }
}

/// A quantity in words, its place in a record, its unit, and its key in a profile if it has one.
#[derive(Clone, Debug)]
pub struct QuantityInfo {
    /// In words.
    pub words: String,
    /// Its place in records.
    pub place: String,
    /// Its unit.
    pub unit: &'static str,
    /// Its key in `[costs]` of a profile, or `smt_permille`.
    pub key: Option<&'static str>,
}

/// Says what a quantity is.
#[must_use]
pub fn told(quantity: Quantity) -> QuantityInfo {
    let cost = |key: &'static str, words: &str| QuantityInfo {
        words: words.into(),
        place: key.into(),
        unit: "ns",
        key: Some(key),
    };
    let other = |place: &str, unit, words: &str| QuantityInfo {
        words: words.into(),
        place: place.into(),
        unit,
        key: None,
    };
    match quantity {
        Quantity::CacheHit => cost("cache_hit", "load that hits"),
        Quantity::Atomic => cost("atomic", "atomic operation on an owned line, beyond a hit"),
        Quantity::Fence => cost("fence", "fence"),
        Quantity::SpinIteration => cost("spin_iteration", "turn of a spin loop with PAUSE"),
        Quantity::Transfer(distance) => cost(
            distance.key(),
            match distance.key() {
                "same_core" => "line to the sibling thread",
                "cross_core" => "line to another core of the socket",
                _ => "line to another socket",
            },
        ),
        Quantity::Between(a, b) => QuantityInfo {
            words: format!("line between CPUs {a} and {b}"),
            place: format!("line-{a}-{b}"),
            unit: "ns",
            key: None,
        },
        Quantity::SystemCall => cost("system_call", "futex call that wakes nobody"),
        Quantity::ContextSwitch => cost("context_switch", "switch between two threads of a CPU"),
        Quantity::Wake => other("wake", "ns", "wake-up of a thread on another CPU"),
        Quantity::Timer => other("sleep", "ns", "lateness of a sleep of 1 ms"),
        Quantity::IdleTimer => cost("timer", "its part beyond a wake-up"),
        Quantity::HostTimer => cost("host_timer", "lateness of a timer on a busy CPU"),
        Quantity::SmtPermille => QuantityInfo {
            words: "speed beside a busy sibling".into(),
            place: "smt_permille".into(),
            unit: "permille",
            key: Some("smt_permille"),
        },
        Quantity::BesideBusy => other("beside", "permille", "speed beside another busy core"),
        Quantity::Rewarm { bytes, in_order, away } => {
            rewarm::told("rewarm", "lost to cold caches", bytes, in_order, away)
        }
        Quantity::RewarmControl { bytes, in_order, away } => {
            rewarm::told("rewarm-control", "lost without the other's loads", bytes, in_order, away)
        }
        Quantity::Noise => other("noise", "0.001 %", "CPU time lost to others"),
        Quantity::Interruption => other("interruption", "ns", "longest interruption in 0.1 s"),
        Quantity::Other("hypercall") => cost("hypercall", "exit of a vCPU, and entry"),
        Quantity::Other("ipi") => cost("ipi", "kick of a vCPU on an idle CPU"),
        Quantity::Other(key) => cost(key, key),
    }
}

/// The value of a key, if it was measured.
fn found<'a>(calibration: &'a Calibration, key: &str) -> Option<&'a Series> {
    calibration.series.iter().find(|s| told(s.quantity).key == Some(key))
}

/// Why a key was not measured.
fn why_not(calibration: &Calibration, key: &str) -> String {
    let missing = calibration.missing.iter().find(|(q, _)| told(*q).key == Some(key));
    missing.map_or_else(
        || "not measured: this needs a hypervisor, or depends on the work".into(),
        |(_, why)| format!("not measured: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_medians_are_those_of_the_tables() {
        // Conover, table A3 (binomial with p = 1/2): at most 2.5 % in each tail.
        for (n, below) in [(6, 0), (9, 1), (12, 2), (20, 5), (30, 9), (100, 39)] {
            assert_eq!(rank(n), below, "{n}");
        }
        let samples: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        let median = Median::of(&samples).unwrap();
        assert_eq!((median.value, median.interval, median.n), (10.5, [6.0, 15.0], 20));
        assert_eq!(Median::of(&[]), None);
        assert_eq!(Median::of(&[3.0, 1.0]).unwrap().interval, [1.0, 3.0]);
        assert!(rank(5000) > 2400, "large numbers do not underflow");
    }
}
