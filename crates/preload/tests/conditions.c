/* Waits and signals in all ways that POSIX allows. What it prints must be the same with and without the library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"

typedef void *body(void *);
static int rounds;

static pthread_t start(body *what, void *arg) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, what, arg) == 0);
    return thread;
}

/* All threads go through a door together, each exactly once in a round. The door's condition variable is freed as soon
   as the broadcast is over and every thread has its mutex again. */
enum { CROWD = 6 };
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static struct gate {
    pthread_cond_t cond;
    int open, inside;
} *gate;
static int waits_at_door, through;
static pthread_cond_t all_there = PTHREAD_COND_INITIALIZER;

static void *pass(void *arg) {
    for (int i = 0; i < rounds; i++) {
        CHECK(pthread_mutex_lock(&door) == 0);
        struct gate *mine = gate;
        mine->inside++;
        if (++waits_at_door == CROWD) CHECK(pthread_cond_signal(&all_there) == 0);
        while (!mine->open) CHECK(pthread_cond_wait(&mine->cond, &door) == 0);
        through++;
        if (--mine->inside == 0) {
            CHECK(pthread_cond_destroy(&mine->cond) == 0);
            memset(mine, 0xa5, sizeof *mine);
            free(mine);
        }
        CHECK(pthread_mutex_unlock(&door) == 0);
    }
    return arg;
}

static struct gate *new_gate(void) {
    struct gate *made = calloc(1, sizeof *made);
    CHECK(made && pthread_cond_init(&made->cond, NULL) == 0);
    return made;
}

static void doors(void) {
    pthread_t threads[CROWD];
    gate = new_gate();
    for (int i = 0; i < CROWD; i++) threads[i] = start(pass, NULL);
    for (int i = 0; i < rounds; i++) {
        CHECK(pthread_mutex_lock(&door) == 0);
        while (waits_at_door < CROWD) CHECK(pthread_cond_wait(&all_there, &door) == 0);
        waits_at_door = 0;
        struct gate *old = gate;
        gate = new_gate();
        old->open = 1;
        CHECK(pthread_cond_broadcast(&old->cond) == 0);
        CHECK(pthread_mutex_unlock(&door) == 0);
    }
    for (int i = 0; i < CROWD; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    printf("doors: %d\n", through);
}

/* Signals, time limits and cancellations at the same time: every token is taken, none twice. */
static pthread_mutex_t purse = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t tokens_there = PTHREAD_COND_INITIALIZER;
static int tokens, taken, closed;

static void leave_purse(void *arg) { CHECK(pthread_mutex_unlock(arg) == 0); }

static void *take_tokens(void *arg) {
    CHECK(pthread_mutex_lock(&purse) == 0);
    pthread_cleanup_push(leave_purse, &purse);
    for (unsigned i = 0; !closed || tokens; i++) {
        if (tokens) {
            tokens--;
            taken++;
            continue;
        }
        if (i % 3 == 0) {
            struct timespec t = in_ms(CLOCK_MONOTONIC, i % 2);
            int error = pthread_cond_clockwait(&tokens_there, &purse, CLOCK_MONOTONIC, &t);
            CHECK(error == 0 || error == ETIMEDOUT);
        } else {
            CHECK(pthread_cond_wait(&tokens_there, &purse) == 0);
        }
    }
    pthread_cleanup_pop(1);
    return arg;
}

static void purses(void) {
    enum { TAKERS = 4 };
    pthread_t takers[TAKERS], victim;
    for (int i = 0; i < TAKERS; i++) takers[i] = start(take_tokens, NULL);
    for (int i = 0; i < rounds; i++) {
        victim = start(take_tokens, NULL);
        if (i % 2) sched_yield();
        CHECK(pthread_mutex_lock(&purse) == 0);
        tokens++;
        if (i % 3) CHECK(pthread_mutex_unlock(&purse) == 0);
        CHECK(pthread_cond_signal(&tokens_there) == 0);
        CHECK(pthread_cancel(victim) == 0);
        if (i % 3 == 0) CHECK(pthread_mutex_unlock(&purse) == 0);
        CHECK(pthread_join(victim, NULL) == 0);
        /* With a taker at rest, one signal is enough. */
        for (int left = 1; left;) {
            CHECK(pthread_mutex_lock(&purse) == 0);
            left = tokens;
            CHECK(pthread_mutex_unlock(&purse) == 0);
            sched_yield();
        }
    }
    CHECK(pthread_mutex_lock(&purse) == 0);
    closed = 1;
    CHECK(pthread_cond_broadcast(&tokens_there) == 0);
    CHECK(pthread_mutex_unlock(&purse) == 0);
    for (int i = 0; i < TAKERS; i++) CHECK(pthread_join(takers[i], NULL) == 0);
    printf("purses: %d\n", taken);
}

/* A thread waits until `flag`; with a recursive, error-checking or plain mutex. */
static pthread_mutex_t kinds[] = {
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
    PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
    PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
};
static pthread_cond_t kind_cond = PTHREAD_COND_INITIALIZER;
static int flag, handled;

static void *wait_for_flag(void *mutex) {
    CHECK(pthread_mutex_lock(mutex) == 0);
    errno = 77;
    while (!flag) CHECK(pthread_cond_wait(&kind_cond, mutex) == 0);
    CHECK(errno == 77);
    CHECK(pthread_mutex_unlock(mutex) == 0);
    return NULL;
}

static void handler(int number) { handled += number == SIGUSR1; }

static void all_kinds(void) {
    struct sigaction action = {.sa_handler = handler}; /* without SA_RESTART */
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        flag = 0;
        pthread_t thread = start(wait_for_flag, &kinds[i]);
        usleep(20000);
        CHECK(pthread_kill(thread, SIGUSR1) == 0); /* does not end the wait */
        usleep(20000);
        CHECK(pthread_mutex_lock(&kinds[i]) == 0);
        flag = 1;
        CHECK(pthread_cond_signal(&kind_cond) == 0);
        CHECK(pthread_mutex_unlock(&kinds[i]) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    printf("kinds: %d signals\n", handled);
}

/* The first wait with a mutex gives it a lock, for which there is no memory here. */
static void without_memory(void) {
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
        struct timespec long_ago = {-1, 0};
        struct rlimit none = {1, 1};
        CHECK(setrlimit(RLIMIT_AS, &none) == 0);
        CHECK(pthread_mutex_lock(&mutex) == 0);
        errno = 77;
        CHECK(pthread_cond_timedwait(&cond, &mutex, &long_ago) == ETIMEDOUT);
        CHECK(errno == 77);
        CHECK(pthread_mutex_unlock(&mutex) == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Time limits by each clock, and wrong calls. */
static void limits(void) {
    pthread_mutex_t *mutex = &kinds[2];
    pthread_condattr_t attributes;
    pthread_cond_t cond;
    CHECK(pthread_condattr_init(&attributes) == 0);
    clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_condattr_setclock(&attributes, clocks[i]) == 0);
        CHECK(pthread_cond_init(&cond, &attributes) == 0);
        CHECK(pthread_mutex_lock(mutex) == 0);
        struct timespec t = in_ms(clocks[i], 30), past = {1, 0}, wrong = {1, 1000000000};
        CHECK(pthread_cond_timedwait(&cond, mutex, &t) == ETIMEDOUT);
        struct timespec now = in_ms(clocks[i], 0);
        CHECK(now.tv_sec > t.tv_sec || (now.tv_sec == t.tv_sec && now.tv_nsec >= t.tv_nsec));
        CHECK(pthread_cond_timedwait(&cond, mutex, &past) == ETIMEDOUT);
        CHECK(pthread_cond_timedwait(&cond, mutex, &wrong) == EINVAL);
        CHECK(pthread_cond_clockwait(&cond, mutex, CLOCK_PROCESS_CPUTIME_ID, &t) == EINVAL);
        CHECK(pthread_mutex_unlock(mutex) == 0);
        CHECK(pthread_cond_timedwait(&cond, mutex, &t) == EPERM);
        CHECK(pthread_cond_wait(&cond, mutex) == EPERM);
        CHECK(pthread_cond_destroy(&cond) == 0);
    }
    /* Just after the next second begins: half a second later is too late. */
    struct timespec t = in_ms(CLOCK_MONOTONIC, 0);
    t = (struct timespec){t.tv_sec + 1, 10000000};
    CHECK(pthread_mutex_lock(mutex) == 0);
    CHECK(pthread_cond_clockwait(&kind_cond, mutex, CLOCK_MONOTONIC, &t) == ETIMEDOUT);
    CHECK(pthread_mutex_unlock(mutex) == 0);
    struct timespec late = in_ms(CLOCK_MONOTONIC, -500);
    CHECK(late.tv_sec < t.tv_sec || (late.tv_sec == t.tv_sec && late.tv_nsec < t.tv_nsec));
    puts("limits");
}

/* A mutex and a condition variable that processes share. */
static void processes(void) {
    struct shared {
        pthread_mutex_t mutex;
        pthread_cond_t cond;
        int turn;
    } *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(s != MAP_FAILED);
    pthread_mutexattr_t of_mutex;
    pthread_condattr_t of_cond;
    CHECK(pthread_mutexattr_init(&of_mutex) == 0 && pthread_condattr_init(&of_cond) == 0);
    CHECK(pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_condattr_setpshared(&of_cond, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_mutex_init(&s->mutex, &of_mutex) == 0 && pthread_cond_init(&s->cond, &of_cond) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    for (int i = 0, me = child == 0; i < 50; i++) {
        CHECK(pthread_mutex_lock(&s->mutex) == 0);
        while (s->turn != me) CHECK(pthread_cond_wait(&s->cond, &s->mutex) == 0);
        s->turn = !me;
        CHECK(pthread_cond_signal(&s->cond) == 0);
        CHECK(pthread_mutex_unlock(&s->mutex) == 0);
    }
    if (!child) _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    puts("processes");
}

/* The child of a fork uses the mutex and, initialised again, the variable with which threads of its parent wait. */
static void forks(void) {
    flag = 0;
    pthread_t thread = start(wait_for_flag, &kinds[0]);
    usleep(20000);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        struct timespec t = in_ms(CLOCK_REALTIME, 10);
        CHECK(pthread_cond_init(&kind_cond, NULL) == 0);
        CHECK(pthread_mutex_lock(&kinds[0]) == 0);
        CHECK(pthread_cond_signal(&kind_cond) == 0);
        CHECK(pthread_cond_timedwait(&kind_cond, &kinds[0], &t) == ETIMEDOUT);
        CHECK(pthread_mutex_unlock(&kinds[0]) == 0);
        pthread_t own = start(wait_for_flag, &kinds[0]);
        usleep(10000);
        CHECK(pthread_mutex_lock(&kinds[0]) == 0);
        flag = 1;
        CHECK(pthread_cond_broadcast(&kind_cond) == 0);
        CHECK(pthread_mutex_unlock(&kinds[0]) == 0);
        CHECK(pthread_join(own, NULL) == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(pthread_mutex_lock(&kinds[0]) == 0);
    flag = 1;
    CHECK(pthread_mutex_unlock(&kinds[0]) == 0);
    CHECK(pthread_cond_signal(&kind_cond) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    puts("forks");
}

#ifdef __x86_64__
/* The condition variables of before 2002, which old programs call. */
int old_wait(pthread_cond_t *, pthread_mutex_t *);
int old_signal(pthread_cond_t *);
int old_init(pthread_cond_t *, const pthread_condattr_t *);
int old_destroy(pthread_cond_t *);
__asm__(".symver old_wait, pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver old_signal, pthread_cond_signal@GLIBC_2.2.5");
__asm__(".symver old_init, pthread_cond_init@GLIBC_2.2.5");
__asm__(".symver old_destroy, pthread_cond_destroy@GLIBC_2.2.5");
static pthread_cond_t old_cond;
static pthread_mutex_t old_mutex = PTHREAD_MUTEX_INITIALIZER;
static int old_turn;

static void *old_play(void *arg) {
    for (int i = 0; i < 50; i++) {
        CHECK(pthread_mutex_lock(&old_mutex) == 0);
        while (old_turn != (arg != NULL)) CHECK(old_wait(&old_cond, &old_mutex) == 0);
        old_turn = !old_turn;
        CHECK(old_signal(&old_cond) == 0);
        CHECK(pthread_mutex_unlock(&old_mutex) == 0);
    }
    return arg;
}

static void old_versions(void) {
    CHECK(old_init(&old_cond, NULL) == 0);
    pthread_t one = start(old_play, NULL), two = start(old_play, &old_turn);
    CHECK(pthread_join(one, NULL) == 0 && pthread_join(two, NULL) == 0);
    CHECK(old_destroy(&old_cond) == 0);
    puts("old versions");
}
#else
static void old_versions(void) { puts("old versions"); }
#endif

/* The holder of a mutex signals, and releases the mutex past any library before the C library. */
static void releases_past(void) {
    int (*past_unlock)(pthread_mutex_t *) = NULL;
    void *libc = dlopen("libc.so.6", RTLD_LAZY);
    CHECK(libc);
    *(void **)&past_unlock = dlsym(libc, "pthread_mutex_unlock");
    CHECK(past_unlock);
    flag = 0;
    pthread_t thread = start(wait_for_flag, &kinds[0]);
    usleep(20000);
    CHECK(pthread_mutex_lock(&kinds[0]) == 0);
    flag = 1;
    CHECK(pthread_cond_signal(&kind_cond) == 0);
    CHECK(past_unlock(&kinds[0]) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    puts("releases past");
}

/* A library that was loaded with RTLD_DEEPBIND signals. */
static void signals_past(const char *path) {
    flag = 0;
    pthread_t thread = start(wait_for_flag, &kinds[0]);
    usleep(20000);
    void *library = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    CHECK(library);
    int (*past_signal)(pthread_cond_t *) = NULL;
    *(void **)&past_signal = dlsym(library, "past_signal");
    CHECK(past_signal);
    usleep(20000);
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_mutex_lock(&kinds[0]) == 0);
        flag = 1;
        CHECK(past_signal(&kind_cond) == 0);
        CHECK(pthread_mutex_unlock(&kinds[0]) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        flag = 0;
        if (i == 0) thread = start(wait_for_flag, &kinds[0]);
        usleep(20000);
    }
    puts("signals past");
}

int main(int count, char **args) {
    rounds = count > 1 ? atoi(args[1]) : 100;
    if (count > 2) {
        signals_past(args[2]);
    } else {
        doors();
        purses();
        all_kinds();
        limits();
        without_memory();
        processes();
        forks();
        old_versions();
        releases_past();
    }
    puts("done");
}
