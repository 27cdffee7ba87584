//! Time as hypervisors count it.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Rem, Sub, SubAssign};

/// A time or a duration in nanoseconds.
///
/// A time counts from a moment that the world chooses, for instance the beginning of a simulation.
/// Schedulers use only differences of times and multiples of their periods. The number is signed,
/// as in the hypervisors and kernels whose schedulers are here: the difference of two times is
/// negative if the first is earlier, and an overrun budget is negative. 63 bits last for 292 years.
///
/// Credit, weight and virtual time are not nanoseconds, even where a scheduler derives them from run
/// time. They are plain integers, and `.0` marks the place where time becomes one of them.
///
/// ```
/// use overspin_sched::Nanos;
///
/// let slice = Nanos::ms(30);
/// assert_eq!(slice, 30 * Nanos::MS);
/// assert_eq!(slice / Nanos::US, 30_000);
/// assert!(Nanos::ms(10) - slice < Nanos::ZERO);
/// assert_eq!(slice.to_string(), "30 ms");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Nanos(pub i64);

impl Nanos {
    /// A duration of zero; the moment from which times count.
    pub const ZERO: Self = Self(0);
    /// A microsecond.
    pub const US: Self = Self(1_000);
    /// A millisecond.
    pub const MS: Self = Self(1_000_000);
    /// A second.
    pub const SEC: Self = Self(1_000_000_000);
    /// Earlier than every other time.
    pub const MIN: Self = Self(i64::MIN);
    /// Later than every other time: never.
    pub const MAX: Self = Self(i64::MAX);

    /// `n` microseconds. Constants can use this; they cannot call operators.
    #[must_use]
    pub const fn us(n: i64) -> Self {
        Self(n * Self::US.0)
    }

    /// `n` milliseconds.
    #[must_use]
    pub const fn ms(n: i64) -> Self {
        Self(n * Self::MS.0)
    }

    /// `n` seconds.
    #[must_use]
    pub const fn sec(n: i64) -> Self {
        Self(n * Self::SEC.0)
    }

    /// The sum, at most [`Self::MAX`] and at least [`Self::MIN`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The product, at most [`Self::MAX`] and at least [`Self::MIN`].
    #[must_use]
    pub const fn saturating_mul(self, by: i64) -> Self {
        Self(self.0.saturating_mul(by))
    }

    /// The absolute value.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.abs())
    }

    /// The number of whole `period`s that have passed, rounded down even if negative.
    #[must_use]
    pub const fn div_euclid(self, period: Self) -> i64 {
        self.0.div_euclid(period.0)
    }
}

impl fmt::Display for Nanos {
    /// Writes the time with the largest unit that divides it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(Nanos, &str); 3] = [(Nanos::SEC, "s"), (Nanos::MS, "ms"), (Nanos::US, "us")];
        match UNITS.into_iter().find(|(unit, _)| *self % *unit == Self::ZERO) {
            _ if *self == Self::ZERO => f.write_str("0"),
            Some((unit, name)) => write!(f, "{} {name}", *self / unit),
            None => write!(f, "{} ns", self.0),
        }
    }
}

impl Add for Nanos {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Nanos {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for Nanos {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Mul<i64> for Nanos {
    type Output = Self;

    fn mul(self, by: i64) -> Self {
        Self(self.0 * by)
    }
}

impl Mul<Nanos> for i64 {
    type Output = Nanos;

    fn mul(self, of: Nanos) -> Nanos {
        of * self
    }
}

impl MulAssign<i64> for Nanos {
    fn mul_assign(&mut self, by: i64) {
        self.0 *= by;
    }
}

impl Div<i64> for Nanos {
    type Output = Self;

    /// The quotient, rounded towards zero.
    fn div(self, by: i64) -> Self {
        Self(self.0 / by)
    }
}

impl Div for Nanos {
    type Output = i64;

    /// How often `other` fits into it, rounded towards zero.
    fn div(self, other: Self) -> i64 {
        self.0 / other.0
    }
}

impl Rem for Nanos {
    type Output = Self;

    /// The remainder of the division by `other`, with the sign of `self`.
    fn rem(self, other: Self) -> Self {
        Self(self.0 % other.0)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_unit_is_a_thousand_of_the_next_smaller_one() {
        assert_eq!(Nanos(1_000), Nanos::US);
        assert_eq!(1_000 * Nanos::US, Nanos::MS);
        assert_eq!(1_000 * Nanos::MS, Nanos::SEC);
        assert_eq!(
            [Nanos::us(7), Nanos::ms(7), Nanos::sec(7)].map(|t| t.0),
            [7_000, 7_000_000, 7_000_000_000]
        );
    }

    #[test]
    fn a_time_is_to_a_time_as_a_number() {
        let slice = Nanos::ms(30);
        assert_eq!((slice / Nanos::MS, slice / 4), (30, Nanos::us(7_500)));
        assert_eq!(slice % Nanos::ms(7), Nanos::ms(2));
        assert_eq!([slice, Nanos::US].into_iter().sum::<Nanos>(), Nanos::us(30_001));
        let mut t = slice;
        t += Nanos::MS;
        t -= Nanos::ms(2);
        t *= 2;
        assert_eq!(t, Nanos::ms(58));
    }

    #[test]
    fn differences_have_a_sign_and_round_towards_zero() {
        let early = Nanos::us(1) - Nanos::us(4);
        assert_eq!((early, -early, early.abs()), (Nanos(-3_000), Nanos::us(3), Nanos::us(3)));
        assert_eq!((early / Nanos::us(2), early.div_euclid(Nanos::us(2))), (-1, -2));
        assert_eq!(early % Nanos::us(2), -Nanos::US);
        assert_eq!(early.max(Nanos::ZERO), Nanos::ZERO);
    }

    #[test]
    fn the_ends_of_time_are_not_passed() {
        assert_eq!(Nanos::MAX.saturating_add(Nanos(1)), Nanos::MAX);
        assert_eq!(Nanos::MIN.saturating_add(Nanos(-1)), Nanos::MIN);
        assert_eq!(Nanos::MS.saturating_mul(i64::MAX), Nanos::MAX);
    }

    #[test]
    fn a_text_has_the_largest_unit_that_divides_it() {
        let texts = [0, 17, 1_500, 30_000_000, 1_500_000_000, 2_000_000_000, -2_000];
        let texts = texts.map(|ns| Nanos(ns).to_string());
        assert_eq!(texts, ["0", "17 ns", "1500 ns", "30 ms", "1500 ms", "2 s", "-2 us"]);
    }
}
