//! The way out of a simulation for schedulers and workloads from outside that need more than a task's 64 KiB of
//! stack, or a stack that belongs to a thread: an interpreter of another language, for instance.

use crate::engine::Left;

/// Calls `what` on the stack of the thread that called [`run`](crate::run), and returns its result. Outside a run, it
/// is a plain call.
///
/// Programs of workloads run on small stacks of their own, and so do the calls to a scheduler for which a guest is the
/// cause. `what` runs outside the simulation: it cannot use simulated cells or an
/// [`Env`](overspin_workload::Env), which is not `Send`. It may start another run. A change of stacks costs some tens of
/// nanoseconds.
///
/// # Panics
/// If `what` does. To end a run with a value, unwind with it (`std::panic::resume_unwind`): the caller of the run
/// gets it from `std::panic::catch_unwind`.
pub fn on_callers_stack<R: Send>(what: impl FnOnce() -> R + Send) -> R {
    let Some((_left, engine)) = Left::new() else { return what() };
    let mut result = None;
    engine.telling.on_callers_stack(&engine.code.yielder, || result = Some(what()));
    result.expect("it was called")
}
