//! Zen 3: cores in groups of eight that share an L3 cache, which AMD calls a CCX.

use super::haswell_ep::{VM_SWITCH, core_to_core};
use super::{Machine, cycles, nanos, smt};

pub(super) const MACHINE: Machine = Machine {
    name: "epyc-milan",
    brief: "EPYC 7R13 (Zen 3) of 2.65 GHz; a socket of the scenario is a CCX of 8 cores",
    year: 2021,
    mhz: 2650,
    values: &[
        smt(650.0, "a second thread adds some 30 % to what a core does").assumed(500.0, 750.0),
        cycles(
            "cache_hit",
            4.0,
            "AnandTech, \"AMD Rome Second Generation EPYC Review\", 2019, memory subsystem: the L1 \
             cache takes 4 cycles, EPYC of Zen and Zen 2",
        )
        .assumed(4.0, 5.0),
        cycles("atomic", 12.0, "locked operations take 17 cycles on Zen and Zen 2, fewer since")
            .assumed(4.0, 14.0),
        nanos("same_core", 9.8, core_to_core!("9.8 ns between threads of a core, EPYC 7R13")),
        nanos("cross_core", 23.0, core_to_core!("23 ns within a group of 8 cores, EPYC 7R13")),
        nanos(
            "cross_socket",
            107.0,
            core_to_core!(
                "107 ns between groups of one processor, EPYC 7R13; 197 ns to another one"
            ),
        ),
        cycles(
            "spin_iteration",
            67.0,
            "65 cycles for PAUSE on Zen 2 (Fog, \"Instruction tables\"), 2 more",
        )
        .assumed(40.0, 70.0),
        cycles("fence", 20.0, "a locked addition, which Linux uses since 4.15").assumed(8.0, 80.0),
        cycles("context_switch", 4800.0, VM_SWITCH).assumed(3000.0, 10500.0),
        cycles("hypercall", 1600.0, "as Skylake-SP, 1,559 cycles").assumed(1000.0, 3000.0),
        cycles("ipi", 2100.0, "as Skylake-SP").assumed(1500.0, 4000.0),
        cycles("interrupt", 2100.0, "as Intel without a virtual APIC: AVIC was off in Linux then")
            .assumed(500.0, 3000.0),
    ],
};
