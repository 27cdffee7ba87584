//! What one run tells: its report, the causes of its waits, and the tools of a kernel of 2001.

mod answer;
mod beside;
pub mod causes;
mod record;
mod report;
mod steady;
pub mod vmstat;

pub use answer::{answer, subject};
pub use beside::Beside;
pub use record::record;
pub(crate) use record::{add, of_scenario};
pub(crate) use report::FEW_WAITS;
pub use report::report;
pub use steady::{counts, warning};
pub use vmstat::{VmstatRow, vmstat_rows};

use overspin_scenario::Picos;

/// Mean of a time; 0 of nothing.
fn mean(total: Picos, count: u64) -> Picos {
    total.checked_div(count).unwrap_or_default()
}
