//! Graviton2: Arm's Neoverse N1.

use super::haswell_ep::core_to_core;
use super::kunpeng_920::YIELD;
use super::{Machine, cycles, nanos};

const AS_KUNPENG: &str = "as measured on a Kunpeng 920: KVM with VHE and a GICv3 there too";

pub(super) const MACHINE: Machine = Machine {
    name: "graviton2",
    brief: "Graviton2 (64 Neoverse N1) of 2.5 GHz; it comes with one socket",
    year: 2020,
    mhz: 2500,
    values: &[
        cycles("cache_hit", 4.0, "as other Armv8 servers").assumed(3.0, 5.0),
        cycles("atomic", 16.0, "as x86; an LDADD in the L1 cache").assumed(5.0, 30.0),
        nanos("same_core", 4.0, "a core has one thread: not used").assumed(4.0, 25.0),
        nanos("cross_core", 47.0, core_to_core!("47 ns, Graviton2, 64 cores")),
        nanos("cross_socket", 130.0, "2.8 times as far as within a socket, as on a Xeon 8275CL")
            .assumed(100.0, 250.0),
        cycles("spin_iteration", 5.0, YIELD),
        cycles("fence", 20.0, "DMB ISH with nothing outstanding").assumed(5.0, 60.0),
        nanos("context_switch", 3000.0, "as assumed for a Kunpeng 920").assumed(1000.0, 4500.0),
        nanos("hypercall", 408.0, AS_KUNPENG).assumed(250.0, 800.0),
        nanos("ipi", 989.0, AS_KUNPENG).assumed(500.0, 2000.0),
        nanos("interrupt", 300.0, AS_KUNPENG).assumed(100.0, 600.0),
    ],
};
