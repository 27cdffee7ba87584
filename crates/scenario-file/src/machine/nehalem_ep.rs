//! Nehalem-EP: the machine of `2012-pv-ticketlocks` ("Intel(R) Xeon(R) x5570 2.93GHz CPU with 8 core"), and
//! the machine of `2016-schedbench`, whose clock of 2.26 GHz is an E5520's.

use super::{Machine, Value, cycles, nanos, smt};

/// For Intel's processors before Skylake.
pub(super) const PAUSE: &str = "Intel 64 and IA-32 Architectures Optimization Reference Manual, \
    \"Pause Latency in Skylake Microarchitecture\": \"The latency of the PAUSE instruction in prior \
    generation microarchitectures is about 10 cycles\"; two more for the comparison and the branch, \
    the load runs beside the PAUSE";
/// Cycles of a loop with such a PAUSE.
pub(super) const PAUSE_SPIN: f64 = 12.0;

macro_rules! molka {
    ($what:literal) => {
        concat!(
            "Molka, Hackenberg, Schöne, Müller, \"Memory Performance and Cache Coherency Effects on ",
            "an Intel Nehalem Multiprocessor System\", PACT 2009 (Xeon X5570): ",
            $what
        )
    };
}

pub(super) const X5570: Machine = Machine {
    name: "xeon-x5570",
    brief: "2 Xeon X5570 (Nehalem-EP) of 2.93 GHz, 4 cores of 2 threads each",
    year: 2009,
    mhz: 2933,
    values: &values(
        nanos(
            "cross_core",
            28.3,
            molka!(
                "a line that another core has modified in its L1 cache comes in 28.3 ns, 83 cycles"
            ),
        ),
        nanos(
            "cross_socket",
            105.0,
            molka!("a line that a core of the other socket has modified comes in 102 to 109 ns"),
        ),
    ),
};

pub(super) const E5520: Machine = Machine {
    name: "xeon-e5520",
    brief: "2 Xeon E5520 (Nehalem-EP) of 2.27 GHz, 4 cores of 2 threads each",
    year: 2009,
    mhz: 2267,
    values: &values(
        nanos("cross_core", 33.0, UNCORE).assumed(28.0, 40.0),
        nanos("cross_socket", 120.0, UNCORE).assumed(100.0, 150.0),
    ),
};

const UNCORE: &str = "that of the X5570, with a slower L3 cache and slower links between sockets";

/// The values of the core, with these transfer costs.
const fn values(cross_core: Value, cross_socket: Value) -> [Value; 12] {
    [
        smt(650.0, "a second thread adds some 30 % to what a core does").assumed(450.0, 750.0),
        cycles("cache_hit", 4.0, molka!("the L1 cache takes 4 cycles")),
        cycles(
            "atomic",
            16.0,
            "20 cycles less the hit; on Sandy Bridge-E a locked addition takes 20.5 and XADD 20.7 \
             cycles (https://github.com/rygorous/atomic_ops_test, on an i7-3930K)",
        )
        .assumed(14.0, 21.0),
        nanos("same_core", 8.0, "7.6 ns between the threads of a Broadwell-EP core")
            .assumed(4.0, 20.0),
        cross_core,
        cross_socket,
        cycles("spin_iteration", PAUSE_SPIN, PAUSE),
        cycles(
            "fence",
            35.0,
            "MFENCE; on Sandy Bridge-E an addition with one takes 46 cycles instead of 2",
        )
        .assumed(18.0, 45.0),
        cycles("context_switch", 4800.0, super::haswell_ep::VM_SWITCH).assumed(3000.0, 10500.0),
        cycles(
            "hypercall",
            2000.0,
            "Landau, Ben-Yehuda, Gordon, \"SplitX: Split Guest/Hypervisor Execution on \
             Multi-Core\", WIOV 2011 (KVM on a Xeon X5570): an exit takes 2,000 cycles by itself",
        ),
        cycles("ipi", 3000.0, super::haswell_ep::IPI).assumed(1500.0, 4000.0),
        cycles("interrupt", 2100.0, super::haswell_ep::INTERRUPT).assumed(1000.0, 4000.0),
    ]
}
