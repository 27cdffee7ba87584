//! A pCPU: a pinned thread that runs one vCPU at a time, or sleeps.
//!
//! ```text
//!   with the lock: what the vCPU did, what is due, the scheduling pass, when to look again
//!   without:       enter the vCPU until it exits or the timer or a bell stops it; or sleep
//! ```

use crate::core::Core;
use crate::doorbell::Doorbell;
use crate::image::Image;
use crate::kvm_run::{self, Exit};
use crate::timer::ThreadTimer;
use crate::tracing::Tracer;
use crate::vcpu::KvmVcpu;
use overspin_host::picos;
use overspin_sched::Nanos;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest sleep of an idle pCPU: it looks again even if nothing is due.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Passes in a row after which a pCPU enters its vCPU whatever else is due.
const PASSES: u32 = 16;

/// What the threads of a run share.
#[derive(Debug)]
pub(crate) struct Machine {
    pub core: Mutex<Core>,
    /// By pCPU.
    pub bells: Vec<Doorbell>,
    /// By vCPU: only the pCPU that runs it takes the lock.
    pub vcpus: Vec<Mutex<KvmVcpu>>,
    /// By vCPU: the memory of its domain, and its number there.
    pub images: Vec<(Arc<Image>, u32)>,
    /// The CPU of each pCPU.
    pub cpus: Vec<u32>,
}

/// An exit that the core has not heard of.
struct Left {
    v: u32,
    exit: Exit,
    entered: Nanos,
    exited: Nanos,
}

impl Machine {
    /// The state. If a thread has panicked, the run is over.
    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(|poisoned| {
            let mut core = PoisonError::into_inner(poisoned);
            core.ended = true;
            core
        })
    }

    /// Rings all bells.
    pub(crate) fn ring_all(&self) {
        self.bells.iter().for_each(Doorbell::ring);
    }

    /// Is pCPU `p` until the run is over.
    ///
    /// # Errors
    /// If the system has no timer for it, or does not let it run where it has to.
    pub(crate) fn be(&self, p: u32) -> Result<(), String> {
        pin(self.cpus[p as usize])?;
        precise_sleeps();
        let mut timer =
            ThreadTimer::new().map_err(|error| format!("no timer for a pCPU: {error}"))?;
        let bell = &self.bells[p as usize];
        bell.own();
        let mut left = None;
        loop {
            kvm_run::prepare();
            let mut core = self.core();
            let clock = core.clock;
            if let Some(left) = left.take() {
                core.exited(p, left);
            }
            core.look(p);
            let rings = std::mem::take(&mut core.to_ring);
            let (ended, current) = (core.ended, core.pcpus[p as usize].current);
            let due = core.pcpus[p as usize].looks_at;
            if let Some(v) = current {
                core.vcpus[v as usize].entered = clock.now();
            }
            drop(core);
            for other in rings {
                self.bells[other as usize].ring();
            }
            if ended {
                self.ring_all();
                return Ok(());
            }
            let now = clock.now();
            let Some(v) = current else {
                let until = due.map_or(LONGEST_SLEEP, |due| {
                    Duration::from_nanos((due.0 - now.0).max(0).unsigned_abs()).min(LONGEST_SLEEP)
                });
                bell.sleep(until);
                continue;
            };
            timer.set(now, due);
            let (image, index) = &self.images[v as usize];
            let mut vcpu = self.vcpus[v as usize].lock().unwrap_or_else(PoisonError::into_inner);
            left = match vcpu.upcall(image, *index) {
                Err(what) => Some(Left { v, exit: Exit::Fault(what), entered: now, exited: now }),
                Ok(()) => bell.in_guest(|| {
                    let entered = clock.now();
                    let exit = vcpu.run();
                    Left { v, exit, entered, exited: clock.now() }
                }),
            };
        }
    }
}

impl Core {
    /// A vCPU has left its guest on `p`.
    fn exited(&mut self, p: u32, left: Left) {
        let Left { v, exit, entered, exited } = left;
        let inside = &mut self.pcpus[p as usize].inside;
        *inside = Nanos(inside.0 + exited.0 - entered.0);
        let vcpu = &self.vcpus[v as usize];
        let domain = &self.domains[vcpu.domain as usize];
        if domain.fault.is_some() {
            return;
        }
        let image = Arc::clone(&domain.image);
        let (locks, tasks) = (image.sizes.locks, image.sizes.tasks);
        let (first, vcpus) = (domain.first, domain.vcpus);
        let of = Tracer { domain: vcpu.domain, first, vcpus, locks, tasks };
        self.tracing.take(image.take_traced(vcpu.index), v, of, picos(exited));
        match exit {
            Exit::Interrupted => {}
            Exit::Out { port, size: 4, count: 1, value } => self.hypercall(p, v, port, value),
            Exit::Out { port, size, count, .. } => {
                let what =
                    format!("{count} writes of {size} bytes to port {port:#x}; hypercalls have 4");
                self.fault(self.clock.now(), p, v, what);
            }
            Exit::Fault(what) => self.fault(self.clock.now(), p, v, what),
        }
    }

    /// Does what is due on `p`, and says when `p` has to look again.
    pub(crate) fn look(&mut self, p: u32) {
        for _ in 0..PASSES {
            self.expire(p);
            if !self.pcpus[p as usize].resched {
                break;
            }
            self.pass(p);
        }
        self.pcpus[p as usize].looks_at = self.due(p);
        if self.pcpus[p as usize].resched {
            self.pcpus[p as usize].looks_at = Some(self.clock.now());
        }
    }
}

/// Binds the calling thread to a CPU.
pub(crate) fn pin(cpu: u32) -> Result<(), String> {
    // SAFETY: all bytes zero is the empty set, the macro checks its bounds, and the call only reads the set.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    match result {
        0 => Ok(()),
        _ => Err(format!("a thread cannot run on CPU {cpu}: {}", std::io::Error::last_os_error())),
    }
}

/// The CPUs on which this process may run.
pub(crate) fn allowed_cpus() -> Vec<u32> {
    // SAFETY: all bytes zero is a set, the call writes no more than its size, and the macro checks its bounds.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        let cpus = 0..libc::CPU_SETSIZE as usize;
        cpus.filter(|cpu| libc::CPU_ISSET(*cpu, &set)).map(|cpu| cpu as u32).collect()
    }
}

/// Sleeps of this thread end when they should, and not up to 50 us later.
fn precise_sleeps() {
    // SAFETY: it changes a property of this thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}
