//! Model checking: the shipped lock code under loom, in every interleaving and with every stale
//! value that the memory model allows, up to a bound on preemptions that each test states.
//!
//! - `overspin_check::model`: the world of the model checker, with interrupts, kicks, and mutations;
//!   how a model is explored, and how a mutant counts as caught;
//! - `correct`: the locks as they are; nothing may be found;
//! - `mutants`, `mutants_*`: the bugs of history and some likely ones; each must be found, and the
//!   correct lock must pass the very same model.
//!
//! Nothing special is needed to run it: `cargo test -p overspin-check --test model`. Results and
//! limits are in `docs/model-checking.md`.

mod correct;
mod giving_up;
mod mutants;
mod mutants_backoff;
mod mutants_clh;
mod mutants_cna;
mod mutants_flexguard;
mod mutants_futex;
mod mutants_hemlock;
mod mutants_ispinlock;
mod mutants_malthusian;
mod mutants_mcs;
mod mutants_mcs_tp;
mod mutants_mutexee;
mod mutants_preemptable;
mod mutants_pv_qspinlock;
mod mutants_pv_ticket;
mod mutants_qspinlock;
mod mutants_qspinlock_unfair;
mod mutants_rotating;
mod mutants_shfllock;
mod mutants_twa;

// The names under which the tests know the parts of the library.
use overspin_check::model as cells;
use overspin_check::model as harness;
use overspin_check::model as platform;
