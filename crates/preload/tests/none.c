/* A program without pthread mutexes: with one thread, or with threads that use locks of another kind. */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

static sem_t semaphore;
static int count;

static void *add(void *arg) {
    for (int i = 0; i < 100; i++) {
        sem_wait(&semaphore);
        count++;
        sem_post(&semaphore);
    }
    return arg;
}

int main(int argc, char **argv) {
    if (argc == 1) return 0;
    if (strcmp(argv[1], "openmp") == 0) {
#ifdef _OPENMP
#pragma omp parallel for num_threads(3)
#endif
        for (int i = 0; i < 300; i++) {
#ifdef _OPENMP
#pragma omp critical
#endif
            count++;
        }
    } else {
        pthread_t threads[3];
        sem_init(&semaphore, 0, 1);
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, add, NULL);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    }
    return count == 300 ? 0 : 1;
}
