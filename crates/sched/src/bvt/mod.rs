//! bvt: borrowed virtual time. Proportional share by virtual time, where a latency-sensitive domain
//! may *warp*: borrow from its own future to run earlier. Xen's default scheduler until July 2005.
//!
//! Running costs actual virtual time (`avt`): `mcu_advance` for each begun minimum charging unit
//! (MCU) of 100 us. A smaller advance gives a greater share. The effective virtual time (`evt`) is
//! `avt`, minus the warp value while the vCPU is warped. A pass takes the vCPU with the least `evt`
//! from its pCPU's queue. The scheduler virtual time (SVT) is the least `avt` there. A wake-up
//! raises `avt` to SVT, so that sleeping saves nothing up.
//!
//! ```text
//!             ran for the warp limit L            the unwarp time U is over
//!  warped ────────────────────────▶ unwarped ─────────────────────────────▶ warped
//!                                     (for ever, if U is 0)
//! ```
//!
//! The context switch allowance C bounds how often a pCPU switches: the running vCPU gets ahead by
//! C before it loses the pCPU to a vCPU that was not behind it.
//!
//! Invariants: always-runnable vCPUs of one pCPU share it in proportion to 1/`mcu_advance`; `avt` ≥
//! SVT for all queued vCPUs; the SVT never decreases; no vCPU starves if warp is bounded (with L = 0 a
//! warped vCPU may run for its whole warp value at a stretch). Each pCPU has its own queue, without
//! balancing, so bvt is not work-conserving over several pCPUs. There are no caps.
//!
//! Source: schedulers specification §7, after Xen's sched_bvt.c of May 2005 and Duda & Cheriton,
//! SOSP 1999. `as_is` keeps two faults of the original: virtual times are 32 bits wide (a warp
//! below 0 becomes huge; they are reset when SVT nears the end), and the lead of the running vCPU,
//! a number of MCUs, is added to its slice as ns. Deviations: a domain's weight sets its advance
//! (10 for weight 256), exact to a thousandth unless `as_is`. Each vCPU, not the domain as a whole,
//! has a warp with its limits. A change of warp takes effect at once for a queued vCPU, not only
//! after it has run again. The original sends a 10 ms tick to guests; here the world is responsible
//! for that.
//!
//! Files: `mod` (events and passes), [`virtual_time`], [`warp`] (shares, warps and their limits), [`params`],
//! [`invariants`] (what must always hold).

mod invariants;
mod params;
mod virtual_time;
mod warp;

pub(crate) use params::INFO;

use crate::error::SchedError;
use crate::homes::Homes;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::list::{Links, List};
use crate::machine::Machine;
use crate::params::Params;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler, Whose};
use crate::time::Nanos;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use warp::Share;

#[derive(Clone, Debug)]
struct Vcpu {
    share: Share,
    avt: i64,
    warped: bool,
    /// The time up to which it is charged, while it runs.
    charged: Nanos,
    /// Its next wake-up sets `avt` to SVT, because virtual times of different pCPUs are not
    /// comparable.
    moved: bool,
    /// When the warp ends, while it runs warped with a limit; when the warp returns, after it has
    /// ended.
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
/// Costs: a wake-up is O(1), a pass O(queue of its pCPU), a new vCPU O(pCPUs). A warp limit adds
/// O(log vCPUs) to a pass.
#[derive(Debug)]
pub struct Bvt {
    allowance: Nanos,
    as_is: bool,
    /// Units of virtual time per unit of the original: the precision of weights.
    scale: i64,
    domains: Vec<Share>,
    vcpus: Vec<Vcpu>,
    pcpus: Vec<Pcpu>,
    links: Links,
    homes: Homes,
    /// The alarms of all vCPUs; the timer is set to the earliest.
    alarms: BTreeSet<(Nanos, VcpuId)>,
    timer: Option<Nanos>,
}

impl Bvt {
    /// `allowance` in ns.
    fn new(allowance: Nanos, as_is: bool) -> Self {
        Self {
            allowance,
            as_is,
            scale: if as_is { 1 } else { 1000 },
            domains: Vec::new(),
            vcpus: Vec::new(),
            pcpus: Vec::new(),
            links: Links::default(),
            homes: Homes::new(0),
            alarms: BTreeSet::new(),
            timer: None,
        }
    }
}

impl Scheduler for Bvt {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        let pcpu = Pcpu { queue: List::EMPTY, svt: 0, slice_end: Nanos::ZERO };
        self.pcpus = vec![pcpu; cx.pcpus() as usize];
        self.homes = Homes::new(cx.pcpus());
    }

    fn create_domain(&mut self, _d: DomainId, params: DomainParams) {
        self.domains.push(Share::of_weight(params.weight, self.scale));
    }

    fn set_domain(&mut self, cx: &mut Context<'_>, d: DomainId, params: DomainParams) {
        let advance = Share::of_weight(params.weight, self.scale).advance;
        self.domains[d.index()].advance = advance;
        let vcpus: Vec<_> = cx.belonging_to(Whose::Domain(d)).collect();
        for v in vcpus {
            self.set_share(cx, v, Share { advance, ..self.vcpus[v.index()].share });
        }
    }

    fn configure(
        &mut self,
        cx: &mut Context<'_>,
        whose: Whose,
        params: &Params,
    ) -> Result<(), SchedError> {
        if let Whose::Domain(d) = whose {
            self.domains[d.index()] = self.domains[d.index()].with(params, self.scale);
        }
        let vcpus: Vec<_> = cx.belonging_to(whose).collect();
        for v in vcpus {
            self.set_share(cx, v, self.vcpus[v.index()].share.with(params, self.scale));
        }
        Ok(())
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
            charged: Nanos::ZERO,
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
        let end = running.charged + self.stretch(lead, running.share.advance);
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
        // The first vCPU with the least evt, and the least evt of the others.
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
                self.stretch(second - evt, self.vcpus[v.index()].share.advance)
            }
        };
        if let Some(v) = next {
            self.links.remove(&mut queue, v.0);
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.charged = now;
            if vcpu.warped && vcpu.share.warp_limit > Nanos::ZERO {
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
        self.ring(cx);
    }

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let class = if vcpu.warped { "warped" } else { "unwarped" };
        Some(Detail { class, credit: vcpu.avt / self.scale, active: true })
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        self.check(machine)
    }
}
