/* Overspin's locks for programs in C and C++.
 *
 * A mutex uses the lock algorithm whose name it is created with. Link with -loverspin; the pkg-config module is
 * `overspin`.
 *
 * A thread gets a number at its first use of any mutex and keeps it until it ends. A lock serves a limited
 * number of threads at a time, at most 1024; any further thread gets OVERSPIN_THREADS.
 *
 * A mutex belongs to the thread that has acquired it, and never passes to another. If that thread ends without a
 * release, the mutex stays held for ever: trylock and destroy return OVERSPIN_BUSY, unlock returns OVERSPIN_NOT_OWNER,
 * and lock does not return.
 *
 * The library does not notice the following, which is not allowed: to use mutexes in signal handlers; to use, in the
 * child of a fork, mutexes that were created before it; to use a mutex that has been destroyed. */
#ifndef OVERSPIN_H
#define OVERSPIN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. */
enum overspin_error {
    OVERSPIN_OK = 0,
    OVERSPIN_INVALID = 1,   /* a null pointer */
    OVERSPIN_NO_LOCK = 2,   /* there is no lock of that name */
    OVERSPIN_BUSY = 3,      /* the mutex is held */
    OVERSPIN_DEADLOCK = 4,  /* this thread holds the mutex already */
    OVERSPIN_NOT_OWNER = 5, /* this thread does not hold the mutex */
    OVERSPIN_THREADS = 6    /* more threads use locks than this lock serves */
};

typedef struct overspin_mutex overspin_mutex_t;

/* Creates a free mutex of the lock `name` and writes its address to `*mutex`. The first mutex of a lock
 * costs some hundred KiB for records of threads, which all mutexes of that lock share.
 * Errors: OVERSPIN_INVALID, OVERSPIN_NO_LOCK; `*mutex` is then unchanged. */
int overspin_mutex_init(overspin_mutex_t **mutex, const char *name);

/* Destroys a free mutex. Errors: OVERSPIN_INVALID; OVERSPIN_BUSY if the mutex is held, and then it stays.
 *
 * As in POSIX, the last thread that held the mutex may destroy it as soon as its unlock has returned, if no other thread
 * will acquire it any more. Other threads may still be in an unlock that they began earlier: each of them has released
 * the mutex, or the last holder could not have acquired it. So an object may contain its mutex: the thread that finds
 * under the mutex that it is the last user unlocks, destroys and frees.
 * No other thread may be in lock or trylock meanwhile, or call anything with the mutex afterwards.
 *
 * The library keeps the memory of the mutex for the next one of the same lock. */
int overspin_mutex_destroy(overspin_mutex_t *mutex);

/* Acquires the mutex; waits as long as necessary. Errors: OVERSPIN_INVALID, OVERSPIN_DEADLOCK, OVERSPIN_THREADS. */
int overspin_mutex_lock(overspin_mutex_t *mutex);

/* Acquires the mutex if that is possible at once. Errors: OVERSPIN_INVALID, OVERSPIN_BUSY, OVERSPIN_THREADS. */
int overspin_mutex_trylock(overspin_mutex_t *mutex);

/* Releases the mutex; the thread must be its holder. Errors: OVERSPIN_INVALID; OVERSPIN_NOT_OWNER, and the mutex is
 * unchanged. */
int overspin_mutex_unlock(overspin_mutex_t *mutex);

/* Number of locks. */
size_t overspin_lock_count(void);

/* Name of the lock `index`, from 0, or a null pointer if there is no such lock. Strings that this library
 * returns live as long as the process. */
const char *overspin_lock_name(size_t index);

/* One sentence that says what the lock is, or a null pointer. */
const char *overspin_lock_brief(size_t index);

/* What an error means; never a null pointer. */
const char *overspin_strerror(int error);

/* Version of this library, for example "0.1.0". */
const char *overspin_version(void);

#ifdef __cplusplus
}
#endif

#endif
