//! Times that vary from one occurrence to the next, as they were measured: quantiles, and draws between them.
//!
//! A measured cost has a narrow body and a long tail, which no distribution of one or two parameters fits. So a
//! distribution is a few quantiles of the samples. A draw is made for `u`, uniform in [0, 1), on the scale
//! `t = -log2(1 - u)`: the median is at 1, p99 at 6.6. Between two quantiles the time is linear in `t`:
//!
//! ```text
//!   time ^                          . max, if there is one: no draw is longer
//!        |                      .·´    beyond the last quantile: on with the slope before it
//!        |                 p99·
//!        |           p90 .´            a quantile that is not given: on the line of its neighbours
//!        | min__p50__.·´              min: at u = 0
//!        +---+---+----+--------+--> t
//!        0   1   3.3  6.6
//! ```
//!
//! A tail that is a straight line on this scale is exponential, as of waiting for something that comes at random. All is
//! integer arithmetic, so that a draw is the same on every machine.

use crate::{Fault, Picos};
use alloc::format;
use serde::{Deserialize, Serialize};

/// A time that is always the same, or drawn from a distribution each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Varying {
    /// Always this.
    Always(Picos),
    /// Drawn.
    Drawn(Quantiles),
}

impl From<Picos> for Varying {
    fn from(time: Picos) -> Self {
        Self::Always(time)
    }
}

impl From<Quantiles> for Varying {
    fn from(quantiles: Quantiles) -> Self {
        Self::Drawn(quantiles)
    }
}

impl Varying {
    /// The median.
    #[must_use]
    pub fn median(&self) -> Picos {
        match self {
            Self::Always(time) => *time,
            Self::Drawn(quantiles) => quantiles.p50,
        }
    }

    /// Checks that quantiles are in order.
    ///
    /// # Errors
    /// Says which quantile is wrong.
    pub fn agrees(&self) -> Result<(), Fault> {
        match self {
            Self::Always(_) => Ok(()),
            Self::Drawn(quantiles) => quantiles.agree(),
        }
    }
}

parameters! {
    @refuse_others
    /// Quantiles of a time, between which draws are interpolated: see the top of the file.
    #[derive(Copy, Eq)]
    Quantiles: pub QUANTILES at "quantiles of a time",
    "Quantiles of a time that is drawn anew each time. In between, it is linear in the logarithm of the part beyond." {
        /// `None`: the median.
        min: Option<Picos> = time(Picos::ZERO, SEC), Means("`p50`"), "Shortest.";
        p50: Picos = time(Picos::ZERO, SEC), Required, "Median.";
        /// `None`: the line between its neighbours, as for all others.
        p90: Option<Picos> = time(Picos::ZERO, SEC), Means("interpolated"), "1 in 10 is longer.";
        p95: Option<Picos> = time(Picos::ZERO, SEC), Means("interpolated"), "1 in 20.";
        p99: Picos = time(Picos(1), SEC), Required, "1 in 100.";
        p995: Option<Picos> = time(Picos(1), SEC), Means("interpolated"), "1 in 200.";
        p999: Option<Picos> = time(Picos(1), SEC), Means("interpolated"), "1 in 1000.";
        /// `None`: the tail ends where the random numbers do.
        max: Option<Picos> = time(Picos(1), Picos::sec(10)), Means("no limit"), "Longest.";
    }
}

/// `t` at the median, log2(2), in units of 2^-32. It is as far from p90 to p95, and from p99 to p99.5.
const MEDIAN: u64 = 1 << 32;
/// `t` at p90, log2(10). It is as far from there to p99, and to p99.9.
const TENTH: u64 = 14_267_572_527;

impl Quantiles {
    /// Only the median and p99.
    #[must_use]
    pub fn new(p50: Picos, p99: Picos) -> Self {
        Self { min: None, p50, p90: None, p95: None, p99, p995: None, p999: None, max: None }
    }

    /// The time at `t`, which is `-log2(1 - u)` in units of 2^-32. For a draw, `u` is uniform in [0, 1).
    #[must_use]
    pub fn at(&self, t: u64) -> Picos {
        let later = [
            (TENTH, self.p90),
            (TENTH + MEDIAN, self.p95),
            (2 * TENTH, Some(self.p99)),
            (2 * TENTH + MEDIAN, self.p995),
            (3 * TENTH, self.p999),
        ];
        let (mut from, mut to) = ((0, self.min.unwrap_or(self.p50)), (MEDIAN, self.p50));
        for (at, time) in later {
            let Some(time) = time else { continue };
            if t < to.0 {
                break;
            }
            (from, to) = (to, (at, time));
        }
        let time = between(from, to, t);
        self.max.map_or(time, |max| time.min(max))
    }

    /// The quantiles that are given, with their keys, in order.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, Picos)> + use<> {
        let Self { min, p50, p90, p95, p99, p995, p999, max } = *self;
        let all = [
            ("min", min),
            ("p50", Some(p50)),
            ("p90", p90),
            ("p95", p95),
            ("p99", Some(p99)),
            ("p995", p995),
            ("p999", p999),
            ("max", max),
        ];
        all.into_iter().filter_map(|(key, time)| Some((key, time?)))
    }

    /// Checks that they are in order.
    fn agree(&self) -> Result<(), Fault> {
        let mut given = self.given();
        let Some(mut before) = given.next() else { return Ok(()) };
        for (key, time) in given {
            let (lower, least) = before;
            if time < least {
                let message = format!("{least} is longer than `{key}`, which is {time}");
                return Err(Fault::new(lower, message, "quantiles grow from `min` to `max`"));
            }
            before = (key, time);
        }
        Ok(())
    }
}

/// The line through two points, at `t`, which is not before the first.
fn between((t0, from): (u64, Picos), (t1, to): (u64, Picos), t: u64) -> Picos {
    let more = u128::from((to - from).0) * u128::from(t - t0) / u128::from(t1 - t0);
    from + Picos(more as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NS, US, tree};
    use proptest::prelude::*;

    const GIVEN: Quantiles = Quantiles {
        min: Some(US),
        p50: Picos::us(2),
        p90: Some(Picos::us(3)),
        p95: Some(Picos::us(4)),
        p99: Picos::us(20),
        p995: Some(Picos::us(100)),
        p999: Some(Picos::us(700)),
        max: Some(Picos::us(900)),
    };

    /// `-log2(1 - u)` of a quantile, computed another way.
    fn t(u: f64) -> u64 {
        (-(1.0 - u).log2() * 4_294_967_296.0).round() as u64
    }

    fn close(time: Picos, to: Picos) -> bool {
        (time.nanos() - to.nanos()).abs() <= 1e-6 * to.nanos()
    }

    #[test]
    fn given_quantiles_are_those_of_draws() {
        let at = |u| GIVEN.at(t(u));
        assert_eq!(at(0.0), US);
        for (u, time) in [(0.5, 2), (0.9, 3), (0.95, 4), (0.99, 20), (0.995, 100), (0.999, 700)] {
            assert!(close(at(u), time * US), "{u}: {}", at(u));
        }
        // A fourth of the draws are longer at t = 2: half of the way from 1 to 3.3219 is 43 %.
        assert!(close(at(0.75), Picos(2_430_676)), "{}", at(0.75));
        assert_eq!(GIVEN.at(64 << 32), 900 * US);
    }

    #[test]
    fn what_is_left_out_is_on_the_line_of_its_neighbours() {
        // An exponential tail beyond the median: p99 - p50 is ln(50) means, p99.9 - p50 is ln(500).
        let bare = Quantiles::new(GIVEN.p50, GIVEN.p99);
        let mean = 18_000.0 / 50_f64.ln();
        for u in [0.6, 0.9, 0.99, 0.999, 0.999_999] {
            let exact = 2000.0 + mean * (0.5_f64 / (1.0 - u)).ln();
            assert!((bare.at(t(u)).nanos() - exact).abs() < 1e-6 * exact, "{u}");
        }
        assert_eq!((bare.at(0), bare.at(1 << 31)), (2 * US, 2 * US));
    }

    #[test]
    fn faults_name_the_quantile() {
        let wrong = |q: Quantiles| Varying::from(q).agrees().unwrap_err();
        let fault = wrong(Quantiles::new(30 * US, 20 * US));
        assert_eq!(
            (fault.key.as_str(), fault.message.as_str()),
            ("p50", "30us is longer than `p99`, which is 20us")
        );
        assert_eq!(wrong(Quantiles { min: Some(3 * US), ..GIVEN }).key, "min");
        assert_eq!(wrong(Quantiles { max: Some(US), ..GIVEN }).key, "p999");
        assert_eq!(wrong(Quantiles { p95: None, p99: US, ..GIVEN }).key, "p90");
        assert_eq!(Varying::from(GIVEN).agrees(), Ok(()));
        let fault = QUANTILES.check(&tree(&Quantiles { p99: Picos::ZERO, ..GIVEN })).unwrap_err();
        assert_eq!(fault.key, "p99");
    }

    #[test]
    fn as_data_a_time_is_a_number_and_quantiles_are_a_table() {
        for varying in [Varying::Always(NS), GIVEN.into()] {
            let data = serde_json::to_value(varying).unwrap();
            assert_eq!(data.is_number(), varying == Varying::Always(NS));
            assert_eq!(serde_json::from_value::<Varying>(data).unwrap(), varying);
        }
        let text = r#"{ "p50": 1, "p99": 2, "p98": 2 }"#;
        assert!(serde_json::from_str::<Varying>(text).is_err(), "p98 is no quantile");
    }

    proptest! {
        #[test]
        fn longer_t_longer_time(mut times in prop::collection::vec(1..1_000_000_000_u64, 7), a: u64, b: u64) {
            times.sort_unstable();
            let [p50, p99] = [1, 4].map(|i| Picos(times[i]));
            let [min, p90, p95, p995, p999] = [0, 2, 3, 5, 6].map(|i| Some(Picos(times[i])));
            let q = Quantiles { min, p50, p90, p95, p99, p995, p999, max: None };
            let (a, b) = (a % (65 << 32), b % (65 << 32));
            let (low, high) = (q.at(a.min(b)), q.at(a.max(b)));
            prop_assert!(q.min <= Some(low) && low <= high);
            prop_assert!(high <= 25 * q.p999.unwrap());
        }
    }
}
