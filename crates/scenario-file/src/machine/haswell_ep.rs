//! Haswell-EP and its shrink, Broadwell-EP.

use super::nehalem_ep::{PAUSE, PAUSE_SPIN};
use super::{Machine, cycles, nanos, smt};

pub(super) const VM_SWITCH: &str = "Dall et al., \"ARM Virtualization: Performance and Architectural \
    Implications\", ISCA 2016, table of microbenchmarks: a switch of VMs takes 4,812 cycles under \
    KVM and 10,534 under Xen on a Xeon E5-2450 (Sandy Bridge-EN)";

pub(super) const IPI: &str = "Dall et al., ISCA 2016: a virtual IPI takes 5,230 cycles under KVM and \
    5,562 under Xen on a Xeon E5-2450, from sending it to handling it; less a hypercall and the \
    beginning of the interrupt";

pub(super) const INTERRUPT: &str = "Dall et al., ISCA 2016: completing a virtual interrupt takes 1,556 \
    cycles under KVM and 1,464 under Xen on a Xeon E5-2450, which has no virtual APIC; some 500 more \
    for taking it";

/// Half of the round trip of a message by compare-and-swap, median over the pairs of threads.
macro_rules! core_to_core {
    ($what:literal) => {
        concat!("Viennot, https://github.com/nviennot/core-to-core-latency: ", $what)
    };
}
pub(super) use core_to_core;

pub(super) const MACHINE: Machine = Machine {
    name: "haswell-ep",
    brief: "2 Xeon E5 v3 or v4 (Haswell-EP, Broadwell-EP) of 2.1 GHz",
    year: 2014,
    mhz: 2100,
    values: &[
        smt(650.0, "a second thread adds some 30 % to what a core does").assumed(500.0, 750.0),
        cycles(
            "cache_hit",
            4.0,
            "Intel 64 and IA-32 Architectures Optimization Reference Manual, cache parameters of \
             the Haswell microarchitecture: the fastest load takes 4 cycles",
        ),
        cycles(
            "atomic",
            15.0,
            "19 cycles less the hit; 20.5 on Sandy Bridge-E \
             (https://github.com/rygorous/atomic_ops_test), 18 on Skylake",
        )
        .assumed(13.0, 18.0),
        nanos("same_core", 7.6, core_to_core!("7.6 ns between threads of a core, Xeon E5-2695 v4")),
        nanos("cross_core", 44.0, core_to_core!("44 ns within a socket, Xeon E5-2695 v4")),
        nanos("cross_socket", 118.0, core_to_core!("118 ns across sockets, Xeon E5-2695 v4")),
        cycles("spin_iteration", PAUSE_SPIN, PAUSE),
        cycles("fence", 35.0, "MFENCE; a locked addition, which Linux uses since 4.15, takes 19")
            .assumed(18.0, 45.0),
        cycles("context_switch", 4800.0, VM_SWITCH).assumed(3000.0, 10500.0),
        cycles(
            "hypercall",
            1300.0,
            "Dall et al., ISCA 2016: a hypercall takes 1,300 cycles under KVM and 1,228 under Xen \
             on a Xeon E5-2450 (Sandy Bridge-EN)",
        )
        .assumed(1000.0, 2000.0),
        cycles("ipi", 3000.0, IPI).assumed(1500.0, 4000.0),
        cycles("interrupt", 2100.0, INTERRUPT).assumed(500.0, 3000.0),
    ],
};
