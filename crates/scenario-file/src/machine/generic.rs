//! The costs of scenarios that name no machine: a typical server of about 2008, which was not measured.

use super::{Machine, cycles, nanos, smt};

const ORDER: &str = "order of magnitude of servers from 2005 to 2012";

pub(super) const MACHINE: Machine = Machine {
    name: "generic-2008",
    brief: "a server of about 2008, no particular one",
    year: 2008,
    mhz: 2000,
    values: &[
        smt(650.0, "a second thread adds some 30 % to what a core does").assumed(500.0, 750.0),
        cycles("cache_hit", 1.0, "loads that hit overlap; the latency of one is 3 to 4 cycles")
            .assumed(1.0, 4.0),
        nanos("atomic", 8.0, "16 cycles; locked operations take 15 to 40").assumed(5.0, 20.0),
        nanos("same_core", 10.0, ORDER).assumed(4.0, 25.0),
        nanos("cross_core", 60.0, ORDER).assumed(25.0, 100.0),
        nanos("cross_socket", 120.0, ORDER).assumed(80.0, 300.0),
        nanos(
            "spin_iteration",
            20.0,
            "40 cycles: between a PAUSE of 10 cycles (Intel before Skylake) and one of 140 (since)",
        )
        .assumed(4.0, 50.0),
        nanos("fence", 8.0, "as an atomic operation; MFENCE takes 20 to 45 cycles")
            .assumed(5.0, 25.0),
        nanos("context_switch", 2000.0, ORDER).assumed(1000.0, 5000.0),
        nanos("preemption", 0.0, "chosen: the exit is part of the context switch").chosen(),
        nanos("hypercall", 500.0, ORDER).assumed(200.0, 1500.0),
        nanos("system_call", 500.0, "a futex call with its work, between 100 (an empty call) and 1000").assumed(100.0, 1000.0),
        nanos(
            "pause_loop_exit",
            620.0,
            "1300 cycles at 2.1 GHz, a hypercall of KVM on x86 in Dall et al., \"ARM Virtualization: \
             Performance and Architectural Implications\", ISCA 2016, table II (from memory)",
        )
        .assumed(400.0, 1200.0),
        nanos("yield_to", 500.0, "two locks, a look at two run queues, and a hint")
            .assumed(200.0, 2000.0),
        nanos("run_queue", 200.0, "one or two queue operations and an update of the load, under the lock")
            .assumed(100.0, 1000.0),
        nanos("host_interrupt", 620.0, "as a pause-loop exit: an exit and an entry; the handler comes on top")
            .assumed(400.0, 2000.0),
        nanos("ipi", 1000.0, ORDER).assumed(500.0, 3000.0),
        nanos("timer", 0.0, "chosen: idle pCPUs poll, as with Linux's idle=poll").chosen(),
        nanos("host_timer", 0.0, "chosen: timers are exact").chosen(),
        nanos("interrupt", 1000.0, ORDER).assumed(200.0, 3000.0),
        nanos(
            "migration",
            50000.0,
            "refilling an L2 cache of 256 KiB, 4096 lines at 13 ns; depends on the work far more \
             than on the machine",
        )
        .assumed(5000.0, 500_000.0),
    ],
};
