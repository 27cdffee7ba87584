//! The speed of a pCPU: hardware threads share their core, and a socket that is little used slows down.

use crate::engine::Engine;
use crate::events::Event;
use crate::host::Pcpu;
use crate::vcpu::Op;
use overspin_scenario::Picos;
use std::cell::Cell;

/// A socket, as its governor sees it.
#[derive(Debug, Default)]
pub(crate) struct Socket {
    /// It was little used in the interval before the last look.
    quiet: Cell<bool>,
    /// Total busy time of its threads up to the last look.
    busy: Cell<Picos>,
}

impl Engine {
    /// Adjusts the speed of the threads of `pcpu`'s core to the number of them that are busy, and to the
    /// state of its socket.
    pub(crate) fn adjust_core(&self, pcpu: u32) {
        let host = &self.scenario.host;
        let threads = host.threads;
        if threads == 1 && host.governor.is_none() {
            return;
        }
        let first = pcpu / threads * threads;
        let core = first..first + threads;
        let busy = core.clone().filter(|p| self.machine.pcpus[*p as usize].is_busy()).count();
        let quiet = self.machine.sockets[(pcpu / (host.cores * threads)) as usize].quiet.get();
        let of_socket = match &host.governor {
            Some(governor) if quiet => governor.quiet_permille,
            _ => 1000,
        };
        let of_core = if busy > 1 { host.smt_permille } else { 1000 };
        let speed = (of_core * of_socket / 1000).max(1);
        for p in core {
            let Some(v) = self.current_on(p) else { continue };
            if v.run.speed.get() == speed {
                continue;
            }
            let armed = v.run.is_on() && matches!(v.op.kind.get(), Op::Burn | Op::Step | Op::Spin);
            if armed {
                self.disarm(v);
            }
            v.run.speed.set(speed);
            if armed {
                self.continue_on(v);
            }
        }
    }

    /// Arms the governor's first look, if there is a governor.
    pub(crate) fn start_governor(&self) {
        if let Some(governor) = &self.scenario.host.governor {
            // Nothing has run yet.
            self.machine.sockets.iter().for_each(|s| s.quiet.set(true));
            self.push(self.now() + governor.interval, Event::Governor);
        }
    }

    /// Looks at all sockets, and adjusts those that have become quiet or busy.
    pub(crate) fn govern(&self) {
        let host = &self.scenario.host;
        let Some(governor) = &host.governor else { return };
        let (now, threads) = (self.now(), host.cores * host.threads);
        let least = u128::from(governor.interval.0) * u128::from(governor.busy_permille) / 1000;
        for (i, socket) in self.machine.sockets.iter().enumerate() {
            let first = i as u32 * threads;
            let of_socket = &self.machine.pcpus[first as usize..(first + threads) as usize];
            let busy = of_socket.iter().map(|p: &Pcpu| p.busy_time(now)).sum::<Picos>();
            let quiet = u128::from((busy - socket.busy.replace(busy)).0) < least;
            if socket.quiet.replace(quiet) != quiet {
                (0..host.cores).for_each(|core| self.adjust_core(first + core * host.threads));
            }
        }
        self.push(now + governor.interval, Event::Governor);
    }
}
