//! How vCPUs and domains come and go.

use crate::core::Core;
use overspin_host::block::Place;
use overspin_sched::{DomainId, Nanos};

impl Core {
    /// vCPU `v` comes up.
    pub(crate) fn boot(&mut self, now: Nanos, p: u32, v: u32) {
        let vcpu = &self.vcpus[v as usize];
        let domain = &mut self.domains[vcpu.domain as usize];
        if vcpu.index == 0 {
            domain.started = now;
        }
        let first_home = vcpu.first_home;
        self.on_vcpu(Some(p), v, |h, v, out| {
            if let Some(number) = first_home {
                h.set_first_home(v, number);
            }
            h.up(now, v, out);
        });
        self.show(now, v);
    }

    /// The domain of `v` says that its work is done.
    pub(crate) fn finish(&mut self, now: Nanos, v: u32) {
        let domain = &mut self.domains[self.vcpus[v as usize].domain as usize];
        if domain.finished.is_none() && domain.fault.is_none() {
            domain.finished = Some(now);
            self.one_less(self.vcpus[v as usize].domain);
        }
    }

    /// Stops a domain that failed, for good.
    pub(crate) fn stop_domain(&mut self, now: Nanos, p: Option<u32>, domain: u32, why: String) {
        let d = &mut self.domains[domain as usize];
        if d.fault.is_some() {
            return;
        }
        d.fault = Some(why);
        let (first, vcpus, done) = (d.first, d.vcpus, d.finished.is_some());
        for v in first..first + vcpus {
            let vcpu = &mut self.vcpus[v as usize];
            (vcpu.timer, vcpu.boots, vcpu.place) = (None, None, Place::Guest);
        }
        self.hypervisor(p, |h, out| {
            h.on_domain(DomainId(domain), out, |h, d, out| h.pause_domain(now, d, out));
        });
        if !done {
            self.one_less(domain);
        }
        if self.domains.iter().all(|d| d.fault.is_some()) {
            self.ended = true;
        }
    }

    fn one_less(&mut self, domain: u32) {
        if self.domains[domain as usize].finite {
            self.unfinished = self.unfinished.saturating_sub(1);
            self.ended |= self.unfinished == 0;
        }
    }
}
