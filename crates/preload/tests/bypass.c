/* Mutexes that are used both past the preload library and through it: `bypass deepbind.so SCENARIO [fresh]`. `all` runs all
 * scenarios one after another. The output is the same with and without the library.
 *
 * The library has a lock for a mutex as soon as a thread has had to wait for it. So that happens before each scenario, but
 * not with `fresh`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "check.h"

static int (*past_lock)(pthread_mutex_t *);
static int (*past_unlock)(pthread_mutex_t *);
static int (*past_wait)(pthread_cond_t *, pthread_mutex_t *);

/* State of the running scenario, reset for each one. */
static pthread_mutex_t a, b;
static pthread_cond_t cond;
static int inside, count, ready;

static void lock(pthread_mutex_t *mutex) { CHECK(pthread_mutex_lock(mutex) == 0); }
static void unlock(pthread_mutex_t *mutex) { CHECK(pthread_mutex_unlock(mutex) == 0); }
static void section(void) {
    CHECK(inside++ == 0);
    count++;
    sched_yield();
    CHECK(--inside == 0);
}
static void nap(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}
static pthread_t start(void *(*run)(void *)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
    return thread;
}
static void join(pthread_t thread) { CHECK(pthread_join(thread, NULL) == 0); }
static void in_a_thread(void *(*run)(void *)) { join(start(run)); }

static void *use(void *mutex) {
    lock(mutex);
    unlock(mutex);
    return mutex;
}

/* Lets a thread wait for the mutex. */
static void contend(pthread_mutex_t *mutex) {
    pthread_t thread;
    lock(mutex);
    CHECK(pthread_create(&thread, NULL, use, mutex) == 0);
    while (*(volatile int *)mutex != 2) nap(1); /* glibc: held, and a thread sleeps */
    unlock(mutex);
    join(thread);
}

static void *use_a(void *arg) {
    lock(&a);
    section();
    unlock(&a);
    return arg;
}

/* The next locker comes after the release past the library. */
static void next(void) {
    lock(&a);
    CHECK(past_unlock(&a) == 0);
    in_a_thread(use_a);
    in_a_thread(use_a);
    use_a(NULL);
}

/* Lockers already wait at the release; then more come. */
static void waiters(void) {
    pthread_t threads[3];
    lock(&a);
    for (int i = 0; i < 3; i++) threads[i] = start(use_a);
    nap(30);
    CHECK(count == 0);
    CHECK(past_unlock(&a) == 0);
    for (int i = 0; i < 3; i++) join(threads[i]);
    in_a_thread(use_a);
}

/* The thread that released the mutex past the library is itself the next locker. */
static void again(void) {
    for (int i = 0; i < 3; i++) {
        lock(&a);
        section();
        CHECK(past_unlock(&a) == 0);
    }
    in_a_thread(use_a);
}

static void *make_ready(void *arg) {
    lock(&a);
    section();
    ready = 1;
    CHECK(pthread_cond_signal(&cond) == 0);
    unlock(&a);
    return arg;
}

/* A wait past the library releases the mutex while another thread waits for it. */
static void condition(void) {
    lock(&a);
    pthread_t thread = start(make_ready);
    nap(30);
    while (!ready) CHECK(past_wait(&cond, &a) == 0);
    section();
    unlock(&a);
    join(thread);
}

/* Locked past the library; released in both ways, while another thread waits. */
static void locked_past(void) {
    for (int i = 0; i < 4; i++) {
        CHECK(past_lock(&a) == 0);
        pthread_t thread = start(use_a);
        nap(10);
        section();
        CHECK((i % 2 ? past_unlock : pthread_mutex_unlock)(&a) == 0);
        join(thread);
    }
}

static void *try_a(void *arg) {
    pthread_t thread = start(use_a);
    nap(10);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 60;
    CHECK((arg ? pthread_mutex_trylock(&a) : pthread_mutex_timedlock(&a, &t)) == 0);
    section();
    unlock(&a);
    join(thread);
    return NULL;
}

/* Threads that try acquire the mutex, and find another thread before them in the lock. */
static void tried(void) {
    lock(&a);
    CHECK(past_unlock(&a) == 0);
    in_a_thread(try_a);
}

static void *b_then_a(void *arg) {
    lock(&b);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    nap(30);
    use_a(NULL);
    unlock(&b);
    return arg;
}

/* The thread that has left a behind waits for b, whose holder waits for a. */
static void crossed(void) {
    lock(&a);
    CHECK(past_unlock(&a) == 0);
    pthread_t thread = start(b_then_a);
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) nap(1);
    lock(&b);
    CHECK(count == 1);
    unlock(&b);
    join(thread);
}

static void *leave_and_end(void *arg) {
    lock(&a);
    CHECK(past_unlock(&a) == 0);
    return arg;
}

/* The thread that has left it behind has ended, and others come in its place. */
static void ended(void) {
    in_a_thread(leave_and_end);
    use_a(NULL);
    in_a_thread(use_a);
}

/* The next thread gets the lock number of the thread that has left the lock behind. */
static void heir(void) {
    for (int i = 0; i < 2; i++) {
        in_a_thread(leave_and_end);
        in_a_thread(use_a);
    }
    use_a(NULL);
}

static void *unlock_a(void *arg) {
    unlock(&a);
    return arg;
}

/* Released through the library, but by another thread: undefined, and the C library allows it. */
static void stranger(void) {
    lock(&a);
    pthread_t thread = start(use_a);
    nap(10);
    in_a_thread(unlock_a);
    join(thread);
    use_a(NULL);
}

static void *cancelled_while_it_waits(void *arg) {
    lock(&a); /* not a cancellation point, whatever happens meanwhile */
    section();
    unlock(&a);
    pthread_testcancel();
    return arg;
}

static void cancelled(void) {
    void *result;
    lock(&a);
    pthread_t thread = start(cancelled_while_it_waits);
    nap(10);
    CHECK(pthread_cancel(thread) == 0);
    CHECK(past_unlock(&a) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

static void forked(void) {
    lock(&a);
    CHECK(past_unlock(&a) == 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        in_a_thread(use_a);
        lock(&b);
        CHECK(past_unlock(&b) == 0);
        lock(&b);
        unlock(&b);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    in_a_thread(use_a);
}

/* All of these together, on mutexes that come and go. */
static pthread_mutex_t many[4];
static volatile int in_many[4];
static int rounds = 40;

static void *mix(void *arg) {
    unsigned seed = (unsigned)(size_t)&arg;
    for (int i = 0; i < rounds; i++) {
        int which = rand_r(&seed) % 4, how = rand_r(&seed) % 8;
        CHECK((how & 1 ? past_lock : pthread_mutex_lock)(&many[which]) == 0);
        CHECK(in_many[which]++ == 0);
        if (i % 4 == 0) sched_yield();
        CHECK(--in_many[which] == 0);
        CHECK((how & 2 ? past_unlock : pthread_mutex_unlock)(&many[which]) == 0);
    }
    return arg;
}

static void mixed(void) {
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) CHECK(pthread_mutex_init(&many[i], NULL) == 0);
        for (int i = 0; i < 4; i++) contend(&many[i]);
        pthread_t threads[3];
        for (int i = 0; i < 3; i++) threads[i] = start(mix);
        for (int i = 0; i < 3; i++) join(threads[i]);
        for (int i = 0; i < 4; i++) CHECK(pthread_mutex_destroy(&many[i]) == 0);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"next", next},         {"waiters", waiters},   {"again", again},   {"condition", condition},
    {"locked", locked_past}, {"tried", tried},       {"crossed", crossed}, {"ended", ended},
    {"cancelled", cancelled}, {"heir", heir},         {"stranger", stranger}, {"forked", forked},     {"mixed", mixed},
};

int main(int argc, char **argv) {
    CHECK(argc == 3 || (argc == 4 && strcmp(argv[3], "fresh") == 0));
    setvbuf(stdout, NULL, _IOLBF, 0);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    *(void **)&past_lock = dlsym(library, "past_lock");
    *(void **)&past_unlock = dlsym(library, "past_unlock");
    *(void **)&past_wait = dlsym(library, "past_wait");
    CHECK(past_lock != NULL && past_unlock != NULL && past_wait != NULL);
    int ran = 0;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(argv[2], "all") != 0 && strcmp(argv[2], scenarios[i].name) != 0) continue;
        count = inside = ready = 0;
        CHECK(pthread_mutex_init(&a, NULL) == 0 && pthread_mutex_init(&b, NULL) == 0);
        CHECK(pthread_cond_init(&cond, NULL) == 0);
        if (argc == 3) contend(&a), contend(&b);
        scenarios[i].run();
        CHECK(pthread_mutex_destroy(&a) == 0 && pthread_mutex_destroy(&b) == 0);
        printf("%s: %d\n", scenarios[i].name, count);
        ran++;
    }
    CHECK(ran > 0);
    return 0;
}
