/* Every function and error of overspin.h, for every lock. */
#include <overspin.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                     \
    do {                                                                                \
        if (!(what)) {                                                                  \
            fprintf(stderr, "%s:%d: %s: failed\n", __FILE__, __LINE__, #what);          \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

static void *stranger(void *arg) {
    overspin_mutex_t *mutex = arg;
    CHECK(overspin_mutex_trylock(mutex) == OVERSPIN_BUSY);
    CHECK(overspin_mutex_unlock(mutex) == OVERSPIN_NOT_OWNER);
    CHECK(overspin_mutex_destroy(mutex) == OVERSPIN_BUSY);
    return NULL;
}

static overspin_mutex_t *shared;
static long count;

static void *add(void *arg) {
    for (int i = 0; i < 20; i++) {
        CHECK(overspin_mutex_lock(shared) == OVERSPIN_OK);
        count++;
        CHECK(overspin_mutex_unlock(shared) == OVERSPIN_OK);
    }
    return arg;
}

static void one_lock(const char *name) {
    overspin_mutex_t *mutexes[12];
    for (int i = 0; i < 12; i++) {
        CHECK(overspin_mutex_init(&mutexes[i], name) == OVERSPIN_OK);
        CHECK(overspin_mutex_unlock(mutexes[i]) == OVERSPIN_NOT_OWNER);
        CHECK((i % 2 ? overspin_mutex_lock : overspin_mutex_trylock)(mutexes[i]) == OVERSPIN_OK);
    }
    for (int i = 0; i < 12; i++) {
        CHECK(overspin_mutex_lock(mutexes[i]) == OVERSPIN_DEADLOCK);
        CHECK(overspin_mutex_trylock(mutexes[i]) == OVERSPIN_BUSY);
    }
    pthread_t threads[2];
    CHECK(pthread_create(&threads[0], NULL, stranger, mutexes[0]) == 0);
    CHECK(pthread_join(threads[0], NULL) == 0);
    for (int i = 0; i < 12; i++) {
        CHECK(overspin_mutex_unlock(mutexes[i]) == OVERSPIN_OK);
        CHECK(overspin_mutex_unlock(mutexes[i]) == OVERSPIN_NOT_OWNER);
    }
    shared = mutexes[0];
    count = 0;
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, add, NULL) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(count == 40);
    for (int i = 0; i < 12; i++) CHECK(overspin_mutex_destroy(mutexes[i]) == OVERSPIN_OK);
}

static void *lock_and_end(void *arg) {
    CHECK(overspin_mutex_lock(arg) == OVERSPIN_OK);
    return NULL;
}

/* A mutex that a thread has left locked stays locked. The next thread gets the same number in the locks, and cannot
 * release it either. */
static void left_locked(const char *name) {
    overspin_mutex_t *mutex;
    pthread_t thread;
    CHECK(overspin_mutex_init(&mutex, name) == OVERSPIN_OK);
    CHECK(pthread_create(&thread, NULL, lock_and_end, mutex) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&thread, NULL, stranger, mutex) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    stranger(mutex);
}

/* An object that contains its mutex. The last of several users destroys the mutex and frees the object, while the others
 * may still be in their unlock. */
struct object {
    overspin_mutex_t *mutex;
    int users;
};

static void *use_once(void *arg) {
    struct object *object = arg;
    overspin_mutex_t *mutex = object->mutex;
    CHECK(overspin_mutex_lock(mutex) == OVERSPIN_OK);
    int left = --object->users;
    CHECK(overspin_mutex_unlock(mutex) == OVERSPIN_OK);
    if (left == 0) {
        CHECK(overspin_mutex_destroy(mutex) == OVERSPIN_OK);
        memset(object, 0xff, sizeof *object);
        free(object);
    }
    return NULL;
}

static void last_user_destroys(const char *name) {
    overspin_mutex_t *first = NULL;
    int again = 0;
    for (int round = 0; round < 60; round++) {
        struct object *object = malloc(sizeof *object);
        CHECK(object != NULL && overspin_mutex_init(&object->mutex, name) == OVERSPIN_OK);
        /* Free at once, even if a thread is still in an unlock of the one before. */
        CHECK(overspin_mutex_trylock(object->mutex) == OVERSPIN_OK);
        CHECK(overspin_mutex_unlock(object->mutex) == OVERSPIN_OK);
        if (round == 0) first = object->mutex;
        again += object->mutex == first;
        object->users = 3;
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, use_once, object) == 0);
        use_once(object);
        for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(again == 60); /* the memory is used again, and does not grow */
}

/* The mutex is busy until the holder has released it, and free after that. */
static void *lock_for_a_moment(void *arg) {
    CHECK(overspin_mutex_lock(arg) == OVERSPIN_OK);
    __atomic_store_n(&count, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 3; i++) sched_yield();
    CHECK(overspin_mutex_unlock(arg) == OVERSPIN_OK);
    return NULL;
}

static void busy_until_released(const char *name) {
    for (int round = 0; round < 20; round++) {
        overspin_mutex_t *mutex;
        pthread_t thread;
        CHECK(overspin_mutex_init(&mutex, name) == OVERSPIN_OK);
        __atomic_store_n(&count, 0, __ATOMIC_RELEASE);
        CHECK(pthread_create(&thread, NULL, lock_for_a_moment, mutex) == 0);
        while (!__atomic_load_n(&count, __ATOMIC_ACQUIRE)) sched_yield();
        int error;
        while ((error = overspin_mutex_destroy(mutex)) == OVERSPIN_BUSY) sched_yield();
        CHECK(error == OVERSPIN_OK);
        overspin_mutex_t *next;
        CHECK(overspin_mutex_init(&next, name) == OVERSPIN_OK);
        CHECK(overspin_mutex_trylock(next) == OVERSPIN_OK);
        CHECK(overspin_mutex_unlock(next) == OVERSPIN_OK);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(overspin_mutex_destroy(next) == OVERSPIN_OK);
    }
}

/* More threads at a time than any lock serves. */
static pthread_barrier_t barrier;
static int refused;

static void *one_of_many(void *arg) {
    int error = overspin_mutex_lock(shared);
    if (error == OVERSPIN_OK) {
        CHECK(overspin_mutex_unlock(shared) == OVERSPIN_OK);
    } else {
        CHECK(error == OVERSPIN_THREADS);
        CHECK(overspin_mutex_trylock(shared) == OVERSPIN_THREADS);
        CHECK(overspin_mutex_unlock(shared) == OVERSPIN_NOT_OWNER);
        __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
    }
    pthread_barrier_wait(&barrier);
    return arg;
}

static void too_many(void) {
    enum { MANY = 1100 };
    static pthread_t threads[MANY];
    pthread_attr_t attr;
    CHECK(overspin_mutex_init(&shared, "futex") == OVERSPIN_OK);
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, 128 * 1024) == 0);
    CHECK(pthread_barrier_init(&barrier, NULL, MANY) == 0);
    for (int i = 0; i < MANY; i++) CHECK(pthread_create(&threads[i], &attr, one_of_many, NULL) == 0);
    for (int i = 0; i < MANY; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(refused == MANY - 1023); /* this thread has a number too */
    CHECK(overspin_mutex_destroy(shared) == OVERSPIN_OK);
}

int main(void) {
    overspin_mutex_t *mutex = NULL;
    CHECK(overspin_mutex_init(NULL, "ticket") == OVERSPIN_INVALID);
    CHECK(overspin_mutex_init(&mutex, NULL) == OVERSPIN_INVALID);
    CHECK(overspin_mutex_init(&mutex, "tiket") == OVERSPIN_NO_LOCK);
    CHECK(overspin_mutex_init(&mutex, "\xff") == OVERSPIN_NO_LOCK);
    CHECK(mutex == NULL);
    CHECK(overspin_mutex_lock(NULL) == OVERSPIN_INVALID);
    CHECK(overspin_mutex_trylock(NULL) == OVERSPIN_INVALID);
    CHECK(overspin_mutex_unlock(NULL) == OVERSPIN_INVALID);
    CHECK(overspin_mutex_destroy(NULL) == OVERSPIN_INVALID);
    size_t locks = overspin_lock_count();
    CHECK(locks > 1);
    for (size_t i = 0; i < locks; i++) {
        CHECK(strlen(overspin_lock_name(i)) > 0 && strlen(overspin_lock_brief(i)) > 0);
        one_lock(overspin_lock_name(i));
        last_user_destroys(overspin_lock_name(i));
        busy_until_released(overspin_lock_name(i));
        left_locked(overspin_lock_name(i));
    }
    CHECK(overspin_lock_name(locks) == NULL && overspin_lock_brief(locks) == NULL);
    one_lock("byte"); /* an alias */
    for (int error = OVERSPIN_OK; error <= OVERSPIN_THREADS; error++)
        CHECK(strcmp(overspin_strerror(error), overspin_strerror(-1)) != 0);
    CHECK(strcmp(overspin_strerror(OVERSPIN_THREADS + 1), overspin_strerror(-1)) == 0);
    too_many();
    printf("%s\n", overspin_version());
    return 0;
}
