//! sedf: simple earliest deadline first. Each vCPU is guaranteed a *slice* of each *period*; what is
//! left over is *extra time*, shared by weight. Xen's default scheduler from July 2005 to June 2006.
//!
//! One set of queues per pCPU, and no balancing:
//!
//! | Queue | Who | Order |
//! |---|---|---|
//! | run queue | its period has begun, its slice is not used up | deadline |
//! | wait queue | its period begins later | begin of the period |
//! | penalty queue | lost slice by blocking for a short time | lost time for its period |
//! | utilisation queue | all with extra time | score: run by turns, by weight |
//!
//! A runnable vCPU is on one of the first two, running or not, and may be on the others as well. A
//! pass takes the head of the run queue, which may use up its slice until the next period of a
//! waiting one begins. With an empty run queue the head of the penalty queue, else of the utilisation
//! queue, runs for a quantum of 500 us, if a quantum is left until the next period begins.
//!
//! A vCPU that blocks and wakes within its period loses the rest of its slice of that period; the
//! penalty queue compensates it from extra time.
//!
//! Invariants: without extra time a vCPU runs at most its slice in a period (plus the lateness of
//! timers, carried over); one pCPU with Σ slice/period ≤ 1 meets every deadline of always-runnable
//! vCPUs; extra time is given only when no guaranteed time is asked for. Work-conserving only
//! through extra time, with gaps below 500 us. Domain weights and caps have no effect (`weight` and
//! `extraweight` below do).
//!
//! Source: schedulers specification §8, after Xen's sched_sedf.c of May 2005. Deviations: no domain
//! is special (the original gives domain 0 a slice of 15 ms in 20 ms and no extra time); a vCPU with
//! an empty slice whose periods were all missed is moved past now at once, not one period in each
//! pass. The latency hint has no use in that version and is left out.

use crate::homes::Homes;
use crate::ids::{DomainId, Nanos, PcpuId, TimerId, VcpuId};
use crate::list::{Links, List};
use crate::machine::Machine;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// What runs in extra time runs for this long.
const QUANTUM: Nanos = 500_000;
/// How long a pCPU without any vCPU idles at a stretch.
const IDLE: Nanos = 1_000_000_000;
/// Period of vCPUs that have a weight, or only extra time.
pub(crate) const WEIGHT_PERIOD: Nanos = 100_000_000;
/// What the weights leave of each [`WEIGHT_PERIOD`].
const WEIGHT_SAFETY: Nanos = 5_000_000;

/// What a vCPU gets: `slice` ns of each `period` ns, and extra time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub period: Nanos,
    pub slice: Nanos,
    pub extratime: bool,
    /// Share of the extra time relative to others; 0: the utilisation `slice`/`period` instead, of
    /// which 100 % count as much as 128.
    pub extraweight: i64,
    /// If not 0, period and slice are computed: a share, relative to others with a weight, of what
    /// those without leave of the pCPU.
    pub weight: i64,
}

impl Share {
    /// Extra time only.
    pub const BEST_EFFORT: Self =
        Self { period: WEIGHT_PERIOD, slice: 0, extratime: true, extraweight: 1, weight: 0 };
}

/// The queues of extra time.
const PENALTY: usize = 0;
const UTILISATION: usize = 1;

#[derive(Clone, Debug)]
struct Vcpu {
    share: Share,
    /// End of its period; 0 if it never woke.
    deadline: Nanos,
    /// What it used of its slice in this period.
    used: Nanos,
    /// When it was dispatched last.
    started: Nanos,
    has_blocked: bool,
    /// Slice lost by blocking, to be compensated; 0 if none.
    lost: Nanos,
    score: [i64; 2],
    /// The queue it runs from, if it runs in extra time.
    extra: Option<usize>,
    /// Whether it is on the wait queue, if on that or the run queue.
    waits: bool,
}

impl Vcpu {
    fn begin(&self) -> Nanos {
        self.deadline - self.share.period
    }
}

#[derive(Clone, Debug)]
struct Pcpu {
    run: List,
    wait: List,
    extra: [List; 2],
    /// When the pass under way is to be followed by the next.
    slice_end: Nanos,
}

/// The sedf scheduler. Made by name with [`make`](crate::make).
///
/// Costs: passes, wake-ups and sleeps are O(vCPUs of the pCPU), a new vCPU O(pCPUs). Setting a
/// weight, and coming and going while one is set, is O(vCPUs).
#[derive(Debug)]
pub struct Sedf {
    default: Share,
    domains: Vec<Share>,
    vcpus: Vec<Vcpu>,
    pcpus: Vec<Pcpu>,
    /// Links of the run and wait queues, and of each extra queue.
    links: Links,
    extra_links: [Links; 2],
    homes: Homes,
}

impl Sedf {
    pub(crate) fn new(default: Share) -> Self {
        Self {
            default,
            domains: Vec::new(),
            vcpus: Vec::new(),
            pcpus: Vec::new(),
            links: Links::default(),
            extra_links: [Links::default(), Links::default()],
            homes: Homes::new(0),
        }
    }

    /// Queues `v` where its period says: behind its equals on the wait queue of `p` if that begins
    /// later than now, else on the run queue.
    fn enqueue(&mut self, now: Nanos, p: PcpuId, v: VcpuId) {
        let waits = self.vcpus[v.index()].begin() > now;
        self.vcpus[v.index()].waits = waits;
        let pcpu = &mut self.pcpus[p.index()];
        let list = if waits { &mut pcpu.wait } else { &mut pcpu.run };
        let key = |x: u32| {
            let vcpu = &self.vcpus[x as usize];
            if waits { vcpu.begin() } else { vcpu.deadline }
        };
        let before = self.links.iter(list).find(|x| key(*x) > key(v.0));
        self.links.insert_before(list, v.0, before);
    }

    fn dequeue(&mut self, p: PcpuId, v: VcpuId) {
        let pcpu = &mut self.pcpus[p.index()];
        let waits = self.vcpus[v.index()].waits;
        self.links.remove(if waits { &mut pcpu.wait } else { &mut pcpu.run }, v.0);
    }

    /// Queues `v` for extra time by its score, behind its equals; all others there first get
    /// `discount` off theirs, which is what `v` has just paid for its turn.
    fn enqueue_extra(&mut self, p: PcpuId, q: usize, v: VcpuId, discount: i64) {
        if self.extra_links[q].is_linked(v.0) {
            return;
        }
        let list = &mut self.pcpus[p.index()].extra[q];
        let links = &mut self.extra_links[q];
        for x in links.iter(list) {
            self.vcpus[x as usize].score[q] -= discount;
        }
        let score = self.vcpus[v.index()].score[q];
        let before = links.iter(list).find(|x| self.vcpus[*x as usize].score[q] > score);
        links.insert_before(list, v.0, before);
    }

    fn dequeue_extra(&mut self, p: PcpuId, q: usize, v: VcpuId) {
        if self.extra_links[q].is_linked(v.0) {
            self.extra_links[q].remove(&mut self.pcpus[p.index()].extra[q], v.0);
        }
    }

    fn dequeue_all(&mut self, p: PcpuId, v: VcpuId) {
        if self.links.is_linked(v.0) {
            self.dequeue(p, v);
        }
        self.dequeue_extra(p, PENALTY, v);
        self.dequeue_extra(p, UTILISATION, v);
    }

    /// The end of a turn of `v` in extra time from queue `q`.
    fn end_extra(&mut self, cx: &Context<'_>, p: PcpuId, v: VcpuId, q: usize) {
        self.dequeue_extra(p, q, v);
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.extra = None;
        vcpu.used = 0;
        let ran = cx.now() - vcpu.started;
        let mut paid = 0;
        let again = if q == PENALTY {
            vcpu.lost = (vcpu.lost - ran).max(0);
            if vcpu.lost > 0 {
                // Counts what is still lost: no price on top.
                vcpu.score[q] = (vcpu.share.period << 10) / vcpu.lost;
            }
            vcpu.lost > 0
        } else {
            paid = vcpu.score[q];
            let share = &vcpu.share;
            vcpu.score[q] = match share.extraweight {
                // Without a slice either, it has the score of the least weight.
                0 if share.slice == 0 => 1 << 17,
                0 => (share.period << 10) / share.slice,
                weight => (1 << 17) / weight,
            };
            share.extratime
        };
        if !cx.is_runnable(v) {
            self.dequeue_all(p, v);
        } else if again {
            self.enqueue_extra(p, q, v, paid);
        }
    }

    /// The end of a turn of `v` in guaranteed time.
    fn end_guaranteed(&mut self, cx: &Context<'_>, p: PcpuId, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.used += cx.now() - vcpu.started;
        let share = &vcpu.share;
        let used_up = vcpu.used >= share.slice;
        if !used_up && cx.is_runnable(v) {
            return;
        }
        self.dequeue(p, v);
        if used_up {
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.used -= vcpu.share.slice;
            vcpu.deadline += vcpu.share.period;
        }
        if cx.is_runnable(v) {
            self.enqueue(cx.now(), p, v);
        } else {
            self.dequeue_all(p, v);
        }
    }

    /// Moves whose period has begun to the run queue, and on from there who has nothing to run.
    fn update_queues(&mut self, now: Nanos, p: PcpuId) {
        while let Some(v) = self.pcpus[p.index()].wait.head().map(VcpuId)
            && self.vcpus[v.index()].begin() <= now
        {
            self.dequeue(p, v);
            self.enqueue(now, p, v);
        }
        while let Some(v) = self.pcpus[p.index()].run.head().map(VcpuId) {
            let vcpu = &self.vcpus[v.index()];
            let empty = vcpu.share.slice == 0;
            // As much as the slice can only be used after that was made smaller.
            if !empty && vcpu.deadline >= now && vcpu.used < vcpu.share.slice {
                break;
            }
            self.dequeue(p, v);
            let vcpu = &mut self.vcpus[v.index()];
            let period = vcpu.share.period;
            vcpu.deadline += period;
            // In the future, on a border of its periods; with an empty slice the begin as well.
            let late = if empty { now + 1 - vcpu.begin() } else { now - vcpu.deadline };
            if late > 0 {
                vcpu.deadline += (late + period - 1) / period * period;
            }
            if !empty {
                vcpu.used = 0;
            }
            self.enqueue(now, p, v);
        }
    }

    /// Computes period and slice of all that have a weight, if any has: what the others leave of
    /// their pCPU, less a safety margin, by weight.
    fn share_by_weight(&mut self, machine: &Machine) {
        if self.vcpus.iter().all(|v| v.share.weight == 0) {
            return;
        }
        let mut weights = vec![0; self.pcpus.len()];
        let mut taken = vec![0; self.pcpus.len()];
        let home = |i: usize| machine.home(VcpuId(i as u32)).index();
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let share = &vcpu.share;
            weights[home(i)] += share.weight;
            if share.weight == 0 {
                taken[home(i)] +=
                    i128::from(WEIGHT_PERIOD) * i128::from(share.slice) / i128::from(share.period);
            }
        }
        for (i, vcpu) in self.vcpus.iter_mut().enumerate() {
            let share = &mut vcpu.share;
            if share.weight > 0 {
                let left = i128::from(WEIGHT_PERIOD - WEIGHT_SAFETY) - taken[home(i)];
                let slice = i128::from(share.weight) * left / i128::from(weights[home(i)]);
                share.period = WEIGHT_PERIOD;
                share.slice = slice.max(0) as Nanos;
            }
        }
    }
}

impl Scheduler for Sedf {
    fn name(&self) -> &'static str {
        "sedf"
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        let pcpu =
            Pcpu { run: List::EMPTY, wait: List::EMPTY, extra: [List::EMPTY; 2], slice_end: 0 };
        self.pcpus = vec![pcpu; cx.pcpus() as usize];
        self.homes = Homes::new(cx.pcpus());
    }

    fn create_domain(&mut self, _d: DomainId, _params: DomainParams) {
        self.domains.push(self.default);
    }

    fn set_domain(&mut self, _cx: &mut Context<'_>, _d: DomainId, _params: DomainParams) {}

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let home = self.homes.least_populated(cx, v);
        cx.set_home(v, home);
        self.homes.add(home);
        self.links.grow();
        self.extra_links.iter_mut().for_each(Links::grow);
        self.vcpus.push(Vcpu {
            share: self.domains[cx.domain_of(v).index()],
            deadline: 0,
            used: 0,
            started: 0,
            has_blocked: false,
            lost: 0,
            score: [0; 2],
            extra: None,
            waits: false,
        });
        self.share_by_weight(cx);
        if cx.is_runnable(v) {
            self.wake(cx, v);
        }
    }

    fn remove(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.homes.remove(cx.home(v));
        self.vcpus[v.index()].share = Share::BEST_EFFORT;
        self.share_by_weight(cx);
    }

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if self.links.is_linked(v.0) {
            return;
        }
        let (now, home) = (cx.now(), cx.home(v));
        let vcpu = &mut self.vcpus[v.index()];
        let share = vcpu.share;
        if vcpu.deadline == 0 {
            vcpu.deadline = now + share.slice;
        }
        if now < vcpu.begin() {
            // It blocked in extra time; its guaranteed time is still to come.
        } else if now < vcpu.deadline {
            // A short block: no more guaranteed time in this period.
            vcpu.deadline += share.period;
            if vcpu.has_blocked {
                vcpu.lost = (share.slice - vcpu.used).max(0);
                if vcpu.lost > 0 {
                    vcpu.score[PENALTY] = (share.period << 10) / vcpu.lost;
                }
            }
            vcpu.used = 0;
        } else {
            // A long block: a new period begins now.
            vcpu.deadline = now + share.period;
            vcpu.used = 0;
        }
        let vcpu = &self.vcpus[v.index()];
        let (begin, lost, score) = (vcpu.begin(), vcpu.lost, vcpu.score[PENALTY]);
        if lost > 0 {
            self.enqueue_extra(home, PENALTY, v, 0);
        }
        if share.extratime {
            self.enqueue_extra(home, UTILISATION, v, 0);
        }
        self.enqueue(now, home, v);
        let preempts = begin < self.pcpus[home.index()].slice_end
            || cx.current(home).is_none_or(|current| {
                let current = &self.vcpus[current.index()];
                match current.extra {
                    None => false,
                    Some(PENALTY) => lost > 0 && score < current.score[PENALTY],
                    Some(_) => lost > 0,
                }
            });
        if preempts {
            cx.resched(home);
        }
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let home = cx.home(v);
        if cx.is_current(v) {
            cx.resched(home);
        } else {
            self.dequeue_all(home, v);
        }
    }

    fn yield_now(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        self.homes.stay(cx, v)
    }

    fn migrate(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        self.homes.remove(cx.home(v));
        self.homes.add(p);
        cx.set_home(v, p);
        self.share_by_weight(cx);
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let now = cx.now();
        if let Some(v) = cx.current(p) {
            self.vcpus[v.index()].has_blocked |= !cx.is_runnable(v);
            match self.vcpus[v.index()].extra {
                Some(q) => self.end_extra(cx, p, v, q),
                None => self.end_guaranteed(cx, p, v),
            }
        }
        self.update_queues(now, p);
        let pcpu = &self.pcpus[p.index()];
        let begin = pcpu.wait.head().map(|x| self.vcpus[x as usize].begin());
        let quantum_fits = begin.is_some_and(|begin| begin - now >= QUANTUM);
        let extra = |q: usize| Some((pcpu.extra[q].head()?, Some(q)));
        let (next, extra, time) = if let Some(x) = pcpu.run.head() {
            let vcpu = &self.vcpus[x as usize];
            let end = now + vcpu.share.slice - vcpu.used;
            (Some(x), None, begin.map_or(end, |begin| end.min(begin)) - now)
        } else if let Some((x, q)) =
            extra(PENALTY).or_else(|| extra(UTILISATION)).filter(|_| quantum_fits)
        {
            (Some(x), q, QUANTUM)
        } else {
            (None, None, begin.map_or(IDLE, |begin| begin - now))
        };
        self.pcpus[p.index()].slice_end = now + time;
        let next = next.map(VcpuId);
        if let Some(v) = next {
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.extra = extra;
            vcpu.started = now;
        }
        Decision { next, slice: Some(time) }
    }

    fn timer(&mut self, _cx: &mut Context<'_>, _timer: TimerId) {}

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let class = match vcpu.extra {
            Some(PENALTY) => "penalty",
            Some(_) => "extra",
            None => "guaranteed",
        };
        let left = vcpu.share.slice - vcpu.used;
        Some(Detail { class, credit: left, active: left > 0 })
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        for (i, vcpu) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            let current = machine.is_current(v);
            let listed = self.links.is_linked(v.0);
            let runnable = machine.is_runnable(v);
            // One that stops being runnable stays on its queues until the pass.
            if listed != runnable && !(listed && current) {
                return Err(format!("{v:?} is lost or queued wrongly: {vcpu:?}"));
            }
            let extra = [PENALTY, UTILISATION].map(|q| self.extra_links[q].is_linked(v.0));
            if !listed && (extra[PENALTY] || extra[UTILISATION]) {
                return Err(format!("{v:?} sleeps and is queued for extra time: {vcpu:?}"));
            }
            if vcpu.share.slice > vcpu.share.period || vcpu.used < 0 {
                return Err(format!("{v:?} has impossible times: {vcpu:?}"));
            }
        }
        for (i, pcpu) in self.pcpus.iter().enumerate() {
            let sorted = |list: &List, waits: bool| {
                let keys: Vec<_> = (self.links.iter(list).map(|x| &self.vcpus[x as usize]))
                    .map(|v| if waits { v.begin() } else { v.deadline })
                    .collect();
                keys.is_sorted()
            };
            if !sorted(&pcpu.run, false) || !sorted(&pcpu.wait, true) {
                return Err(format!("queues of pCPU {i} are out of order: {pcpu:?}"));
            }
        }
        Ok(())
    }
}
