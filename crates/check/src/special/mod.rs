//! Models of one lock, or of a few, and the bugs that each model must find.
//!
//! A model here covers something that the [models of every lock](crate::model) do not reach: a lottery that
//! always wins, tickets of two bits, three locks in a certain order, a system in native mode. The unmodified
//! lock must pass the same model that finds its bug, so each model is explored as deep as the bug needs.

mod backoff;
mod clh;
mod cna;
mod flexguard;
mod hapax;
mod hemlock;
mod malthusian;
mod mcs;
mod mcs_tp;
mod mutex;
mod mutexee;
mod nested;
mod preemptable;
mod pv_qspinlock;
mod pv_ticket;
mod qspinlock;
mod rqspinlock;
mod shfllock;
mod ticket;
mod twa;
mod xen_pv;

use std::cell::Cell;
use std::rc::Rc;

use overspin_locks::{CpuId, RawLock};

use crate::asked::OutOfNodes;
use crate::model::{LoomPlatform, Model, Protected, on_cpus, world};
use crate::schedules::Plan;
use crate::{Mutation, NO_SPIN};

/// A model and the bugs that it must find.
#[derive(Debug)]
pub struct Special {
    /// The subject of the model.
    pub name: &'static str,
    /// What the CPUs do, in words.
    pub bound: &'static str,
    /// The model.
    pub model: Model,
    /// Bugs, each with text that the message must contain.
    pub bugs: Vec<(Mutation, &'static str)>,
}

impl Special {
    fn new(name: &'static str, bound: &'static str, model: Model) -> Self {
        Self { name, bound, model, bugs: Vec::new() }
    }

    fn finds(mut self, bug: Mutation, words: &'static str) -> Self {
        self.bugs.push((bug, words));
        self
    }
}

/// A plan for schedules and the bugs that it must find.
#[derive(Clone, Debug)]
pub struct SpecialPlan {
    /// The subject of the plan.
    pub name: &'static str,
    /// The plan.
    pub plan: Plan,
    /// Bugs, each with text that the message must contain.
    pub bugs: Vec<(Mutation, &'static str)>,
}

impl SpecialPlan {
    fn new(name: &'static str, plan: Plan) -> Self {
        Self { name, plan, bugs: Vec::new() }
    }

    fn finds(mut self, bug: Mutation, words: &'static str) -> Self {
        self.bugs.push((bug, words));
        self
    }
}

/// Makes the plans of a lock.
type Plans = fn() -> Vec<SpecialPlan>;

/// Locks that have plans of their own.
const PLANS: &[(&str, Plans)] = &[("rqspinlock", rqspinlock::plans)];

/// Lists the plans of the lock of this name, besides those of every lock.
pub fn plans_of(lock: &str) -> Vec<SpecialPlan> {
    let plans = PLANS.iter().find(|(name, _)| *name == lock);
    plans.map_or_else(Vec::new, |(_, plans)| plans())
}

/// Makes the models of a lock.
type Models = fn() -> Vec<Special>;

/// Locks that have models of their own. Locks that share a file have a line each.
const LOCKS: &[(&str, Models)] = &[
    ("ticket-small", ticket::models),
    ("ticket", ticket::models),
    ("ticket-backoff", backoff::ticket),
    ("ttas", backoff::ttas),
    ("xen-pv", xen_pv::models),
    ("pv-ticket-2012-small", pv_ticket::models_of_2012_small),
    ("pv-ticket-2012", pv_ticket::models_of_2012),
    ("pv-ticket", pv_ticket::models),
    ("preemptable-ticket", preemptable::models),
    ("qspinlock", qspinlock::models),
    ("qspinlock-unfair", qspinlock::unfair),
    ("pv-qspinlock-4.2", pv_qspinlock::models_of_4_2),
    ("pv-qspinlock-4.5", pv_qspinlock::models_of_4_5),
    ("pv-qspinlock", pv_qspinlock::models),
    ("mcs", mcs::models),
    ("clh", clh::models),
    ("mcs-tp", mcs_tp::models),
    ("malthusian", malthusian::models),
    ("cna", cna::models),
    ("twa", twa::models),
    ("shfllock", shfllock::models),
    ("hemlock", hemlock::models),
    ("flexguard", flexguard::models),
    ("hapax", hapax::models),
    ("futex", mutexee::models_of_futex),
    ("mutexee", mutexee::models),
    ("mutex", mutex::models),
    ("swift-mutex", mutexee::models_of_swift),
];

/// Lists the models of the lock of this name, besides those of every lock.
pub fn of(lock: &str) -> Vec<Special> {
    let models = LOCKS.iter().find(|(name, _)| *name == lock);
    models.map_or_else(Vec::new, |(_, models)| models())
}

/// Names of the locks in the table.
pub(crate) fn locks() -> impl Iterator<Item = &'static str> {
    LOCKS.iter().map(|(name, _)| *name).chain(PLANS.iter().map(|(name, _)| *name))
}

/// As few CPUs and preemptions as most bugs need.
fn few<L: RawLock<LoomPlatform> + 'static>() -> Special {
    Special::new("pairs, as few as most bugs take", "1 pair each", Model::pairs::<L>(2, 1, 2))
}

/// Three CPUs; each CPU's first sleep ends spuriously.
fn three_that_wake_for_no_reason<L: RawLock<LoomPlatform> + 'static>(
    preemptions: usize,
) -> Special {
    let model = Model::pairs_of(3, 1, preemptions, || {
        world().wake_spuriously(1);
        Protected::<L>::new(3)
    });
    Special::new("spurious wake-ups", "1 pair each", model)
}

/// No CPU unlocks or waits, so the model can only find two holders.
fn tries_alone<L: RawLock<LoomPlatform> + 'static>() -> Special {
    let model = Model::new(2, 2, || {
        let it = Protected::<L>::new(2);
        on_cpus(2, move |_| {
            if it.try_lock().is_some() {
                it.inside();
            }
        });
    });
    Special::new("tries without a release", "1 try each", model)
        .finds(Mutation::SplitSwap, crate::model::EXCLUSION_MESSAGE)
}

/// CPU 0 holds a lock, created by `make`, when two others come. Each takes it once. The first sleep of CPU
/// `spurious` ends spuriously.
fn held_at_first<L: RawLock<LoomPlatform> + 'static>(
    preemptions: usize,
    spurious: Option<CpuId>,
    make: fn(usize) -> Rc<Protected<L>>,
) -> Model {
    Model::new(3, preemptions, move || {
        let it = make(3);
        let token = Cell::new(Some(it.lock()));
        let of_all = Rc::clone(&it);
        on_cpus(3, move |cpu| {
            if cpu == 0 {
                of_all.inside();
                of_all.unlock(token.take().expect("released once"));
                return;
            }
            if Some(cpu) == spurious {
                world().wake_spuriously(1);
            }
            of_all.pair();
        });
        it.assert_idle(3);
    })
}

/// The CPUs of `out` have no node left and use the spare inside the lock. CPU 1 takes the lock twice, and the
/// others once.
fn out_of_nodes<L: RawLock<LoomPlatform> + 'static>(
    cpus: usize,
    out: &'static [CpuId],
    preemptions: usize,
) -> Model {
    Model::new(cpus, preemptions, move || {
        let it = Protected::<L>::new(cpus);
        let (_, shared) = it.raw();
        let out = OutOfNodes::<_, L>::new(shared, out.iter().copied());
        let of_all = Rc::clone(&it);
        on_cpus(cpus, move |cpu| {
            (0..if cpu == 1 { 2 } else { 1 }).for_each(|_| _ = of_all.pair());
        });
        out.end(shared);
        it.assert_idle(cpus + 1);
    })
}

/// One CPU out of nodes; then two, with `preemptions` preemptions.
fn with_spare_nodes<L: RawLock<LoomPlatform> + 'static>(preemptions: usize) -> Vec<Special> {
    let name = "CPUs out of nodes";
    vec![
        Special::new(name, "CPU 0 out, CPU 1 twice", out_of_nodes::<L>(2, &[0], 3)),
        Special::new(
            name,
            "CPUs 0 and 2 out, CPU 1 twice",
            out_of_nodes::<L>(3, &[0, 2], preemptions),
        ),
    ]
}

/// A system in native mode.
fn native<L: RawLock<LoomPlatform> + 'static>() -> Special {
    let tuning = overspin_locks::Tuning { nopvspin: true, ..NO_SPIN };
    let model = Model::pairs_of(2, 2, 3, move || Protected::<L>::tuned(2, tuning));
    Special::new("native mode", "2 pairs each", model)
}
