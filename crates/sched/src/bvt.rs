//! bvt: borrowed virtual time. Proportional share by virtual time, where a latency-sensitive domain
//! may *warp*: borrow from its own future to run earlier. Xen's default scheduler until July 2005.
//!
//! Running costs actual virtual time (`avt`): `mcu_advance` for each begun minimum charging unit
//! (MCU) of 100 us; a smaller advance is a greater share. The effective virtual time (`evt`) is `avt`,
//! less the warp value while warped. A pass takes the least `evt` of its pCPU's queue; the scheduler
//! virtual time (SVT) is the least `avt` there. A vCPU that wakes is brought up to SVT: sleeping
//! saves nothing up.
//!
//! ```text
//!             ran for the warp limit L            the unwarp time U is over
//!  warped ────────────────────────▶ unwarped ─────────────────────────────▶ warped
//!                                     (for ever, if U is 0)
//! ```
//!
//! The context switch allowance C bounds how often a pCPU switches: what runs is ahead by C before
//! it loses the pCPU to one that was not behind it.
//!
//! Invariants: always-runnable vCPUs of one pCPU share it as 1/`mcu_advance`; `avt` ≥ SVT for all
//! that are queued; SVT never decreases; no starvation with bounded warp (with L = 0 a warped vCPU
//! may run for its whole warp value at a stretch). One queue per pCPU, no balancing: not
//! work-conserving over several pCPUs. No caps.
//!
//! Source: schedulers specification §7, after Xen's sched_bvt.c of May 2005 and Duda & Cheriton,
//! SOSP 1999. `as_is` keeps two faults of the original: virtual times are 32 bits wide (a warp below
//! 0 becomes huge; they are reset when SVT nears the end), and the lead of what runs, a number of
//! MCUs, is added to its slice as ns. Deviations: a domain's weight sets its advance, 10 for weight
//! 256; each vCPU, not the domain as a whole, has a warp with its limits; a change of warp counts at
//! once for a queued vCPU, not only after it ran again. The 10 ms tick that the original sends to
//! guests is the world's business.

use crate::homes::Homes;
use crate::ids::{DomainId, Nanos, PcpuId, TimerId, VcpuId};
use crate::list::{Links, List};
use crate::machine::Machine;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Minimum charging unit.
const MCU: Nanos = 100_000;
/// As-is, when SVT gets this far, all virtual times of the pCPU go down by `RESET_BY`.
const RESET_AT: i64 = 0xf000_0000;
const RESET_BY: i64 = 0xe000_0000;

/// What an administrator says about a domain; limits in ns of real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Virtual time for each MCU; at least 1.
    pub mcu_advance: i64,
    pub warpback: bool,
    /// In units of virtual time.
    pub warp_value: i64,
    /// For how long at a stretch it may run warped; 0 is without limit.
    pub warp_limit: Nanos,
    /// For how long it must do without warp then; 0 is for ever.
    pub unwarp_time: Nanos,
}

#[derive(Clone, Debug)]
struct Vcpu {
    share: Share,
    avt: i64,
    warped: bool,
    /// Up to when it is charged, while it runs.
    charged: Nanos,
    /// Is brought to SVT by its next wake-up, as virtual times of two pCPUs do not compare.
    moved: bool,
    /// When the warp ends, while it runs warped with a limit; when the warp comes back.
    alarm: Option<Nanos>,
}

#[derive(Clone, Debug)]
struct Pcpu {
    queue: List,
    svt: i64,
    slice_end: Nanos,
}

/// The bvt scheduler. Made by name with [`make`](crate::make).
///
/// Costs: a wake-up is O(1), a pass O(queue of its pCPU), a new vCPU O(pCPUs). A warp limit costs
/// O(log vCPUs) more for a pass.
#[derive(Debug)]
pub struct Bvt {
    allowance: Nanos,
    as_is: bool,
    domains: Vec<Share>,
    vcpus: Vec<Vcpu>,
    pcpus: Vec<Pcpu>,
    links: Links,
    homes: Homes,
    /// The alarms of all vCPUs; the timer is set to the first.
    alarms: BTreeSet<(Nanos, VcpuId)>,
    timer: Option<Nanos>,
}

impl Bvt {
    /// `allowance` in ns.
    pub(crate) fn new(allowance: Nanos, as_is: bool) -> Self {
        Self {
            allowance,
            as_is,
            domains: Vec::new(),
            vcpus: Vec::new(),
            pcpus: Vec::new(),
            links: Links::default(),
            homes: Homes::new(0),
            alarms: BTreeSet::new(),
            timer: None,
        }
    }

    /// A virtual time as wide as it is in the original.
    fn wrap(&self, virtual_time: i64) -> i64 {
        if self.as_is { virtual_time & 0xffff_ffff } else { virtual_time }
    }

    fn evt(&self, v: VcpuId, avt: i64) -> i64 {
        let vcpu = &self.vcpus[v.index()];
        self.wrap(avt - if vcpu.warped { vcpu.share.warp_value } else { 0 })
    }

    /// The `avt` that `v`, which runs, has reached.
    fn avt_at(&self, now: Nanos, v: VcpuId) -> i64 {
        let vcpu = &self.vcpus[v.index()];
        let units = (now - vcpu.charged + MCU - 1) / MCU;
        self.wrap(vcpu.avt + units * vcpu.share.mcu_advance)
    }

    /// For how long a vCPU with this advance may run until it has made up `lag`, and the allowance.
    fn stretch(&self, lag: i64, advance: i64) -> Nanos {
        let units = lag / advance;
        self.allowance + if self.as_is { units } else { units * MCU }
    }

    fn set_alarm(&mut self, v: VcpuId, at: Option<Nanos>) {
        if let Some(old) = core::mem::replace(&mut self.vcpus[v.index()].alarm, at) {
            self.alarms.remove(&(old, v));
        }
        if let Some(at) = at {
            self.alarms.insert((at, v));
        }
    }

    fn arm(&mut self, cx: &mut Context<'_>) {
        let first = self.alarms.first().map(|(at, _)| *at);
        if self.timer != first {
            self.timer = first;
            match first {
                Some(at) => cx.set_timer(TimerId::Accounting, at),
                None => cx.stop_timer(TimerId::Accounting),
            }
        }
    }

    fn set_share(&mut self, cx: &mut Context<'_>, v: VcpuId, share: Share) {
        if cx.is_current(v) {
            // What it ran so far is charged as it was agreed then.
            let avt = self.avt_at(cx.now(), v);
            let vcpu = &mut self.vcpus[v.index()];
            (vcpu.avt, vcpu.charged) = (avt, cx.now());
        }
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.share = share;
        vcpu.warped = share.warpback;
        self.set_alarm(v, None);
        if cx.is_current(v) && share.warpback && share.warp_limit > 0 {
            self.set_alarm(v, Some(cx.now() + share.warp_limit));
        }
        self.arm(cx);
    }

    /// As-is, takes the virtual times of the pCPU back before they overflow. O(vCPUs), but rare.
    fn reset(&mut self, cx: &Context<'_>, p: PcpuId) {
        if !self.as_is || self.pcpus[p.index()].svt < RESET_AT {
            return;
        }
        self.pcpus[p.index()].svt -= RESET_BY;
        for i in 0..self.vcpus.len() {
            if cx.home(VcpuId(i as u32)) == p {
                self.vcpus[i].avt = self.wrap(self.vcpus[i].avt - RESET_BY);
            }
        }
    }
}

impl Scheduler for Bvt {
    fn name(&self) -> &'static str {
        if self.as_is { "bvt-2005" } else { "bvt" }
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        let pcpu = Pcpu { queue: List::EMPTY, svt: 0, slice_end: 0 };
        self.pcpus = vec![pcpu; cx.pcpus() as usize];
        self.homes = Homes::new(cx.pcpus());
    }

    fn create_domain(&mut self, _d: DomainId, params: DomainParams) {
        self.domains.push(Share {
            mcu_advance: advance(params.weight),
            warpback: false,
            warp_value: 0,
            warp_limit: 2_000_000_000,
            unwarp_time: 1_000_000_000,
        });
    }

    fn set_domain(&mut self, cx: &mut Context<'_>, d: DomainId, params: DomainParams) {
        let share = &mut self.domains[d.index()];
        share.mcu_advance = advance(params.weight);
        let share = *share;
        for i in 0..self.vcpus.len() {
            let v = VcpuId(i as u32);
            if cx.domain_of(v) == d {
                self.set_share(cx, v, share);
            }
        }
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let home = self.homes.least_populated(cx, v);
        cx.set_home(v, home);
        self.homes.add(home);
        let share = self.domains[cx.domain_of(v).index()];
        self.links.grow();
        self.vcpus.push(Vcpu {
            share,
            avt: self.pcpus[home.index()].svt,
            warped: share.warpback,
            charged: 0,
            moved: false,
            alarm: None,
        });
        if cx.is_runnable(v) {
            self.wake(cx, v);
        }
    }

    fn remove(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.homes.remove(cx.home(v));
        self.set_alarm(v, None);
        self.arm(cx);
    }

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_current(v) || self.links.is_linked(v.0) {
            return;
        }
        let home = cx.home(v);
        let pcpu = &mut self.pcpus[home.index()];
        self.links.push_front(&mut pcpu.queue, v.0);
        let vcpu = &mut self.vcpus[v.index()];
        let moved = core::mem::take(&mut vcpu.moved);
        vcpu.avt = if moved { pcpu.svt } else { vcpu.avt.max(pcpu.svt) };
        let Some(current) = cx.current(home) else { return cx.resched(home) };
        let evt = self.evt(v, self.vcpus[v.index()].avt);
        let lead = evt - self.evt(current, self.avt_at(cx.now(), current));
        if lead <= 0 {
            return cx.resched(home);
        }
        let running = &self.vcpus[current.index()];
        let end = running.charged + self.stretch(lead, running.share.mcu_advance);
        let pcpu = &mut self.pcpus[home.index()];
        if pcpu.slice_end > end {
            pcpu.slice_end = end;
            cx.set_timer(TimerId::Slice(home), end);
        }
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let home = cx.home(v);
        if cx.is_current(v) {
            cx.resched(home);
        } else if self.links.is_linked(v.0) {
            self.links.remove(&mut self.pcpus[home.index()].queue, v.0);
        }
    }

    fn yield_now(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        self.homes.stay(cx, v)
    }

    fn migrate(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        let home = cx.home(v);
        self.vcpus[v.index()].moved |= home != p;
        self.homes.remove(home);
        self.homes.add(p);
        cx.set_home(v, p);
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let now = cx.now();
        let mut queue = self.pcpus[p.index()].queue;
        if let Some(v) = cx.current(p) {
            self.vcpus[v.index()].avt = self.avt_at(now, v);
            if self.vcpus[v.index()].warped {
                self.set_alarm(v, None);
            }
            if cx.is_runnable(v) {
                self.links.insert_before(&mut queue, v.0, None);
            }
        }
        // The first with the least evt, and the least evt of the others.
        let (mut first, mut second) = (None, None);
        let mut svt = None;
        for v in self.links.iter(&queue).map(VcpuId) {
            let avt = self.vcpus[v.index()].avt;
            svt = Some(svt.map_or(avt, |s: i64| s.min(avt)));
            let evt = self.evt(v, avt);
            match first {
                Some((least, _)) if evt >= least => {
                    second = Some(second.map_or(evt, |s: i64| s.min(evt)));
                }
                _ => {
                    second = first.map(|(evt, _)| evt);
                    first = Some((evt, v));
                }
            }
        }
        let next = first.map(|(_, v)| v);
        let slice = match (first, second) {
            (None, _) => self.allowance,
            (Some(_), None) => 10 * self.allowance,
            (Some((evt, v)), Some(second)) => {
                self.stretch(second - evt, self.vcpus[v.index()].share.mcu_advance)
            }
        };
        if let Some(v) = next {
            self.links.remove(&mut queue, v.0);
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.charged = now;
            if vcpu.warped && vcpu.share.warp_limit > 0 {
                let at = now + vcpu.share.warp_limit;
                self.set_alarm(v, Some(at));
            }
        }
        let pcpu = &mut self.pcpus[p.index()];
        pcpu.queue = queue;
        pcpu.slice_end = now + slice;
        pcpu.svt = svt.unwrap_or(pcpu.svt);
        self.reset(cx, p);
        self.arm(cx);
        Decision { next, slice: Some(slice) }
    }

    fn timer(&mut self, cx: &mut Context<'_>, _timer: TimerId) {
        self.timer = None;
        while let Some(&(at, v)) = self.alarms.first()
            && at <= cx.now()
        {
            self.set_alarm(v, None);
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.warped = !vcpu.warped;
            let back = (!vcpu.warped && vcpu.share.unwarp_time > 0)
                .then(|| cx.now() + vcpu.share.unwarp_time);
            self.set_alarm(v, back);
            // The original lets a vCPU whose warp ends for a while run to the end of its slice.
            if back.is_none() {
                cx.resched(cx.home(v));
            }
        }
        self.arm(cx);
    }

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let class = if vcpu.warped { "warped" } else { "unwarped" };
        Some(Detail { class, credit: vcpu.avt, active: true })
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            let waits = machine.is_runnable(v) && !machine.is_current(v);
            let listed = self.links.is_linked(v.0);
            if waits != listed {
                return Err(format!("{v:?} is lost or queued wrongly: waits = {waits}"));
            }
            let svt = self.pcpus[machine.home(v).index()].svt;
            if !self.as_is && (waits || machine.is_current(v)) && vcpu.avt < svt {
                return Err(format!("{v:?} is before SVT {svt}: {vcpu:?}"));
            }
        }
        for (i, pcpu) in self.pcpus.iter().enumerate() {
            if let Some(v) =
                self.links.iter(&pcpu.queue).find(|v| machine.home(VcpuId(*v)).index() != i)
            {
                return Err(format!("vCPU {v} is queued on pCPU {i}, away from its home"));
            }
        }
        Ok(())
    }
}

/// The advance of a domain of this weight: 10 for 256, rounded to the nearest, at least 1.
fn advance(weight: u32) -> i64 {
    let weight = i64::from(weight);
    ((2560 + weight / 2) / weight).max(1)
}
