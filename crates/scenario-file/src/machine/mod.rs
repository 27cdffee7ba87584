//! Machines by name: costs on real hardware, each value with its source or marked as assumed. `host.machine`
//! of a scenario names one; single costs can be overridden there.
//!
//! To add a machine, add a file with its values and a line in [`MACHINES`].

mod core2;
mod epyc_milan;
pub mod file;
mod generic;
mod graviton2;
mod haswell_ep;
mod kunpeng_920;
mod nehalem_ep;
mod pentium_3;
mod pentium_3_xeon;
mod reference;
mod skylake_sp;

pub use reference::{comparison, tables};

use crate::cost_keys;
use overspin_scenario::keys::with_defaults;
use overspin_scenario::{Costs, Picos, Quantiles, Tree, Value as Data, Varying, tree};

/// All machines. The first is the default; it has the values that others leave out.
pub const MACHINES: &[Machine] = &[
    generic::MACHINE,
    pentium_3_xeon::MACHINE,
    pentium_3::MACHINE,
    core2::MACHINE,
    nehalem_ep::X5570,
    nehalem_ep::E5520,
    haswell_ep::MACHINE,
    skylake_sp::MACHINE,
    epyc_milan::MACHINE,
    kunpeng_920::MACHINE,
    graviton2::MACHINE,
];

/// The machine of scenarios that name no machine.
pub const DEFAULT: &Machine = &MACHINES[0];

/// The machine of this name, or of the profile in this file.
#[must_use]
pub fn machine(name: &str) -> Option<&'static Machine> {
    if file::is_file(name) {
        return file::load(name).ok();
    }
    MACHINES.iter().find(|m| m.name == name)
}

/// A machine, with its costs.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Name in scenarios.
    pub name: &'static str,
    /// A short description.
    pub brief: &'static str,
    /// When it was sold.
    pub year: u16,
    /// Its nominal clock in MHz, which converts cycles to time.
    pub mhz: u32,
    /// The values that differ from [`DEFAULT`], or have a better source.
    pub values: &'static [Value],
}

/// One value: a key of `[host.costs]`, or `smt_permille` of `[host]`.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// The key.
    pub key: &'static str,
    /// The amount, in `unit`.
    pub amount: f64,
    /// The unit of its source.
    pub unit: Unit,
    /// How it is known.
    pub basis: Basis,
    /// The quantiles of a cost that varies; `amount` is then the median.
    pub varies: Option<Quantiles>,
}

/// The unit of a [`Value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Cycles of the machine's clock.
    Cycles,
    /// Nanoseconds.
    Nanos,
    /// Thousandths of full speed.
    Permille,
}

impl Unit {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Nanos => "ns",
            Self::Permille => "thousandths",
        }
    }
}

/// How a value is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Basis {
    /// Published, or computed from what was published, for this machine.
    Source(&'static str),
    /// Not published, or not for this machine.
    Assumed {
        /// Least plausible amount, in the unit of the value.
        low: f64,
        /// Largest plausible amount.
        high: f64,
        /// The basis of the estimate.
        from: &'static str,
    },
    /// Chosen, and no property of a machine: another choice would be another kind of host.
    Chosen(&'static str),
}

/// A value in cycles, with its source.
const fn cycles(key: &'static str, amount: f64, source: &'static str) -> Value {
    Value { key, amount, unit: Unit::Cycles, basis: Basis::Source(source), varies: None }
}

/// A value in nanoseconds, with its source.
const fn nanos(key: &'static str, amount: f64, source: &'static str) -> Value {
    Value { key, amount, unit: Unit::Nanos, basis: Basis::Source(source), varies: None }
}

/// Speed of a thread beside a busy sibling, with its source.
const fn smt(amount: f64, source: &'static str) -> Value {
    Value {
        key: "smt_permille",
        amount,
        unit: Unit::Permille,
        basis: Basis::Source(source),
        varies: None,
    }
}

impl Value {
    /// Makes the value an assumption; its source becomes the basis of the estimate.
    const fn assumed(self, low: f64, high: f64) -> Self {
        let (Basis::Source(from) | Basis::Assumed { from, .. } | Basis::Chosen(from)) = self.basis;
        Self { basis: Basis::Assumed { low, high, from }, ..self }
    }

    /// Makes the value a choice; its source becomes the reason.
    const fn chosen(self) -> Self {
        let (Basis::Source(why) | Basis::Assumed { from: why, .. } | Basis::Chosen(why)) =
            self.basis;
        Self { basis: Basis::Chosen(why), ..self }
    }

    /// An amount of the value's unit as time on a machine with this clock; `None` for a share.
    ///
    /// It takes one multiplication, one division and one rounding of doubles. IEEE 754 defines these to the
    /// bit, so the picoseconds are the same everywhere.
    fn time(&self, amount: f64, mhz: u32) -> Option<Picos> {
        let ps = match self.unit {
            Unit::Cycles => amount * 1e6 / f64::from(mhz),
            Unit::Nanos => amount * 1e3,
            Unit::Permille => return None,
        };
        Some(Picos(ps.round() as u64))
    }
}

impl Machine {
    /// The value of a key and the machine that has it: this one, or [`DEFAULT`] if this one leaves it out.
    /// `None` if neither has it.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<(&Value, &Machine)> {
        let of = |m| Machine::own(m, key).map(|v| (v, m));
        of(self).or_else(|| of(DEFAULT))
    }

    fn own(&self, key: &str) -> Option<&Value> {
        self.values.iter().find(|v| v.key == key)
    }

    /// The cost of `key` of `[host.costs]` here, the median of one that varies; 0 if no machine has it, which a test rules
    /// out.
    #[must_use]
    pub fn cost(&self, key: &str) -> Picos {
        self.value(key).and_then(|(v, of)| v.time(v.amount, of.mhz)).unwrap_or_default()
    }

    /// The cost of `key` of `[host.costs]` here.
    #[must_use]
    pub fn varying(&self, key: &str) -> Varying {
        let quantiles = self.value(key).and_then(|(v, _)| v.varies);
        quantiles.map_or_else(|| self.cost(key).into(), Varying::Drawn)
    }

    /// The least and the largest plausible value of a cost that is assumed, not published, for this machine;
    /// `None` if it has a source.
    #[must_use]
    pub fn assumed(&self, key: &str) -> Option<[Picos; 2]> {
        let (value, of) = self.value(key)?;
        let Basis::Assumed { low, high, .. } = value.basis else { return None };
        Some([value.time(low, of.mhz)?, value.time(high, of.mhz)?])
    }

    /// Speed of a thread while its sibling runs too, in thousandths of full speed.
    #[must_use]
    pub fn smt_permille(&self) -> u32 {
        self.value("smt_permille").map_or(1000, |(v, _)| v.amount.round() as u32)
    }

    /// All costs.
    #[must_use]
    pub fn costs(&self) -> Costs {
        let costs = cost_keys().map(|key| (key.to_owned(), data(self.varying(key))));
        with_defaults(costs.collect::<Tree>().into())
    }
}

/// A cost as data.
pub(crate) fn data(cost: Varying) -> Data {
    match cost {
        Varying::Always(time) => time.0.into(),
        Varying::Drawn(quantiles) => tree(&quantiles).into(),
    }
}

#[cfg(test)]
mod tests;
