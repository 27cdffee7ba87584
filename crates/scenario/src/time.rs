//! The type of times in scenarios, worlds and outcomes.

use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, Rem, Sub, SubAssign};
use serde::{Deserialize, Serialize};

/// A time or a length of time in picoseconds: the unit of scenarios, worlds and outcomes.
///
/// It is an integer, so that no rounding ever decides an order, and unsigned: instants count from the
/// start of the run. 64 bits last for 213 days. `Picos::MAX` means "never" where the documentation
/// says so.
///
/// Schedulers count in nanoseconds and have a type of their own. There is no implicit conversion;
/// `overspin-host` has the two functions that convert.
///
/// Operators overflow like those of `u64`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
#[repr(transparent)]
pub struct Picos(pub u64);

/// One nanosecond.
pub const NS: Picos = Picos(1_000);
/// One microsecond.
pub const US: Picos = Picos(1_000_000);
/// One millisecond.
pub const MS: Picos = Picos(1_000_000_000);
/// One second.
pub const SEC: Picos = Picos(1_000_000_000_000);

impl Picos {
    /// No time, and the start of a run.
    pub const ZERO: Self = Self(0);
    /// The longest time; as an instant: never.
    pub const MAX: Self = Self(u64::MAX);

    /// A whole number of microseconds, for a constant; elsewhere `n * US` reads better.
    #[must_use]
    #[inline]
    pub const fn us(n: u64) -> Self {
        Self(n * US.0)
    }

    /// A whole number of milliseconds.
    #[must_use]
    #[inline]
    pub const fn ms(n: u64) -> Self {
        Self(n * MS.0)
    }

    /// A whole number of seconds.
    #[must_use]
    #[inline]
    pub const fn sec(n: u64) -> Self {
        Self(n * SEC.0)
    }

    /// Whether it is no time.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// The time in seconds, for reports and for statistics.
    #[must_use]
    #[inline]
    pub fn seconds(self) -> f64 {
        self.ratio(SEC)
    }

    /// The time in milliseconds, for reports and for statistics.
    #[must_use]
    #[inline]
    pub fn millis(self) -> f64 {
        self.ratio(MS)
    }

    /// The time in microseconds, for reports and for statistics.
    #[must_use]
    #[inline]
    pub fn micros(self) -> f64 {
        self.ratio(US)
    }

    /// The time in nanoseconds, for reports and for statistics.
    #[must_use]
    #[inline]
    pub fn nanos(self) -> f64 {
        self.ratio(NS)
    }

    /// The time divided by `whole`. If `whole` is zero, the result is not a number, or infinite.
    #[must_use]
    #[inline]
    pub fn ratio(self, whole: Self) -> f64 {
        self.0 as f64 / whole.0 as f64
    }

    /// The time in per cent of `whole`, with the exceptions of [`ratio`](Self::ratio).
    #[must_use]
    #[inline]
    pub fn percent(self, whole: Self) -> f64 {
        100.0 * self.0 as f64 / whole.0 as f64
    }

    /// The sum, or [`Picos::MAX`].
    #[must_use]
    #[inline]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or zero if `other` is longer.
    #[must_use]
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The product, or [`Picos::MAX`].
    #[must_use]
    #[inline]
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// One of `parts` equal parts, rounded down; `None` if `parts` is 0.
    #[must_use]
    #[inline]
    pub fn checked_div(self, parts: u64) -> Option<Self> {
        self.0.checked_div(parts).map(Self)
    }

    /// The number of pieces of at most `piece` that make up the time.
    #[must_use]
    #[inline]
    pub fn div_ceil(self, piece: Self) -> u64 {
        self.0.div_ceil(piece.0)
    }

    /// The time between two instants, in any order.
    #[must_use]
    #[inline]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add for Picos {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Picos {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Picos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for Picos {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Picos {
    type Output = Self;

    #[inline]
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Mul<Picos> for u64 {
    type Output = Picos;

    #[inline]
    fn mul(self, time: Picos) -> Picos {
        time * self
    }
}

impl Div<u64> for Picos {
    type Output = Self;

    #[inline]
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl DivAssign<u64> for Picos {
    #[inline]
    fn div_assign(&mut self, parts: u64) {
        self.0 /= parts;
    }
}

/// How often `other` fits into the time.
impl Div for Picos {
    type Output = u64;

    #[inline]
    fn div(self, other: Self) -> u64 {
        self.0 / other.0
    }
}

/// The remainder after the last whole `other`.
impl Rem for Picos {
    type Output = Self;

    #[inline]
    fn rem(self, other: Self) -> Self {
        Self(self.0 % other.0)
    }
}

/// A sum that does not fit is the longest time: the times of a record may be any.
impl Sum for Picos {
    #[inline]
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::ZERO, Self::saturating_add)
    }
}

impl<'a> Sum<&'a Self> for Picos {
    #[inline]
    fn sum<I: Iterator<Item = &'a Self>>(times: I) -> Self {
        times.copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_thousands_of_each_other() {
        assert_eq!([NS / Picos(1), US / NS, MS / US, SEC / MS], [1_000; 4]);
        assert_eq!((1_500 * MS).seconds(), 1.5);
        assert_eq!([(3 * MS).millis(), (3 * US).micros(), (3 * NS).ratio(NS)], [3.0; 3]);
    }

    #[test]
    fn a_quotient_of_times_is_a_number() {
        assert_eq!((7 * MS / (2 * MS), 7 * MS % (2 * MS)), (3, MS));
        assert_eq!((7 * MS / 2, SEC.checked_div(0)), (3_500 * US, None));
        assert_eq!([MS, US].iter().sum::<Picos>(), MS + US);
        assert_eq!([MS, Picos::MAX].iter().sum::<Picos>(), Picos::MAX);
    }

    #[test]
    fn a_record_has_the_number_alone() {
        assert_eq!(serde_json::to_string(&MS).expect("a number"), "1000000000");
        assert_eq!(serde_json::from_str::<Picos>("7").expect("a time"), Picos(7));
    }
}
