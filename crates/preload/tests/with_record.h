/* For programs that try the preload library. It has a lock and a record for a mutex as soon as a thread has had to wait for
 * the mutex, or has waited with it. */
#include <pthread.h>
#include <time.h>

static pthread_cond_t nothing = PTHREAD_COND_INITIALIZER;

/* Waits with the mutex until a time that is long past, for which the C library makes no system call. Returns the result of the
 * wait: ETIMEDOUT, or an error of the mutex. */
static int with_record(pthread_mutex_t *mutex) {
    struct timespec long_ago = {-1, 0};
    int error = pthread_mutex_lock(mutex);
    if (error != 0) return error;
    int result = pthread_cond_timedwait(&nothing, mutex, &long_ago);
    error = pthread_mutex_unlock(mutex);
    return error != 0 ? error : result;
}
