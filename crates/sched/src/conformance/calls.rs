//! Random calls of the suite: those of guests, those of an administrator, and the passing of time.

use super::world::World;
use crate::affinity::Affinity;
use crate::ids::PcpuId;
use crate::scheduler::DomainParams;
use crate::time::Nanos;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

impl World {
    pub(super) fn random_calls(&mut self, calls: u32) -> Result<(), String> {
        for _ in 0..calls {
            self.step();
            self.h.is_valid()?;
        }
        Ok(())
    }

    /// One random call.
    fn step(&mut self) {
        let choice = self.random.below(80);
        match choice {
            0..16 => {
                let ready: Vec<_> = self.resched.difference(&self.switching).copied().collect();
                if let Some(p) = self.random.one_of(ready) {
                    self.pass(p);
                }
            }
            16..28 => {
                let under_way: Vec<_> = self.switching.iter().copied().collect();
                if let Some(p) = self.random.one_of(under_way) {
                    self.saved(p);
                }
            }
            28..44 => {
                // Usually at most up to the next timer; rarely a jump over many timers.
                let jump = self.random.below(40) == 0;
                let most = i64::from(self.random.below(20_000)) * Nanos::US;
                let next = self.timers.values().copied().min().unwrap_or(Nanos::MAX);
                self.now = if jump {
                    self.now + Nanos::sec(10)
                } else {
                    (self.now + most).min(next.max(self.now))
                };
                self.deliver();
            }
            44..52 => {
                // A guest blocks or yields only while it executes.
                let free = (0..self.h.machine().pcpus()).map(PcpuId);
                let free = free.filter(|p| !self.switching.contains(p));
                let running: Vec<_> = free.filter_map(|p| self.h.current(p)).collect();
                let Some(v) = self.random.one_of(running) else { return };
                if choice < 50 {
                    self.call(&format!("block {v:?}"), |h, now, out| h.block(now, v, out));
                } else {
                    self.call(&format!("yield {v:?}"), |h, now, out| h.yield_now(now, v, out));
                }
            }
            52..68 => self.on_a_vcpu(choice),
            68..72 => self.on_a_domain(choice),
            72..74 => self.move_a_pcpu(choice),
            _ if self.vcpus.len() < 20 => self.new_vcpu(),
            _ => {}
        }
    }

    pub(super) fn new_vcpu(&mut self) {
        let affinity = self.affinity();
        if let Some(d) = self.random.one_of(self.domains.iter().copied()) {
            let name = format!("create a vCPU of {d:?} with {affinity:?}");
            // Refused if the affinity misses the pool.
            let v = self.call(&name, |h, now, out| h.create_vcpu(now, d, affinity, out));
            self.vcpus.extend(v);
        }
    }

    /// Half of the time no restriction, otherwise random parts of the machine.
    fn affinity(&mut self) -> Affinity {
        let mut some = || {
            let mask = self.random.next();
            (0..self.h.machine().pcpus()).filter(move |p| mask >> (p % 64) & 1 == 1)
        };
        let (hard, soft) = (some(), some());
        match self.random.below(4) {
            0 => Affinity::hard(hard),
            1 => Affinity::hard(hard).with_soft(soft),
            _ => Affinity::any(),
        }
    }

    fn on_a_vcpu(&mut self, choice: u32) {
        let Some(v) = self.random.one_of(self.vcpus.iter().copied()) else { return };
        match choice {
            52..58 => {
                self.call(&format!("unblock {v:?}"), |h, now, out| h.unblock(now, v, out));
            }
            58..62 => self.call(&format!("up {v:?}"), |h, now, out| h.up(now, v, out)),
            62 => self.call(&format!("down {v:?}"), |h, now, out| h.down(now, v, out)),
            63 => self.call(&format!("pause {v:?}"), |h, now, out| h.pause(now, v, out)),
            64 => self.call(&format!("unpause {v:?}"), |h, now, out| h.unpause(now, v, out)),
            65..67 => {
                let affinity = self.affinity();
                let name = format!("affinity of {v:?}: {affinity:?}");
                // Refused if it misses the pool.
                let _ = self.call(&name, |h, now, out| h.set_affinity(now, v, affinity, out));
            }
            _ => {
                let name = format!("remove {v:?}");
                // Refused while it is on a pCPU.
                if self.call(&name, |h, now, out| h.remove_vcpu(now, v, out)).is_ok() {
                    self.vcpus.retain(|x| *x != v);
                }
            }
        }
    }

    fn on_a_domain(&mut self, choice: u32) {
        let Some(d) = self.random.one_of(self.domains.iter().copied()) else { return };
        match choice {
            68 => self.call(&format!("pause {d:?}"), |h, now, out| h.pause_domain(now, d, out)),
            69 => self.call(&format!("unpause {d:?}"), |h, now, out| h.unpause_domain(now, d, out)),
            _ => {
                let weight = 1 + self.random.below(4096);
                let cap = if choice == 70 { 0 } else { self.random.below(200) };
                let params = DomainParams { weight, cap };
                let name = format!("{d:?}: {params:?}");
                // Refused if the cap is more than its vCPUs can use.
                let _ = self.call(&name, |h, now, out| h.set_domain(now, d, params, out));
            }
        }
    }

    /// Takes a pCPU out of the pool, or gives back one that has left.
    fn move_a_pcpu(&mut self, choice: u32) {
        let left = self.out.iter().copied().filter(|p| self.h.has_left(*p));
        let left: Vec<_> = left.filter(|p| !self.switching.contains(p)).collect();
        if choice == 72 {
            let p = PcpuId(self.random.below(self.h.machine().pcpus()));
            let name = format!("take {p:?}");
            // Refused if the pCPU is out already, or if a vCPU may run nowhere else.
            if self.call(&name, |h, now, out| h.take_pcpu(now, p, out)).is_ok() {
                self.out.insert(p);
            }
        } else if let Some(p) = self.random.one_of(left) {
            self.give(p);
        }
    }
}
