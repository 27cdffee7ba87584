/* Threads count under a lock that is chosen on the command line:
 *
 *     cc counter.c $(pkg-config --cflags --libs overspin) -pthread -o counter && ./counter malthusian
 */
#include <overspin.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 100 };

static overspin_mutex_t *mutex;
static long count;

static void *run(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        int error = overspin_mutex_lock(mutex);
        if (error != OVERSPIN_OK) {
            fprintf(stderr, "lock: %s\n", overspin_strerror(error));
            return arg;
        }
        count++;
        overspin_mutex_unlock(mutex);
    }
    return arg;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "futex";
    int error = overspin_mutex_init(&mutex, name);
    if (error != OVERSPIN_OK) {
        fprintf(stderr, "%s: %s; locks are:", name, overspin_strerror(error));
        for (size_t i = 0; i < overspin_lock_count(); i++) fprintf(stderr, " %s", overspin_lock_name(i));
        fprintf(stderr, "\n");
        return 2;
    }
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, run, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    overspin_mutex_destroy(mutex);
    printf("%s: %ld\n", name, count);
    return count == (long)THREADS * ROUNDS ? 0 : 1;
}
