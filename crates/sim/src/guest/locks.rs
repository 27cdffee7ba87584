//! The kernel's locks: real lock objects of one kind in simulated memory, with statistics.

use super::data::KernelData;
use crate::engine::Engine;
use crate::memory::{Memory, NONE};
use crate::platform::{SimCell, SimPlatform};
use crate::prefetch::touch;
use crate::vcpu::{OwnOperation, Vcpu};
use overspin_histogram::Histogram;
use overspin_host::{LockEvent, Moment};
use overspin_locks::{CapacityError, LockVisitor, RawLock, Tuning};
use overspin_scenario::{LockOutcome, NS, Picos, WaitCauses};
use overspin_workload::{LayoutOf, Loads, LockUse};
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::ops::Add;

/// All locks of one guest, whatever their kind.
pub(crate) trait LockBank {
    /// Takes lock `i`.
    fn acquire(&self, engine: &Engine, i: usize, how: LockUse);
    /// Releases lock `i`, which the caller must hold.
    fn release(&self, engine: &Engine, i: usize);
    /// Takes lock `i`, works, and releases it: one call through the table instead of three.
    fn section(&self, engine: &Engine, i: usize, how: LockUse, work: Picos);
    /// Counts one more waiter at lock `i`. Returns the vCPU that holds it, as [`holder`](Self::holder) does.
    fn waits(&self, i: usize) -> u32;
    /// The vCPU that holds lock `i` or is releasing it, or its task ([`is_of_user_mode`]); `NONE` if it is free.
    fn holder(&self, i: usize) -> u32;
    /// The counters of lock `i`.
    fn counters(&self, i: usize) -> &Counters;
    /// Prefetches the entry of lock `i`.
    fn fetch_entry(&self, i: usize);
    /// Prefetches lock `i` itself, through the pointer in its entry.
    fn fetch_lock(&self, memory: &Memory, i: usize);
}

// One text for all kinds: a derived one would be compiled once for each.
impl fmt::Debug for dyn LockBank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockBank")
    }
}

/// Counters of one lock. Only its holder changes them, or a waiter for its own wait.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Counters {
    acquisitions: Cell<u64>,
    hold_total: Cell<Picos>,
    hold_max: Cell<Picos>,
    contended: Cell<u64>,
    wait_total: Cell<Picos>,
    wait_max: Cell<Picos>,
    /// Waits in nanoseconds. The first wait allocates them: most locks of a large host are never contended.
    waits: OnceCell<Box<RefCell<Histogram>>>,
    pub slow_paths: Cell<u64>,
    pub kicks: Cell<u64>,
    holder_preempted: Cell<u64>,
}

impl Counters {
    fn waited(&self, time: Picos) {
        add(&self.contended, 1);
        add(&self.wait_total, time);
        self.wait_max.set(self.wait_max.get().max(time));
        self.waits.get_or_init(Box::default).borrow_mut().record(time / NS);
    }

    /// Begins anew.
    pub(super) fn clear(&self) {
        for count in [
            &self.acquisitions,
            &self.contended,
            &self.slow_paths,
            &self.kicks,
            &self.holder_preempted,
        ] {
            count.set(0);
        }
        for time in [&self.hold_total, &self.hold_max, &self.wait_total, &self.wait_max] {
            time.set(Picos::ZERO);
        }
        if let Some(waits) = self.waits.get() {
            waits.take();
        }
    }

    /// The wait that only one of `one_in` acquisitions exceeded; an uncontended acquisition waits for 0.
    fn wait_of_all_but(&self, one_in: u64) -> Picos {
        let acquisitions = self.acquisitions.get();
        self.quantile(|waits| waits.of_all_but(one_in, acquisitions))
    }

    /// A quantile of the waits. The upper end of its bucket may lie above the longest wait.
    fn quantile(&self, of: impl FnOnce(&Histogram) -> u64) -> Picos {
        let waits = self.waits.get();
        waits.map_or(Picos::ZERO, |w| (of(&w.borrow()) * NS).min(self.wait_max.get()))
    }

    /// The statistics of the lock, under `name`.
    pub(crate) fn outcome(&self, name: String) -> LockOutcome {
        LockOutcome {
            name,
            acquisitions: self.acquisitions.get(),
            contended: self.contended.get(),
            wait_total: self.wait_total.get(),
            wait_max: self.wait_max.get(),
            wait_causes: WaitCauses::default(),
            wait_p50: self.wait_of_all_but(2),
            wait_p99: self.wait_of_all_but(100),
            wait_p999: self.wait_of_all_but(1000),
            hold_total: self.hold_total.get(),
            hold_max: self.hold_max.get(),
            slow_paths: self.slow_paths.get(),
            kicks: self.kicks.get(),
            holder_preempted: self.holder_preempted.get(),
        }
    }
}

/// Tells what the current task does at lock `i`, which it takes in user mode.
#[cold]
#[inline(never)]
fn tell(engine: &Engine, i: usize, what: LockEvent) {
    let task = engine.cpu().task.get();
    // More domains than 16 bits count do not fit the vCPUs of a scenario.
    let (domain, task) = (task.guest as u16, task.number());
    engine.tell(Moment::TaskLock { domain, task, lock: i as u32, what });
}

/// Marks the number of a task that holds a lock of user mode.
pub(super) const USER: u32 = 1 << 31;

/// Whether the holder of a lock is a task that took it in user mode.
pub(super) fn is_of_user_mode(holder: u32) -> bool {
    holder != NONE && holder & USER != 0
}

/// A number that changes when the code on `v` is descheduled: by the host, and, in user mode, by the guest.
fn stay(v: &Vcpu, user: bool) -> u64 {
    let by_guest = if user { v.task.get().preemptions.get() } else { 0 };
    v.run.dispatches.get() + (by_guest << 32)
}

fn add<T: Copy + Add<Output = T>>(counter: &Cell<T>, n: T) {
    counter.set(counter.get() + n);
}

/// A lock and its state. The fields of an uncontended acquisition come first, on cache lines of their own.
#[repr(C, align(64))]
struct Entry<L: RawLock<SimPlatform> + 'static> {
    lock: &'static L,
    token: Cell<Option<L::Token>>,
    irqs: Cell<Option<bool>>,
    since: Cell<Picos>,
    /// The [`stay`] of its holder when it took the lock. Another one at the release means that the holder was
    /// descheduled in between.
    stay: Cell<u64>,
    /// The vCPU that holds the lock or is releasing it, or its task with [`USER`]; `NONE` if the lock is free.
    holder: Cell<u32>,
    /// Number of waiters.
    waiters: Cell<u32>,
    counters: Counters,
}

struct Bank<L: RawLock<SimPlatform> + 'static> {
    shared: L::Shared,
    entries: Vec<Entry<L>>,
}

/// Makes the bank of a guest: `count` locks for `cpus` vCPUs. A visitor of the lock type with the domain's
/// lock name.
#[derive(Debug)]
pub(crate) struct MakeBank<'a> {
    pub engine: &'a Engine,
    pub count: usize,
    pub cpus: usize,
    pub tuning: Tuning,
    /// The guest's workloads: the kernels of some have locks among other data.
    pub loads: &'a Loads,
}

pub(crate) type BankResult = Result<(Box<dyn LockBank>, KernelData), CapacityError>;

impl LockVisitor<SimPlatform> for MakeBank<'_> {
    type Output = BankResult;
    fn visit<L: RawLock<SimPlatform> + 'static>(self) -> Self::Output {
        let memory = &self.engine.machine.memory;
        let layout = self.loads.layout(LayoutOf::types::<L, SimCell<usize>>());
        let region = layout.as_ref().map(|l| (l, memory.region(l.size, l.align)));
        let place = |i: usize| match &region {
            Some((layout, region)) if i < layout.locks.len() => {
                region.put(layout.locks[i].1, L::new())
            }
            _ => memory.place(L::new()),
        };
        let entries = (0..self.count)
            .map(|i| Entry::<L> {
                lock: place(i),
                token: Cell::new(None),
                irqs: Cell::new(None),
                since: Cell::new(Picos::ZERO),
                stay: Cell::new(0),
                counters: Counters::default(),
                holder: Cell::new(NONE),
                waiters: Cell::new(0),
            })
            .collect();
        let data = region.map_or_else(KernelData::default, |(l, r)| KernelData::new(l, &r));
        Ok((Box::new(Bank { shared: L::shared(self.cpus, self.tuning)?, entries }), data))
    }
}

impl<L: RawLock<SimPlatform> + 'static> LockBank for Bank<L> {
    fn acquire(&self, engine: &Engine, i: usize, how: LockUse) {
        let entry = &self.entries[i];
        let v = engine.cpu();
        let outer = v.lock.wants.replace(i as u32);
        let outer_wait = v.lock.waits_since.replace(None);
        let (token, irqs) = match how {
            LockUse::Plain | LockUse::User => (entry.lock.lock(&self.shared), None),
            LockUse::IrqSave => {
                let (token, irqs) = entry.lock.lock_irqsave(&self.shared);
                (token, Some(irqs))
            }
        };
        // A task in user mode may have moved to another vCPU.
        let v = engine.cpu();
        v.lock.wants.set(outer);
        let waited_since = v.lock.waits_since.replace(outer_wait);
        entry.token.set(Some(token));
        entry.irqs.set(irqs);
        let user = how == LockUse::User;
        entry.holder.set(if user { USER | v.task.get().number() } else { v.id });
        let now = engine.now();
        entry.since.set(now);
        entry.stay.set(stay(v, user));
        let c = &entry.counters;
        add(&c.acquisitions, 1);
        engine.advanced();
        if let Some(since) = waited_since {
            c.waited(now - since);
        }
        let waiters = entry.waiters.get();
        if waited_since.is_some() {
            entry.waiters.set(waiters - 1);
        }
        let contended = waiters > 0;
        if user {
            tell(engine, i, LockEvent::Acquired { contended });
        } else {
            engine.tell(Moment::LockAcquired { vcpu: v.id, lock: i as u32, contended });
            engine.section_begins();
        }
    }

    fn release(&self, engine: &Engine, i: usize) {
        let entry = &self.entries[i];
        let v = engine.cpu();
        let c = &entry.counters;
        let held = engine.now() - entry.since.get();
        add(&c.hold_total, held);
        c.hold_max.set(c.hold_max.get().max(held));
        let holder = entry.holder.get();
        // A lock that is held has a holder.
        let user = holder & USER != 0;
        if entry.stay.get() != stay(v, user) {
            add(&c.holder_preempted, 1);
        }
        let token = entry.token.take().expect("only a held lock is released");
        let irqs = entry.irqs.take();
        let contended = entry.waiters.get() > 0;
        if user {
            tell(engine, i, LockEvent::Released { contended });
        } else {
            engine.tell(Moment::LockReleased { vcpu: v.id, lock: i as u32, contended });
        }
        // What the code below this handler wants waits meanwhile.
        let outer = v.lock.exchange(OwnOperation::of_release(i as u32));
        entry.lock.unlock(&self.shared, token);
        let v = engine.cpu();
        v.lock.exchange(outer);
        // Another vCPU or task may have taken the lock by now.
        if entry.holder.get() == holder {
            entry.holder.set(NONE);
        }
        if user {
            tell(engine, i, LockEvent::Freed { contended: entry.waiters.get() > 0 });
            return;
        }
        engine.tell(Moment::LockFreed {
            vcpu: v.id,
            lock: i as u32,
            contended: entry.waiters.get() > 0,
        });
        engine.section_ends();
        if let Some(irqs) = irqs {
            engine.set_irqs(irqs);
        }
    }

    fn section(&self, engine: &Engine, i: usize, how: LockUse, work: Picos) {
        self.acquire(engine, i, how);
        if work > Picos::ZERO {
            engine.burn(work);
        }
        self.release(engine, i);
    }

    fn waits(&self, i: usize) -> u32 {
        let entry = &self.entries[i];
        entry.waiters.set(entry.waiters.get() + 1);
        entry.holder.get()
    }

    fn holder(&self, i: usize) -> u32 {
        self.entries[i].holder.get()
    }

    fn counters(&self, i: usize) -> &Counters {
        &self.entries[i].counters
    }

    fn fetch_entry(&self, i: usize) {
        // The lines that an uncontended acquisition needs.
        touch(&raw const self.entries[i], 128);
    }

    fn fetch_lock(&self, memory: &Memory, i: usize) {
        let lock = self.entries[i].lock;
        touch(&raw const *lock, 1);
        memory.fetch_line_of(lock);
    }
}
