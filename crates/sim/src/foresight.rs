//! What a day's events will touch, fetched into the processor's cache when the day begins.
//!
//! On a large host a vCPU that goes on after a millisecond finds nothing of its own in the cache: its
//! record, its task, the task's stack, its runqueue. All of that is known when the day begins on
//! which it goes on (see `queue.rs`), and the fetches of many vCPUs overlap, which those of one that
//! runs do not. What a fetch needs to know is itself fetched in an earlier round.

use crate::events::Event;
use crate::guest::{Task, TaskRef};
use crate::vcpu::Vcpu;
use crate::world::World;

/// vCPUs from which on this is worth it: fewer stay in the cache.
pub(crate) const LARGE: usize = 512;
/// Bytes of a suspended stack that are touched when its task goes on.
const STACK: usize = 512;

/// Fetches what `events` will touch.
pub(crate) fn fetch(world: &World, events: impl Iterator<Item = Event> + Clone) {
    let vcpus = events.filter_map(|event| match event {
        Event::Operation { vcpu, .. } => Some((&world.vcpus[vcpu as usize], false)),
        Event::GuestTimer { vcpu } => Some((&world.vcpus[vcpu as usize], true)),
        _ => None,
    });
    for (v, _) in vcpus.clone() {
        touch(&raw const *v, size_of::<Vcpu>());
        touch(world.guest(v.guest).queue_at(v), 128);
    }
    for (v, timer) in vcpus.clone() {
        task(v.task.get());
        if timer && let Some(sleeper) = world.guest(v.guest).next_sleeper(v) {
            task(sleeper);
        }
    }
    for (v, timer) in vcpus {
        touch(v.task.get().stack.get(), STACK);
        if timer && let Some(sleeper) = world.guest(v.guest).next_sleeper(v) {
            touch(sleeper.stack.get(), STACK);
        }
    }
}

fn task(task: TaskRef) {
    touch(task.as_ptr(), size_of::<Task>());
}

/// Has the processor fetch `bytes` from `at`.
fn touch<T>(at: *const T, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch of an address that is not mapped does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast::<i8>().wrapping_add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, bytes);
}
