/* A guest of the micro-hypervisor in C: two vCPUs add to one counter under a lock of your own, one of them sleeps
 * in between, and vCPU 0 says how far they came.
 *
 *   cc -O2 -static -nostdlib -no-pie -fno-stack-protector -o guest guest.c
 *   overspin run scenario.toml --world hv --guest guest
 *
 * The entry point gets the address of the domain's page in the first argument register; every vCPU starts there. */
#include "overspin_guest.h"

static int lock;
static volatile uint64_t counter;
static volatile uint64_t sleeps;

static void say(const char *text, uint32_t length)
{
    overspin_me()->args[0] = (uint64_t)text;
    overspin_call(OVERSPIN_CONSOLE, length);
}

static void count(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(&lock, __ATOMIC_RELAXED))
            __builtin_ia32_pause();
    counter = counter + 1;
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

void _start(const struct overspin_info *info)
{
    if (overspin_me()->id == 0) {
        for (uint32_t vcpu = 1; vcpu < info->vcpus; vcpu++)
            overspin_call(OVERSPIN_VCPU_UP, vcpu);
        /* Also for a few sleeps: on a busy host 200 ms may pass before the sleeper has a CPU. */
        while (overspin_now(info) < 200000000 || (info->vcpus > 1 && sleeps < 3))
            count();
        say("counted\n", 8);
        overspin_call(OVERSPIN_SHUTDOWN, counter > 0 ? 0 : 1);
    }
    for (;;) {
        count();
        uint64_t dispatches = overspin_me()->dispatches;
        overspin_sleep_until(overspin_now(info) + 1000000);
        /* A late host ends a sleep before it begins. */
        sleeps = sleeps + (overspin_me()->dispatches != dispatches);
    }
}
