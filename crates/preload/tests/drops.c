/* Takes a mutex 300 times, overwrites its name, forks a child that takes the mutex, too, then gives up what it may do: another
 * root, another user, no long files. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void take(void) {
    if (pthread_mutex_lock(&mutex) != 0) _exit(1);
    if (pthread_mutex_unlock(&mutex) != 0) _exit(1);
}

int main(int argc, char **argv) {
    (void)argc;
    for (int i = 0; i < 300; i++) take();
    memset(argv[0], 'x', strlen(argv[0]));
    pid_t child = fork();
    if (child == 0) {
        take();
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
    struct rlimit none = {0, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &none);
    if (geteuid() == 0 && (chroot("/proc") != 0 || chdir("/") != 0 || setgid(65534) != 0 || setuid(65534) != 0)) return 1;
    return 0;
}
