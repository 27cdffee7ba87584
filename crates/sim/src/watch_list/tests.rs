//! The list, against one that asks all watches one by one.

use super::*;
use crate::watch::{Any, Equal};
use overspin_scenario::Picos;
use proptest::prelude::*;
use std::cell::Cell;

/// Number of vCPUs: enough for an index of more than one word, and for several new ones in a test.
const VCPUS: u32 = 150;
/// Values differ in their lower bits, which the watches wait for, and in a bit that is none of their business.
const VALUES: u32 = 12;
const OTHER: u32 = 1 << 20;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// vCPU `vcpu` begins or ends to wait for a value.
    Toggle {
        vcpu: u32,
        wanted: u32,
    },
    /// As `Toggle`; its condition is no equality.
    ToggleOther {
        vcpu: u32,
        wanted: u32,
    },
    /// It goes to a pCPU or leaves it.
    Switch {
        vcpu: u32,
    },
    Write {
        value: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (vcpu, value) = (0..VCPUS, 0..VALUES);
    prop_oneof![
        400 => (vcpu.clone(), value.clone()).prop_map(|(vcpu, wanted)| Step::Toggle { vcpu, wanted }),
        1 => (vcpu.clone(), value.clone())
            .prop_map(|(vcpu, wanted)| Step::ToggleOther { vcpu, wanted }),
        100 => vcpu.prop_map(|vcpu| Step::Switch { vcpu }),
        200 => (value, any::<bool>())
            .prop_map(|(value, other)| Step::Write { value: value + OTHER * u32::from(other) }),
    ]
}

fn lower(value: u32) -> u16 {
    value as u16
}

/// The list, and what it should say: the vCPUs that wait, in order of arrival, and what for.
struct Pair<'a> {
    cell: &'a Cell<u32>,
    vcpus: Vec<Vcpu>,
    list: WatchList,
    waiting: Vec<(u32, u32)>,
}

impl Pair<'_> {
    fn toggle(&mut self, vcpu: u32, wanted: u32, watch: Watch) {
        let v = &self.vcpus[vcpu as usize];
        if let Some(at) = self.waiting.iter().position(|(id, _)| *id == vcpu) {
            self.waiting.remove(at);
            self.list.remove(v);
        } else {
            // A vCPU begins to wait where it runs.
            if !v.run.is_on() {
                v.run.begin(Picos::ZERO);
            }
            self.waiting.push((vcpu, wanted));
            self.list.push(watch.of(vcpu), &self.vcpus);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Toggle { vcpu, wanted } => {
                let until = Equal { part: lower, wanted: wanted as u16 };
                self.toggle(vcpu, wanted, Watch::new(self.cell, &until));
            }
            Step::ToggleOther { vcpu, wanted } => {
                let until = Any(move |value| u32::from(lower(value)) == wanted);
                self.toggle(vcpu, wanted, Watch::new(self.cell, &until));
            }
            Step::Switch { vcpu } => {
                let v = &self.vcpus[vcpu as usize];
                let runs = !v.run.is_on();
                if runs {
                    v.run.begin(Picos::ZERO)
                } else {
                    v.run.end(Picos::ZERO)
                }
                if v.spin.place.get() != NONE {
                    self.list.set_running(v.spin.place.get(), runs);
                }
            }
            Step::Write { value } => self.cell.set(value),
        }
    }

    /// For each vCPU whose condition holds: its number, and how many before it run.
    fn expected(&self) -> Vec<(u32, u64)> {
        let runs = |vcpu: u32| self.vcpus[vcpu as usize].run.is_on();
        let held = self.waiting.iter().enumerate();
        held.filter(|(_, (_, wanted))| *wanted == u32::from(lower(self.cell.get())))
            .map(|(at, (vcpu, _))| {
                (*vcpu, self.waiting[..at].iter().filter(|(v, _)| runs(*v)).count() as u64)
            })
            .collect()
    }

    fn found(&self) -> Vec<(u32, u64)> {
        let places: Vec<usize> = match self.list.index() {
            Some(index) => index.held().collect(),
            None => self.list.held().collect(),
        };
        // From one to the next, as a write counts them.
        let (mut counted, mut position) = (0, 0);
        let each = |at: usize| {
            position += self.list.running(counted..at, &self.vcpus);
            counted = at;
            (self.list.vcpu(at), position)
        };
        places.into_iter().map(each).collect()
    }
}

proptest! {
    #[test]
    fn a_list_with_an_index_says_what_one_without_says(
        steps in prop::collection::vec(step(), 0..1500),
    ) {
        let cell = Cell::new(0);
        let vcpus = (0..VCPUS).map(|id| Vcpu::new(id, 0, id)).collect();
        let mut pair =
            Pair { cell: &cell, vcpus, list: WatchList::default(), waiting: Vec::new() };
        for step in steps {
            pair.step(step);
            prop_assert_eq!(pair.found(), pair.expected());
        }
    }
}

#[test]
fn many_tickets_have_an_index_and_few_have_none() {
    let cell = Cell::new(0);
    let vcpus: Vec<Vcpu> = (0..VCPUS).map(|id| Vcpu::new(id, 0, id)).collect();
    let mut list = WatchList::default();
    for v in &vcpus {
        let until = Equal { part: lower, wanted: v.id as u16 };
        list.push(Watch::new(&cell, &until).of(v.id), &vcpus);
        assert_eq!(list.index().is_some(), v.id as usize >= FEW, "vCPU {}", v.id);
    }
    for v in &vcpus {
        list.remove(v);
        assert_eq!(list.index().is_some(), v.id + 1 < VCPUS, "vCPU {}", v.id);
        assert_eq!(v.spin.place.get(), NONE);
    }
}

#[test]
fn another_condition_takes_the_index_away() {
    let cell = Cell::new(0);
    let vcpus: Vec<Vcpu> = (0..VCPUS).map(|id| Vcpu::new(id, 0, id)).collect();
    let mut list = WatchList::default();
    let (last, others) = vcpus.split_last().expect("more than one");
    for v in others {
        let until = Equal { part: lower, wanted: v.id as u16 };
        list.push(Watch::new(&cell, &until).of(v.id), &vcpus);
    }
    list.push(Watch::new(&cell, &Any(|value| value > 5)).of(last.id), &vcpus);
    assert!(list.index().is_none());
    cell.set(7);
    assert_eq!(list.held().collect::<Vec<_>>(), [7, others.len()]);
    assert!(vcpus.iter().all(|v| v.spin.place.get() == NONE));
}
