/* For programs that try the preload library. */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Ends the program if it is false, and prints where. */
#define CHECK(what)                                                                                 \
    do {                                                                                            \
        if (!(what)) {                                                                              \
            fprintf(stderr, "%s:%d: %s: failed (errno %d)\n", __FILE__, __LINE__, #what, errno);    \
            _exit(1);                                                                               \
        }                                                                                           \
    } while (0)

static inline struct timespec in_ms(clockid_t clock, long ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}
