/* Threads that hold one mutex for 5 us and leave it alone for 20 us, so often. None ends before all have done so: a thread
   that begins later would get its number. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_done;
static long rounds;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void work(long long ns) {
    long long end = now() + ns;
    while (now() < end) {
    }
}

static void *run(void *unused) {
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        work(5000);
        pthread_mutex_unlock(&mutex);
        work(20000);
    }
    pthread_barrier_wait(&all_done);
    return unused;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t all[64];
    pthread_barrier_init(&all_done, NULL, threads);
    rounds = argc > 2 ? atol(argv[2]) : 2000;
    for (int i = 0; i < threads; i++)
        pthread_create(&all[i], NULL, run, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    return 0;
}
