//! Prefetches: the simulator fetches a vCPU's data into the processor's cache before the vCPU goes on.
//!
//! On a large host, a vCPU that goes on after a millisecond finds none of its data in the cache: its
//! records, its task, the task's stack, its runqueue and the runqueue's lock. The simulator knows
//! beforehand which vCPUs go on. When a day of the queue begins, it knows whose computations end on that
//! day (see `queue.rs`). When a pCPU begins to switch, it knows the next vCPU, dozens of events before
//! the switch is over. The fetches of many vCPUs overlap; those of one running vCPU do not.
//!
//! The address of one item is often stored in another item that must be fetched first. So there are
//! stages: each reads only data that earlier stages have fetched. A vCPU's stages are separated by other
//! vCPUs' fetches.

use crate::engine::Engine;
use crate::events::Event;
use crate::guest::TaskRef;
use crate::vcpu::Vcpu;
use overspin_host::irq;
use std::array;
use std::cell::Cell;

/// Number of vCPUs from which on prefetching is worth it; the data of fewer vCPUs stays in the cache.
const LARGE: usize = 512;
/// Bytes of a suspended stack that its task touches when it goes on.
const STACK: usize = 512;
/// Bytes of a task's record that a switch to it touches: see [`Task`](crate::guest::Task).
const TASK: usize = 192;
const STAGES: usize = 6;

/// The vCPUs that were switched to last.
#[derive(Debug)]
pub(crate) struct Prefetch {
    chosen: [Cell<u32>; STAGES],
    /// Index in `chosen` of the next entry to write.
    next: Cell<usize>,
}

impl Prefetch {
    /// `None` if the host is too small.
    pub(crate) fn new(vcpus: usize) -> Option<Self> {
        let new = || Self { chosen: array::from_fn(|_| Cell::new(0)), next: Cell::new(0) };
        (vcpus >= LARGE).then(new)
    }

    /// Fetches for a day of the queue, if one begins now.
    pub(crate) fn look(&self, engine: &Engine) {
        let mut events = engine.time.events.borrow_mut();
        if events.new_day() {
            new_day(engine, events.today());
        }
    }

    /// Fetches for `vcpu`, to which a pCPU begins to switch, and continues the fetches for those before it.
    pub(crate) fn chosen(&self, engine: &Engine, vcpu: u32) {
        let at = self.next.get();
        self.chosen[at].set(vcpu);
        self.next.set((at + 1) % STAGES);
        for stage in 0..STAGES {
            let then = (at + STAGES - stage) % STAGES;
            fetch(engine, &engine.vcpus[self.chosen[then].get() as usize], stage);
        }
    }
}

/// Fetches for a day with `events`, which begins.
fn new_day(engine: &Engine, events: impl Iterator<Item = Event> + Clone) {
    for stage in 0..STAGES {
        for event in events.clone() {
            match event {
                Event::Operation { vcpu, .. } => {
                    fetch(engine, &engine.vcpus[vcpu as usize], stage);
                }
                // The vCPU will have to wait for a pCPU: the other stages come when it gets one.
                Event::GuestTimer { vcpu } if stage == 0 => {
                    fetch(engine, &engine.vcpus[vcpu as usize], stage);
                }
                _ => {}
            }
        }
    }
}

/// Fetches the data of `v` that belongs to `stage`; earlier stages have fetched its addresses.
#[inline(always)]
fn fetch(engine: &Engine, v: &Vcpu, stage: usize) {
    if stage == 0 {
        engine.look_at(v.id, |h, v| {
            for record in h.records_of(v) {
                touch(&raw const *record, size_of_val(record));
            }
        });
        return touch(&raw const *v, size_of::<Vcpu>());
    }
    let guest = engine.guest(v.guest);
    // The task that a pending timer interrupt will wake.
    let sleeper =
        || (v.irqs.pending.get() & irq::TIMER != 0).then(|| guest.next_sleeper(v)).flatten();
    match stage {
        1 => {
            guest.fetch();
            task(v.task.get());
        }
        2 => {
            guest.fetch_queue(v);
            touch(v.task.get().stack.get(), STACK);
        }
        3 => {
            task(guest.idle_of(v));
            guest.fetch_queue_lists(v);
        }
        4 => {
            sleeper().into_iter().for_each(task);
            guest.fetch_queue_lock(engine, v);
        }
        _ => sleeper().into_iter().for_each(|sleeper| touch(sleeper.stack.get(), STACK)),
    }
}

fn task(task: TaskRef) {
    touch(task.as_ptr(), TASK);
}

/// Has the processor fetch `bytes` from `at`.
pub(crate) fn touch<T: ?Sized>(at: *const T, bytes: usize) {
    fetch_bytes(at.cast(), bytes);
}

#[inline]
fn fetch_bytes(at: *const i8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch of an address that is not mapped does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.wrapping_add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, bytes);
}
