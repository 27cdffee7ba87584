/* The memory and the hypercalls that the micro-hypervisor shares with its guests, for C.
 * What each word means is in crates/guest-abi/src/lib.rs. */
#ifndef OVERSPIN_GUEST_H
#define OVERSPIN_GUEST_H

#include <stdint.h>

enum overspin_port {
    OVERSPIN_CONSOLE = 0x510, OVERSPIN_YIELD, OVERSPIN_BLOCK, OVERSPIN_POLL, OVERSPIN_SEND, OVERSPIN_TIMER,
    OVERSPIN_VCPU_UP, OVERSPIN_VCPU_DOWN, OVERSPIN_SHUTDOWN, OVERSPIN_REPORT, OVERSPIN_GIVE_UP, OVERSPIN_FLUSH,
    OVERSPIN_NOTHING, OVERSPIN_FRESH, OVERSPIN_TICKS
};

enum overspin_event {
    OVERSPIN_KICK = 1, OVERSPIN_EXPIRED = 2, OVERSPIN_NOTICE = 4, OVERSPIN_WAKE = 8, OVERSPIN_TICK = 16
};

#define OVERSPIN_NEVER UINT64_MAX

/* What the domain was told. */
struct overspin_info {
    uint64_t magic;
    uint32_t vcpus, locks, tasks, traces;
    uint64_t tsc_base, tsc_scale, burn_rate;
    uint64_t pages, argument, argument_len, heap, heap_len, lock_stats, task_stats, rings, ring_len, all_up;
    uint64_t touch, touch_len;
};

/* What one vCPU shares with the host. */
struct overspin_page {
    uint64_t this;
    uint32_t id, preempted, notice, state;
    uint64_t state_since, times[4], slice_end, dispatches;
    uint32_t pending, masked;
    uint64_t handler, deadline;
    uint32_t held, traced;
    uint64_t args[8];
    uint64_t waiting, spinning, own[16];
    uint32_t upcalls;
    uint64_t shootdowns, interrupts, skipped, unmap_waited, unmap_preempted;
};

/* The page of this vCPU. */
static inline volatile struct overspin_page *overspin_me(void)
{
    volatile struct overspin_page *page;
    __asm__("mov %%fs:0, %0" : "=r"(page));
    return page;
}

/* Calls the host. */
static inline void overspin_call(uint16_t port, uint32_t value)
{
    __asm__ volatile("outl %0, %1" : : "a"(value), "d"(port) : "memory");
}

/* Nanoseconds since the start of the run. */
static inline uint64_t overspin_now(const struct overspin_info *info)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    uint64_t since = ((uint64_t)high << 32 | low) - info->tsc_base;
    return (uint64_t)(((unsigned __int128)since * info->tsc_scale) >> 32);
}

/* Sleeps until `deadline`, or until another event is pending. */
static inline void overspin_sleep_until(uint64_t deadline)
{
    overspin_me()->deadline = deadline;
    overspin_call(OVERSPIN_BLOCK, 0);
    __atomic_fetch_and(&overspin_me()->pending, ~(uint32_t)OVERSPIN_EXPIRED, __ATOMIC_ACQ_REL);
}

#endif
