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

/// The parameters that an administrator sets for a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainParams {
    /// Share of the machine per vCPU under contention, relative to other domains: 1 to [`Self::MAX_WEIGHT`].
    pub weight: u32,
    /// Limit on the run time of all vCPUs together, in percent of one pCPU; 0 is no limit. At most 100 for
    /// each vCPU, and at most [`Self::MAX_CAP`].
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

    /// Checks the ranges; `vcpus` is the number of vCPUs of the domain, if it is already known.
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

/// The domain or vCPU whose parameters [`Scheduler::configure`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A domain: all its vCPUs, including later ones.
    Domain(DomainId),
    /// One vCPU.
    Vcpu(VcpuId),
}

/// The decision of [`Scheduler::schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What the pCPU runs next; None is its idle vCPU.
    pub next: Option<VcpuId>,
    /// The longest time for which it runs, in ns; None is no limit (no timer is set).
    pub slice: Option<Nanos>,
}

/// What a scheduler reports about one vCPU, for inspection and traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Its class, in the scheduler's own term.
    pub class: &'static str,
    /// Its credit, in the scheduler's own unit.
    pub credit: i64,
    /// Whether it earns credit.
    pub active: bool,
}

/// What the kernel's `cpu.stat` says of a cap, up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which the domain used some of its quota.
    pub periods: u64,
    /// Periods at whose end some of its vCPUs were throttled.
    pub throttled: u64,
    /// Time in which at least one of its vCPUs was throttled on a pCPU, in ns, summed over the pCPUs.
    pub time: Nanos,
}

/// A value of which a borrower sees only the address and the size ([`size_of_val`]).
pub trait Opaque {}

impl<T> Opaque for T {}

/// The context of each call to a scheduler: the time, the machine to read (through `Deref`), and the effects
/// that the scheduler may have.
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

    /// The pCPU that executes this call, as far as the world has said.
    pub fn executing(&self) -> PcpuId {
        self.executing
    }

    /// The existing vCPUs of a domain, or the one vCPU. O(vCPUs).
    pub fn belonging_to(&self, whose: Whose) -> impl Iterator<Item = VcpuId> + '_ {
        let all = (0..self.vcpu_count()).map(VcpuId);
        all.filter(move |v| match whose {
            Whose::Domain(d) => self.domain_of(*v) == d && !self.vcpu(*v).removed,
            Whose::Vcpu(one) => *v == one,
        })
    }

    /// Changes the home of `v`. `v` must not be current, unless this is the pass that dispatches it.
    pub fn set_home(&mut self, v: VcpuId, home: PcpuId) {
        self.machine.vcpu_mut(v).home = home;
    }

    /// Asks `p` to enter its scheduler.
    pub fn resched(&mut self, p: PcpuId) {
        self.actions.push(Action::Resched(p));
    }

    /// Sets a timer. This replaces an earlier setting.
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
        if !self.is_parked(v) {
            self.actions.push(Action::Throttle { vcpu: v, on: true });
        }
        self.machine.vcpu_mut(v).flags |= flags::PARKED;
        self.machine.sleep_state(self.now, v)
    }

    /// Ends [`Self::park`]. Returns true if `v` is runnable now: the scheduler must then do what
    /// it does in [`Scheduler::wake`] (the layer does not call it).
    #[must_use]
    pub fn unpark(&mut self, v: VcpuId) -> bool {
        if self.is_parked(v) {
            self.actions.push(Action::Throttle { vcpu: v, on: false });
        }
        self.machine.vcpu_mut(v).flags &= !flags::PARKED;
        self.machine.wake_state(self.now, v)
    }

    /// Says that a cap keeps `v` off the queues, or no longer does. It stays runnable: its guest sees steal.
    pub fn set_throttled(&mut self, v: VcpuId, on: bool) {
        self.machine.vcpu_mut(v).throttled = on;
        self.actions.push(Action::Throttle { vcpu: v, on });
    }

    /// Asks `v`, which must be running, to leave its pCPU and move. Once it has left, the layer calls
    /// [`Scheduler::pick`], [`Scheduler::migrate`] and [`Scheduler::wake`]. Until then it is not runnable.
    pub fn request_migration(&mut self, v: VcpuId) {
        debug_assert!(self.is_running(v), "only a running vCPU leaves for another pCPU");
        self.mark_migrating(v);
        if self.is_current(v) {
            let home = self.home(v);
            self.resched(home);
        }
    }

    /// As [`Self::request_migration`], but asks no pCPU to reschedule: `v` leaves in the next pass of its
    /// pCPU, whatever causes that. Within a pass, `v` may also be the vCPU that the pass is about to
    /// choose.
    pub fn mark_migrating(&mut self, v: VcpuId) {
        self.machine.vcpu_mut(v).flags |= flags::MIGRATING;
        if self.is_running(v) && !self.is_current(v) {
            // It is leaving already.
            self.machine.sleep_state(self.now, v);
        }
    }
}

/// A vCPU scheduler. The layer tells it what happened. It decides which vCPU runs on which pCPU and for how
/// long at most, and which pCPUs must schedule again.
///
/// # The life of a vCPU
///
/// [`insert`](Self::insert) is called once. Any number of wake, sleep, yield, pick and migrate calls follow.
/// Between them, [`schedule`](Self::schedule) puts the vCPU on a pCPU and takes it off; each time that it was
/// taken off, [`context_saved`](Self::context_saved) follows. [`remove`](Self::remove) is last.
///
/// # What an implementer may rely on
///
/// - Calls come one at a time, with a time that never runs backwards.
/// - Runnability and runstates have changed *before* the call that reports the change.
/// - `schedule` is called again on a pCPU only after `context_saved` for the vCPU that it took off there.
/// - Ids are dense: a new domain or vCPU has the next index.
/// - Idle vCPUs have no id, and no call is about one.
/// - Only pCPUs of [`Machine::pool`] schedule, and hard affinities lie within it.
///
/// # What an implementer must keep
///
/// - A runnable vCPU is current somewhere, on exactly one queue, or chosen by the current pass.
/// - `schedule` chooses only a runnable vCPU that runs nowhere else, within its hard affinity, and
///   makes that pCPU its home (the current one may be chosen again).
/// - The same calls give the same answers: no clock, no randomness, no hash order.
pub trait Scheduler: Debug + Send {
    /// The name under which the registry lists it.
    fn name(&self) -> &'static str;

    /// Called once, before all other calls, when the machine is known. Makes the per-pCPU state and sets the
    /// first timers.
    fn start(&mut self, cx: &mut Context<'_>);

    /// The scheduler's record of `v`, if it keeps exactly one. This is a hint for a world that knows
    /// beforehand which vCPU continues: the world can prefetch the record. This crate cannot prefetch: that
    /// needs unsafe code, which it forbids. Without the hint, the first access to the record is a cache miss,
    /// and nothing else changes.
    fn record_of(&self, _v: VcpuId) -> Option<&dyn Opaque> {
        None
    }

    /// Adds a domain, with the next index. `params` are within their ranges.
    fn create_domain(&mut self, d: DomainId, params: DomainParams);

    /// Sets the parameters of a domain. `params` are within their ranges.
    fn set_domain(&mut self, cx: &mut Context<'_>, d: DomainId, params: DomainParams);

    /// Sets parameters that only this scheduler has, for one vCPU, or for all vCPUs of a domain, including
    /// later ones. For a scheduler of this crate, the layer has checked them against
    /// [`SchedulerInfo::domain_params`](field@crate::SchedulerInfo::domain_params); a scheduler from outside
    /// checks them itself.
    ///
    /// # Errors
    /// If `params` break a rule that ranges cannot express. Then nothing has changed.
    fn configure(
        &mut self,
        _cx: &mut Context<'_>,
        _whose: Whose,
        _params: &Params,
    ) -> Result<(), SchedError> {
        Ok(())
    }

    /// Gives one vCPU a weight of its own in place of its domain's. A scheduler without such weights
    /// ([`SchedulerInfo::vcpu_weights`](field@crate::SchedulerInfo::vcpu_weights)) does nothing.
    fn set_weight(&mut self, _cx: &mut Context<'_>, _v: VcpuId, _weight: u32) {}

    /// Adds a vCPU, with the next index. It is not running, and normally not runnable yet. Its home follows
    /// the rule of [`Hypervisor::create_vcpu`](crate::Hypervisor::create_vcpu). Choose a better home, and
    /// queue the vCPU if it is runnable.
    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId);

    /// Whether vCPUs are threads that have run before their guest starts, so that the first home of each is anywhere
    /// ([`Hypervisor::set_first_home`](crate::Hypervisor::set_first_home)).
    fn runs_threads(&self) -> bool {
        false
    }

    /// Removes `v`, which is neither running nor runnable, for good.
    fn remove(&mut self, cx: &mut Context<'_>, v: VcpuId);

    /// `v` is runnable, and may have become so just now: queue it, and ask the pCPUs where it should preempt
    /// to reschedule. Must do nothing for a vCPU that is current or queued.
    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId);

    /// `v` is not runnable: if it is current, ask its home to reschedule; if it is queued, unqueue it; else
    /// do nothing.
    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId);

    /// `v`, which is current, yields: remember this. The layer then asks its pCPU to reschedule.
    fn yield_now(&mut self, cx: &mut Context<'_>, v: VcpuId);

    /// `v`, which is current, yields to `to`, which is runnable and not current. Returns false, and does
    /// nothing, if that is not possible. If it returns true, the layer asks the pCPU of `v` to reschedule.
    ///
    /// The default has no directed yields and always returns false.
    fn yield_to(&mut self, _cx: &mut Context<'_>, _v: VcpuId, _to: VcpuId) -> bool {
        false
    }

    /// Whether the scheduler has directed yields: [`Self::yield_to`] may return true.
    fn directs_yields(&self) -> bool {
        false
    }

    /// Chooses where `v` should be placed, within its hard affinity.
    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId;

    /// `v`, which is neither running nor queued, moves to `p`. By default, only its home changes.
    fn migrate(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        cx.set_home(v, p);
    }

    /// Chooses what `p` runs next. [`Machine::current`] is what it has run until now.
    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision;

    /// The registers of `v`, which `schedule` took off its pCPU, are saved: it can run elsewhere.
    fn context_saved(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    /// A timer that the scheduler set has expired. It is never a slice timer: the layer handles those.
    fn timer(&mut self, cx: &mut Context<'_>, timer: TimerId);

    /// The affinity of `v`, or the part of it within the pool, has changed. If the home of `v` has left the
    /// pool, or a caller set the affinity, `v` is migrating by now: the layer migrates it afterwards.
    fn affinity_changed(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    /// `p`, which idles, has joined the pool. The layer will ask it to enter its scheduler. From now on,
    /// vCPUs may be placed there.
    fn pcpu_added(&mut self, _cx: &mut Context<'_>, _p: PcpuId) {}

    /// `p`, which idles and is the home of no vCPU, has left the pool. The layer stops its timers.
    fn pcpu_removed(&mut self, _cx: &mut Context<'_>, _p: PcpuId) {}

    /// Details of `v`, if there are any. O(1).
    fn detail(&self, _v: VcpuId) -> Option<Detail> {
        None
    }

    /// How often and how long the cap of `d` kept its vCPUs from running, if the scheduler counts that. O(pCPUs).
    fn throttling(&self, _d: DomainId, _now: Nanos) -> Option<Throttling> {
        None
    }

    /// How long `v` was co-stopped up to `now`, in ns: held back although it was ready and a pCPU may have
    /// been free. Its guest sees this time as steal. O(1).
    fn costop(&self, _v: VcpuId, _now: Nanos) -> Nanos {
        Nanos::ZERO
    }

    /// Checks the scheduler's own invariants against the machine. May take time proportional to all vCPUs and
    /// pCPUs.
    ///
    /// # Errors
    /// A description of what is broken.
    fn is_valid(&self, machine: &Machine) -> Result<(), String>;
}
