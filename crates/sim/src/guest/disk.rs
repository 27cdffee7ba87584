//! A guest's disk: a queue of pages, served in one direction, with neighbouring pages in one request.
//!
//! The elevator takes the queued page with the lowest address at or after the head, or the lowest of all if
//! there is none. It adds the queued pages that follow without a gap, up to the size of a request. So a
//! disk with a long queue seeks little: `n` pages in `k` runs take `k * seek + n * page`, less one seek
//! if a run begins at the head.
//!
//! The drive begins the next request by itself. The interrupts of the requests go to the vCPUs in turn; each
//! wakes the tasks whose last page was in its request.

use super::{Guest, TaskRef, TaskState};
use crate::engine::Engine;
use crate::events::Event;
use crate::memory::NONE;
use overspin_host::irq;
use overspin_scenario::{DiskOutcome, Picos};
use overspin_workload::Disk;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

/// The pages that a task writes in one call.
#[derive(Debug)]
struct Batch {
    task: TaskRef,
    left: usize,
}

#[derive(Debug, Default)]
struct Queue {
    /// Waiting pages, with the batch of each.
    waiting: BTreeMap<u64, usize>,
    /// Batches of the pages that are being written; empty if the drive is idle.
    writing: Vec<usize>,
    batches: BTreeMap<usize, Batch>,
    next_batch: usize,
    /// The page behind the last one that was written.
    head: u64,
    done: DiskOutcome,
}

/// A disk.
#[derive(Debug)]
pub(crate) struct Drive {
    disk: Disk,
    queue: RefCell<Queue>,
    /// Tasks whose pages are all written, for the interrupt handler.
    finished: RefCell<VecDeque<TaskRef>>,
    /// The vCPU that takes the next interrupt.
    next_vcpu: Cell<u32>,
}

impl Drive {
    pub(crate) fn new(disk: &Disk) -> Self {
        Self {
            disk: disk.clone(),
            queue: RefCell::default(),
            finished: RefCell::default(),
            next_vcpu: Cell::new(0),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.queue.borrow().writing.is_empty()
    }

    pub(crate) fn outcome(&self) -> DiskOutcome {
        self.queue.borrow().done.clone()
    }

    /// Takes the next request off the queue. Returns its duration, or `None` if no page waits.
    fn begin(&self) -> Option<Picos> {
        let q = &mut *self.queue.borrow_mut();
        let first = q.waiting.range(q.head..).chain(&q.waiting).next().map(|(page, _)| *page)?;
        let mut end = first;
        while end - first < u64::from(self.disk.request)
            && let Some(batch) = q.waiting.remove(&end)
        {
            q.writing.push(batch);
            end += 1;
        }
        let seek = if first == q.head { Picos::ZERO } else { self.disk.seek };
        let time = seek + (end - first) * self.disk.page;
        q.head = end;
        q.done.pages += end - first;
        q.done.requests += 1;
        q.done.seeks += u64::from(seek > Picos::ZERO);
        q.done.busy += time;
        Some(time)
    }

    /// Ends the current request and collects the tasks that it finishes.
    fn end(&self) {
        let q = &mut *self.queue.borrow_mut();
        for id in q.writing.drain(..) {
            let batch = q.batches.get_mut(&id).expect("a page belongs to a batch");
            batch.left -= 1;
            if batch.left == 0 {
                self.finished.borrow_mut().push_back(batch.task);
                q.batches.remove(&id);
            }
        }
    }
}

impl Guest {
    /// Queues `pages` (at least one) and puts the task to sleep until they are written.
    pub(super) fn write_out(&self, engine: &Engine, task: TaskRef, pages: &[u64]) {
        let drive = self.disk.as_ref().expect("a workload that writes has a disk");
        task.state.set(TaskState::Blocked);
        {
            let q = &mut *drive.queue.borrow_mut();
            let id = q.next_batch;
            q.next_batch += 1;
            q.batches.insert(id, Batch { task, left: pages.len() });
            q.waiting.extend(pages.iter().map(|page| (*page, id)));
        }
        if !drive.is_busy() {
            self.begin_request(engine, drive);
        }
        self.schedule(engine);
    }

    fn begin_request(&self, engine: &Engine, drive: &Drive) {
        if let Some(time) = drive.begin() {
            engine.push(engine.now() + time, Event::Disk { guest: self.id });
        }
    }

    /// The drive has completed a request: begins the next one and sends the interrupt.
    pub(crate) fn disk_event(&self, engine: &Engine) {
        let drive = self.disk.as_ref().expect("a disk's event");
        drive.end();
        self.begin_request(engine, drive);
        let vcpu = drive.next_vcpu.get();
        drive.next_vcpu.set((vcpu + 1) % self.vcpus);
        engine.deliver(&engine.vcpus[(self.first + vcpu) as usize], irq::DISK, NONE);
    }

    /// Handles the disk's interrupt on the current vCPU, with interrupts off.
    pub(super) fn disk_interrupt(&self, engine: &Engine) {
        let drive = self.disk.as_ref().expect("a disk's interrupt");
        loop {
            let Some(task) = drive.finished.borrow_mut().pop_front() else { break };
            self.wake(engine, task, self.idlest(engine, task));
        }
    }
}
