//! What one run tells: its report, the causes of its waits, and the tools of a kernel of 2001.

pub(crate) mod causes;
mod report;
pub(crate) mod vmstat;

pub use report::report;
pub use vmstat::{VmstatRow, vmstat_rows};
