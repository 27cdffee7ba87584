//! Hypercalls of a hostile guest, without KVM: what a guest can ask and write, at random.
//!
//! A small hypervisor runs on its own: no vCPU executes anything, but each call is made as if one had. After each,
//! the scheduler's state is valid and no other domain has suffered.

use crate::core::Core;
use crate::image::{Image, Sizes};
use crate::program::Program;
use crate::{Hv, alone, boot};
use overspin_guest_abi::{event, port};
use overspin_host::Interest;
use overspin_scenario::{Domain, Picos, Scenario};
use overspin_workload::Random;
use std::sync::atomic::Ordering;

/// Reads these bytes as a guest's program, and lays out a guest's memory with it.
///
/// # Panics
/// If a program that was accepted does not fit.
pub fn image(bytes: &[u8]) {
    if let Ok(program) = Program::parse(bytes) {
        Image::new(&program, Sizes::bare(1), b"argument").expect("it has half of the memory");
    }
}

/// Makes the calls that these bytes describe, 16 bytes each.
///
/// # Panics
/// As [`Hostile::call_of`].
pub fn hypercalls(bytes: &[u8]) {
    let mut hostile = Hostile::of_two_guests(1);
    for call in bytes.chunks_exact(16) {
        hostile.call_of(call.try_into().expect("a chunk has this size"));
    }
}

/// A hypervisor whose guests are played by random numbers.
#[derive(Debug)]
pub struct Hostile {
    core: Core,
    random: Random,
    calls: u64,
    /// Calls since the last check of everything.
    unchecked: u32,
}

/// Calls between two checks of everything: a check looks at all vCPUs.
const CHECKED: u32 = 1024;

impl Hostile {
    /// The hypervisor of `scenario`.
    ///
    /// # Panics
    /// If the scenario is refused.
    #[must_use]
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        // No guest executes anything.
        let program = Program::of(&[0xeb, 0xfe]);
        let made = boot::core(&Hv::default(), &program, scenario, seed, Interest::ALL);
        let (core, _) = made.unwrap_or_else(|refused| panic!("{refused}"));
        Self { core, random: Random::new(seed), calls: 0, unchecked: 0 }
    }

    /// Two guests on two pCPUs under credit: two vCPUs with locks, and a hog.
    ///
    /// # Panics
    /// Never, unless the workloads of this project have changed.
    #[must_use]
    pub fn of_two_guests(seed: u64) -> Self {
        let guest = |name, vcpus, kind| Domain {
            lock: "pv-ticket".into(),
            ..alone::guest(name, vcpus, alone::workload(kind))
        };
        let guests = vec![guest("locks", 2, "lock-loop"), guest("hog", 1, "burn-wait")];
        let mut scenario = alone::scenario(2, guests, Picos::ms(1000));
        scenario.host.scheduler = "credit".into();
        Self::new(&scenario, seed)
    }

    /// Makes a random call of a random vCPU that is on a pCPU.
    ///
    /// # Panics
    /// If the hypervisor is not valid any more.
    pub fn step(&mut self) {
        let p = self.random.below(self.core.pcpus.len() as u64) as u32;
        self.core.look(p);
        if let Some(v) = self.core.pcpus[p as usize].current {
            let (port, value) = self.ask();
            self.scribble(v);
            self.call(p, v, port, value);
            self.calls += 1;
        } else {
            // A vCPU that sleeps for ever could ask for nothing more.
            let v = self.random.below(self.core.vcpus.len() as u64) as u32;
            let now = self.core.clock.now();
            self.core.send(now, Some(p), v, [event::KICK, event::TIMER][(now.0 & 1) as usize]);
        }
        self.core.to_ring.clear();
        self.core.tracing.ready(Picos::MAX);
        self.unchecked += 1;
        if self.unchecked == CHECKED {
            self.unchecked = 0;
            self.check();
        }
    }

    /// Makes the call that `bytes` describe: for fuzzers, which choose bytes.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    pub fn call_of(&mut self, bytes: [u8; 16]) {
        let word =
            |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        let p = u32::from(bytes[0]) % self.core.pcpus.len() as u32;
        self.core.look(p);
        if let Some(v) = self.core.pcpus[p as usize].current {
            let page = self.core.page(v);
            page.args[0].store(u64::from(word(4)) << (bytes[1] % 33), Ordering::Relaxed);
            page.deadline.store(u64::from(word(8)) << (bytes[2] % 33), Ordering::Relaxed);
            page.pending.store(word(12), Ordering::Relaxed);
            page.masked.store(u32::from(bytes[3] & 1), Ordering::Relaxed);
            self.call(p, v, port::CONSOLE - 1 + u16::from(bytes[3] % 16), word(4));
        }
        self.core.to_ring.clear();
        self.core.tracing.ready(Picos::MAX);
        self.check();
    }

    /// Domains that the host has stopped so far.
    #[must_use]
    pub fn stopped(&self) -> usize {
        self.core.domains.iter().filter(|d| d.fault.is_some()).count()
    }

    /// Calls made so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// A call that is often legal: a guest that makes a mistake lives no longer.
    fn ask(&mut self) -> (u16, u32) {
        const LEGAL: [u16; 11] = [
            port::YIELD,
            port::BLOCK,
            port::POLL,
            port::SEND,
            port::TIMER,
            port::VCPU_UP,
            port::GIVE_UP,
            port::FLUSH,
            port::NOTHING,
            port::FRESH,
            port::TICKS,
        ];
        let bits = [0, 3, 4, 9, 31][self.random.below(5) as usize];
        match self.random.below(256) {
            0 => (self.random.bits() as u16, self.word() as u32),
            1 => (port::CONSOLE - 1 + self.random.below(16) as u16, self.word() as u32),
            2 => (port::VCPU_DOWN, 0),
            3 => (port::REPORT, self.random.below(2) as u32),
            4 => (port::CONSOLE, 0),
            _ => match LEGAL[self.random.below(LEGAL.len() as u64) as usize] {
                port::SEND => (port::SEND, bits << 24),
                port::TICKS => (port::TICKS, self.word() as u32),
                port => (port, self.random.below(1) as u32),
            },
        }
    }

    fn call(&mut self, p: u32, v: u32, port: u16, value: u32) {
        let domain = self.core.vcpus[v as usize].domain as usize;
        let others: Vec<bool> = self.core.domains.iter().map(|d| d.fault.is_some()).collect();
        self.core.hypercall(p, v, port, value);
        for (i, (d, was)) in self.core.domains.iter().zip(others).enumerate() {
            assert!(
                i == domain || d.fault.is_some() == was,
                "domain {domain} has stopped domain {i}"
            );
        }
    }

    /// Words that are often of interest.
    fn word(&mut self) -> u64 {
        let bits = self.random.bits();
        match bits % 8 {
            0 => 0,
            1 => u64::MAX,
            2 | 3 => self.random.below(8),
            4 => self.random.below(4) | self.random.below(33) << 24,
            5 => self.core.clock.now().0.unsigned_abs().wrapping_add(self.random.below(1 << 20)),
            6 => 1 << self.random.below(64),
            _ => bits,
        }
    }

    /// Writes nonsense into the page of `v`.
    fn scribble(&mut self, v: u32) {
        let words = [self.word(), self.word(), self.word(), self.word(), self.word()];
        let page = self.core.page(v);
        page.args[0].store(words[0], Ordering::Relaxed);
        page.deadline.store(words[1], Ordering::Relaxed);
        page.pending.store(words[2] as u32, Ordering::Relaxed);
        page.masked.store(words[3] as u32 & 1, Ordering::Relaxed);
        page.held.store(words[4] as u32, Ordering::Relaxed);
        page.traced.store(words[2] as u32, Ordering::Relaxed);
    }

    fn check(&self) {
        if let Err(broken) = self.core.pools.is_valid() {
            panic!("{broken}");
        }
    }
}
