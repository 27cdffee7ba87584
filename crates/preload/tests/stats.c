/* Makes a known number of acquisitions; or, with an argument, releases a mutex by a thread that has not
 * acquired it. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cold = PTHREAD_MUTEX_INITIALIZER;
static int held;

/* Not static, so that its name can be found. */
void use(pthread_mutex_t *mutex) {
    if (pthread_mutex_lock(mutex) != 0 || pthread_mutex_unlock(mutex) != 0) _exit(1);
}

/* Holds the mutex long enough that the other thread most likely tries meanwhile. */
static void *hold(void *arg) {
    if (pthread_mutex_lock(&hot) != 0) _exit(1);
    __atomic_store_n(&held, 1, __ATOMIC_RELEASE);
    struct timespec while_the_other_tries = {0, 100 * 1000 * 1000};
    nanosleep(&while_the_other_tries, NULL);
    if (pthread_mutex_unlock(&hot) != 0) _exit(1);
    return arg;
}

static void *release(void *arg) {
    pthread_mutex_unlock(&hot);
    return arg;
}

int main(int argc, char **argv) {
    (void)argv;
    pthread_t thread;
    if (pthread_mutex_lock(&hot) != 0 || pthread_mutex_unlock(&hot) != 0) return 1;
    pthread_create(&thread, NULL, hold, NULL);
    while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE)) usleep(1000);
    if (argc > 1) {
        if (pthread_mutex_lock(&hot) != 0) return 1;
        pthread_join(thread, NULL);
        pthread_create(&thread, NULL, release, NULL);
        pthread_join(thread, NULL);
        return 0;
    }
    for (int i = 0; i < 98; i++) use(&hot);
    pthread_join(thread, NULL);
    for (int i = 0; i < 7; i++) use(&cold);
    for (int i = 0; i < 12; i++) {
        pthread_mutex_t *mutex = malloc(sizeof *mutex);
        if (mutex == NULL || pthread_mutex_init(mutex, NULL) != 0) return 1;
        for (int j = 0; j < 3; j++) use(mutex);
        if (pthread_mutex_destroy(mutex) != 0) return 1;
        free(mutex);
    }
    pid_t child = fork();
    if (child == 0) {
        use(&hot);
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
    return 0;
}
