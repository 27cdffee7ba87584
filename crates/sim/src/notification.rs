//! Preemption notification in the simulator: the guest's actions in a window, and their costs.
//! `overspin_host::notification` has the rules.

use crate::engine::Engine;
use crate::memory::NONE;
use crate::vcpu::Vcpu;
use overspin_host::notification::{self, Pass};
use overspin_host::{Moment, WindowEnd, irq};
use overspin_scenario::{PreemptionNotification, WindowOutcome};
use overspin_sched::PcpuId;

impl Engine {
    /// The options under which the host asks `v` to give up, if it asks `v` at all.
    #[inline]
    fn notification(&self, v: &Vcpu) -> Option<&PreemptionNotification> {
        let options = self.scenario.host.preemption_notification.as_ref()?;
        notification::asks(options, self.guest(v.guest).vcpus).then_some(options)
    }

    /// Asks, when `pcpu` is about to enter its scheduler, whether a window of its vCPU puts the pass off.
    /// If so, the pass comes at the end of the window, or when the guest gives up.
    #[inline]
    pub(crate) fn postpones(&self, pcpu: u32) -> bool {
        self.scenario.host.preemption_notification.is_some() && self.opens_a_window(pcpu)
    }

    fn opens_a_window(&self, pcpu: u32) -> bool {
        let Some(v) = self.current_on(pcpu) else { return false };
        let Some(options) = self.notification(v) else { return false };
        let gives_way = v.leave.by_itself.replace(false);
        let preempts =
            !gives_way && self.look_at(v.id, |h, v| h.is_runnable(v)) && self.is_wanted(pcpu);
        let (pass, ended) = v.leave.notified.borrow_mut().pass(self.now(), options, preempts);
        if let Some(end) = ended {
            self.tell(Moment::WindowCloses { vcpu: v.id, end });
        }
        let Pass::PutOff { until, opened, upcall } = pass else { return false };
        self.raise_softirq(pcpu, until);
        if opened {
            self.tell(Moment::WindowOpens { vcpu: v.id, until });
        }
        if upcall {
            self.deliver(v, irq::NOTIFY, NONE);
        }
        true
    }

    /// Whether some waiting vCPU may run on `pcpu`. O(vCPUs).
    fn is_wanted(&self, pcpu: u32) -> bool {
        self.any_vcpu(|h, v| notification::wants(h, v, PcpuId(pcpu)))
    }

    /// Makes the guest count that the current vCPU has acquired a lock. The cost is an increment here, and
    /// a decrement and a look at the flag at the release; both are charged here.
    #[inline]
    pub(crate) fn section_begins(&self) {
        if self.scenario.host.preemption_notification.is_some() {
            self.counts_a_lock();
        }
    }

    fn counts_a_lock(&self) {
        let v = self.cpu();
        if self.notification(v).is_some() {
            v.leave.notified.borrow_mut().holds_one_more();
            self.burn(2 * self.scenario.host.costs.cache_hit);
        }
    }

    /// Makes the guest count that the current vCPU has released a lock. If it was the vCPU's last lock and
    /// the host asks the vCPU to give up, it does.
    #[inline]
    pub(crate) fn section_ends(&self) {
        if self.scenario.host.preemption_notification.is_some() {
            let v = self.cpu();
            if self.notification(v).is_some() {
                v.leave.notified.borrow_mut().holds_one_less();
                self.asked_to_give_up();
            }
        }
    }

    /// Makes the current vCPU give up if the host asks it to and it holds no lock. A vCPU that holds locks
    /// gives up when it releases the last one.
    pub(crate) fn asked_to_give_up(&self) {
        let gives_up = {
            let notified = self.cpu().leave.notified.borrow();
            notified.is_asked() && !notified.holds_locks()
        };
        if !gives_up {
            return;
        }
        self.burn(self.costs.hypercall.next());
        // The host may have preempted it by force before the hypercall arrived.
        let v = self.cpu();
        let heard = v.leave.notified.borrow_mut().give_up(self.now());
        if heard {
            self.tell(Moment::WindowCloses { vcpu: v.id, end: WindowEnd::Used });
            self.raise_softirq(v.run.pcpu.get(), self.now());
            self.let_the_pass_come();
            self.take_interrupts();
        }
    }

    /// How the windows of `v` ended, if the host asks it.
    pub(crate) fn window_outcome(&self, v: &Vcpu) -> Option<WindowOutcome> {
        self.notification(v)?;
        Some(v.leave.notified.borrow().outcome(self.now()))
    }
}
