/* A library that bypass.c and conditions.c load with RTLD_DEEPBIND, so these calls reach the C library itself. */
#include <pthread.h>

int past_lock(pthread_mutex_t *mutex) { return pthread_mutex_lock(mutex); }
int past_unlock(pthread_mutex_t *mutex) { return pthread_mutex_unlock(mutex); }
int past_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) { return pthread_cond_wait(cond, mutex); }
int past_signal(pthread_cond_t *cond) { return pthread_cond_signal(cond); }
