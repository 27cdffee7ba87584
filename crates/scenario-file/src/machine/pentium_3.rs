//! The machine of `2005-preemption-notification`: "IBM PIII 866Mhz 2-Way", with Xen of May 2005.

use super::{Machine, cycles, nanos};

pub(super) const L1: &str = "Fog, \"The microarchitecture of Intel, AMD and VIA CPUs\", chapter on \
    Pentium Pro, II and III (https://www.agner.org/optimize/): a load that hits takes 3 cycles";

pub(super) const SPIN: &str = "a load of 3 cycles, a comparison and a branch: before the Pentium 4 \
    \"the PAUSE instruction operates like a NOP instruction\" (Intel SDM, volume 2, PAUSE)";

pub(super) const FENCE: &str = "it has no MFENCE; kernels use a locked operation";

const XEN: &str = "order of magnitude for paravirtual Xen 2 and 3 on that processor";

pub(super) const MACHINE: Machine = Machine {
    name: "pentium-3",
    brief: "2 Pentium III of 866 MHz on one bus, each a socket of the scenario",
    year: 2000,
    mhz: 866,
    values: &[
        cycles("cache_hit", 3.0, L1),
        nanos("atomic", 40.0, "35 cycles: a locked operation drains the store buffer")
            .assumed(20.0, 80.0),
        nanos("same_core", 100.0, "a core has one thread: not used").assumed(4.0, 250.0),
        nanos("cross_core", 100.0, "a socket has one core: not used").assumed(25.0, 250.0),
        nanos("cross_socket", 250.0, "a front-side bus of 133 MHz; no measurement was found")
            .assumed(100.0, 500.0),
        nanos("spin_iteration", 10.0, SPIN).assumed(5.0, 20.0),
        nanos("fence", 30.0, FENCE).assumed(20.0, 60.0),
        nanos("context_switch", 4000.0, XEN).assumed(2000.0, 10000.0),
        nanos("hypercall", 600.0, XEN).assumed(300.0, 1500.0),
        nanos("ipi", 1000.0, XEN).assumed(500.0, 3000.0),
        nanos("interrupt", 1500.0, XEN).assumed(700.0, 4000.0),
    ],
};
