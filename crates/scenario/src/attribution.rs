//! The causes of waits for locks. `docs/attribution.md` defines the causes.

use crate::Picos;
use alloc::vec::Vec;
use core::ops::AddAssign;
use serde::{Deserialize, Serialize};

/// The cause of a moment of a wait for a lock. If several apply, the waiter's own absence
/// ([`Cause::OwnPreemption`], or [`Cause::KickWake`] when it has been woken) takes precedence over
/// the state of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The lock is held, and its holder's vCPU runs, or sleeps voluntarily.
    HolderRunning,
    /// The lock is held or being released, and the vCPU of the holder wants a pCPU and has none
    /// (LHP).
    HolderPreempted,
    /// The lock is free, and the vCPU of the next holder wants a pCPU and has none (LWP).
    NextPreempted,
    /// The waiter, or the next holder of the free lock, sleeps, or has been woken and does not run
    /// yet.
    KickWake,
    /// The waiter itself wants a pCPU and has none, except after it slept.
    OwnPreemption,
    /// The lock is free, and the vCPU of the next holder runs, but has not seen that yet.
    LineTransfer,
    /// The lock is one of user mode, held or being released, and the guest runs another task in place of the holder.
    HolderPreemptedByGuest,
    /// The lock is one of user mode and free, and the guest runs another task in place of the next holder.
    NextPreemptedByGuest,
    /// The lock is held or being released, and its holder's cap keeps the holder's vCPU from running. That may be so from
    /// the beginning of its absence, or after it was preempted.
    HolderThrottled,
    /// The lock is free, and its cap keeps the vCPU of the next holder from running, which may have been woken.
    NextThrottled,
}

impl Cause {
    /// The number of causes that any lock can have, the first ones; the others are of locks of user mode, and of domains with
    /// a cap.
    pub const OF_ANY_LOCK: usize = 6;

    /// All causes, in the order of reports.
    pub const ALL: [Cause; 10] = [
        Cause::HolderRunning,
        Cause::HolderPreempted,
        Cause::NextPreempted,
        Cause::KickWake,
        Cause::OwnPreemption,
        Cause::LineTransfer,
        Cause::HolderPreemptedByGuest,
        Cause::NextPreemptedByGuest,
        Cause::HolderThrottled,
        Cause::NextThrottled,
    ];

    /// The cause in words, with the abbreviations of the literature.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Cause::HolderRunning => "holder running",
            Cause::HolderPreempted => "holder preempted (LHP)",
            Cause::NextPreempted => "next waiter preempted (LWP)",
            Cause::KickWake => "kick and wake-up",
            Cause::OwnPreemption => "own preemption",
            Cause::LineTransfer => "line transfer",
            Cause::HolderPreemptedByGuest => "holder preempted by its guest",
            Cause::NextPreemptedByGuest => "next waiter preempted by its guest",
            Cause::HolderThrottled => "holder throttled",
            Cause::NextThrottled => "next waiter throttled",
        }
    }
}

/// Waiting time by cause. The sum is the waiting time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WaitCauses {
    /// [`Cause::HolderRunning`].
    pub holder_running: Picos,
    /// [`Cause::HolderPreempted`].
    pub holder_preempted: Picos,
    /// [`Cause::NextPreempted`].
    pub next_preempted: Picos,
    /// [`Cause::KickWake`].
    pub kick_wake: Picos,
    /// [`Cause::OwnPreemption`].
    pub own_preemption: Picos,
    /// [`Cause::LineTransfer`].
    pub line_transfer: Picos,
    /// [`Cause::HolderPreemptedByGuest`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub holder_preempted_by_guest: Picos,
    /// [`Cause::NextPreemptedByGuest`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub next_preempted_by_guest: Picos,
    /// [`Cause::HolderThrottled`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub holder_throttled: Picos,
    /// [`Cause::NextThrottled`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub next_throttled: Picos,
}

/// Whether a record leaves a time out: most guests take no lock in user mode.
fn is_zero(time: &Picos) -> bool {
    *time == Picos::ZERO
}

impl WaitCauses {
    /// The time of one cause.
    #[must_use]
    #[inline]
    pub fn of(&self, cause: Cause) -> Picos {
        match cause {
            Cause::HolderRunning => self.holder_running,
            Cause::HolderPreempted => self.holder_preempted,
            Cause::NextPreempted => self.next_preempted,
            Cause::KickWake => self.kick_wake,
            Cause::OwnPreemption => self.own_preemption,
            Cause::LineTransfer => self.line_transfer,
            Cause::HolderPreemptedByGuest => self.holder_preempted_by_guest,
            Cause::NextPreemptedByGuest => self.next_preempted_by_guest,
            Cause::HolderThrottled => self.holder_throttled,
            Cause::NextThrottled => self.next_throttled,
        }
    }

    /// The sum of several waits.
    #[must_use]
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        all.into_iter().fold(Self::default(), |mut sum, causes| {
            sum += *causes;
            sum
        })
    }

    /// The time of all causes.
    #[must_use]
    #[inline]
    pub fn total(&self) -> Picos {
        Cause::ALL.iter().map(|c| self.of(*c)).sum()
    }
}

/// From times in the order of [`Cause::ALL`].
impl From<[Picos; Cause::ALL.len()]> for WaitCauses {
    #[inline]
    fn from(times: [Picos; Cause::ALL.len()]) -> Self {
        let [
            holder_running,
            holder_preempted,
            next_preempted,
            kick_wake,
            own_preemption,
            line_transfer,
            holder_preempted_by_guest,
            next_preempted_by_guest,
            holder_throttled,
            next_throttled,
        ] = times;
        Self {
            holder_running,
            holder_preempted,
            next_preempted,
            kick_wake,
            own_preemption,
            line_transfer,
            holder_preempted_by_guest,
            next_preempted_by_guest,
            holder_throttled,
            next_throttled,
        }
    }
}

impl AddAssign for WaitCauses {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = Cause::ALL.map(|c| self.of(c).saturating_add(other.of(c))).into();
    }
}

/// Why a vCPU that wanted to run had to leave its pCPU, as far as the host can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Its slice was over.
    Slice,
    /// The incoming vCPU had been woken.
    Wake,
    /// It yielded.
    Yield,
    /// It spun for too long, and the host yielded for it.
    PauseLoop,
    /// Its cap or budget was used up.
    Parked,
    /// It must run on another pCPU.
    Migration,
    /// An administrator paused it, or is moving its domain.
    Paused,
    /// None of these: the scheduler decided anew, at a tick, or during accounting or balancing.
    Scheduler,
    /// A task lost its vCPU to another task of its guest.
    Guest,
}

/// A vCPU of a host: its domain's index, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VcpuId {
    /// Index of the domain.
    pub domain: u32,
    /// Number in the domain.
    pub vcpu: u32,
}

/// A scheduler's decision that took a vCPU off its pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decision {
    /// Its time.
    pub at: Picos,
    /// The pCPU.
    pub pcpu: u32,
    /// The vCPU that replaced it; `None` if the pCPU became idle.
    pub by: Option<VcpuId>,
    /// The reason.
    pub why: Why,
}

/// A part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// When it begins.
    pub since: Picos,
    /// How long it lasts.
    pub time: Picos,
    /// Its cause. `None`: no vCPU was absent for long enough to be listed, and the lock was held by a
    /// running vCPU, or was handed over.
    pub cause: Option<Cause>,
    /// The vCPU of the same domain that was absent.
    pub vcpu: Option<u32>,
    /// The decision that took that vCPU off its pCPU.
    pub decision: Option<Decision>,
    /// How often others acquired the lock in that time.
    pub acquisitions: u64,
    /// Time of absences in it that were too short to be listed, as far as is known.
    pub unlisted: Picos,
}

/// One of the longest waits of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongWait {
    /// Index of the domain.
    pub domain: u32,
    /// The waiter: number of the vCPU in the domain.
    pub vcpu: u32,
    /// The lock: index in the domain's locks.
    pub lock: u32,
    /// When it began.
    pub since: Picos,
    /// How long it took, or had taken when the run ended.
    pub time: Picos,
    /// Whether it got the lock.
    pub finished: bool,
    /// The vCPU of the domain that held the lock when the wait began.
    pub holder: Option<u32>,
    /// How often others acquired the lock meanwhile.
    pub acquisitions: u64,
    /// The lock is one of user mode: waiter, holder and absent ones are tasks, by their numbers in the domain.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub of_tasks: bool,
    /// The time by cause; the sum is `time`.
    pub causes: WaitCauses,
    /// The pieces of the wait, without gaps.
    pub chain: Vec<Link>,
}
