//! The model checker as a [`Platform`].
//!
//! **No order is added.** A latch is a relaxed atomic. A sleep is a loop of relaxed loads, like a
//! spin. loom's own park and condition variable would order the waker before the woken thread, and
//! so hide a missing order in the lock. State in plain `Cell`s is invisible to the model.
//!
//! **Mutations.** A bug is put in at this boundary, not into a copy of the lock. So the checks run
//! the shipped code with a bug, not something like it.

use std::rc::Rc;

use loom::sync::atomic::Ordering;
use overspin_locks::condvar::{Parking, Waiter};
use overspin_locks::{AtomicCell, Bug, CpuId, Note, Platform, WakeAll, forward_platform};

use super::cells::{LoomU8, LoomU16, LoomU32, LoomUsize};
use super::world::{Point, cpu, set_cpu, world};
use crate::Mutation;
use crate::asked::{Watch, Watches};
use crate::threads::StdPlatform;

/// Bytes from one place of a lock in hash tables to the next.
const PLACE: usize = 16;

/// The model checker. See the module documentation.
#[derive(Debug)]
pub struct LoomPlatform;

impl WakeAll for LoomPlatform {
    fn wake_all(address: *const LoomU32) {
        let world = world();
        // As in `wake_one`.
        world.here().latch.load(Ordering::Relaxed);
        for cpu in world.cpus.iter().filter(|cpu| cpu.waits_at.get() == address.addr()) {
            cpu.waits_at.set(0);
            world.progress();
        }
    }
}

impl Parking for LoomPlatform {
    type Waiter = Rc<Waiter<Self>>;
    type Permit = ();

    fn own_waiter() -> u32 {
        let zero = || LoomU32::new(0);
        let waiter =
            || Waiter::<Self>::of(zero(), zero(), zero(), zero(), LoomUsize::new(0), zero());
        world().here().waiter.get_or_init(|| Rc::new(waiter()));
        Self::cpu_id() as u32 + 1
    }

    fn waiter(number: u32) -> Rc<Waiter<Self>> {
        let cpu = &world().cpus[number as usize - 1];
        let waiter = Rc::clone(cpu.waiter.get().expect("it waits, or has waited"));
        waiter.downcast().expect("made by `own_waiter`")
    }

    fn requeue(from: *const LoomU32, to: *const LoomU32) {
        let world = world();
        // As in `wake_one`.
        world.here().latch.load(Ordering::Relaxed);
        if let Some(cpu) = world.cpus.iter().find(|cpu| cpu.waits_at.get() == from.addr()) {
            cpu.waits_at.set(to.addr());
        }
    }
}

impl Platform for LoomPlatform {
    type U8 = LoomU8;
    type U16 = LoomU16;
    type U32 = LoomU32;
    type Usize = LoomUsize;
    type IrqState = bool;
    forward_platform!(StdPlatform, only slots);

    fn cpu_id() -> CpuId {
        cpu()
    }

    fn relax() {
        world().wait(|| true);
    }

    fn fence(order: Ordering) {
        let world = world();
        let dropped = match world.mutation {
            Mutation::NoUnlockFence => !world.here().cleared.get(),
            Mutation::NoWaiterFence => world.here().cleared.get(),
            _ => false,
        };
        world.here().cleared.set(false);
        if !dropped {
            loom::sync::atomic::fence(order);
        }
    }

    fn irq_save() -> bool {
        !world().here().irqs_off.replace(true)
    }

    fn irq_restore(state: bool) {
        let world = world();
        world.here().irqs_off.set(!state);
        world.interrupt(None);
    }

    fn irqs_were_on(state: bool) -> bool {
        state
    }

    fn latch_clear() {
        let world = world();
        world.interrupt(Some(Point::Clear));
        let cpu = Self::cpu_id();
        if world.mutation == Mutation::LateClear {
            world.defer(move || super::world::world().set_latch(cpu, false));
        } else {
            world.set_latch(cpu, false);
        }
        world.here().cleared.set(true);
    }

    fn latch_set() {
        let world = world();
        if world.mutation != Mutation::NoPickupSet {
            world.set_latch(Self::cpu_id(), true);
        }
    }

    fn latch_test() -> bool {
        world().here().latch.load(Ordering::Relaxed)
    }

    fn poll() {
        let world = world();
        let deferred = world.here().deferred.take();
        deferred.into_iter().for_each(|work| work());
        world.interrupt(Some(Point::Poll));
        while !Self::latch_test() {
            let spurious = &world.here().spurious_wakes;
            if spurious.get() > 0 {
                spurious.set(spurious.get() - 1);
                return;
            }
            world.may_wait();
            let here = world.here();
            here.polls.set(true);
            world.wait(|| here.newest_latch.get());
            here.polls.set(false);
        }
    }

    fn kick(cpu: CpuId) {
        world().set_latch(cpu, true);
    }

    fn wait(cell: &LoomU32, value: u32) {
        let world = world();
        // The kernel looks under a lock that the waker takes too, so it sees what was written before
        // the wake-up that it missed. A read-modify-write reads the newest value.
        if cell.fetch_add(0, Ordering::Relaxed) != value {
            return;
        }
        let here = world.here();
        here.waits_at.set(std::ptr::from_ref(cell).addr());
        let spurious = &here.spurious_wakes;
        if spurious.get() > 0 {
            spurious.set(spurious.get() - 1);
            here.waits_at.set(0);
            return;
        }
        world.may_wait();
        world.wait(|| here.waits_at.get() == 0);
    }

    /// The time is up when other CPUs have gone on.
    fn wait_until(cell: &LoomU32, value: u32, _deadline_ns: u64) {
        let world = world();
        let here = world.here();
        if cell.fetch_add(0, Ordering::Relaxed) == value {
            here.waits_at.set(std::ptr::from_ref(cell).addr());
            world.wait(|| true);
            here.waits_at.set(0);
        }
    }

    fn wake_one(address: *const LoomU32) {
        let world = world();
        // A wake-up is a point where the checker may switch, but gives the lock no order.
        world.here().latch.load(Ordering::Relaxed);
        if let Some(cpu) = world.cpus.iter().find(|cpu| cpu.waits_at.get() == address.addr()) {
            cpu.waits_at.set(0);
            world.progress();
        }
    }

    fn seeded(bug: Bug) -> bool {
        world().mutation == Mutation::Seeded(bug)
    }

    fn ctx_level() -> usize {
        let world = world();
        if world.mutation == Mutation::OneContext { 0 } else { world.here().level.get() }
    }

    fn numa_node() -> usize {
        Self::cpu_id() % world().numa_nodes.get()
    }

    fn preempted(_: CpuId) -> bool {
        let cell = world().preempted.borrow().clone();
        cell.is_some_and(|cell| cell.load(Ordering::Relaxed))
    }

    fn place(lock: usize, _table: usize) -> usize {
        let world = world();
        let mut places = world.places.borrow_mut();
        let nth = places.iter().position(|address| *address == lock).unwrap_or_else(|| {
            places.push(lock);
            places.len() - 1
        });
        nth * PLACE
    }

    fn yield_is_dear() -> bool {
        world().yield_is_dear.get()
    }

    fn recall() -> Note {
        world().here().note.get()
    }

    fn remember(note: Note) {
        world().here().note.set(note);
    }

    fn now() -> u64 {
        let world = world();
        world.time.set(world.time.get() + world.clock_step.get());
        world.time.get()
    }
}

impl Watches for LoomPlatform {
    fn irqs_on() -> bool {
        !world().here().irqs_off.get()
    }

    fn tries<R>(try_lock: impl FnOnce() -> R) -> R {
        let world = world();
        let cpu = world.here();
        cpu.tries.during(cpu.level.get(), try_lock)
    }

    fn watch() -> Rc<Watch> {
        Rc::clone(&world().watch)
    }

    fn on_behalf_of<R>(cpu: CpuId, work: impl FnOnce() -> R) -> R {
        let me = Self::cpu_id();
        set_cpu(cpu);
        let result = work();
        set_cpu(me);
        result
    }
}
