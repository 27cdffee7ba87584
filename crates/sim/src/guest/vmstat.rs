//! `vmstat` in a guest. Each line gives the number of tasks that are runnable and that sleep for the disk,
//! the pages written, and the CPU time that the kernel's ticks have charged since the line before. It
//! watches from outside and costs the guest no time.

use super::{Guest, Task, TaskState};
use crate::engine::Engine;
use crate::events::Event;
use overspin_scenario::{Picos, VmstatLine};
use std::cell::{Cell, RefCell};

/// The lines so far, and the sums of their counters.
#[derive(Debug, Default)]
pub(crate) struct Vmstat {
    lines: RefCell<Vec<VmstatLine>>,
    pages_out: Cell<u64>,
    user: Cell<Picos>,
    system: Cell<Picos>,
}

impl Guest {
    pub(super) fn start_vmstat(&self, engine: &Engine) {
        if let Some(interval) = self.domain.kernel.vmstat {
            engine.push(engine.now() + interval, Event::Vmstat { guest: self.id });
        }
    }

    /// Adds a line and schedules the next.
    pub(crate) fn vmstat_event(&self, engine: &Engine) {
        // No lines after the guest has finished, although other domains may go on.
        if self.finished.get().is_none() {
            let line = self.vmstat_line(engine.now());
            let v = &self.vmstat;
            v.pages_out.set(v.pages_out.get() + line.pages_out);
            v.user.set(v.user.get() + line.user);
            v.system.set(v.system.get() + line.system);
            v.lines.borrow_mut().push(line);
            self.start_vmstat(engine);
        }
    }

    /// All lines at the end of the run, including one for the time since the last line.
    pub(crate) fn vmstat_lines(&self, now: Picos) -> Vec<VmstatLine> {
        let mut lines = self.vmstat.lines.borrow().clone();
        if self.domain.kernel.vmstat.is_some() {
            let end = self.finished.get().unwrap_or(now);
            if lines.last().is_none_or(|last| last.at < end) {
                lines.push(self.vmstat_line(end));
            }
        }
        lines
    }

    fn vmstat_line(&self, at: Picos) -> VmstatLine {
        let tasks = self.tasks.borrow();
        let count = |state| tasks.iter().filter(|t| t.state.get() == state).count() as u32;
        let charged = |of: fn(&Task) -> Picos| tasks.iter().map(|t| of(t)).sum::<Picos>();
        VmstatLine {
            at,
            running: count(TaskState::Runnable),
            blocked: count(TaskState::Blocked),
            pages_out: self.disk.as_ref().map_or(0, |d| d.outcome().pages)
                - self.vmstat.pages_out.get(),
            user: charged(|t| t.user_ticks.get()) - self.vmstat.user.get(),
            system: charged(|t| t.system_ticks.get()) - self.vmstat.system.get(),
        }
    }
}
