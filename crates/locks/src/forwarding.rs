//! Platforms made from other platforms.
//!
//! Many a platform is another one with a difference: the same threads, but their waiters count, or look around. Such a
//! platform writes the difference. [`WrappedCell`] makes its cells, and [`forward_platform`](crate::forward_platform)
//! the functions that are the same. A new method of [`AtomicCell`] or [`Platform`](crate::Platform) is forwarded here, for
//! all of them.
//!
//! A cell can only differ in how its CPUs wait and in what is done at each access, so a trait is enough for it. A
//! platform can differ in any function, which takes a macro.

use core::fmt::Debug;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use crate::core_cells::accesses;
use crate::{AtomicCell, Budget};

/// How CPUs wait at a [`WrappedCell`].
pub trait Waiters: Debug {
    /// Called before each access that does not wait.
    #[inline]
    fn access() {}
    /// [`AtomicCell::spin_until`] at `cell`, the cell inside.
    ///
    /// # Errors
    /// The last value seen, if the budget ran out.
    fn spin<C: AtomicCell>(
        cell: &C,
        until: impl Fn(C::Value) -> bool + Copy,
        budget: Budget,
    ) -> Result<C::Value, C::Value>;
}

/// A cell around another one, at which CPUs wait as `W` says. It has the layout of the cell inside.
///
/// ```
/// use overspin_locks::{AtomicCell, Budget, Waiters, WrappedCell, spin_with};
/// use std::sync::atomic::AtomicU32;
///
/// /// Waiters that yield.
/// #[derive(Debug)]
/// struct Yielding;
///
/// impl Waiters for Yielding {
///     fn spin<C: AtomicCell>(
///         cell: &C, until: impl Fn(C::Value) -> bool + Copy, budget: Budget,
///     ) -> Result<C::Value, C::Value> {
///         spin_with(cell, until, budget, std::thread::yield_now)
///     }
/// }
///
/// let cell = WrappedCell::<AtomicU32, Yielding>::new(7);
/// assert_eq!(cell.spin_until(|value| value == 7, Budget::Forever), Ok(7));
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct WrappedCell<C, W>(C, PhantomData<W>);

impl<C, W: Waiters> WrappedCell<C, W> {
    /// The cell inside, for an access that does not wait.
    #[inline]
    pub fn inner(&self) -> &C {
        W::access();
        &self.0
    }
}

impl<C: AtomicCell, W: Waiters> AtomicCell for WrappedCell<C, W> {
    type Value = C::Value;

    #[inline]
    fn new(value: C::Value) -> Self {
        Self(C::new(value), PhantomData)
    }

    accesses!(self, C::Value => self.inner());

    // Always: as `spin_with`.
    #[inline(always)]
    fn spin_until(
        &self,
        until: impl Fn(C::Value) -> bool + Copy,
        budget: Budget,
    ) -> Result<C::Value, C::Value> {
        W::spin(&self.0, until, budget)
    }
}

/// In an `impl Platform for ...`: takes the functions of another platform, except those that are named, or only those.
///
/// A name is that of a function of [`Platform`](crate::Platform), or it stands for what belongs together:
///
/// | Name | What it stands for |
/// |---|---|
/// | `cells` | the types of the cells, and `wait`, `wait_until` and `wake_one`, which take a cell |
/// | `slots` | `Slots` and `slots` |
/// | `irqs` | `IrqState`, `irq_save`, `irq_restore` and `irqs_were_on` |
/// | `latch` | `latch_clear`, `latch_set` and `latch_test` |
///
/// A forwarded function knows only the other platform. Where that one yields within `yield_if_cheap` or relaxes within
/// `nap`, it does not call the `yield_now` or `relax` of yours.
///
/// ```
/// use core::marker::PhantomData;
/// use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// use overspin_locks::{CpuId, Platform, forward_platform};
///
/// static KICKS: AtomicUsize = AtomicUsize::new(0);
///
/// /// `P`, with a count of kicks.
/// #[derive(Debug)]
/// struct Kicking<P>(PhantomData<P>);
///
/// impl<P: Platform> Platform for Kicking<P> {
///     forward_platform!(P, except kick);
///     fn kick(cpu: CpuId) {
///         KICKS.fetch_add(1, Relaxed);
///         P::kick(cpu);
///     }
/// }
/// ```
#[macro_export]
macro_rules! forward_platform {
    ($to:ty, only $($name:ident),+ $(,)?) => {
        $crate::forward_platform!(@each $to, [] $($name)+);
    };
    ($to:ty, except $($name:ident),+ $(,)?) => {
        // Nothing, but a wrong name is an error.
        $($crate::__forward!($to, [$name] $name);)+
        $crate::forward_platform! {
            @each $to, [$($name)+]
            cells slots irqs latch cpu_id relax fence poll kick paravirtual seeded ctx_level numa_node
            processor preempted preemption_pending time_to_preempt place yield_now yield_if_cheap
            yield_is_dear nap recall remember now can_block
        }
    };
    (@each $to:ty, $except:tt $($name:ident)+) => {
        $($crate::__forward!($to, $except $name);)+
    };
}

/// Forwards one function, unless its name is in brackets. A macro cannot compare two names, hence a line for each.
#[doc(hidden)]
#[macro_export]
macro_rules! __forward {
    ($to:ty, [cells $($more:tt)*] cells) => {};
    ($to:ty, [slots $($more:tt)*] slots) => {};
    ($to:ty, [irqs $($more:tt)*] irqs) => {};
    ($to:ty, [latch $($more:tt)*] latch) => {};
    ($to:ty, [cpu_id $($more:tt)*] cpu_id) => {};
    ($to:ty, [relax $($more:tt)*] relax) => {};
    ($to:ty, [fence $($more:tt)*] fence) => {};
    ($to:ty, [poll $($more:tt)*] poll) => {};
    ($to:ty, [kick $($more:tt)*] kick) => {};
    ($to:ty, [paravirtual $($more:tt)*] paravirtual) => {};
    ($to:ty, [seeded $($more:tt)*] seeded) => {};
    ($to:ty, [ctx_level $($more:tt)*] ctx_level) => {};
    ($to:ty, [numa_node $($more:tt)*] numa_node) => {};
    ($to:ty, [processor $($more:tt)*] processor) => {};
    ($to:ty, [preempted $($more:tt)*] preempted) => {};
    ($to:ty, [preemption_pending $($more:tt)*] preemption_pending) => {};
    ($to:ty, [time_to_preempt $($more:tt)*] time_to_preempt) => {};
    ($to:ty, [place $($more:tt)*] place) => {};
    ($to:ty, [yield_now $($more:tt)*] yield_now) => {};
    ($to:ty, [yield_if_cheap $($more:tt)*] yield_if_cheap) => {};
    ($to:ty, [yield_is_dear $($more:tt)*] yield_is_dear) => {};
    ($to:ty, [nap $($more:tt)*] nap) => {};
    ($to:ty, [recall $($more:tt)*] recall) => {};
    ($to:ty, [remember $($more:tt)*] remember) => {};
    ($to:ty, [now $($more:tt)*] now) => {};
    ($to:ty, [can_block $($more:tt)*] can_block) => {};
    ($to:ty, [$other:ident $($more:tt)*] $name:ident) => {
        $crate::__forward!($to, [$($more)*] $name);
    };
    ($to:ty, [] cells) => {
        type U8 = <$to as $crate::Platform>::U8;
        type U16 = <$to as $crate::Platform>::U16;
        type U32 = <$to as $crate::Platform>::U32;
        type Usize = <$to as $crate::Platform>::Usize;
        $crate::__forward! { $to,
            wait(cell: &Self::U32, value: u32)
            wait_until(cell: &Self::U32, value: u32, deadline_ns: u64)
            wake_one(address: *const Self::U32)
        }
    };
    ($to:ty, [] slots) => {
        type Slots<T: ::core::fmt::Debug + 'static> = <$to as $crate::Platform>::Slots<T>;
        #[inline]
        fn slots<T: ::core::fmt::Debug + 'static>(
            len: usize,
            init: impl FnMut(usize) -> T,
        ) -> Self::Slots<T> {
            <$to as $crate::Platform>::slots(len, init)
        }
    };
    ($to:ty, [] irqs) => {
        type IrqState = <$to as $crate::Platform>::IrqState;
        $crate::__forward! { $to,
            irq_save() -> Self::IrqState
            irq_restore(state: Self::IrqState)
            irqs_were_on(state: Self::IrqState) -> bool
        }
    };
    ($to:ty, [] latch) => {
        $crate::__forward!($to, latch_clear() latch_set() latch_test() -> bool);
    };
    ($to:ty, [] cpu_id) => { $crate::__forward!($to, cpu_id() -> $crate::CpuId); };
    ($to:ty, [] relax) => { $crate::__forward!($to, relax()); };
    ($to:ty, [] fence) => { $crate::__forward!($to, fence(order: ::core::sync::atomic::Ordering)); };
    ($to:ty, [] poll) => { $crate::__forward!($to, poll()); };
    ($to:ty, [] kick) => { $crate::__forward!($to, kick(cpu: $crate::CpuId)); };
    ($to:ty, [] paravirtual) => { $crate::__forward!($to, paravirtual(told: bool) -> bool); };
    ($to:ty, [] seeded) => { $crate::__forward!($to, seeded(bug: $crate::Bug) -> bool); };
    ($to:ty, [] ctx_level) => { $crate::__forward!($to, ctx_level() -> usize); };
    ($to:ty, [] numa_node) => { $crate::__forward!($to, numa_node() -> usize); };
    ($to:ty, [] processor) => { $crate::__forward!($to, processor() -> usize); };
    ($to:ty, [] preempted) => { $crate::__forward!($to, preempted(cpu: $crate::CpuId) -> bool); };
    ($to:ty, [] preemption_pending) => { $crate::__forward!($to, preemption_pending() -> bool); };
    ($to:ty, [] time_to_preempt) => { $crate::__forward!($to, time_to_preempt() -> Option<u64>); };
    ($to:ty, [] place) => { $crate::__forward!($to, place(lock: usize, table: usize) -> usize); };
    ($to:ty, [] yield_now) => { $crate::__forward!($to, yield_now()); };
    ($to:ty, [] yield_if_cheap) => { $crate::__forward!($to, yield_if_cheap()); };
    ($to:ty, [] yield_is_dear) => { $crate::__forward!($to, yield_is_dear() -> bool); };
    ($to:ty, [] nap) => { $crate::__forward!($to, nap(nanos: u64)); };
    ($to:ty, [] recall) => { $crate::__forward!($to, recall() -> $crate::Note); };
    ($to:ty, [] remember) => { $crate::__forward!($to, remember(note: $crate::Note)); };
    ($to:ty, [] now) => { $crate::__forward!($to, now() -> u64); };
    ($to:ty, [] can_block) => { $crate::__forward!($to, can_block() -> bool); };
    ($to:ty, $($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?)+) => {$(
        #[inline]
        fn $name($($argument: $type),*) $(-> $result)? {
            <$to as $crate::Platform>::$name($($argument),*)
        }
    )+};
}
