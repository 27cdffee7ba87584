/* Overspin's locks for programs in C and C++.
 *
 * A mutex is of a lock algorithm that is chosen by its name when it is created. Link with -loverspin; the
 * pkg-config module is `overspin`.
 *
 * A thread gets a number at its first use of any mutex and keeps it until it ends. A lock serves a limited
 * number of threads at a time, at most 1024; one that is beyond gets OVERSPIN_THREADS.
 *
 * A mutex belongs to the thread that has acquired it, and to no other one after that. If the thread ends without a
 * release, the mutex stays held for ever: trylock and destroy return OVERSPIN_BUSY, unlock OVERSPIN_NOT_OWNER, lock does
 * not return.
 *
 * Not allowed, and not noticed: to use mutexes in signal handlers; to use, in the child of a fork, mutexes that
 * were created before it; to use a mutex that has been destroyed. */
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
    OVERSPIN_BUSY = 3,      /* somebody holds the mutex */
    OVERSPIN_DEADLOCK = 4,  /* this thread holds the mutex already */
    OVERSPIN_NOT_OWNER = 5, /* this thread does not hold the mutex */
    OVERSPIN_THREADS = 6    /* more threads use locks than this lock serves */
};

typedef struct overspin_mutex overspin_mutex_t;

/* Creates a mutex of the lock `name`, free, and writes its address to `*mutex`. The first mutex of a lock
 * costs some hundred KiB for records of threads, which all mutexes of that lock share.
 * OVERSPIN_INVALID, OVERSPIN_NO_LOCK; `*mutex` is then left as it was. */
int overspin_mutex_init(overspin_mutex_t **mutex, const char *name);

/* Ends a mutex that is free. OVERSPIN_INVALID; OVERSPIN_BUSY if somebody holds it, and then it stays.
 *
 * As in POSIX, the thread that was the last to hold the mutex may destroy it at once after its unlock has returned, if
 * no other thread will acquire it any more. Other threads may still be in an unlock that they have begun earlier: each
 * of them has released the mutex, or the last holder had not got it. So an object may have its mutex in itself, and
 * whoever finds under the mutex that it is the last user unlocks, destroys and frees.
 * Not allowed: that another thread is in lock or trylock meanwhile, or calls anything with the mutex afterwards.
 *
 * The memory of the mutex is kept for the next one of the same lock. */
int overspin_mutex_destroy(overspin_mutex_t *mutex);

/* Acquires, waiting as long as it takes. OVERSPIN_INVALID, OVERSPIN_DEADLOCK, OVERSPIN_THREADS. */
int overspin_mutex_lock(overspin_mutex_t *mutex);

/* Acquires if that is possible at once. OVERSPIN_INVALID, OVERSPIN_BUSY, OVERSPIN_THREADS. */
int overspin_mutex_trylock(overspin_mutex_t *mutex);

/* Releases. The thread is the one that has acquired. OVERSPIN_INVALID; OVERSPIN_NOT_OWNER, and whoever holds the mutex
 * keeps it. */
int overspin_mutex_unlock(overspin_mutex_t *mutex);

/* How many locks there are. */
size_t overspin_lock_count(void);

/* Name of the lock `index`, from 0, or a null pointer if there are not so many. Strings that this library
 * returns live as long as the process. */
const char *overspin_lock_name(size_t index);

/* What the lock is, in one sentence, or a null pointer. */
const char *overspin_lock_brief(size_t index);

/* What an error means; never a null pointer. */
const char *overspin_strerror(int error);

/* Version of this library, for example "0.1.0". */
const char *overspin_version(void);

#ifdef __cplusplus
}
#endif

#endif
