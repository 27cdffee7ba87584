/* Uses pthread mutexes in all the ways that concern the preload library. Prints a line for each part and exits
 * with 0 on success; a failure prints its place. The output does not depend on the implementation of the
 * mutexes, so that runs with and without the library can be compared. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"
#include "with_record.h"

enum { THREADS = 4 };
static int rounds = 300;

/* Whether mutexes get their locks at once, by a wait with them. */
static int with_lock;

static void make(pthread_mutex_t *mutex, int type) {
    pthread_mutexattr_t attr;
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_settype(&attr, type) == 0);
    CHECK(pthread_mutex_init(mutex, &attr) == 0);
    CHECK(pthread_mutexattr_destroy(&attr) == 0);
    if (with_lock) CHECK(with_record(mutex) == ETIMEDOUT);
}

static void spawn(void *(*run)(void *), void *arg) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, run, arg) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Exclusion: a counter that is not atomic, reached by every kind of acquisition. */
struct counter {
    pthread_mutex_t *mutex;
    int recursive;
    volatile int inside;
    long count;
};

static void *add(void *arg) {
    struct counter *c = arg;
    for (int i = 0; i < rounds; i++) {
        struct timespec t;
        switch (i % 4) {
        case 0: /* a few tries, then wait */
            for (int tries = 0; tries < 3; tries++) {
                int error = pthread_mutex_trylock(c->mutex);
                if (error == 0) goto held;
                CHECK(error == EBUSY);
            }
            CHECK(pthread_mutex_lock(c->mutex) == 0);
            break;
        case 1:
            t = in_ms(CLOCK_REALTIME, 60000);
            CHECK(pthread_mutex_timedlock(c->mutex, &t) == 0);
            break;
        case 2:
            t = in_ms(CLOCK_MONOTONIC, 60000);
            CHECK(pthread_mutex_clocklock(c->mutex, CLOCK_MONOTONIC, &t) == 0);
            break;
        default:
            CHECK(pthread_mutex_lock(c->mutex) == 0);
        }
    held:
        CHECK(c->inside++ == 0);
        c->count++;
        if (c->recursive) {
            CHECK(pthread_mutex_lock(c->mutex) == 0);
            CHECK(pthread_mutex_trylock(c->mutex) == 0);
            CHECK(pthread_mutex_unlock(c->mutex) == 0);
            CHECK(pthread_mutex_unlock(c->mutex) == 0);
        }
        if (i % 16 == 0) sched_yield();
        CHECK(--c->inside == 0);
        errno = ENOTTY;
        CHECK(pthread_mutex_unlock(c->mutex) == 0);
        CHECK(errno == ENOTTY);
    }
    return NULL;
}

static void exclusion(const char *name, pthread_mutex_t *mutex, int recursive) {
    struct counter c = {mutex, recursive, 0, 0};
    spawn(add, &c);
    CHECK(c.count == (long)THREADS * rounds);
    CHECK(pthread_mutex_destroy(mutex) == 0);
    printf("exclusion %s: %ld\n", name, c.count);
}

static pthread_mutex_t static_normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t static_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t static_errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t static_adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

static void all_exclusion(void) {
    exclusion("static normal", &static_normal, 0);
    exclusion("static recursive", &static_recursive, 1);
    exclusion("static errorcheck", &static_errorcheck, 0);
    exclusion("static adaptive", &static_adaptive, 0);
    const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    const char *names[] = {"normal", "recursive", "errorcheck"};
    pthread_mutex_t mutex;
    for (int i = 0; i < 3; i++) {
        make(&mutex, types[i]);
        exclusion(names[i], &mutex, types[i] == PTHREAD_MUTEX_RECURSIVE);
    }
    /* The kinds that the library passes through. */
    pthread_mutexattr_t attr;
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
    CHECK(pthread_mutex_init(&mutex, &attr) == 0);
    exclusion("robust", &mutex, 0);
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_mutex_init(&mutex, &attr) == 0);
    exclusion("shared", &mutex, 0);
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) == 0);
    CHECK(pthread_mutex_init(&mutex, &attr) == 0);
    exclusion("inherit", &mutex, 0);
}

/* The results of each type when it is misused, and for other threads while it is held. */
static void *try_held(void *arg) {
    pthread_mutex_t *mutex = arg;
    CHECK(pthread_mutex_trylock(mutex) == EBUSY);
    struct timespec t = in_ms(CLOCK_REALTIME, 5);
    CHECK(pthread_mutex_timedlock(mutex, &t) == ETIMEDOUT);
    t = in_ms(CLOCK_MONOTONIC, 5);
    CHECK(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &t) == ETIMEDOUT);
    return NULL;
}

static void *unlock_foreign(void *arg) {
    CHECK(pthread_mutex_unlock(arg) == EPERM);
    return NULL;
}

static void errors(void) {
    pthread_mutex_t mutex;
    struct timespec past = {0, 0}, later;

    make(&mutex, PTHREAD_MUTEX_ERRORCHECK);
    CHECK(pthread_mutex_unlock(&mutex) == EPERM);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_mutex_lock(&mutex) == EDEADLK);
    CHECK(pthread_mutex_trylock(&mutex) == EBUSY);
    later = in_ms(CLOCK_REALTIME, 60000);
    CHECK(pthread_mutex_timedlock(&mutex, &later) == EDEADLK);
    spawn(unlock_foreign, &mutex);
    spawn(try_held, &mutex);
    CHECK(pthread_mutex_destroy(&mutex) == EBUSY);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == EPERM);
    CHECK(pthread_mutex_timedlock(&mutex, &past) == 0); /* free: the limit does not matter */
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    CHECK(pthread_mutex_destroy(&mutex) == 0);

    make(&mutex, PTHREAD_MUTEX_RECURSIVE);
    later = in_ms(CLOCK_REALTIME, 60000);
    CHECK(pthread_mutex_timedlock(&mutex, &later) == 0);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    spawn(try_held, &mutex);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    spawn(try_held, &mutex);
    spawn(unlock_foreign, &mutex);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == EPERM);
    CHECK(pthread_mutex_destroy(&mutex) == 0);

    make(&mutex, PTHREAD_MUTEX_NORMAL);
    struct timespec good = {1, 0};
    CHECK(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &good) == EINVAL);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    spawn(try_held, &mutex);
    struct timespec bad = {0, -1};
    CHECK(pthread_mutex_timedlock(&mutex, &bad) == EINVAL);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    CHECK(pthread_mutex_destroy(&mutex) == 0);
    printf("errors\n");
}

/* Holds many at once, releases them in the order of acquisition, and uses memory of old mutexes for new ones. */
static void nesting_and_reuse(void) {
    enum { MANY = 64 };
    static pthread_mutex_t many[MANY];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) CHECK(pthread_mutex_init(&many[i], NULL) == 0);
        for (int i = 0; i < MANY; i++) CHECK(pthread_mutex_lock(&many[i]) == 0);
        for (int i = 0; i < MANY; i++) CHECK(pthread_mutex_trylock(&many[i]) == EBUSY);
        for (int i = 0; i < MANY; i++) CHECK(pthread_mutex_unlock(&many[i]) == 0);
        if (round == 0)
            for (int i = 0; i < MANY; i++) CHECK(pthread_mutex_destroy(&many[i]) == 0);
    }
    /* A mutex that was moved, and another in its old place. Both work, one inside the other. */
    pthread_mutex_t moved;
    memcpy(&moved, &many[0], sizeof moved);
    CHECK(pthread_mutex_lock(&moved) == 0);
    CHECK(pthread_mutex_lock(&many[0]) == 0);
    CHECK(pthread_mutex_unlock(&moved) == 0);
    CHECK(pthread_mutex_unlock(&many[0]) == 0);
    /* The memory of a held mutex is used for something else, and then for a mutex again; so is that of one with a record. */
    for (int i = 1; i < 3; i++) {
        if (i == 2) CHECK(with_record(&many[i]) == ETIMEDOUT);
        CHECK(pthread_mutex_lock(&many[i]) == 0);
        memset(&many[i], 0, sizeof many[i]);
        CHECK(pthread_mutex_lock(&many[i]) == 0);
        CHECK(pthread_mutex_unlock(&many[i]) == 0);
    }
    printf("nesting and reuse\n");
}

/* A bounded buffer: producers and consumers, with each kind of wait. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t not_empty, not_full;
    int slots[4], used, head;
    long sum;
    int produced, consumed;
} buffer = {.mutex = PTHREAD_MUTEX_INITIALIZER,
            .not_empty = PTHREAD_COND_INITIALIZER,
            .not_full = PTHREAD_COND_INITIALIZER};

static void wait_for(pthread_cond_t *cond, int how) {
    struct timespec t;
    int error;
    switch (how % 3) {
    case 0:
        error = pthread_cond_wait(cond, &buffer.mutex);
        break;
    case 1:
        t = in_ms(CLOCK_REALTIME, 20);
        error = pthread_cond_timedwait(cond, &buffer.mutex, &t);
        break;
    default:
        t = in_ms(CLOCK_MONOTONIC, 20);
        error = pthread_cond_clockwait(cond, &buffer.mutex, CLOCK_MONOTONIC, &t);
    }
    CHECK(error == 0 || (error == ETIMEDOUT && how % 3 != 0));
}

static void *produce(void *arg) {
    (void)arg;
    for (int i = 0; i < rounds; i++) {
        CHECK(pthread_mutex_lock(&buffer.mutex) == 0);
        while (buffer.used == 4) wait_for(&buffer.not_full, i);
        buffer.slots[(buffer.head + buffer.used++) % 4] = ++buffer.produced;
        CHECK((i % 2 ? pthread_cond_signal : pthread_cond_broadcast)(&buffer.not_empty) == 0);
        CHECK(pthread_mutex_unlock(&buffer.mutex) == 0);
    }
    return NULL;
}

static void *consume(void *arg) {
    (void)arg;
    for (int i = 0; i < rounds; i++) {
        CHECK(pthread_mutex_lock(&buffer.mutex) == 0);
        while (buffer.used == 0) wait_for(&buffer.not_empty, i);
        int item = buffer.slots[buffer.head];
        buffer.head = (buffer.head + 1) % 4;
        buffer.used--;
        buffer.consumed++;
        CHECK(item == buffer.consumed); /* first in, first out */
        buffer.sum += item;
        CHECK(pthread_mutex_unlock(&buffer.mutex) == 0);
        CHECK(pthread_cond_signal(&buffer.not_full) == 0); /* outside the mutex, which is allowed */
    }
    return NULL;
}

static void conditions(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, i % 2 ? consume : produce, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    printf("conditions: %d %d %ld\n", buffer.produced, buffer.consumed, buffer.sum);
    /* The time limit passes with the mutex held. */
    struct timespec t = in_ms(CLOCK_REALTIME, 5);
    CHECK(pthread_mutex_lock(&buffer.mutex) == 0);
    CHECK(pthread_cond_timedwait(&buffer.not_empty, &buffer.mutex, &t) == ETIMEDOUT);
    spawn(try_held, &buffer.mutex);
    CHECK(pthread_mutex_unlock(&buffer.mutex) == 0);
}

/* A thread is cancelled in a wait. Its handler runs with the mutex held, and releases it. */
static pthread_mutex_t cancel_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cancel_cond = PTHREAD_COND_INITIALIZER;
static int waiting, cleaned;

static void clean(void *arg) {
    CHECK(pthread_mutex_lock(arg) == 0); /* recursive: already held */
    CHECK(pthread_mutex_unlock(arg) == 0);
    cleaned++;
    CHECK(pthread_mutex_unlock(arg) == 0);
}

static void *wait_forever(void *arg) {
    CHECK(pthread_mutex_lock(&cancel_mutex) == 0);
    pthread_cleanup_push(clean, &cancel_mutex);
    waiting = 1;
    for (;;) pthread_cond_wait(&cancel_cond, &cancel_mutex);
    pthread_cleanup_pop(1);
    return arg;
}

/* A thread that is cancelled after it was signalled leaves the signal to the other waiter, unless it takes what was put there. */
static int tokens, comers;

static void *take_a_token(void *arg) {
    CHECK(pthread_mutex_lock(&cancel_mutex) == 0);
    pthread_cleanup_push(clean, &cancel_mutex);
    comers++;
    while (tokens == 0) pthread_cond_wait(&cancel_cond, &cancel_mutex);
    tokens--;
    pthread_cleanup_pop(0);
    CHECK(pthread_mutex_unlock(&cancel_mutex) == 0);
    return arg;
}

/* Waits until a count is as expected. */
static void await(int *count, int expected) {
    for (int reached = 0, looks = 0; !reached; looks++) {
        CHECK(looks < 20000);
        CHECK(pthread_mutex_lock(&cancel_mutex) == 0);
        reached = *count == expected;
        CHECK(pthread_mutex_unlock(&cancel_mutex) == 0);
        usleep(1000);
    }
}

static void cancelled_when_signalled(void) {
    for (int i = 0; i < 10; i++) {
        pthread_t threads[2];
        comers = 0;
        for (int n = 0; n < 2; n++) {
            CHECK(pthread_create(&threads[n], NULL, take_a_token, NULL) == 0);
            await(&comers, n + 1);
        }
        CHECK(pthread_mutex_lock(&cancel_mutex) == 0);
        tokens = 1;
        CHECK(pthread_cond_signal(&cancel_cond) == 0);
        CHECK(pthread_cancel(threads[0]) == 0);
        CHECK(pthread_mutex_unlock(&cancel_mutex) == 0);
        void *result;
        CHECK(pthread_join(threads[0], &result) == 0);
        if (result != PTHREAD_CANCELED) {
            CHECK(pthread_mutex_lock(&cancel_mutex) == 0);
            tokens = 1;
            CHECK(pthread_cond_signal(&cancel_cond) == 0);
            CHECK(pthread_mutex_unlock(&cancel_mutex) == 0);
        }
        await(&tokens, 0);
        CHECK(pthread_join(threads[1], NULL) == 0);
    }
    printf("cancelled when signalled\n");
}

static void cancellation(void) {
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        waiting = 0;
        CHECK(pthread_create(&thread, NULL, wait_forever, NULL) == 0);
        for (int ready = 0; !ready;) {
            CHECK(pthread_mutex_lock(&cancel_mutex) == 0);
            ready = waiting;
            CHECK(pthread_mutex_unlock(&cancel_mutex) == 0);
            sched_yield();
        }
        CHECK(pthread_cancel(thread) == 0);
        void *result;
        CHECK(pthread_join(thread, &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
        CHECK(pthread_mutex_lock(&cancel_mutex) == 0);
        CHECK(cleaned == i + 1);
        CHECK(pthread_mutex_unlock(&cancel_mutex) == 0);
    }
    printf("cancellation: %d\n", cleaned);
    cancelled_when_signalled();
}

/* Forks while other threads hold and wait for mutexes. */
static pthread_mutex_t fork_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t busy_mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;

static void *keep_busy(void *arg) {
    while (!stop) {
        CHECK(pthread_mutex_lock(&fork_mutex) == 0);
        CHECK(pthread_mutex_unlock(&fork_mutex) == 0);
        CHECK(pthread_mutex_lock(&busy_mutex) == 0);
        CHECK(pthread_mutex_unlock(&busy_mutex) == 0);
    }
    return arg;
}

static void in_handler_prepare(void) { CHECK(pthread_mutex_lock(&busy_mutex) == 0); }
static void in_handler_after(void) { CHECK(pthread_mutex_unlock(&busy_mutex) == 0); }

static void *lock_in_child(void *arg) {
    (void)arg;
    for (int i = 0; i < 20; i++) {
        CHECK(pthread_mutex_lock(&fork_mutex) == 0);
        CHECK(pthread_mutex_unlock(&fork_mutex) == 0);
    }
    return NULL;
}

static void forks(void) {
    CHECK(pthread_atfork(in_handler_prepare, in_handler_after, in_handler_after) == 0);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, keep_busy, NULL) == 0);
    for (int i = 0; i < 8; i++) {
        CHECK(pthread_mutex_lock(&fork_mutex) == 0); /* held during the fork, with waiters */
        sched_yield();
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(30);
            CHECK(pthread_mutex_trylock(&fork_mutex) == EBUSY);
            CHECK(pthread_mutex_unlock(&fork_mutex) == 0);
            spawn(lock_in_child, NULL);
            CHECK(pthread_mutex_lock(&busy_mutex) == 0);
            CHECK(pthread_mutex_unlock(&busy_mutex) == 0);
            _exit(0);
        }
        CHECK(pthread_mutex_unlock(&fork_mutex) == 0);
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = 1;
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    printf("forks\n");
}

/* Shared between processes, and robust: a child dies with the mutex. */
static void shared_and_robust(void) {
    pthread_mutex_t *mutex =
        mmap(NULL, sizeof *mutex, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(mutex != MAP_FAILED);
    pthread_mutexattr_t attr;
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
    CHECK(pthread_mutex_init(mutex, &attr) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(pthread_mutex_lock(mutex));
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(pthread_mutex_lock(mutex) == EOWNERDEAD);
    CHECK(pthread_mutex_consistent(mutex) == 0);
    CHECK(pthread_mutex_unlock(mutex) == 0);
    CHECK(pthread_mutex_destroy(mutex) == 0);
    printf("shared and robust\n");
}

/* Mutexes in destructors of thread-specific data, in more threads than there are numbers. */
static pthread_key_t key;
static pthread_mutex_t end_mutex = PTHREAD_MUTEX_INITIALIZER;
static int ended;

static void at_end(void *arg) {
    CHECK(pthread_mutex_lock(&end_mutex) == 0);
    ended++;
    CHECK(pthread_mutex_unlock(&end_mutex) == 0);
    if ((intptr_t)arg < 4) CHECK(pthread_setspecific(key, (void *)((intptr_t)arg + 1)) == 0);
}

static void *end_soon(void *arg) {
    CHECK(pthread_setspecific(key, (void *)(intptr_t)1) == 0);
    return arg;
}

static void thread_ends(void) {
    CHECK(pthread_key_create(&key, at_end) == 0);
    for (int i = 0; i < 2000 / THREADS; i++) spawn(end_soon, NULL);
    CHECK(ended == 2000 * 4);
    printf("thread ends\n");
}

/* More concurrent threads than locks have records for. */
static pthread_barrier_t barrier;
static pthread_mutex_t crowd_mutex = PTHREAD_MUTEX_INITIALIZER;
static int crowd_count;

static void *in_crowd(void *arg) {
    CHECK(pthread_mutex_lock(&crowd_mutex) == 0);
    crowd_count++;
    CHECK(pthread_mutex_unlock(&crowd_mutex) == 0);
    pthread_barrier_wait(&barrier);
    CHECK(pthread_mutex_lock(&crowd_mutex) == 0);
    crowd_count++;
    CHECK(pthread_mutex_unlock(&crowd_mutex) == 0);
    return arg;
}

static void crowd(int size) {
    pthread_t *threads = calloc(size, sizeof *threads);
    CHECK(threads != NULL);
    pthread_attr_t attr;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, 128 * 1024) == 0);
    CHECK(pthread_barrier_init(&barrier, NULL, size) == 0);
    for (int i = 0; i < size; i++) CHECK(pthread_create(&threads[i], &attr, in_crowd, NULL) == 0);
    for (int i = 0; i < size; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(crowd_count == 2 * size);
    free(threads);
    printf("crowd: %d\n", crowd_count);
}

int main(int argc, char **argv) {
    if (argc > 1) rounds = atoi(argv[1]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 2) {
        crowd(atoi(argv[2]));
        return 0;
    }
    all_exclusion();
    for (with_lock = 0; with_lock < 2; with_lock++) errors();
    nesting_and_reuse();
    conditions();
    cancellation();
    forks();
    shared_and_robust();
    thread_ends();
    printf("done\n");
    return 0;
}
