//! The world where one CPU stops, as a [`Platform`].

use overspin_locks::{AtomicCell, Budget, CpuId, Platform, forward_platform, spin_with};
use shuttle::sync::atomic::Ordering::SeqCst;
use shuttle::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};

use super::world::{Cpu, VICTIM, here, world};
use crate::threads::StdPlatform;

/// Nanoseconds per step.
const STEP: u64 = 200;

macro_rules! cell {
    ($cell:ident, $atomic:ty, $value:ty) => {
        /// A cell that counts looks.
        #[derive(Debug)]
        pub struct $cell($atomic);

        impl $cell {
            fn address(&self) -> usize {
                std::ptr::from_ref(self).addr()
            }
        }

        impl AtomicCell for $cell {
            type Value = $value;

            fn new(value: $value) -> Self {
                Self(<$atomic>::new(value))
            }
            fn load(&self, _: Ordering) -> $value {
                let world = world();
                *world.looks.borrow_mut().entry((self.address(), here())).or_default() += 1;
                self.0.load(SeqCst)
            }
            fn store(&self, value: $value, _: Ordering) {
                self.0.store(value, SeqCst);
            }
            fn swap(&self, value: $value, _: Ordering) -> $value {
                self.0.swap(value, SeqCst)
            }
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                _: Ordering,
                _: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange(current, new, SeqCst, SeqCst)
            }
            fn fetch_add(&self, value: $value, _: Ordering) -> $value {
                self.0.fetch_add(value, SeqCst)
            }
            fn fetch_sub(&self, value: $value, _: Ordering) -> $value {
                self.0.fetch_sub(value, SeqCst)
            }
            fn fetch_or(&self, value: $value, _: Ordering) -> $value {
                self.0.fetch_or(value, SeqCst)
            }
            fn fetch_and(&self, value: $value, _: Ordering) -> $value {
                self.0.fetch_and(value, SeqCst)
            }
            fn spin_until(
                &self,
                until: impl Fn($value) -> bool,
                budget: Budget,
            ) -> Result<$value, $value> {
                spin_with(self, until, budget, || world().waits())
            }
        }
    };
}

cell!(U8, AtomicU8, u8);
cell!(U16, AtomicU16, u16);
cell!(U32, AtomicU32, u32);
cell!(Usize, AtomicUsize, usize);

/// The world in which one CPU stops.
#[derive(Debug)]
pub struct Away;

impl Platform for Away {
    forward_platform!(StdPlatform, only slots, irqs);

    type U8 = U8;
    type U16 = U16;
    type U32 = U32;
    type Usize = Usize;

    fn cpu_id() -> CpuId {
        here()
    }
    fn relax() {
        world().waits();
    }
    fn fence(_: Ordering) {}
    fn latch_clear() {
        world().me().latch.set(false);
    }
    fn latch_set() {
        world().me().latch.set(true);
    }
    fn latch_test() -> bool {
        world().me().latch.get()
    }
    fn poll() {
        if !Self::latch_test() {
            world().sleep_at(0);
        }
    }
    fn kick(cpu: CpuId) {
        let world = world();
        let cpu = &world.cpus[cpu];
        cpu.latch.set(true);
        if cpu.asleep_at.get() == 0 {
            cpu.asleep.set(false);
        }
    }
    fn wait(cell: &U32, value: u32) {
        if cell.load(SeqCst) == value {
            world().sleep_at(cell.address());
        }
    }
    fn wake_one(address: *const U32) {
        let sleeps = |cpu: &&Cpu| cpu.asleep.get() && cpu.asleep_at.get() == address.addr();
        if let Some(cpu) = world().cpus.iter().find(sleeps) {
            cpu.asleep.set(false);
        }
    }
    fn yield_now() {
        world().gives_way();
        world().waits();
    }
    fn nap(_: u64) {
        // The CPU may do something else meanwhile. A step stands for the nap, however long.
        Self::yield_now();
    }
    fn now() -> u64 {
        world().steps.get() * STEP
    }
    fn preempted(cpu: CpuId) -> bool {
        world().told && world().cpus[cpu].stopped.get()
    }
    fn time_to_preempt() -> Option<u64> {
        (world().told && here() == VICTIM).then_some(0)
    }
}
