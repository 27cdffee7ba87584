//! Scenarios of the mutexes of a recorded program: `overspin fit`.
//!
//! `recording.rs` reads what `overspin exec --record` wrote, `scenario.rs` makes a scenario of one mutex, and `report.rs`
//! runs it: first as recorded, beside the recording, then with other locks and with twice the load.

mod recording;
mod report;
mod scenario;

pub use recording::{Histogram, Mutex, Recording, others, read};
pub use report::{Failed, Report, report};
pub use scenario::{Fitted, LOCKS, scenario};

#[cfg(test)]
mod tests;
