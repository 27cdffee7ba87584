//! The main loop: takes events in order until the run is over, and notices a deadlock.

use crate::engine::Engine;
use crate::events::Event;
use crate::guest::Guest;
use crate::memory::NONE;
use crate::vcpu::Op;
use overspin_host::Moment;
use overspin_scenario::{Picos, Stopped};
use overspin_sched::TimerId;

/// How the engine loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Finished,
    Limit,
    Deadlock,
    Asked(Stopped),
}

/// Simulated time between two looks of the watchdog.
const WATCHDOG: Picos = overspin_scenario::SEC;
/// Number of looks in a row without any progress that make a deadlock.
const WATCHDOG_LOOKS: u32 = 10;

impl Engine {
    /// Takes events in order until the run is over.
    pub(crate) fn run(&self) -> Stop {
        let mut looks = 0;
        let mut progress_seen = u64::MAX;
        self.push(WATCHDOG, Event::Watchdog);
        self.start_governor();
        loop {
            if let Some(by) = self.end.asking.stopped() {
                return Stop::Asked(by);
            }
            self.time.push_postponed(|event| {
                let Event::Operation { vcpu, epoch } = event else {
                    unreachable!("no other kinds")
                };
                self.vcpus[vcpu as usize].op.epoch.get() == epoch
            });
            if let Some(prefetch) = &self.prefetch {
                prefetch.look(self);
            }
            let Some((at, event)) = self.time.next() else { return Stop::Deadlock };
            if self.ask_now_and_then() {
                continue;
            }
            match event {
                Event::Operation { vcpu, epoch } => {
                    let v = &self.vcpus[vcpu as usize];
                    if v.op.epoch.get() == epoch {
                        self.operation_event(v);
                    }
                }
                Event::GuestTimer { vcpu } => {
                    let v = &self.vcpus[vcpu as usize];
                    match v.irqs.timer.event(at) {
                        Ok(()) => self.guest_timer_ends(v),
                        Err(Some(at)) => self.push(at, event),
                        Err(None) => {}
                    }
                }
                Event::Interrupt { vcpu, interrupt } => {
                    self.deliver(&self.vcpus[vcpu as usize], interrupt, NONE);
                }
                Event::Softirq { pcpu, epoch } => {
                    let p = &self.machine.pcpus[pcpu as usize];
                    if p.softirq_epoch.get() == epoch {
                        if p.resched_ipi.get() {
                            self.host_interrupt(pcpu);
                        }
                        self.schedule(pcpu);
                    }
                }
                Event::Switched { pcpu } => self.switched(pcpu),
                Event::Returns { pcpu } => self.returns(pcpu),
                Event::Boot { vcpu } => {
                    let home = self.first_home(vcpu);
                    self.on_vcpu(NONE, vcpu, |h, now, v, out| {
                        if let Some(number) = home {
                            h.set_first_home(v, number);
                        }
                        h.up(now, v, out);
                    });
                }
                Event::Change { index } => self.change(index as usize),
                Event::Scheduler { timer } => {
                    match self.hypervisor.timers[self.timer_slot(timer)].event(at) {
                        Ok(()) => {
                            if let TimerId::Slice(p) = timer {
                                self.machine.pcpus[p.0 as usize].slice_over.set(true);
                            }
                            let from = match timer {
                                TimerId::Tick(p) | TimerId::Slice(p) => {
                                    self.host_interrupt(p.0);
                                    self.uses_run_queue(p.0);
                                    p.0
                                }
                                TimerId::Accounting => NONE,
                            };
                            self.hypervisor(from, |h, now, out| h.timer(now, timer, out));
                        }
                        Err(at) => self.push_timer(timer, at),
                    }
                }
                Event::Disk { guest } => self.guest(guest).disk_event(self),
                Event::Device { guest, place } => self.guest(guest).device_event(self, place),
                Event::Vmstat { guest } => self.guest(guest).vmstat_event(self),
                Event::Governor => self.govern(),
                Event::Watchdog => {
                    let stuck = progress_seen == self.end.progress.get() && self.stuck();
                    looks = if stuck { looks + 1 } else { 0 };
                    progress_seen = self.end.progress.get();
                    if looks >= WATCHDOG_LOOKS {
                        return Stop::Deadlock;
                    }
                    self.push(at + WATCHDOG, Event::Watchdog);
                }
                Event::Look => self.look(),
                Event::Counts => self.count_from_here(),
                Event::Limit => return Stop::Limit,
            }
            if self.end.unfinished.get() == 0 {
                return Stop::Finished;
            }
        }
    }

    /// A random number for the first home of a vCPU, if nature decides it: not in a scenario without offsets.
    fn first_home(&self, vcpu: u32) -> Option<u64> {
        let v = &self.vcpus[vcpu as usize];
        let random = || self.guest(v.guest).first_home(self, v.index);
        (self.scenario.host.stagger > Picos::ZERO).then(random)
    }

    /// The administrator carries out an event of the scenario.
    fn change(&self, index: usize) {
        self.tell(Moment::Change { event: index as u32 });
        let mut administrator = self.hypervisor.administrator.borrow_mut();
        let at = self.now();
        self.hypervisor(NONE, |h, _, out| {
            administrator.carry_out(&self.scenario, index, h, at, out);
        });
    }

    /// Whether some events of the scenario are still to come.
    fn changes_to_come(&self) -> bool {
        self.hypervisor.administrator.borrow().done().len() < self.scenario.events.len()
    }

    /// Whether nothing that is pending can bring progress: every vCPU spins in vain, polls, halts or does no
    /// work for a task, no task waits for a time or a device, and no event of the scenario is to come.
    fn stuck(&self) -> bool {
        !self.changes_to_come()
            && self.vcpus.iter().all(|v| match v.op.kind.get() {
                Op::Burn | Op::Step => !self.guest(v.guest).works_for_a_task(v),
                Op::Spin => !self.holds(v),
                Op::Blocked(_) | Op::HaltPoll(_) | Op::None => true,
            })
            && self.guests.get().expect("running").iter().all(Guest::nobody_sleeps_for_a_time)
    }
}
