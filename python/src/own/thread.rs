//! The thread on which a run calls Python.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether this process has registered a part. Until then no run calls Python, and no thread prepares for it.
pub(super) static ANY: AtomicBool = AtomicBool::new(false);

/// A thread that makes runs, and that another thread may interrupt.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    /// Python's number of the thread; 0 while Python does not know it.
    ident: AtomicU64,
}

impl Worker {
    /// Does `work` on this thread. If there are parts in Python, Python knows the thread for all of it: otherwise each
    /// call from `work` would make and drop Python's state of a thread, which takes microseconds.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        if !ANY.load(Ordering::Relaxed) {
            return work();
        }
        Python::attach(|py| {
            let ident = py.import("threading").and_then(|m| m.call_method0("get_ident"));
            let ident = ident.and_then(|ident| ident.extract()).unwrap_or(0);
            self.ident.store(ident, Ordering::Relaxed);
            let result = py.detach(work);
            self.ident.store(0, Ordering::Relaxed);
            result
        })
    }

    /// Raises `KeyboardInterrupt` in the Python code that the thread executes, or will execute next.
    pub(crate) fn interrupt(&self, py: Python<'_>) {
        let ident = self.ident.load(Ordering::Relaxed);
        if ident == 0 {
            return;
        }
        let class = py.get_type::<pyo3::exceptions::PyKeyboardInterrupt>();
        // SAFETY: this thread holds Python's lock, `class` is an exception class, and the function takes its own
        // reference to it. A thread that has ended in the meantime is not found, which does no harm.
        unsafe { pyo3::ffi::PyThreadState_SetAsyncExc(ident as _, class.as_ptr()) };
    }
}
