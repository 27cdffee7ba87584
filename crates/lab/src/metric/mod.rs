//! The quantities that records hold: one definition of each, which the code that measures uses and from which
//! `docs/metrics.md` is written.

pub mod real;
pub mod threads;

pub(crate) use overspin_record::metric::{Metric, Table};
