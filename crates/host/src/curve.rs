//! The curve of a run: how many items each domain has done, at equal steps of time.

use alloc::vec::Vec;
use overspin_scenario::{DomainOutcome, MS, Outcome, Picos};

/// Most steps. A run that goes on has half as many, twice as long, so that a short and a long run have a curve of about
/// the same size.
const STEPS: usize = 64;

/// Follows the items of all domains. A world looks when [`due`](Self::due) says so; one that looks later is taken to
/// have worked evenly since it looked last.
#[derive(Debug)]
pub struct Curve {
    step: Picos,
    /// Values at the ends of the steps, by domain.
    values: Vec<Vec<u64>>,
    /// The last look, and the items that it found.
    last: (Picos, Vec<u64>),
}

impl Curve {
    /// The curve of so many domains.
    #[must_use]
    pub fn new(domains: usize) -> Self {
        let empty = || (0..domains).map(|_| Vec::new()).collect();
        Self { step: MS, values: empty(), last: (Picos::ZERO, (0..domains).map(|_| 0).collect()) }
    }

    /// When to look next.
    #[must_use]
    pub fn due(&self) -> Picos {
        self.step * (self.values.first().map_or(0, Vec::len) as u64 + 1)
    }

    /// Takes the items of all domains up to now.
    pub fn look(&mut self, now: Picos, items: Vec<u64>) {
        while self.due() <= now {
            let due = self.due();
            let (then, before) = &self.last;
            let (part, whole) = (due.saturating_sub(*then).0, now.saturating_sub(*then).0.max(1));
            for (values, (before, items)) in self.values.iter_mut().zip(before.iter().zip(&items)) {
                let done = u128::from(items.saturating_sub(*before)) * u128::from(part)
                    / u128::from(whole);
                // No more than `items - before`.
                values.push(before + done as u64);
            }
            if self.values.first().is_none_or(|values| values.len() == STEPS) {
                self.step = self.step * 2;
                self.values.iter_mut().for_each(|values| {
                    let mut step = 0;
                    values.retain(|_| {
                        step += 1;
                        step % 2 == 0
                    });
                });
            }
        }
        self.last = (now, items);
    }

    /// Puts the curve into the outcome.
    pub fn complete(self, outcome: &mut Outcome) {
        outcome.progress_step = self.step;
        let all = outcome.domains.iter_mut().zip(self.values);
        all.for_each(|(DomainOutcome { progress, .. }, values)| *progress = values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look at every due time, or every 7 ms, gives the same curve of even work, however long the run.
    #[test]
    fn a_curve_keeps_the_values_of_its_steps() {
        for end in [Picos::us(500), Picos::ms(5), Picos::ms(64), Picos::ms(1000), Picos::ms(10_007)]
        {
            let rate = |t: Picos| t.0 / MS.0 * 10;
            let (mut exact, mut coarse) = (Curve::new(2), Curve::new(2));
            while exact.due() <= end {
                let now = exact.due();
                exact.look(now, [rate(now), 3 * rate(now)].into());
            }
            for looks in 1.. {
                let now = Picos::ms(7 * looks);
                if now > end {
                    break;
                }
                coarse.look(now, [rate(now), 3 * rate(now)].into());
            }
            for curve in [exact, coarse] {
                let of_domains = curve.values.iter().zip([1, 3]);
                for (values, times) in of_domains {
                    assert!(values.len() < STEPS);
                    for (i, value) in (1..).zip(values) {
                        assert_eq!(*value, rate(curve.step * i) * times, "{end}");
                    }
                }
            }
        }
    }
}
