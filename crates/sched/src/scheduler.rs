//! The boundary between the generic layer and a scheduler (schedulers specification §1.1).

use crate::error::SchedError;
use crate::ids::{Action, DomainId, PcpuId, TimerId, VcpuId};
use crate::machine::{Machine, flags};
use crate::params::Params;
use crate::time::Nanos;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::ops::Deref;

/// What an administrator says about a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainParams {
    /// Share of the machine under contention, relative to other domains, per vCPU: 1 to [`Self::MAX_WEIGHT`].
    pub weight: u32,
    /// Most time that all vCPUs together may run, in percent of one pCPU; 0 is no limit. At most
    /// 100 for each vCPU, and [`Self::MAX_CAP`].
    pub cap: u32,
}

impl Default for DomainParams {
    fn default() -> Self {
        Self { weight: 256, cap: 0 }
    }
}

impl DomainParams {
    /// The greatest weight.
    pub const MAX_WEIGHT: u32 = 65_535;
    /// The greatest cap.
    pub const MAX_CAP: u32 = 65_534;

    /// Checks the ranges; `vcpus` is the number of vCPUs of the domain if it is known yet.
    ///
    /// # Errors
    /// [`SchedError::Param`] with the offending key and its legal values.
    pub fn check(&self, vcpus: Option<u32>) -> Result<(), SchedError> {
        if !(1..=Self::MAX_WEIGHT).contains(&self.weight) {
            let (key, value) = ("weight", self.weight.into());
            return Err(SchedError::Param {
                key,
                value,
                legal: format!("1 to {}", Self::MAX_WEIGHT),
            });
        }
        let most = vcpus.map_or(Self::MAX_CAP, |n| n.saturating_mul(100).min(Self::MAX_CAP));
        if self.cap > most {
            let legal =
                format!("0 (no cap) to {most} % (100 for each vCPU, at most {})", Self::MAX_CAP);
            return Err(SchedError::Param { key: "cap", value: self.cap.into(), legal });
        }
        Ok(())
    }
}

/// Whose parameters [`Scheduler::configure`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A domain's: all its vCPUs, also later ones.
    Domain(DomainId),
    /// One vCPU's.
    Vcpu(VcpuId),
}

/// The answer of [`Scheduler::schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What the pCPU runs next; None is its idle vCPU.
    pub next: Option<VcpuId>,
    /// For how long at most, in ns; None is without limit (no timer is set).
    pub slice: Option<Nanos>,
}

/// What a scheduler says about one vCPU, to inspect and to trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Its class, in the scheduler's own word.
    pub class: &'static str,
    /// Its credit, in the scheduler's own unit.
    pub credit: i64,
    /// Whether it earns credit.
    pub active: bool,
}

/// Something of which the borrower sees where it is and how large it is ([`size_of_val`]), and nothing else.
pub trait Opaque {}

impl<T> Opaque for T {}

/// What a scheduler gets with each call: the time, the machine to read (through `Deref`), and the
/// effects that it may have.
#[derive(Debug)]
pub struct Context<'a> {
    pub(crate) now: Nanos,
    pub(crate) executing: PcpuId,
    pub(crate) machine: &'a mut Machine,
    pub(crate) actions: &'a mut Vec<Action>,
}

impl Deref for Context<'_> {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        self.machine
    }
}

impl Context<'_> {
    /// The time of this call, in ns; read once for the whole call.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The pCPU that executes this call, as far as the world said.
    pub fn executing(&self) -> PcpuId {
        self.executing
    }

    /// The vCPUs that exist of a domain, or the one. O(vCPUs).
    pub fn belonging_to(&self, whose: Whose) -> impl Iterator<Item = VcpuId> + '_ {
        let all = (0..self.vcpu_count()).map(VcpuId);
        all.filter(move |v| match whose {
            Whose::Domain(d) => self.domain_of(*v) == d && !self.vcpu(*v).removed,
            Whose::Vcpu(one) => *v == one,
        })
    }

    /// Changes the home of `v`. It must not be current, unless this is the pass that dispatches it.
    pub fn set_home(&mut self, v: VcpuId, home: PcpuId) {
        self.machine.vcpu_mut(v).home = home;
    }

    /// Asks `p` to enter its scheduler.
    pub fn resched(&mut self, p: PcpuId) {
        self.actions.push(Action::Resched(p));
    }

    /// Sets a timer; replaces an earlier setting.
    pub fn set_timer(&mut self, timer: TimerId, at: Nanos) {
        self.actions.push(Action::SetTimer { timer, at });
    }

    /// Stops a timer.
    pub fn stop_timer(&mut self, timer: TimerId) {
        self.actions.push(Action::StopTimer { timer });
    }

    /// Keeps `v` from running until [`Self::unpark`]. Returns true if `v` is not runnable now: the
    /// scheduler must then do what it does in [`Scheduler::sleep`] (the layer does not call it).
    #[must_use]
    pub fn park(&mut self, v: VcpuId) -> bool {
        self.machine.vcpu_mut(v).flags |= flags::PARKED;
        self.machine.sleep_state(self.now, v)
    }

    /// Ends [`Self::park`]. Returns true if `v` is runnable now: the scheduler must then do what
    /// it does in [`Scheduler::wake`] (the layer does not call it).
    #[must_use]
    pub fn unpark(&mut self, v: VcpuId) -> bool {
        self.machine.vcpu_mut(v).flags &= !flags::PARKED;
        self.machine.wake_state(self.now, v)
    }

    /// Asks that `v`, which must be running, leave its pCPU and be placed anew: when it has left,
    /// the layer calls [`Scheduler::pick`], [`Scheduler::migrate`] and [`Scheduler::wake`]. Until
    /// then it is not runnable.
    pub fn request_migration(&mut self, v: VcpuId) {
        debug_assert!(self.is_running(v), "only a running vCPU leaves for another pCPU");
        self.machine.vcpu_mut(v).flags |= flags::MIGRATING;
        if self.is_current(v) {
            let home = self.home(v);
            self.resched(home);
        } else {
            // It is on its way out already.
            self.machine.sleep_state(self.now, v);
        }
    }
}

/// A vCPU scheduler: told what happened, it answers who runs where, for how long at most, and who
/// must think again.
///
/// # The life of a vCPU
///
/// [`insert`](Self::insert) once; then any number of wake, sleep, yield, pick and migrate; between
/// them [`schedule`](Self::schedule) takes it on and off a pCPU, with
/// [`context_saved`](Self::context_saved) after each time off; [`remove`](Self::remove) at the end.
///
/// # What an implementer may rely on
///
/// - Calls come one at a time, with a time that never runs backwards.
/// - Runnability and runstates have changed *before* the call that reports the change.
/// - `schedule` is called again on a pCPU only after `context_saved` of what it took off there.
/// - Ids are dense: a new domain or vCPU has the next index.
/// - Idle vCPUs have no id, and no call is about one.
/// - Only pCPUs of [`Machine::pool`] schedule, and hard affinities lie within it.
///
/// # What an implementer must keep
///
/// - A runnable vCPU is current somewhere, on exactly one queue, or chosen by the pass under way.
/// - `schedule` chooses only a runnable vCPU that runs nowhere else, within its hard affinity, and
///   makes that pCPU its home (the current one may be chosen again).
/// - The same calls give the same answers: no clock, no randomness, no hash order.
pub trait Scheduler: Debug + Send {
    /// The name under which the registry lists it.
    fn name(&self) -> &'static str;

    /// Called once, before anything else but after the machine is known: make per-pCPU state, set
    /// the first timers.
    fn start(&mut self, cx: &mut Context<'_>);

    /// What it keeps of `v`, if that is one record. A hint, lent to a world that knows beforehand which vCPU goes on,
    /// so that the world can have the processor fetch the record: this crate has no instruction for that, for it has no
    /// unsafe code. Without the hint the first look at the record is a cache miss, and nothing else changes.
    fn record_of(&self, _v: VcpuId) -> Option<&dyn Opaque> {
        None
    }

    /// A new domain, with the next index. `params` are within their ranges.
    fn create_domain(&mut self, d: DomainId, params: DomainParams);

    /// New parameters of a domain; `params` are within their ranges.
    fn set_domain(&mut self, cx: &mut Context<'_>, d: DomainId, params: DomainParams);

    /// Parameters of its own kind for a domain, which later vCPUs of it inherit, or for one vCPU.
    /// Those of a scheduler of this crate were checked against
    /// [`SchedulerInfo::domain_params`](field@crate::SchedulerInfo::domain_params); one from outside checks them itself.
    ///
    /// # Errors
    /// For rules that ranges cannot say. Then nothing has changed.
    fn configure(
        &mut self,
        _cx: &mut Context<'_>,
        _whose: Whose,
        _params: &Params,
    ) -> Result<(), SchedError> {
        Ok(())
    }

    /// A new vCPU, with the next index; not running, and normally not runnable yet. Its home is
    /// the one of the rule for initial homes. Choose a better one, and queue it if it is runnable.
    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId);

    /// `v`, which is not running and not runnable, is gone for good.
    fn remove(&mut self, cx: &mut Context<'_>, v: VcpuId);

    /// `v` is runnable and may have become so now: queue it, ask those to reschedule whom it should
    /// preempt. Must be a no-op for a vCPU that is current or queued.
    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId);

    /// `v` is not runnable: if it is current, ask its home to reschedule; if it is queued, unqueue
    /// it; else nothing.
    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId);

    /// `v`, which is current, gives way: remember it. The layer then asks its pCPU to reschedule.
    fn yield_now(&mut self, cx: &mut Context<'_>, v: VcpuId);

    /// `v`, which is current, gives way in favour of `to`, which is runnable and not current. Returns
    /// false, with nothing done, if that cannot be. If true, the layer asks the pCPU of `v` to
    /// reschedule.
    ///
    /// By default there are no directed yields, and it is always false.
    fn yield_to(&mut self, _cx: &mut Context<'_>, _v: VcpuId, _to: VcpuId) -> bool {
        false
    }

    /// Whether it has directed yields at all: [`Self::yield_to`] may return true.
    fn directs_yields(&self) -> bool {
        false
    }

    /// Chooses where `v` should be placed, within its hard affinity.
    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId;

    /// `v`, which is neither running nor queued, moves to `p`. By default its home changes.
    fn migrate(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        cx.set_home(v, p);
    }

    /// Chooses what `p` runs next. [`Machine::current`] is what it ran so far.
    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision;

    /// The registers of `v`, which `schedule` took off its pCPU, are saved: it can run elsewhere.
    fn context_saved(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    /// A timer that it set has expired. Never a slice timer: those are the layer's.
    fn timer(&mut self, cx: &mut Context<'_>, timer: TimerId);

    /// The affinity of `v` has changed, or the part of it that lies in the pool. If its home is out
    /// of reach now, or somebody set the affinity, the layer migrates it afterwards.
    fn affinity_changed(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    /// `p`, which idles, has come to the pool. It will be asked to enter its scheduler; from now on
    /// vCPUs may be placed there.
    fn pcpu_added(&mut self, _cx: &mut Context<'_>, _p: PcpuId) {}

    /// `p`, which idles and is the home of no vCPU, has left the pool. Its timers are stopped by the
    /// layer.
    fn pcpu_removed(&mut self, _cx: &mut Context<'_>, _p: PcpuId) {}

    /// What there is to say about `v`, if anything. O(1).
    fn detail(&self, _v: VcpuId) -> Option<Detail> {
        None
    }

    /// For how long `v` was held back up to `now` although it was ready and a pCPU may have been
    /// free (co-stopped: its guest sees steal), in ns. O(1).
    fn costop(&self, _v: VcpuId, _now: Nanos) -> Nanos {
        Nanos::ZERO
    }

    /// Checks its own invariants against the machine. May take time in all vCPUs and pCPUs.
    ///
    /// # Errors
    /// What is broken, in words.
    fn is_valid(&self, machine: &Machine) -> Result<(), String>;
}
