//! Interrupts of devices that are not simulated themselves, such as a network card: something happens at a
//! time, a vCPU is interrupted, the handler works, and a semaphore gets a unit.
//!
//! Of what has come by the time the interrupt is taken, one interrupt handles all, as cards and
//! drivers do that have more than one thing to report.

use super::{Guest, TaskRef};
use crate::engine::Engine;
use crate::events::Event;
use crate::memory::NONE;
use overspin_host::irq;
use overspin_scenario::Picos;
use overspin_workload::Semaphore;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Something that a device will report.
#[derive(Clone, Copy, Debug)]
struct Report {
    /// The vCPU of the guest that takes the interrupt.
    vcpu: u32,
    work: Picos,
    semaphore: Semaphore,
}

/// The devices of a guest.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    /// What is on its way; the place is in its event. Places are used again.
    coming: RefCell<Vec<Option<Report>>>,
    free: RefCell<Vec<u32>>,
    /// What has come and is not handled yet.
    here: RefCell<VecDeque<Report>>,
}

impl Devices {
    /// Something is on its way.
    pub(super) fn is_busy(&self) -> bool {
        self.coming.borrow().len() > self.free.borrow().len()
    }

    fn send(&self, report: Report) -> u32 {
        let mut coming = self.coming.borrow_mut();
        match self.free.borrow_mut().pop() {
            Some(place) => {
                coming[place as usize] = Some(report);
                place
            }
            None => {
                coming.push(Some(report));
                coming.len() as u32 - 1
            }
        }
    }

    fn arrive(&self, place: u32) -> Option<Report> {
        let report = self.coming.borrow_mut()[place as usize].take()?;
        self.free.borrow_mut().push(place);
        self.here.borrow_mut().push_back(report);
        Some(report)
    }

    /// Takes the first report for a vCPU.
    fn take(&self, vcpu: u32) -> Option<Report> {
        let mut here = self.here.borrow_mut();
        let at = here.iter().position(|report| report.vcpu == vcpu)?;
        here.remove(at)
    }
}

impl Guest {
    /// In `time`, a device interrupts the first vCPU that `task` may use.
    pub(super) fn interrupt_in(
        &self,
        engine: &Engine,
        task: TaskRef,
        (time, work, semaphore): (Picos, Picos, Semaphore),
    ) {
        let vcpu = task.vcpus.first().copied().unwrap_or(0);
        let place = self.devices.send(Report { vcpu, work, semaphore });
        engine.push(engine.now() + time, Event::Device { guest: self.id, place });
    }

    /// What was on its way is here.
    pub(crate) fn device_event(&self, engine: &Engine, place: u32) {
        if let Some(report) = self.devices.arrive(place) {
            engine.deliver(&engine.vcpus[(self.first + report.vcpu) as usize], irq::DEVICE, NONE);
        }
    }

    /// Handles what devices have to report to the current vCPU, interrupts off.
    pub(super) fn device_interrupt(&self, engine: &Engine) {
        while let Some(report) = self.devices.take(engine.cpu().index) {
            if report.work > Picos::ZERO {
                engine.burn(report.work);
            }
            self.up(engine, report.semaphore);
        }
    }
}
