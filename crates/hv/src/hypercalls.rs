//! What guests ask of the host. A guest is not trusted: whatever it asks, at worst its domain is stopped.

use crate::core::{CONSOLE, Core, REPORTS};
use crate::ticks::Ticks;
use overspin_guest_abi::{event, port};
use overspin_host::block::{self, Block, Place, Reaction};
use overspin_host::{Doing, Moment, WindowEnd, picos};
use overspin_scenario::{Picos, Why, WorkerReport};
use overspin_sched::Nanos;
use std::sync::atomic::Ordering;

/// The longest text of one console call.
const LONGEST_TEXT: u32 = 256;

/// Why a guest must not send the event with this number, if so.
fn unsendable(number: u32) -> Option<String> {
    let is_legal = number < 32 && event::SENDABLE & 1 << number != 0;
    let [kick, wake, own] =
        [event::KICK, event::WAKE, event::FIRST_FREE].map(|event| event.trailing_zeros());
    (!is_legal).then(|| {
        format!(
            "it sends event {number}; a guest may send {kick} (a kick), {wake} (a wake-up), and {own} to 31 (its own)"
        )
    })
}

/// Why a domain of so many vCPUs must not name the vCPU `index`, if so.
fn no_vcpu(index: u32, vcpus: u32) -> Option<String> {
    (index >= vcpus).then(|| match vcpus {
        1 => format!("it names vCPU {index}, and its domain has only vCPU 0"),
        _ => format!("it names vCPU {index}, and its domain has vCPUs 0 to {}", vcpus - 1),
    })
}

impl Core {
    /// Does what vCPU `v`, on pCPU `p`, asks by writing `value` to `port`.
    pub(crate) fn hypercall(&mut self, p: u32, v: u32, port: u16, value: u32) {
        let now = self.clock.now();
        match port {
            port::NOTHING => {}
            port::FRESH => {
                let vcpu = &self.vcpus[v as usize];
                self.domains[vcpu.domain as usize].image.forget_touched(vcpu.index);
            }
            port::CONSOLE => self.console(now, p, v, value),
            port::YIELD => {
                self.vcpus[v as usize].yielded = Some((now, Why::Yield));
                self.vcpus[v as usize].by_itself = true;
                self.tell(now, Moment::Yield { vcpu: v });
                self.on_vcpu(Some(p), v, |h, v, out| h.yield_now(now, v, out));
            }
            port::BLOCK => self.block(now, p, v, Block::Halt),
            port::POLL => self.block(now, p, v, Block::Poll),
            port::SEND => self.send_to(now, p, v, value),
            port::TIMER => self.arm(Some(p), v),
            port::TICKS => {
                let phase = self.page(v).args[0].load(Ordering::Relaxed);
                self.vcpus[v as usize].ticks = (value > 0).then(|| Ticks::new(now, phase, value));
            }
            port::VCPU_UP => self.vcpu_up(now, p, v, value),
            port::VCPU_DOWN => {
                self.vcpus[v as usize].timer = None;
                self.on_vcpu(Some(p), v, |h, v, out| h.down(now, v, out));
            }
            port::SHUTDOWN if value == 0 => self.finish(now, v),
            port::SHUTDOWN => {
                let domain = self.vcpus[v as usize].domain;
                let said = self.domains[domain as usize].console.trim().to_string();
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                self.stop_domain(
                    now,
                    Some(p),
                    domain,
                    format!("it gave up with code {value}{said}"),
                );
            }
            port::REPORT => self.report(now, p, v, value),
            port::GIVE_UP => {
                // The host may have preempted it by force before the call arrived.
                if self.vcpus[v as usize].notified.give_up(picos(now)) {
                    self.window_closes(now, v, WindowEnd::Used);
                    self.pcpus[p as usize].postponed = None;
                    self.pcpus[p as usize].resched = true;
                }
            }
            // What was traced is taken at every exit.
            port::FLUSH => {}
            other => self.fault(now, p, v, format!("there is no hypercall {other:#x}")),
        }
    }

    /// Stops the domain of `v`, which did what a guest must not do.
    pub(crate) fn fault(&mut self, now: Nanos, p: u32, v: u32, what: String) {
        let (domain, index) = (self.vcpus[v as usize].domain, self.vcpus[v as usize].index);
        self.stop_domain(now, Some(p), domain, format!("vCPU {index}: {what}"));
    }

    fn console(&mut self, now: Nanos, p: u32, v: u32, len: u32) {
        let address = self.page(v).args[0].load(Ordering::Relaxed);
        let domain = self.vcpus[v as usize].domain as usize;
        let bytes = self.domains[domain].image.memory.read(address, len.min(LONGEST_TEXT) as usize);
        let Some(bytes) = bytes.filter(|_| len <= LONGEST_TEXT) else {
            return self.fault(now, p, v, format!("{len} bytes of text at {address:#x}"));
        };
        let console = &mut self.domains[domain].console;
        if console.len() < CONSOLE {
            console.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn block(&mut self, now: Nanos, p: u32, v: u32, how: Block) {
        self.arm(Some(p), v);
        if self.vcpus[v as usize].timer.is_some_and(|at| at <= now) {
            self.vcpus[v as usize].timer = None;
            self.page(v).pending.fetch_or(event::TIMER, Ordering::SeqCst);
        }
        let page = self.page(v);
        let pending = page.pending.load(Ordering::SeqCst);
        let unmasked = page.masked.load(Ordering::SeqCst) == 0;
        // Events are sent under the lock that we hold, so none comes between this look and the block.
        let (latch, events) = (pending & event::KICK != 0, pending & !event::KICK);
        if block::must_return(how, latch, events, unmasked) {
            return;
        }
        self.vcpus[v as usize].doing = Doing::Sleeps;
        self.vcpus[v as usize].place = Place::Blocked(how);
        self.tell(now, Moment::Sleeps { vcpu: v });
        self.on_vcpu(Some(p), v, |h, v, out| h.block(now, v, out));
    }

    fn send_to(&mut self, now: Nanos, p: u32, v: u32, value: u32) {
        let (index, bit) = (value & 0xff_ffff, value >> 24);
        let domain = &self.domains[self.vcpus[v as usize].domain as usize];
        if let Some(what) = unsendable(bit).or_else(|| no_vcpu(index, domain.vcpus)) {
            return self.fault(now, p, v, what);
        }
        let to = domain.first + index;
        if 1 << bit == event::KICK {
            self.tell(now, Moment::Kick { from: v, to });
        }
        self.send(now, Some(p), to, 1 << bit);
    }

    /// Sets an event of vCPU `v`, and wakes it if it sleeps for that. `from` is the pCPU that asks.
    pub(crate) fn send(&mut self, now: Nanos, from: Option<u32>, v: u32, event: u32) {
        let page = self.page(v);
        page.pending.fetch_or(event, Ordering::SeqCst);
        let unmasked = page.masked.load(Ordering::SeqCst) == 0;
        let place = self.vcpus[v as usize].place;
        let reaction = match event {
            event::KICK => block::on_kick(place),
            _ => block::on_interrupt(place, unmasked),
        };
        if reaction == Reaction::Unblock {
            self.vcpus[v as usize].place = Place::Guest;
            let woken = self.on_vcpu(from, v, |h, v, out| h.unblock(now, v, out));
            if self.vcpus[v as usize].doing == Doing::Sleeps {
                self.vcpus[v as usize].doing = Doing::Wakes;
            }
            self.show(now, v);
            self.tell(now, Moment::Wake { vcpu: v, pcpu: from, runnable: woken });
        } else if event != event::KICK
            && let Some(p) = self.running_on(v)
        {
            // It may want an upcall.
            self.ring(from, p);
        }
    }

    /// The pCPU that runs `v`.
    fn running_on(&self, v: u32) -> Option<u32> {
        let home = self.vcpus[v as usize].home;
        (self.pcpus[home as usize].current == Some(v)).then_some(home)
    }

    fn vcpu_up(&mut self, now: Nanos, p: u32, v: u32, index: u32) {
        let domain = &self.domains[self.vcpus[v as usize].domain as usize];
        if let Some(what) = no_vcpu(index, domain.vcpus) {
            return self.fault(now, p, v, what);
        }
        let other = domain.first + index;
        let vcpu = &mut self.vcpus[other as usize];
        let is_up = vcpu.boots.is_some() || other == v || vcpu.dispatches > 0;
        if !is_up {
            let at = vcpu.boot_plan.max(now);
            vcpu.boots = Some(at);
            let home = vcpu.home;
            self.looked_after(Some(p), home, Some(at));
        }
    }

    fn report(&mut self, now: Nanos, p: u32, v: u32, task: u32) {
        let args = &self.page(v).args;
        let [kops, max_delta, cpu_time, deadlines, missed] =
            [0, 1, 2, 3, 4].map(|i: usize| args[i].load(Ordering::Relaxed));
        let report = WorkerReport {
            at: picos(now),
            kops,
            max_delta: Picos(max_delta),
            cpu_time: Picos(cpu_time),
            deadlines,
            missed,
        };
        let domain = self.vcpus[v as usize].domain as usize;
        match self.domains[domain].reports.get_mut(task as usize) {
            Some(reports) if reports.len() < REPORTS => reports.push(report),
            Some(_) => {}
            None => self.fault(now, p, v, format!("it reports on task {task}, which it has not")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_event_is_named_with_the_legal_ones() {
        // The timer, the notice and the tick are the host's own; beyond 31 there are none.
        for number in 0..=255 {
            let refused = unsendable(number);
            assert_eq!(refused.is_some(), [1, 2, 4].contains(&number) || number > 31, "{number}");
        }
        let legal = "a guest may send 0 (a kick), 3 (a wake-up), and 5 to 31 (its own)";
        assert_eq!(unsendable(1).unwrap(), format!("it sends event 1; {legal}"));
    }

    #[test]
    fn a_vcpu_that_is_not_there_is_named_with_those_that_are() {
        assert_eq!(no_vcpu(3, 4), None);
        assert_eq!(no_vcpu(4, 4).unwrap(), "it names vCPU 4, and its domain has vCPUs 0 to 3");
        assert_eq!(no_vcpu(1, 1).unwrap(), "it names vCPU 1, and its domain has only vCPU 0");
    }
}
