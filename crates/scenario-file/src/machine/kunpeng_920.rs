//! Kunpeng 920: an Arm server with virtualization host extensions (VHE), so that KVM exits are short.

use super::haswell_ep::core_to_core;
use super::{Machine, cycles, nanos};

/// For a loop of a kernel or a program with a YIELD.
pub(super) const YIELD: &str = "YIELD does nothing: 0.4 ns on a Neoverse N1 (Pop, \
    https://github.com/rust-lang/rust/pull/84725, 2021); a load of 4 cycles and a branch";

pub(super) const MACHINE: Machine = Machine {
    name: "kunpeng-920",
    brief: "2 Kunpeng 920 (Armv8.2, TaiShan v110) of 2.6 GHz, 64 cores each",
    year: 2019,
    mhz: 2600,
    values: &[
        cycles("cache_hit", 4.0, "as other Armv8 servers").assumed(3.0, 5.0),
        cycles("atomic", 16.0, "as x86; an LDADD in the L1 cache").assumed(5.0, 30.0),
        nanos("same_core", 4.0, "a core has one thread: not used").assumed(4.0, 25.0),
        nanos("cross_core", 72.0, core_to_core!("72 ns within a socket, Kunpeng 920-6426")),
        nanos("cross_socket", 200.0, "2.8 times as far as within a socket, as on a Xeon 8275CL")
            .assumed(120.0, 350.0),
        cycles("spin_iteration", 5.0, YIELD).assumed(3.0, 10.0),
        cycles("fence", 20.0, "DMB ISH with nothing outstanding").assumed(5.0, 60.0),
        nanos(
            "context_switch",
            3000.0,
            "Dall et al., ISCA 2016: a switch of VMs takes 10,387 cycles, 4.3 us, under KVM on an \
             X-Gene of 2.4 GHz, which has no VHE",
        )
        .assumed(1000.0, 4500.0),
        nanos(
            "hypercall",
            408.0,
            "He Qiong, kvm-unit-tests patch to arm/micro-bench, \
             kvm@vger.kernel.org, 1 November 2023: hvc takes 408 ns on a Kunpeng 920",
        ),
        nanos(
            "ipi",
            989.0,
            "He Qiong, kvm@vger.kernel.org, 1 November 2023: ipi takes 1,697 ns on a \
             Kunpeng 920; less a hypercall of 408 and an interrupt of 300",
        ),
        nanos(
            "interrupt",
            300.0,
            "the end of one takes 26 ns (He Qiong, the same) and does not exit",
        )
        .assumed(100.0, 600.0),
    ],
};
