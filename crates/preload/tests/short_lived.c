/* Creates and destroys mutexes in all the ways that concern the records of the preload library. The argument chooses a
 * part. Each prints a line and exits with 0 on success; a failure prints its place. The output does not depend on the
 * implementation of the mutexes. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "check.h"
#include "with_record.h"

enum { THREADS = 4 };
static int rounds = 300;

/* The library has no record of a mutex for which no thread has had to wait, and which no thread has waited with. */
static void plainly(pthread_mutex_t *mutex) {
    CHECK(pthread_mutex_lock(mutex) == 0);
    CHECK(pthread_mutex_unlock(mutex) == 0);
}

/* Objects at few addresses. A thread takes a free one, creates the mutex, and invites others. The last
 * user destroys the mutex at once, while the user before may still be in `unlock`: POSIX allows that. Some are never
 * destroyed, as in C++. So an address gets its mutexes from all threads in turn. */
enum { OBJECTS = 24 };
enum { FREE, MADE };
static struct object {
    atomic_int state, users;
    pthread_mutex_t mutex;
    volatile int inside;
    long uses;
} objects[OBJECTS];

static void make(struct object *object, unsigned random) {
    if (random % 2)
        CHECK(pthread_mutex_init(&object->mutex, NULL) == 0);
    else
        object->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    object->inside = 0;
    object->uses = 0;
}

static void use(struct object *object) {
    CHECK(pthread_mutex_lock(&object->mutex) == 0);
    CHECK(object->inside++ == 0);
    object->uses++;
    CHECK(--object->inside == 0);
    CHECK(pthread_mutex_unlock(&object->mutex) == 0);
}

/* Ends the use of an object by this thread. */
static void leave(struct object *object, unsigned random) {
    if (atomic_fetch_sub(&object->users, 1) != 1) return;
    /* No thread enters any more: see `enter`. */
    if (random % 3) CHECK(pthread_mutex_destroy(&object->mutex) == 0);
    if (random % 8 == 0) memset(&object->mutex, 0xa5, sizeof object->mutex);
    atomic_store(&object->state, FREE);
}

/* Becomes a user of an object that has one. */
static int enter(struct object *object) {
    int users = atomic_load(&object->users);
    while (users > 0)
        if (atomic_compare_exchange_weak(&object->users, &users, users + 1)) return 1;
    return 0;
}

static long turn(unsigned *seed) {
    unsigned random = rand_r(seed);
    struct object *object = &objects[random % OBJECTS];
    random /= OBJECTS;
    int free = FREE;
    if (atomic_compare_exchange_strong(&object->state, &free, MADE)) {
        make(object, random);
        if (random % 4) CHECK(with_record(&object->mutex) == ETIMEDOUT);
        atomic_store(&object->users, 1);
    } else if (!enter(object)) {
        return 0;
    }
    for (unsigned i = random / 16 % 4; i-- > 0;) use(object);
    use(object);
    leave(object, random);
    return 1;
}

static void *play(void *arg) {
    unsigned seed = (unsigned)(intptr_t)arg;
    for (long done = 0; done < rounds * 20L;) done += turn(&seed);
    return NULL;
}

static void spawn(void *(*run)(void *), int number) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, run, (void *)(intptr_t)(number + i + 1)) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void handing(void) {
    spawn(play, 0);
    /* Threads end and leave what they remember to others. */
    for (int i = 0; i < 20; i++) {
        rounds = 5;
        spawn(play, 100 + i * THREADS);
    }
    printf("handing\n");
}

/* The same while the process forks. In the child the other threads' objects are in any state, so it makes new ones. */
static atomic_int stop;

static void *play_on(void *arg) {
    unsigned seed = (unsigned)(intptr_t)arg;
    while (!stop) turn(&seed);
    return NULL;
}

static void forks(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, play_on, (void *)(intptr_t)(i + 1)) == 0);
    for (int i = 0; i < rounds / 4 + 1; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(30);
            memset(objects, 0, sizeof objects);
            nothing = (pthread_cond_t)PTHREAD_COND_INITIALIZER; /* a thread of the parent was in it */
            rounds = 10;
            spawn(play, i);
            for (int j = 0; j < OBJECTS; j++) {
                make(&objects[j], j);
                CHECK(with_record(&objects[j].mutex) == ETIMEDOUT);
            }
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = 1;
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    printf("forks\n");
}

/* Memory of live mutexes, and after their end. */
enum { MANY = 160000 };
static pthread_mutex_t *many;

static double resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return (double)pages * sysconf(_SC_PAGESIZE);
}

static void create(int from, int to) {
    for (int i = from; i < to; i++) {
        CHECK(pthread_mutex_init(&many[i], NULL) == 0);
        CHECK(with_record(&many[i]) == ETIMEDOUT);
    }
}

static void destroy(int from, int to) {
    for (int i = from; i < to; i++) CHECK(pthread_mutex_destroy(&many[i]) == 0);
}

/* Memory per mutex, which is below `most` bytes. */
static void is_below(double before, double most) {
    double each = (resident() - before) / MANY;
    if (each >= most) {
        fprintf(stderr, "%.1f bytes a mutex, not below %.1f\n", each, most);
        _exit(1);
    }
}

/* 64 shards keep 12 empty pages each, and the first page of each chunk: 22 bytes for each of these mutexes. Besides, a part of
 * them has a table of a page. */
static void memory(double most) {
    for (int i = 0; i < MANY; i++) CHECK(pthread_mutex_init(&many[i], NULL) == 0);
    CHECK(with_record(&many[0]) == ETIMEDOUT);
    double before = resident();
    for (int round = 0; round < 3; round++) {
        create(0, MANY);
        is_below(before, most);
        destroy(0, MANY);
        is_below(before, 33);
        /* In another order, and with survivors that still work. */
        create(0, MANY);
        for (int i = 0; i < MANY; i++)
            if (i * 7919L % 1000) CHECK(pthread_mutex_destroy(&many[i * 1L]) == 0);
        for (int i = 0; i < MANY; i++)
            if (i * 7919L % 1000 == 0) {
                CHECK(with_record(&many[i]) == ETIMEDOUT);
                CHECK(pthread_mutex_destroy(&many[i]) == 0);
            }
        is_below(before, 33);
    }
    /* Mutexes that end without notice leave their records to the next ones. */
    create(0, MANY);
    before = resident();
    for (int round = 0; round < 5; round++) create(0, MANY);
    is_below(before, 1);
    printf("memory\n");
}

/* The records of a few mutexes share no cache line. The library keeps the address of the record in the mutex. */
static int by_address(const void *a, const void *b) {
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

static void apart(void) {
    enum { FEW = 100, LINE = 64, LEAST = 40 }; /* the smallest record */
    uintptr_t records[FEW];
    create(0, FEW);
    for (int i = 0; i < FEW; i++) records[i] = (uintptr_t)many[i].__data.__list.__prev;
    qsort(records, FEW, sizeof *records, by_address);
    for (int i = 1; i < FEW && records[i]; i++)
        CHECK((records[i - 1] + LEAST - 1) / LINE < records[i] / LINE);
    printf("apart\n");
}

/* Mutexes that no thread has had to wait for, of two kinds, one destroyed and one not, have no records. */
static void uncontended(void) {
    double before = resident();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            if (i % 2) CHECK(pthread_mutex_init(&many[i], NULL) == 0);
            else many[i] = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
            plainly(&many[i]);
            CHECK(pthread_mutex_trylock(&many[i]) == 0 && pthread_mutex_trylock(&many[i]) == EBUSY);
            CHECK(pthread_mutex_unlock(&many[i]) == 0);
            CHECK(many[i].__data.__list.__prev == NULL);
            if (i % 4 < 2) CHECK(pthread_mutex_destroy(&many[i]) == 0);
        }
        is_below(before, 1);
    }
    printf("uncontended\n");
}

/* A copy of a mutex points to a record whose memory has gone back. */
static void copies(void) {
    create(0, MANY);
    pthread_mutex_t *copy = calloc(MANY, sizeof *copy);
    CHECK(copy);
    memcpy(copy, many, MANY * sizeof *copy);
    destroy(0, MANY);
    for (int i = 0; i < MANY; i++) CHECK(with_record(&copy[i]) == ETIMEDOUT);
    for (int i = 0; i < MANY; i++) CHECK(pthread_mutex_destroy(&copy[i]) == 0);
    free(copy);
    printf("copies\n");
}

/* A thread stands still at the end of `unlock`, where the mutex is free and may be destroyed. Its record must not lose its
 * memory then: the next mutex there would get a lock that this thread still releases. */
static pthread_mutex_t *late;
static atomic_int in_unlock, caught, go, done;

static void stand_still(int signal) {
    (void)signal;
    /* Free, but `unlock` has not returned. */
    if (!in_unlock || late->__data.__owner != 0 || late->__data.__lock != 0) return;
    caught = 1;
    while (!go) usleep(100);
}

static void *release_late(void *arg) {
    while (!done && !caught) {
        CHECK(pthread_mutex_lock(late) == 0);
        in_unlock = 1;
        CHECK(pthread_mutex_unlock(late) == 0);
        in_unlock = 0;
    }
    return arg;
}

static void *create_all(void *arg) {
    create(0, MANY);
    return arg;
}

static void late_release(void) {
    struct sigaction action = {.sa_handler = stand_still};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int round = 0; round < 6; round++) {
        caught = go = done = 0;
        create(0, MANY);
        late = &many[MANY / 3 + round];
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, release_late, NULL) == 0);
        while (!caught) {
            pthread_kill(thread, SIGUSR1);
            usleep(10);
        }
        destroy(0, MANY);
        /* One of them gets the lock that is still being released, and waits for that. */
        pthread_t next;
        CHECK(pthread_create(&next, NULL, create_all, NULL) == 0);
        usleep(50 * 1000);
        go = 1;
        CHECK(pthread_join(thread, NULL) == 0 && pthread_join(next, NULL) == 0);
        for (int i = 0; i < MANY; i++) CHECK(with_record(&many[i]) == ETIMEDOUT);
        destroy(0, MANY);
    }
    printf("late release\n");
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    if (argc > 2) rounds = atoi(argv[2]);
    alarm(100);
    many = calloc(MANY, sizeof *many);
    CHECK(many);
    memset(many, 1, MANY * sizeof *many); /* its pages exist before the first reading */
    switch (argv[1][0]) {
    case 'h':
        handing();
        break;
    case 'f':
        forks();
        break;
    case 'm':
        memory(argc > 3 ? atof(argv[3]) : 64);
        break;
    case 'a':
        apart();
        break;
    case 'c':
        copies();
        break;
    case 'u':
        uncontended();
        break;
    case 'l':
        late_release();
        break;
    default:
        return 2;
    }
    return 0;
}
