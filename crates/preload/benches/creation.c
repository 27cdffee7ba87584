/* What creating mutexes costs, in time and memory.
 *
 *   creation time THREADS      CPU time of an iteration in ns, the mean over all threads: a line for each of `PARTS`
 *   creation memory MUTEXES    resident memory of a mutex in bytes, beside its own 40: when it has been locked; when a
 *                              thread has waited with it, so that the library has a record; and when it has been destroyed
 *
 * creation.sh compares runs with and without the library. CPU time shows a gate that threads fight for, and the load of the
 * machine changes it little. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../tests/with_record.h"

enum { BATCHES = 20, LOOPS = 20480, OBJECTS = 512 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void once(pthread_mutex_t *mutex) {
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
}

/* A mutex on the stack, destroyed. */
static void stack(pthread_mutex_t *unused) {
    (void)unused;
    for (int i = 0; i < LOOPS; i++) {
        pthread_mutex_t mutex;
        pthread_mutex_init(&mutex, NULL);
        once(&mutex);
        pthread_mutex_destroy(&mutex);
    }
}

/* As C++ does: a static initialiser, and no code at its end. */
static void cpp(pthread_mutex_t *unused) {
    (void)unused;
    for (int i = 0; i < LOOPS; i++) {
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        once(&mutex);
        __asm__ volatile("" : : "r"(&mutex) : "memory");
    }
}

/* Objects in turn: each address comes back after OBJECTS others. */
static void turns(pthread_mutex_t *objects) {
    for (int i = 0; i < LOOPS; i++) {
        pthread_mutex_t *mutex = &objects[i % OBJECTS];
        pthread_mutex_init(mutex, NULL);
        once(mutex);
        pthread_mutex_destroy(mutex);
    }
}

/* OBJECTS live ones, then all of them end. */
static void many(pthread_mutex_t *objects) {
    for (int round = 0; round < LOOPS / OBJECTS; round++) {
        for (int i = 0; i < OBJECTS; i++) {
            pthread_mutex_init(&objects[i], NULL);
            once(&objects[i]);
        }
        for (int i = 0; i < OBJECTS; i++) pthread_mutex_destroy(&objects[i]);
    }
}

/* One mutex that stays: the cost of lock and unlock alone. */
static void same(pthread_mutex_t *objects) {
    for (int i = 0; i < LOOPS; i++) once(&objects[0]);
}

/* The same, with a record. */
static void known(pthread_mutex_t *objects) {
    with_record(&objects[0]);
    same(objects);
}

static const struct {
    const char *name;
    void (*run)(pthread_mutex_t *);
} PARTS[] = {{"same", same}, {"known", known}, {"stack", stack}, {"cpp", cpp}, {"turns", turns}, {"many", many}};
enum { NUMBER = sizeof PARTS / sizeof *PARTS };

static pthread_barrier_t barrier;

static atomic_int next_cpu;

/* Threads run on CPUs in turn: side by side as long as there are enough. */
static void settle(void) {
    int cpu = atomic_fetch_add(&next_cpu, 1) % (int)sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void *measure(void *result) {
    settle();
    pthread_mutex_t *objects = calloc(OBJECTS, sizeof *objects);
    for (int part = 0; part < NUMBER; part++) {
        PARTS[part].run(objects);
        pthread_barrier_wait(&barrier);
        double start = now();
        for (int batch = 0; batch < BATCHES; batch++) PARTS[part].run(objects);
        ((double *)result)[part] = (now() - start) / BATCHES / LOOPS;
    }
    free(objects);
    return NULL;
}

static void time_of(int threads) {
    double (*results)[NUMBER] = calloc(threads, sizeof *results);
    pthread_t *all = calloc(threads, sizeof *all);
    pthread_barrier_init(&barrier, NULL, threads);
    for (int i = 0; i < threads; i++) pthread_create(&all[i], NULL, measure, results[i]);
    for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
    for (int part = 0; part < NUMBER; part++) {
        double sum = 0;
        for (int i = 0; i < threads; i++) sum += results[i][part];
        printf("%s %.1f\n", PARTS[part].name, sum / threads);
    }
}

static double resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1) exit(1);
    fclose(file);
    return (double)pages * sysconf(_SC_PAGESIZE);
}

static void memory_of(long mutexes) {
    pthread_mutex_t *objects = calloc(mutexes, sizeof *objects);
    memset(objects, 1, mutexes * sizeof *objects); /* their own pages exist before the first reading */
    for (long i = 0; i < mutexes; i++) pthread_mutex_init(&objects[i], NULL);
    once(&objects[0]);
    double before = resident();
    for (long i = 0; i < mutexes; i++) once(&objects[i]);
    printf("live %.1f\n", (resident() - before) / mutexes);
    for (long i = 0; i < mutexes; i++) with_record(&objects[i]);
    printf("known %.1f\n", (resident() - before) / mutexes);
    for (long i = 0; i < mutexes; i++) pthread_mutex_destroy(&objects[i]);
    printf("ended %.1f\n", (resident() - before) / mutexes);
}

int main(int argc, char **argv) {
    if (argc != 3 || atol(argv[2]) < 1) return 2;
    if (strcmp(argv[1], "time") == 0)
        time_of(atoi(argv[2]));
    else
        memory_of(atol(argv[2]));
    return 0;
}
