//! A custom scheduler, which `examples/own-parts` adds to every command.
//!
//! `cargo run -p overspin-sched --example stride` runs it through the conformance suite, adds it to
//! the built-in schedulers, and shows how two weights share a pCPU.

#[path = "../../../examples/own-parts/src/stride.rs"]
mod stride;

use overspin_sched::conformance::Suite;
use overspin_sched::*;
use std::error::Error;
use stride::{QUANTUM, STRIDE, Stride};

fn main() -> Result<(), Box<dyn Error>> {
    for seed in 0..20 {
        let suite = Suite { idles_at_most: Some(Nanos::ZERO), ..Suite::new(seed) };
        suite.run(|| Box::new(Stride::new(&Params::default())))?;
    }
    let schedulers = Schedulers::builtin().with(STRIDE)?;
    let stride = schedulers.find("waldspurger")?;
    println!("{}: {}", stride.name, stride.brief);
    if let Err(error) = schedulers.find("strude") {
        println!("{error}");
    }
    let quantum = QUANTUM.time_in(&Params::default());
    let mut h = Hypervisor::new(Topology::flat(1), schedulers.make("stride", &Params::default())?);
    let (mut now, mut actions) = (Nanos::ZERO, Vec::new());
    h.start(now, &mut actions);
    let vcpus = [256, 768].map(|weight| {
        let d = h.create_domain(DomainParams { weight, cap: 0 }).expect("a legal weight");
        let v = h.create_vcpu(now, d, Affinity::any(), &mut actions).expect("a domain that exists");
        h.up(now, v, &mut actions);
        v
    });
    while now < Nanos::SEC {
        // With one pCPU and no timers except slices, each pass lasts a quantum.
        h.schedule(now, PcpuId(0), &mut actions);
        h.context_saved(now, PcpuId(0), &mut actions);
        now += quantum;
    }
    let ran = vcpus.map(|v| h.run_times(v, now).running / Nanos::MS);
    println!("in a second, weights 256 and 768 ran {} and {} ms", ran[0], ran[1]);
    Ok(())
}
