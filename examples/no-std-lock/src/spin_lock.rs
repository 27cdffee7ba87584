//! Data under a lock, with guards, with interrupts off.

use crate::{Kernel, MAX_CPUS, Machine};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use overspin_locks::{Mcs, Platform, RawLock, Ticket, Tuning};

/// A lock that a [`SpinLock`] may trust with data.
///
/// # Safety
/// The lock admits one holder at a time, and what a holder did is visible to the next one.
pub unsafe trait Vouched<M: Machine>: RawLock<Kernel<M>> {}

// SAFETY: the model checker has checked both in their source form.
unsafe impl<M: Machine> Vouched<M> for Ticket<Kernel<M>> {}
// SAFETY: as above.
unsafe impl<M: Machine> Vouched<M> for Mcs<Kernel<M>> {}

/// A ticket lock: one word, first come, first served.
pub type TicketLock<'n, M, T> = SpinLock<'n, M, Ticket<Kernel<M>>, T>;
/// What ticket locks need for each CPU: nothing.
pub type TicketNodes<M> = Nodes<M, Ticket<Kernel<M>>>;
/// An MCS lock: a queue in which each waiter spins on a line of its own.
pub type McsLock<'n, M, T> = SpinLock<'n, M, Mcs<Kernel<M>>, T>;
/// The queue nodes of all MCS locks of a system.
pub type McsNodes<M> = Nodes<M, Mcs<Kernel<M>>>;

/// More CPUs than this system or this lock serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverCapacity {
    /// CPUs asked for.
    pub asked: usize,
    /// CPUs that can be served.
    pub most: usize,
}

/// What all locks of one kind share: records of CPUs. A system makes one at boot.
pub struct Nodes<M: Machine, L: Vouched<M>> {
    shared: L::Shared,
    machine: PhantomData<M>,
}

impl<M: Machine, L: Vouched<M>> Nodes<M, L> {
    /// Records for the CPUs 0 to `cpus - 1`. They take memory of the arena.
    ///
    /// # Errors
    /// If `cpus` is more than [`MAX_CPUS`], or more than the lock serves.
    ///
    /// # Panics
    /// If the arena is too small.
    pub fn new(cpus: usize) -> Result<Self, OverCapacity> {
        let most = MAX_CPUS.min(L::INFO.max_cpus as usize);
        let over = OverCapacity { asked: cpus, most };
        if cpus > most {
            return Err(over);
        }
        let shared = L::shared(cpus, Tuning::DEFAULT).map_err(|_| over)?;
        Ok(Self { shared, machine: PhantomData })
    }
}

impl<M: Machine, L: Vouched<M>> fmt::Debug for Nodes<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nodes").field("lock", &L::INFO.name).finish_non_exhaustive()
    }
}

/// Data that CPUs, and their interrupt handlers, take in turn.
///
/// The holder's interrupts are off. So its section must be short, and a handler never finds its own CPU to be the holder.
/// Handlers of non-maskable interrupts must not take locks. Drop the guards of several locks in the opposite order of their
/// acquisition: the first guard is the one that switches interrupts on again.
pub struct SpinLock<'n, M: Machine, L: Vouched<M>, T> {
    lock: L,
    nodes: &'n Nodes<M, L>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock hands the data to one CPU at a time, hence `Send`; its own parts are shared, hence `Sync`.
unsafe impl<M: Machine, L: Vouched<M> + Sync, T: Send> Sync for SpinLock<'_, M, L, T> where
    L::Shared: Sync
{
}

impl<'n, M: Machine, L: Vouched<M>, T> SpinLock<'n, M, L, T> {
    /// A free lock.
    pub fn new(nodes: &'n Nodes<M, L>, data: T) -> Self {
        Self { lock: L::new(), nodes, data: UnsafeCell::new(data) }
    }

    /// Acquires the lock; waits as long as necessary. Interrupts are off from before the wait until the guard is
    /// dropped.
    ///
    /// # Panics
    /// If the number of this CPU is not below that of the nodes.
    pub fn lock(&self) -> Guard<'_, M, L, T> {
        let (token, interrupts) = self.lock.lock_irqsave(&self.nodes.shared);
        Guard::new(self, token, interrupts)
    }

    /// Acquires the lock if it is free; else interrupts are as before.
    ///
    /// # Panics
    /// As [`SpinLock::lock`].
    pub fn try_lock(&self) -> Option<Guard<'_, M, L, T>> {
        let interrupts = Kernel::<M>::irq_save();
        let Some(token) = self.lock.try_lock(&self.nodes.shared) else {
            Kernel::<M>::irq_restore(interrupts);
            return None;
        };
        Some(Guard::new(self, token, interrupts))
    }
}

impl<M: Machine, L: Vouched<M>, T> fmt::Debug for SpinLock<'_, M, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpinLock").field("lock", &self.lock).finish_non_exhaustive()
    }
}

/// The data, until it is dropped. It stays on its CPU: the release must come from there.
#[must_use = "the lock is released at once"]
pub struct Guard<'a, M: Machine, L: Vouched<M>, T> {
    lock: &'a SpinLock<'a, M, L, T>,
    /// `None` only while it is dropped.
    token: Option<L::Token>,
    interrupts: bool,
    /// Not `Send`.
    on_its_cpu: PhantomData<*mut ()>,
}

impl<'a, M: Machine, L: Vouched<M>, T> Guard<'a, M, L, T> {
    fn new(lock: &'a SpinLock<'_, M, L, T>, token: L::Token, interrupts: bool) -> Self {
        Self { lock, token: Some(token), interrupts, on_its_cpu: PhantomData }
    }
}

impl<M: Machine, L: Vouched<M>, T: fmt::Debug> fmt::Debug for Guard<'_, M, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<M: Machine, L: Vouched<M>, T> Deref for Guard<'_, M, L, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one (`Vouched`), and lends the data for its own life at most.
        unsafe { &*self.lock.data.get() }
    }
}

impl<M: Machine, L: Vouched<M>, T> DerefMut for Guard<'_, M, L, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and this guard is borrowed mutably.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<M: Machine, L: Vouched<M>, T> Drop for Guard<'_, M, L, T> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            self.lock.lock.unlock(&self.lock.nodes.shared, token);
            Kernel::<M>::irq_restore(self.interrupts);
        }
    }
}
