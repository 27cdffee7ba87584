//! What will be touched soon, fetched into the processor's cache before it is.
//!
//! On a large host a vCPU that goes on after a millisecond finds nothing of its own in the cache: its
//! records, its task, the task's stack, its runqueue and the lock of that. It is known beforehand
//! which one goes on: whose computations end on a day when that day begins (see `queue.rs`); whose
//! turn it is on a pCPU when the pCPU begins to switch, dozens of events before it has switched. The
//! fetches of many vCPUs overlap, which those of one that runs do not.
//!
//! Where something is, is often told by what is itself to be fetched. So there are stages, each of which
//! reads only what earlier ones have fetched, and of one vCPU they are some fetches of others apart.

use crate::engine::Engine;
use crate::events::Event;
use crate::guest::TaskRef;
use crate::vcpu::Vcpu;
use overspin_host::irq;
use std::array;
use std::cell::Cell;

/// vCPUs from which on this is worth it: fewer stay in the cache.
const LARGE: usize = 512;
/// Bytes of a suspended stack that are touched when its task goes on.
const STACK: usize = 512;
/// Bytes of a task's record that a switch to it touches: see [`Task`](crate::guest::Task).
const TASK: usize = 192;
const STAGES: usize = 6;

/// The vCPUs that were switched to last.
#[derive(Debug)]
pub(crate) struct Foresight {
    chosen: [Cell<u32>; STAGES],
    /// Where the next one goes.
    next: Cell<usize>,
}

impl Foresight {
    /// None if the host is too small.
    pub(crate) fn new(vcpus: usize) -> Option<Self> {
        let new = || Self { chosen: array::from_fn(|_| Cell::new(0)), next: Cell::new(0) };
        (vcpus >= LARGE).then(new)
    }

    /// Looks at a day of the queue when it begins.
    pub(crate) fn look(&self, engine: &Engine) {
        let mut events = engine.time.events.borrow_mut();
        if events.new_day() {
            new_day(engine, events.today());
        }
    }

    /// A pCPU begins to switch to `vcpu`.
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

/// A day with `events` begins.
fn new_day(engine: &Engine, events: impl Iterator<Item = Event> + Clone) {
    for stage in 0..STAGES {
        for event in events.clone() {
            match event {
                Event::Operation { vcpu, .. } => {
                    fetch(engine, &engine.vcpus[vcpu as usize], stage);
                }
                // It will have to wait for a pCPU.
                Event::GuestTimer { vcpu } if stage == 0 => {
                    fetch(engine, &engine.vcpus[vcpu as usize], stage);
                }
                _ => {}
            }
        }
    }
}

/// Fetches what goes on with `v`, as far as what was fetched in earlier stages tells where it is.
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
    // Who is to be woken by the interrupt that the vCPU takes first.
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
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch of an address that is not mapped does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast::<i8>().wrapping_add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, bytes);
}
