// A program that has only the kernel's library. It ends with 0, or with the number of the check that fails.
// Acquisitions are left out: they switch interrupts off, and the processor does not let a user's program do that.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool boot(size_t cpus);
uint64_t count(void);

static int checks(void) {
    if (count() != 0) return 1; // there are no locks yet
    if (boot(65)) return 2;     // more CPUs than MAX_CPUS
    if (count() != 0) return 3; // and so still no locks
    if (!boot(64)) return 4;    // the arena is large enough for all
    return 0;
}

void start(void) {
    long call = 60; // exit
    __asm__ volatile("syscall" : "+a"(call) : "D"((long)checks()) : "rcx", "r11", "memory");
    __builtin_unreachable();
}

// The stack is aligned at the entry of a program, and `start` expects a return address on it.
__asm__(".globl _start\n_start:\n    call start\n");
