//! Random schedules as a [`Platform`].
//!
//! **Places** of locks in hash tables are random. Places computed from addresses would differ from run to
//! run, and so would the schedules of a seed.
//!
//! **Hints** (`processor`, `preempted`, `preemption_pending`, `time_to_preempt`, `yield_is_dear`) have random values, which
//! must not harm any lock.

use std::rc::Rc;
use std::sync::atomic::Ordering::{self, Relaxed, Release};

use overspin_locks::condvar::{Parking, Waiter};
use overspin_locks::{AtomicCell, Bug, CpuId, Note, Platform, WakeAll, forward_platform};
use shuttle::rand::{Rng, thread_rng};

use super::cells::{ScheduleU8, ScheduleU16, ScheduleU32, ScheduleUsize};
use super::one_in;
use super::world::{Cpu, Waits, world};
use crate::Mutation;
use crate::asked::{Watch, Watches};
use crate::threads::StdPlatform;

/// A sleep with a time limit lasts for fewer points where another CPU may go on.
const TURNS_OF_A_TIMED_SLEEP: u32 = 32;
/// One in this many sleeps ends spuriously.
const SPURIOUS_ONE_IN: u32 = 8;
/// One in this many hints is a yes.
const HINT_ONE_IN: u32 = 4;
/// Nanoseconds by which each reading advances the clock: mostly few, sometimes more than any patience.
const TICK: u64 = 1_000;
const JUMP: u64 = 50_000_000;
const JUMP_ONE_IN: u32 = 16;
/// Bytes from one place of a lock in hash tables to the next.
const PLACE: usize = 16;

/// Random schedules. See the module documentation.
#[derive(Debug)]
pub struct SchedulePlatform;

impl Platform for SchedulePlatform {
    type U8 = ScheduleU8;
    type U16 = ScheduleU16;
    type U32 = ScheduleU32;
    type Usize = ScheduleUsize;
    type IrqState = bool;
    forward_platform!(StdPlatform, only slots);

    fn cpu_id() -> CpuId {
        world().first + world().me()
    }

    fn relax() {
        world().step();
        shuttle::thread::yield_now();
        world().interrupt();
    }

    fn fence(order: Ordering) {
        let world = world();
        world.memory.fence(world.me(), order);
    }

    fn irq_save() -> bool {
        !world().here().irqs_off.replace(true)
    }

    fn irq_restore(were_on: bool) {
        world().here().irqs_off.set(!were_on);
        world().interrupt();
    }

    fn irqs_were_on(were_on: bool) -> bool {
        were_on
    }

    fn latch_clear() {
        let world = world();
        world.interrupt();
        world.set_latch(world.me(), false, Relaxed);
    }

    fn latch_set() {
        let world = world();
        world.set_latch(world.me(), true, Relaxed);
    }

    fn latch_test() -> bool {
        let world = world();
        world.turn();
        world.memory.load(world.me(), world.latches[world.me()], Relaxed, false).value != 0
    }

    fn poll() {
        let world = world();
        world.sleeps_until(u64::MAX);
        world.interrupt();
        world.turn();
        // The sleep ends when the latch is set, whatever this CPU has seen of the latch.
        let is_set = world.memory.newest(world.latches[world.me()]) != 0;
        if !is_set && !one_in(SPURIOUS_ONE_IN) {
            world.park(Waits::Poll);
        }
    }

    fn kick(cpu: CpuId) {
        let world = world();
        let cpu = cpu.checked_sub(world.first).filter(|&cpu| cpu < world.cpus.len());
        world.set_latch(cpu.expect("a kick is for an existing CPU"), true, Release);
    }

    fn wait(cell: &ScheduleU32, value: u32) {
        world().sleeps_until(u64::MAX);
        // No other CPU runs between the look and the parking. The kernel looks under a lock that the waker
        // takes too, so it sees all writes before the wake.
        if cell.find(Relaxed, true).0 == value && !one_in(SPURIOUS_ONE_IN) {
            world().park(Waits::Sleep(cell.address()));
        }
    }

    fn wait_until(cell: &ScheduleU32, value: u32, deadline_ns: u64) {
        world().sleeps_until(deadline_ns);
        if cell.find(Relaxed, true).0 == value {
            let turns = thread_rng().gen_range(0..TURNS_OF_A_TIMED_SLEEP);
            world().park_for(Waits::Sleep(cell.address()), turns);
        }
    }

    fn wake_one(address: *const ScheduleU32) {
        let world = world();
        world.turn();
        let whom = Waits::Sleep(address.addr());
        let sleepers: Vec<&Cpu> =
            world.cpus.iter().filter(|cpu| cpu.waits.get() == Some(whom)).collect();
        if !sleepers.is_empty() {
            world.wake(sleepers[thread_rng().gen_range(0..sleepers.len())]);
        }
    }

    fn seeded(bug: Bug) -> bool {
        world().mutation == Mutation::Seeded(bug)
    }

    fn ctx_level() -> usize {
        let world = world();
        let level = world.level.get() + world.here().level.get();
        if world.mutation == Mutation::OneContext { 0 } else { level }
    }

    fn numa_node() -> usize {
        Self::cpu_id() % world().numa_nodes.get()
    }

    fn processor() -> usize {
        one_in(HINT_ONE_IN).into()
    }

    fn preempted(_: CpuId) -> bool {
        one_in(HINT_ONE_IN)
    }

    fn preemption_pending() -> bool {
        one_in(HINT_ONE_IN)
    }

    fn time_to_preempt() -> Option<u64> {
        Some(if one_in(HINT_ONE_IN) { 0 } else { JUMP })
    }

    fn place(lock: usize, _table: usize) -> usize {
        let world = world();
        let mut places = world.places.borrow_mut();
        if let Some(&(_, place)) = places.iter().find(|(address, _)| *address == lock) {
            return place;
        }
        let place = thread_rng().gen_range(0..world.deals.get()) * PLACE;
        places.push((lock, place));
        place
    }

    fn yield_is_dear() -> bool {
        one_in(HINT_ONE_IN)
    }

    fn nap(nanos: u64) {
        world().naps(nanos);
        Self::relax();
    }

    fn recall() -> Note {
        world().here().note.get()
    }

    fn remember(note: Note) {
        world().here().note.set(note);
    }

    fn now() -> u64 {
        let world = world();
        let step = if one_in(JUMP_ONE_IN) { JUMP } else { TICK };
        world.time.set(world.time.get() + step);
        world.time.get()
    }
}

impl WakeAll for SchedulePlatform {
    fn wake_all(address: *const ScheduleU32) {
        let world = world();
        world.turn();
        world.wake_all(Waits::Sleep(address.addr()));
    }
}

impl Parking for SchedulePlatform {
    type Waiter = Rc<Waiter<Self>>;
    type Permit = ();

    fn own_waiter() -> u32 {
        let world = world();
        let zero = || ScheduleU32::new(0);
        let waiter =
            || Waiter::<Self>::of(zero(), zero(), zero(), zero(), ScheduleUsize::new(0), zero());
        world.here().waiter.get_or_init(|| Rc::new(waiter()));
        world.me() as u32 + 1
    }

    fn waiter(number: u32) -> Rc<Waiter<Self>> {
        let waiter = world().cpus[number as usize - 1].waiter.get().map(Rc::clone);
        waiter.expect("it waits, or has waited")
    }

    fn requeue(from: *const ScheduleU32, to: *const ScheduleU32) {
        let world = world();
        world.turn();
        let sleeps = |cpu: &&Cpu| cpu.waits.get() == Some(Waits::Sleep(from.addr()));
        if let Some(cpu) = world.cpus.iter().find(sleeps) {
            cpu.waits.set(Some(Waits::Sleep(to.addr())));
        }
    }
}

impl Watches for SchedulePlatform {
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
        let world = world();
        let me = world.me();
        world.memory.hand_over(me, cpu);
        world.acts_as.set(Some(cpu));
        let result = work();
        world.acts_as.set(None);
        world.memory.hand_over(cpu, me);
        result
    }
}
