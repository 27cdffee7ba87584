//! Interrupts of devices that are not simulated themselves, such as a network card. At a given time the
//! device interrupts a vCPU; the handler works and raises a semaphore.
//!
//! One interrupt handles all reports that have come by the time the vCPU takes it, as real cards and
//! drivers do.

use super::{Guest, TaskRef};
use crate::engine::Engine;
use crate::events::Event;
use crate::memory::NONE;
use overspin_host::irq;
use overspin_scenario::Picos;
use overspin_workload::Semaphore;
use std::cell::RefCell;
use std::collections::VecDeque;

/// A report that a device will make.
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
    /// Reports on their way. The event of a report holds its place here; places are reused.
    coming: RefCell<Vec<Option<Report>>>,
    free: RefCell<Vec<u32>>,
    /// Reports that have come and are not handled yet.
    here: RefCell<VecDeque<Report>>,
}

impl Devices {
    /// Whether a report is on its way.
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
    /// Makes a device interrupt the first vCPU that `task` may use, after `time`.
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

    /// The report at `place` has come: interrupts its vCPU.
    pub(crate) fn device_event(&self, engine: &Engine, place: u32) {
        if let Some(report) = self.devices.arrive(place) {
            engine.deliver(&engine.vcpus[(self.first + report.vcpu) as usize], irq::DEVICE, NONE);
        }
    }

    /// Handles the reports for the current vCPU, with interrupts off.
    pub(super) fn device_interrupt(&self, engine: &Engine) {
        while let Some(report) = self.devices.take(engine.cpu().index) {
            if report.work > Picos::ZERO {
                engine.burn(report.work);
            }
            self.up(engine, report.semaphore);
        }
    }
}
