//! Model checking: the shipped lock code under loom, in every interleaving and with every stale
//! value that the memory model allows, up to a bound on preemptions that each test states.
//!
//! - `platform` and `cells`: the world of the model checker, with interrupts, kicks, and mutations;
//! - `harness`: how a model is explored, and how a mutant counts as caught;
//! - `correct`: the locks as they are; nothing may be found;
//! - `mutants`, `mutants_*`: the bugs of history and some likely ones; each must be found, and the
//!   correct lock must pass the very same model.
//!
//! Nothing special is needed to run it: `cargo test -p overspin-locks --test loom`. Results and
//! limits are in `docs/model-checking.md`.

mod cells;
mod correct;
mod harness;
mod mutants;
mod mutants_clh;
mod mutants_cna;
mod mutants_flexguard;
mod mutants_hemlock;
mod mutants_malthusian;
mod mutants_mcs;
mod mutants_mcs_tp;
mod mutants_shfllock;
mod mutants_twa;
mod platform;
