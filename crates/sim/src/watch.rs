//! What a vCPU spins on: a cell, and a condition on its value.

use crate::memory::NONE;
use std::cell::Cell;
use std::iter;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{self, fn_addr_eq, from_ref};
use std::slice;

/// A condition on a value of type `T`.
pub(crate) trait Condition<T>: Copy {
    /// How to find a watch by the value that it waits for, if the condition is an equality.
    const EQUALITY: Option<Equality> = None;

    fn holds(&self, value: T) -> bool;
}

/// Any condition.
#[derive(Clone, Copy)]
pub(crate) struct Any<F>(pub F);

impl<T, F: Fn(T) -> bool + Copy> Condition<T> for Any<F> {
    #[inline(always)]
    fn holds(&self, value: T) -> bool {
        self.0(value)
    }
}

/// Part `part` of the value is `wanted`.
#[derive(Clone, Copy)]
pub(crate) struct Equal<F, K> {
    pub part: F,
    pub wanted: K,
}

impl<T: Copy, K: Copy + Eq + Into<u64>, F: Fn(T) -> K + Copy> Condition<T> for Equal<F, K> {
    // A `part` of size 0 carries no data: that of one watch serves for all watches.
    const EQUALITY: Option<Equality> = if size_of::<F>() == 0 && fits::<Self>() {
        Some(Equality { part: part::<T, K, F>, wanted: wanted::<K, F> })
    } else {
        None
    };

    #[inline(always)]
    fn holds(&self, value: T) -> bool {
        (self.part)(value) == self.wanted
    }
}

/// The functions of the watches whose condition is the same equality, but for the value wanted. They take a watch whose
/// cell is alive, and whose [`Kind`] has these functions.
#[derive(Debug)]
pub(crate) struct Equality {
    /// The part of the cell's value that counts, now.
    part: unsafe fn(&Watch) -> u64,
    /// The part that the watch waits for.
    wanted: unsafe fn(&Watch) -> u64,
}

/// [`Equality::part`].
///
/// # Safety
/// `watch` must be made from a `Cell<T>` that is alive, and an `Equal<F, K>`.
unsafe fn part<T: Copy, K: Into<u64>, F: Fn(T) -> K>(watch: &Watch) -> u64 {
    // SAFETY: the caller promises the types, and that the cell is alive. The condition is in the watch, as `EQUALITY`
    // exists.
    let (cell, equal) =
        unsafe { (&*watch.cell.cast::<Cell<T>>(), &*watch.until.as_ptr().cast::<Equal<F, K>>()) };
    (equal.part)(cell.get()).into()
}

/// [`Equality::wanted`].
///
/// # Safety
/// `watch` must be made from an `Equal<F, K>`.
unsafe fn wanted<K: Copy + Into<u64>, F>(watch: &Watch) -> u64 {
    // SAFETY: as in `part`.
    unsafe { &*watch.until.as_ptr().cast::<Equal<F, K>>() }.wanted.into()
}

/// The functions for watches of one type of cell and one of condition.
#[derive(Debug)]
pub(crate) struct Kind {
    first_held: unsafe fn(&[Watch]) -> usize,
    equality: Option<Equality>,
}

struct KindOf<T, C>(PhantomData<(T, C)>);

impl<T: Copy, C: Condition<T>> KindOf<T, C> {
    const KIND: &'static Kind = &Kind { first_held: first_held::<T, C>, equality: C::EQUALITY };
}

/// A cell, a condition, and the vCPU that watches.
///
/// A small condition is stored here, not on the stack of the coroutine. Stacks begin at the same offset in
/// their pages, so the stacks of more than a few spinners never fit the processor's first-level cache at
/// one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    cell: *const (),
    /// The condition itself if it [`fits`], else a pointer to it.
    until: MaybeUninit<*const ()>,
    kind: &'static Kind,
    /// The vCPU that watches; `NONE` before it does.
    pub vcpu: u32,
}

/// Whether a condition of type `C` is stored in its watch.
const fn fits<C>() -> bool {
    size_of::<C>() <= size_of::<*const ()>() && align_of::<C>() <= align_of::<*const ()>()
}

/// The index of the first watch whose condition holds, or whose types may differ from those of
/// `watches[0]`; the number of watches if there is none. It takes all watches at once, because a call for
/// each would take several times as long as the conditions.
///
/// # Safety
/// `watches[0]`, and all watches of its kind, must be made from a `Cell<T>` and a `C` that are alive.
unsafe fn first_held<T: Copy, C: Condition<T>>(watches: &[Watch]) -> usize {
    let Some(Watch { kind, .. }) = watches.first() else { return 0 };
    for (at, watch) in watches.iter().enumerate() {
        // Equal addresses mean equal functions. One kind may have several addresses, which does no harm.
        if !ptr::eq(watch.kind, *kind) {
            return at;
        }
        let until = if fits::<C>() {
            watch.until.as_ptr().cast::<C>()
        } else {
            // SAFETY: `Watch::new` wrote a pointer.
            unsafe { watch.until.assume_init() }.cast::<C>()
        };
        // SAFETY: the caller promises that both are alive and have these types.
        let (cell, until) = unsafe { (&*watch.cell.cast::<Cell<T>>(), &*until) };
        if until.holds(cell.get()) {
            return at;
        }
    }
    watches.len()
}

// The safe functions rely on this: the cell and the condition of a watch are those of a call of `spin_for` on a
// coroutine's stack. This coroutine is the caller, or it is suspended and stays so until the watch is removed.
impl Watch {
    /// Makes a watch. It must not be used after `cell` or `until` is gone.
    pub(crate) fn new<T: Copy, C: Condition<T>>(cell: &Cell<T>, until: &C) -> Self {
        let mut kept = MaybeUninit::new(from_ref(until).cast::<()>());
        if fits::<C>() {
            // SAFETY: `kept` has the room and the alignment for a `C`, as `fits` says.
            unsafe { kept.as_mut_ptr().cast::<C>().write(*until) };
        }
        Self { cell: from_ref(cell).cast(), until: kept, kind: KindOf::<T, C>::KIND, vcpu: NONE }
    }

    /// This watch as that of a vCPU.
    pub(crate) fn of(self, vcpu: u32) -> Self {
        Self { vcpu, ..self }
    }

    /// Whether the condition holds now.
    pub(crate) fn holds(&self) -> bool {
        // SAFETY: see above.
        unsafe { (self.kind.first_held)(slice::from_ref(self)) == 0 }
    }

    /// Whether the two wait for values of the same part of the same cell.
    pub(crate) fn is_like(&self, other: &Watch) -> bool {
        match (&self.kind.equality, &other.kind.equality) {
            (Some(a), Some(b)) => self.cell == other.cell && fn_addr_eq(a.part, b.part),
            _ => false,
        }
    }

    /// The part of the cell's value that counts for an equality, now; `None` if the condition is another.
    pub(crate) fn part(&self) -> Option<u64> {
        // SAFETY: see above; the function is that of this watch's kind.
        self.kind.equality.as_ref().map(|e| unsafe { (e.part)(self) })
    }

    /// The part that an equality waits for; `None` if the condition is another.
    pub(crate) fn wanted(&self) -> Option<u64> {
        // SAFETY: as in `part`.
        self.kind.equality.as_ref().map(|e| unsafe { (e.wanted)(self) })
    }
}

/// The indices of the watches whose condition holds, in order.
#[inline(always)]
pub(crate) fn held(watches: &[Watch]) -> impl Iterator<Item = usize> {
    let mut next = 0;
    iter::from_fn(move || {
        while let rest @ [Watch { kind, .. }, ..] = &watches[next..] {
            // SAFETY: as for `Watch::holds`.
            next += unsafe { (kind.first_held)(rest) };
            // Otherwise the watch there is of another kind, with which the loop goes on.
            if watches.get(next).is_some_and(|w| ptr::eq(w.kind, *kind)) {
                next += 1;
                return Some(next - 1);
            }
        }
        None
    })
}
