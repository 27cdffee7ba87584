//! Skylake-SP, and Cascade Lake, which has the same core.

use super::haswell_ep::{VM_SWITCH, core_to_core};
use super::{Machine, cycles, nanos, smt};

pub(super) const MACHINE: Machine = Machine {
    name: "skylake-sp",
    brief: "2 Xeon Platinum 8275CL (Cascade Lake, the core of Skylake-SP) of 3.0 GHz",
    year: 2019,
    mhz: 3000,
    values: &[
        smt(650.0, "a second thread adds some 30 % to what a core does").assumed(500.0, 750.0),
        cycles(
            "cache_hit",
            4.0,
            "AnandTech, \"AMD Rome Second Generation EPYC Review\", 2019, memory subsystem: the L1 \
             cache takes 4 cycles, Xeon 8280",
        ),
        cycles(
            "atomic",
            14.0,
            "Fog, \"Instruction tables\", Skylake (https://www.agner.org/optimize/): locked \
             operations take 18 cycles; less the hit",
        ),
        nanos("same_core", 7.6, core_to_core!("7.6 ns between threads of a core, Xeon 8275CL")),
        nanos("cross_core", 47.0, core_to_core!("47 ns within a socket, Xeon 8275CL")),
        nanos("cross_socket", 134.0, core_to_core!("134 ns across sockets, Xeon 8275CL")),
        cycles(
            "spin_iteration",
            142.0,
            "Intel 64 and IA-32 Architectures Optimization Reference Manual, \"Pause Latency in \
             Skylake Microarchitecture\": \"in Skylake microarchitecture it has been extended to as \
             many as 140 cycles\"; two more for the comparison and the branch",
        ),
        cycles("fence", 20.0, "a locked addition, which Linux uses since 4.15; MFENCE takes more")
            .assumed(18.0, 45.0),
        cycles("context_switch", 4800.0, VM_SWITCH).assumed(3000.0, 10500.0),
        cycles(
            "hypercall",
            1559.0,
            "Wanpeng Li, KVM patch to atomic_switch_perf_msrs, kvm@vger.kernel.org, March 2020: \
             kvm-unit-tests' vmcall takes 1,559 cycles on a Skylake-SP server",
        ),
        cycles(
            "ipi",
            2079.0,
            "Wanpeng Li, \"KVM: X86: Ultra fast single target IPI fastpath\", kvm@vger.kernel.org, \
             10 April 2020: kvm-unit-tests' ipi takes 4,238 cycles on a Skylake-SP server (3,293 \
             with the patch); less a hypercall of 1,559 and an interrupt of 600",
        ),
        cycles("interrupt", 600.0, "delivery and IRET; with a virtual APIC nothing exits")
            .assumed(300.0, 1500.0),
    ],
};
