//! What waits for locks are spent on: for each lock and each vCPU, and the longest waits of the run
//! with their chains.
//!
//! `clock.rs` has the definitions and the arithmetic, `chain.rs` the pieces of one wait,
//! `decision.rs` why a vCPU was descheduled; this file is what the rest of the world calls. A lock for
//! which nobody waits costs a look at a flag at each acquisition and release.

mod chain;
mod clock;
mod decision;

pub(crate) use clock::{Descheduled, Doing};

use crate::memory::NONE;
use crate::vcpu::Vcpu;
use crate::world::World;
use clock::{Absence, LockClock, Times, Waits};
use overspin_scenario::{Link, LongWait, Picos, VcpuId, WaitCauses};
use std::cell::{Cell, OnceCell, RefCell};

/// Waits that an outcome tells in full.
const WORST: usize = 10;

/// Who holds a lock, and what those who wait for it wait for.
#[derive(Debug)]
pub(crate) struct Contention {
    /// vCPU that holds it or is releasing it, `NONE` if it is free.
    pub holder: Cell<u32>,
    /// Somebody waits.
    pub contended: Cell<bool>,
    /// Made with the first wait: most locks of a large host are never contended.
    clock: OnceCell<Box<RefCell<LockClock>>>,
}

impl Contention {
    pub(crate) fn new() -> Self {
        Self { holder: Cell::new(NONE), contended: Cell::new(false), clock: OnceCell::new() }
    }

    fn clock(&self) -> &RefCell<LockClock> {
        self.clock.get_or_init(|| Box::new(RefCell::new(LockClock::new())))
    }

    /// What all waits that are over were spent on.
    pub(crate) fn causes(&self) -> WaitCauses {
        self.clock.get().map_or_else(WaitCauses::default, |clock| clock.borrow().sum.into())
    }
}

/// The waits of a run.
#[derive(Debug, Default)]
pub(crate) struct Attribution {
    waits: RefCell<Waits>,
    worst: RefCell<Vec<LongWait>>,
    /// A wait must be longer to be among the worst.
    longer_than: Cell<Picos>,
}

fn add(sum: &mut Times, times: &Times) {
    for (sum, time) in sum.iter_mut().zip(times) {
        *sum += time;
    }
}

impl World {
    /// `v` has found that it has to wait for `lock` of its guest.
    pub(crate) fn wait_begins(&self, v: &Vcpu, lock: u32) {
        let contention = self.guest(v.guest).contention(lock);
        let mut clock = contention.clock().borrow_mut();
        if !contention.contended.replace(true) {
            let holder = contention.holder.get();
            if holder == NONE {
                clock.held_by(NONE, false, Doing::Runs, None);
            } else {
                let h = &self.vcpus[holder as usize];
                let releasing = h.lock_released.get() == lock;
                clock.held_by(holder, releasing, h.doing.get(), h.descheduled());
                h.holds_up.set(h.holds_up.get() + 1);
            }
        }
        let mut waits = self.attribution.waits.borrow_mut();
        let id = clock.begin(&mut waits, self.now.get(), (v.id, lock, v.wait.get()));
        v.wait.set(id);
    }

    /// `v` has got a lock for which somebody waits, or it did itself since `since`. `before` is who is
    /// still busy with releasing it, `NONE` if nobody. Returns what its own wait was spent on.
    pub(crate) fn wait_ends(
        &self,
        contention: &Contention,
        v: &Vcpu,
        before: u32,
        since: Option<Picos>,
    ) -> Option<WaitCauses> {
        let now = self.now.get();
        if before != NONE {
            self.vcpus[before as usize].holds_up_less();
        }
        let mut clock = contention.clock().borrow_mut();
        let mut waits = self.attribution.waits.borrow_mut();
        let id = if since.is_some() { v.wait.get() } else { NONE };
        clock.acquire(&mut waits, now, v.id, id);
        let times = since.map(|since| {
            let times = clock.end(&mut waits, id);
            debug_assert_eq!(times.iter().sum::<Picos>(), now - since, "{:?}", waits.get(id));
            add(&mut clock.sum, &times);
            for (sum, time) in v.waited.iter().zip(times) {
                sum.set(sum.get() + time);
            }
            if now - since > self.attribution.longer_than.get() {
                self.keep(&mut waits, &clock, id, times.into(), true);
            }
            v.wait.set(waits.get(id).outer);
            waits.remove(id);
            times.into()
        });
        clock.acquisitions += 1;
        if clock.somebody_waits() {
            v.holds_up.set(v.holds_up.get() + 1);
        } else {
            contention.contended.set(false);
            clock.forget();
        }
        times
    }

    /// The holder of a lock for which somebody waits begins to release it.
    pub(crate) fn release_begins(&self, contention: &Contention) {
        let waits = self.attribution.waits.borrow();
        contention.clock().borrow_mut().release(&waits, self.now.get());
    }

    /// `v` has released it, and nobody has taken it yet; somebody waits.
    pub(crate) fn release_ends(&self, contention: &Contention, v: &Vcpu) {
        v.holds_up_less();
        let waits = self.attribution.waits.borrow();
        contention.clock().borrow_mut().released(&waits, self.now.get());
    }

    /// What `v` does has changed.
    pub(crate) fn does(&self, v: &Vcpu, doing: Doing) {
        v.doing.set(doing);
        if v.holds_up.get() > 0 || v.wait.get() != NONE {
            self.tell_locks(v, doing);
        }
    }

    fn tell_locks(&self, v: &Vcpu, doing: Doing) {
        let (now, guest, decision) = (self.now.get(), self.guest(v.guest), v.descheduled());
        let mut waits = self.attribution.waits.borrow_mut();
        let mut id = v.wait.get();
        while id != NONE {
            let (lock, outer) = (waits.get(id).lock, waits.get(id).outer);
            let mut clock = guest.contention(lock).clock().borrow_mut();
            clock.waiter_changes(&mut waits, now, id, doing, decision);
            id = outer;
        }
        if v.holds_up.get() > 0 {
            for held in guest.contentions().filter(|c| c.holder.get() == v.id && c.contended.get())
            {
                held.clock().borrow_mut().holder_changes(&waits, now, doing, decision);
            }
        }
    }

    /// The longest waits, with those that the end of the run cuts short. Once, at the end.
    pub(crate) fn worst_waits(&self) -> Vec<LongWait> {
        let mut waits = self.attribution.waits.borrow_mut();
        for v in &self.vcpus {
            let mut id = v.wait.replace(NONE);
            while id != NONE {
                let (lock, outer) = (waits.get(id).lock, waits.get(id).outer);
                let mut clock = self.guest(v.guest).contention(lock).clock().borrow_mut();
                let times = clock.cut(&mut waits, self.now.get(), id);
                if times.iter().sum::<Picos>() > self.attribution.longer_than.get() {
                    self.keep(&mut waits, &clock, id, times.into(), false);
                }
                id = outer;
            }
        }
        self.attribution.worst.take()
    }

    /// Keeps a wait that ends now as one of the longest, unless it is the noise's own.
    fn keep(
        &self,
        waits: &mut Waits,
        clock: &LockClock,
        id: u32,
        causes: WaitCauses,
        finished: bool,
    ) {
        let (wait, now) = (waits.get(id), self.now.get());
        if self.vcpus[wait.vcpu as usize].is_noise {
            return;
        }
        let index = |v: u32| self.vcpus[v as usize].index;
        let kept = LongWait {
            domain: self.vcpus[wait.vcpu as usize].guest,
            vcpu: index(wait.vcpu),
            lock: wait.lock,
            since: wait.since,
            time: now - wait.since,
            finished,
            holder: (wait.holder != NONE).then(|| index(wait.holder)),
            acquisitions: clock.acquisitions - wait.acquisitions,
            causes,
            chain: self.links(
                &chain::absences(wait, clock, now),
                (wait.since, wait.acquisitions),
                (now, clock.acquisitions),
            ),
        };
        let mut worst = self.attribution.worst.borrow_mut();
        // Of equal ones the first stays in front.
        let at = worst.partition_point(|w| w.time >= kept.time);
        worst.insert(at, kept);
        worst.truncate(WORST);
        if worst.len() == WORST {
            let least = worst[WORST - 1].time;
            self.attribution.longer_than.set(least);
            waits.worth_a_line = chain::worth_a_line(least);
        }
    }

    /// Absences and what was between them, as an outcome tells it. The ends are times, with the
    /// acquisitions of the lock up to then.
    fn links(
        &self,
        absences: &[(Absence, bool)],
        begin: (Picos, u64),
        end: (Picos, u64),
    ) -> Vec<Link> {
        let mut links = Vec::new();
        let mut from = begin;
        // Of those that are not listed, since the last that is.
        let mut unlisted = 0;
        let between = |from: (Picos, u64), to: (Picos, u64), unlisted| Link {
            since: from.0,
            time: to.0 - from.0,
            cause: None,
            vcpu: None,
            decision: None,
            acquisitions: to.1 - from.1,
            unlisted,
        };
        for (a, listed) in absences {
            if !listed {
                unlisted += a.time();
                continue;
            }
            let to = (a.since, a.acquisitions.0);
            if to != from {
                links.push(between(from, to, std::mem::take(&mut unlisted)));
            }
            links.push(Link {
                since: a.since,
                time: a.time(),
                cause: Some(a.cause),
                vcpu: Some(self.vcpus[a.who as usize].index),
                decision: a.decision.map(|d| overspin_scenario::Decision {
                    at: d.at,
                    pcpu: d.pcpu,
                    by: (d.by != NONE).then(|| self.vcpu_id(d.by)),
                    why: d.why,
                }),
                acquisitions: a.acquisitions.1 - a.acquisitions.0,
                unlisted: 0,
            });
            from = (a.until, a.acquisitions.1);
        }
        if end != from {
            links.push(between(from, end, unlisted));
        }
        links
    }

    fn vcpu_id(&self, v: u32) -> VcpuId {
        let v = &self.vcpus[v as usize];
        VcpuId { domain: v.guest, vcpu: v.index }
    }
}
