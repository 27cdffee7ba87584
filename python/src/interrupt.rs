//! Work outside Python that Ctrl-C ends: it is done on another thread, while the calling thread looks for signals.

use crate::own::{self, Worker};
use overspin_runs::runner::Until;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Flags that no work uses. A flag lives as long as the process; there are never more than there was work at a time.
static FREE: Mutex<Vec<&'static AtomicBool>> = Mutex::new(Vec::new());

/// A flag that tells work to stop. It must live longer than the work.
#[derive(Debug)]
pub(crate) struct Flag(&'static AtomicBool);

impl Flag {
    /// Tells the work to stop.
    pub(crate) fn raise(&self) {
        // The flag stands alone: no other memory depends on it.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Stops work when the flag is raised, or at `deadline`.
    pub(crate) fn until(&self, deadline: Option<Instant>) -> Until {
        Until { deadline, interrupted: Some(self.0) }
    }

    pub(crate) fn take() -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let flag = free.unwrap_or_else(|| Box::leak(Box::new(AtomicBool::new(false))));
        flag.store(false, Ordering::Relaxed);
        Self(flag)
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// Does `work` without holding Python's lock. If a signal's handler raises an exception, as that of Ctrl-C does, the
/// work is told to stop, and its result is dropped. In a thread to which Python delivers no signals, the work goes on to
/// its end, or to `deadline`.
///
/// # Errors
/// The exception of the handler; or if no thread can be started.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    deadline: Option<Instant>,
    work: impl FnOnce(Until) -> T + Send,
) -> PyResult<T> {
    let flag = Flag::take();
    let until = flag.until(deadline);
    let thread = Worker::default();
    let thread = &thread;
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, wait) = sync_channel::<()>(1);
            let worker = std::thread::Builder::new().name("overspin".into()).spawn_scoped(
                scope,
                move || {
                    let result = thread.run(|| work(until));
                    // The other end waits for this or for the end of the thread.
                    let _ = done.send(());
                    result
                },
            );
            let worker = worker.map_err(|error| {
                PyRuntimeError::new_err(format!("cannot start a thread for the work: {error}"))
            })?;
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(LOOK_EVERY) {
                let look = |py: Python<'_>| {
                    // Code in Python that does not come back does not see the flag.
                    py.check_signals().inspect_err(|_| thread.interrupt(py))
                };
                let error = match Python::try_attach(look) {
                    Some(Ok(())) => continue,
                    Some(Err(error)) => Some(error),
                    // The interpreter has ended: there is no caller to return to.
                    None => None,
                };
                raised = raised.or(error);
                flag.raise();
            }
            match (worker.join(), raised) {
                (_, Some(error)) => Err(error),
                (Ok(result), None) => Ok(result),
                (Err(panic), None) => Err(own::raised(panic)),
            }
        })
    })
}
