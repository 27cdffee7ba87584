//! The command `overspin` with a lock, a scheduler and a workload that are not in the tree.
//!
//! `cargo run -p own-parts -- run examples/own-parts/meeting.toml`. The commands `list`, `check deli`,
//! `bench locks --locks deli,ticket` and sweeps know these parts too.

mod deli;
mod meeting;
mod stride;

use overspin_cli::{Catalog, main_with};
use std::process::ExitCode;

overspin_locks::lock_family!(DeliFamily => deli::Deli);

fn main() -> ExitCode {
    let catalog = Catalog::builtin();
    let catalog = catalog.with_lock::<DeliFamily>();
    let catalog = catalog.with_scheduler(stride::STRIDE);
    main_with(catalog.with_workload(meeting::MEETING))
}
