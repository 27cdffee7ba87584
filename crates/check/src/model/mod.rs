//! Model checking: shipped lock code under loom, in every interleaving and with every stale value
//! that the memory model allows, up to a bound on preemptions that each model states.
//!
//! A model is explored as it is, or with a [`Mutation`](crate::Mutation). A mutation is a bug that the world
//! makes, or that [`Platform::seeded`](overspin_locks::Platform::seeded) puts into the algorithm.
//! `docs/model-checking.md` has results and limits. No `RUSTFLAGS` are needed: loom is used as a library.

mod cells;
mod harness;
mod models;
mod platform;
mod world;

pub use cells::{LoomU8, LoomU16, LoomU32, LoomUsize, Tiny, TinyCell};
pub(crate) use harness::leave_behind;
pub use harness::{EXCLUSION_MESSAGE, Model, Protected, Started, on_cpus, start};
pub use models::{irqsave, last_user_frees, spurious_wakes, tries, weak_failures};
pub use platform::LoomPlatform;
pub use world::{DEADLOCK_MESSAGE, FREED_MESSAGE, Point, World, set_cpu, world};
