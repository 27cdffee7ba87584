//! The machine of `2001-aligned-locks`.

use super::{Machine, cycles, nanos};

/// The post names no chip set.
const BUS: &str = "a front-side bus of 100 MHz with four processors; no measurement was found";

pub(super) const MACHINE: Machine = Machine {
    name: "pentium-3-xeon",
    brief: "8 Pentium III Xeon of 700 MHz on two buses of four; a socket of the scenario is a bus",
    year: 2000,
    mhz: 700,
    values: &[
        cycles("cache_hit", 3.0, super::pentium_3::L1),
        nanos("atomic", 40.0, "28 cycles: a locked operation drains the store buffer")
            .assumed(20.0, 80.0),
        nanos("cross_core", 300.0, BUS).assumed(100.0, 600.0),
        nanos("cross_socket", 500.0, BUS).assumed(200.0, 1000.0),
        nanos("spin_iteration", 15.0, super::pentium_3::SPIN).assumed(5.0, 25.0),
        nanos("fence", 40.0, super::pentium_3::FENCE).assumed(20.0, 80.0),
        nanos("migration", 20000.0, "a part of an L2 cache of 1 MiB").assumed(5000.0, 500_000.0),
    ],
};
