//! The machine of `2008-spinlocks`. The post says only "a 2 cpu host", so this is the dual core of that year.

use super::nehalem_ep::{PAUSE, PAUSE_SPIN};
use super::{Machine, cycles, nanos};

pub(super) const MACHINE: Machine = Machine {
    name: "core-2",
    brief: "Core 2 Duo of 2.1 GHz: two cores that share an L2 cache",
    year: 2008,
    mhz: 2100,
    values: &[
        cycles(
            "cache_hit",
            3.0,
            "Intel 64 and IA-32 Architectures Optimization Reference Manual, cache parameters of \
             the Core microarchitecture: the first level has a latency of 3 cycles",
        ),
        nanos(
            "atomic",
            12.4,
            "Desrochers, https://github.com/cameron314/atomic_bench: a fetch-and-add takes 13.8 ns \
             on a Core 2 Duo T6500 of 2.1 GHz; less the hit of 1.4 ns",
        ),
        nanos("cross_core", 30.0, "through the shared L2 cache, which takes 14 cycles by itself")
            .assumed(15.0, 60.0),
        nanos("cross_socket", 120.0, "over the front-side bus").assumed(80.0, 200.0),
        cycles("spin_iteration", PAUSE_SPIN, PAUSE),
        nanos("fence", 12.0, "as an atomic operation").assumed(5.0, 25.0),
    ],
};
