//! Memory that is as weak as C11 allows, or sequentially consistent.
//!
//! A cell keeps its last stores in modification order. A CPU has a *view*: for each cell, the oldest store
//! that it may still read. A load reads a random store from there on, and moves the view up. A store goes to a
//! random place behind the view, so it can take effect before a store that another CPU made earlier. A
//! read-modify-write reads a store that no other read-modify-write has read, and goes directly behind it. A
//! release store carries the view of its CPU. A CPU that reads it with acquire, or reads it and then fences,
//! joins that view to its own. A read-modify-write continues the release sequence that it reads from, and a
//! plain store cuts it. `SeqCst` fences join their views in one order.
//!
//! This is the view machine of Kang, Hur, Lahav, Vafeiadis and Dreyer ("A promising semantics for
//! relaxed-memory concurrency", POPL 2017) without its promises: a load cannot take effect after a later store
//! of the same CPU.
//!
//! | Litmus test | Seen here | In the models |
//! |---|---|---|
//! | message passing, store buffering, independent reads | yes | yes |
//! | a store that takes effect before an earlier one (2+2W, R, S) | yes | no |
//! | a plain store that cuts a release sequence | yes | no |
//! | load buffering | no | no |

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use overspin_locks::CpuId;
use shuttle::rand::{Rng, thread_rng};

use super::one_in;

/// How memory behaves in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// All CPUs see all accesses in one order.
    Sequential,
    /// As weak as C11 allows, except for load buffering.
    Weak,
}

/// One in this many accesses goes to another store than the newest, if it may.
const STALE_ONE_IN: u32 = 4;
/// Stores kept of each cell. Older ones are out of reach.
const KEPT: usize = 8;
/// Room between two stores, for stores that go between them.
const GAP: u64 = 1 << 32;

/// Number of a cell.
type CellId = u32;

/// For each cell, by number, the place of the oldest store that may still be read.
#[derive(Clone, Debug, Default)]
struct View(Rc<Vec<u64>>);

impl View {
    fn of(&self, cell: CellId) -> u64 {
        self.0.get(cell as usize).copied().unwrap_or(0)
    }

    fn advance(&mut self, cell: CellId, place: u64) {
        if self.of(cell) < place {
            let places = Rc::make_mut(&mut self.0);
            if places.len() <= cell as usize {
                places.resize(cell as usize + 1, 0);
            }
            places[cell as usize] = place;
        }
    }

    fn join(&mut self, other: &Self) {
        if Rc::ptr_eq(&self.0, &other.0) {
            return;
        }
        if self.0.is_empty() {
            *self = other.clone();
            return;
        }
        let is_ahead =
            |(cell, place): (usize, &u64)| self.0.get(cell).is_none_or(|own| own < place);
        if !other.0.iter().enumerate().any(is_ahead) {
            return;
        }
        let places = Rc::make_mut(&mut self.0);
        if places.len() < other.0.len() {
            places.resize(other.0.len(), 0);
        }
        places.iter_mut().zip(&*other.0).for_each(|(own, place)| *own = (*own).max(*place));
    }
}

#[derive(Clone, Debug)]
struct Store {
    /// In the modification order.
    place: u64,
    value: u64,
    /// The view that a CPU acquires by reading this store.
    carries: View,
    /// The store belongs to a read-modify-write: nothing goes between it and the store before.
    adjacent: bool,
}

/// The views of one CPU.
#[derive(Clone, Debug, Default)]
struct Cpu {
    view: View,
    /// What an acquire fence would add to the view.
    to_acquire: View,
    /// The view at the last release fence, which later stores carry.
    released: View,
}

impl Cpu {
    fn reads(&mut self, cell: CellId, store: &Store, order: Ordering) {
        self.view.advance(cell, store.place);
        self.to_acquire.join(&store.carries);
        if acquires(order) {
            self.view.join(&store.carries);
        }
    }

    /// Returns the view that a store of this CPU carries.
    fn carried(&mut self, cell: CellId, place: u64, order: Ordering) -> View {
        self.view.advance(cell, place);
        if releases(order) {
            return self.view.clone();
        }
        let mut carried = self.released.clone();
        carried.advance(cell, place);
        carried
    }
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

/// The result of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    pub(super) value: u64,
    /// No store of the cell comes after it.
    pub(super) newest: bool,
}

/// All cells of an execution.
#[derive(Debug)]
pub(super) struct Memory {
    consistency: Consistency,
    cells: RefCell<Vec<Vec<Store>>>,
    cpus: RefCell<Vec<Cpu>>,
    /// The view of the latest `SeqCst` fence.
    fenced: RefCell<View>,
}

impl Memory {
    pub(super) fn new(consistency: Consistency, cpus: usize) -> Self {
        Self {
            consistency,
            cells: RefCell::default(),
            cpus: RefCell::new(vec![Cpu::default(); cpus]),
            fenced: RefCell::default(),
        }
    }

    pub(super) fn consistency(&self) -> Consistency {
        self.consistency
    }

    fn is_weak(&self) -> bool {
        self.consistency == Consistency::Weak
    }

    /// Creates a cell. All CPUs know its first value.
    pub(super) fn cell(&self, value: u64) -> CellId {
        let mut cells = self.cells.borrow_mut();
        let first = Store { place: 0, value, carries: View::default(), adjacent: false };
        cells.push(vec![first]);
        (cells.len() - 1) as CellId
    }

    pub(super) fn load(&self, cpu: CpuId, cell: CellId, order: Ordering, newest: bool) -> Loaded {
        let cells = self.cells.borrow();
        let stores = &cells[cell as usize];
        let last = stores.len() - 1;
        if !self.is_weak() {
            return Loaded { value: stores[last].value, newest: true };
        }
        let cpu = &mut self.cpus.borrow_mut()[cpu];
        let seen = cpu.view.of(cell);
        let first = stores.partition_point(|store| store.place < seen).min(last);
        let index = if newest || first == last || !one_in(STALE_ONE_IN) {
            last
        } else {
            thread_rng().gen_range(first..=last)
        };
        cpu.reads(cell, &stores[index], order);
        Loaded { value: stores[index].value, newest: index == last }
    }

    pub(super) fn store(&self, cpu: CpuId, cell: CellId, value: u64, order: Ordering) {
        let mut cells = self.cells.borrow_mut();
        let stores = &mut cells[cell as usize];
        if !self.is_weak() {
            stores[0].value = value;
            return;
        }
        let cpu = &mut self.cpus.borrow_mut()[cpu];
        let before = choose(stores, cpu.view.of(cell));
        let place = place_after(stores, before);
        let carries = cpu.carried(cell, place, order);
        insert(stores, before, Store { place, value, carries, adjacent: false });
    }

    /// A read-modify-write, which stores `new` of the old value. Returns the old value.
    ///
    /// # Errors
    /// The value that was read, if `new` returns none.
    pub(super) fn update(
        &self,
        cpu: CpuId,
        cell: CellId,
        order: Ordering,
        failure: Ordering,
        new: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        let mut cells = self.cells.borrow_mut();
        let stores = &mut cells[cell as usize];
        if !self.is_weak() {
            let old = stores[0].value;
            stores[0].value = new(old).ok_or(old)?;
            return Ok(old);
        }
        let cpu = &mut self.cpus.borrow_mut()[cpu];
        let read = choose(stores, cpu.view.of(cell));
        let old = stores[read].value;
        let Some(value) = new(old) else {
            cpu.reads(cell, &stores[read], failure);
            return Err(old);
        };
        cpu.reads(cell, &stores[read], order);
        let place = place_after(stores, read);
        let mut carries = cpu.carried(cell, place, order);
        // The release sequence goes on.
        carries.join(&stores[read].carries);
        insert(stores, read, Store { place, value, carries, adjacent: true });
        Ok(old)
    }

    pub(super) fn fence(&self, cpu: CpuId, order: Ordering) {
        if !self.is_weak() {
            return;
        }
        let cpu = &mut self.cpus.borrow_mut()[cpu];
        if acquires(order) {
            let Cpu { view, to_acquire, .. } = cpu;
            view.join(to_acquire);
        }
        if order == Ordering::SeqCst {
            let mut fenced = self.fenced.borrow_mut();
            fenced.join(&cpu.view);
            cpu.view = fenced.clone();
        }
        if releases(order) {
            cpu.released = cpu.view.clone();
        }
    }

    /// `to` inherits the view of `from`, which started it or waited for its end.
    pub(super) fn hand_over(&self, from: CpuId, to: CpuId) {
        let mut cpus = self.cpus.borrow_mut();
        let view = cpus[from].view.clone();
        cpus[to].view.join(&view);
    }

    /// Whether a CPU has seen all stores of a cell.
    pub(super) fn is_newest(&self, cpu: CpuId, cell: CellId) -> bool {
        let newest = self.cells.borrow()[cell as usize].last().map_or(0, |store| store.place);
        !self.is_weak() || self.cpus.borrow()[cpu].view.of(cell) >= newest
    }

    /// Returns the final value of a cell. This is no CPU's access.
    pub(super) fn newest(&self, cell: CellId) -> u64 {
        let cells = self.cells.borrow();
        cells[cell as usize].last().expect("a cell has a value").value
    }
}

/// Chooses the store for an access that must come directly behind one: the newest, or at random another store
/// from `seen` on that has room behind it.
fn choose(stores: &[Store], seen: u64) -> usize {
    let last = stores.len() - 1;
    if last == 0 || stores[last].place <= seen || !one_in(STALE_ONE_IN) {
        return last;
    }
    let first = stores.partition_point(|store| store.place < seen);
    let index = thread_rng().gen_range(first..=last);
    let has_room = |index: usize| {
        index == last
            || !stores[index + 1].adjacent && stores[index + 1].place - stores[index].place > 1
    };
    if has_room(index) { index } else { last }
}

fn place_after(stores: &[Store], before: usize) -> u64 {
    let place = stores[before].place;
    match stores.get(before + 1) {
        Some(next) => place + (next.place - place) / 2,
        None => place + GAP,
    }
}

fn insert(stores: &mut Vec<Store>, before: usize, store: Store) {
    stores.insert(before + 1, store);
    if stores.len() > KEPT {
        stores.remove(0);
    }
}
