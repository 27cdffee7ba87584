/* Takes a mutex, and ends with its standard error closed, as coreutils and awk do; or by quick_exit; or closes all files but
 * the first three; or becomes a daemon that looks for what it still has open of its standard error. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void close_error(void) {
    fclose(stderr);
}

static int in_daemon(void) {
    struct stat error, other;
    if (fstat(2, &error) != 0) return 2;
    int null = open("/dev/null", O_RDWR);
    if (dup2(null, 2) != 2) return 3;
    for (int i = 3; i < 1024; i++)
        if (fstat(i, &other) == 0 && other.st_dev == error.st_dev && other.st_ino == error.st_ino) return 4;
    return 0;
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    if (strcmp(part, "error") == 0) {
        CHECK(atexit(close_error) == 0);
    } else if (strcmp(part, "quick") == 0) {
        quick_exit(0);
    } else if (strcmp(part, "others") == 0) {
        for (int i = 3; i < 1024; i++) close(i);
        /* A file of the program's own where the library may have had its own. */
        int number = open(argv[2], O_RDWR | O_CREAT, 0600);
        CHECK(number >= 0);
        for (int i = 600; i < 1024; i++) CHECK(dup2(number, i) == i);
    } else if (strcmp(part, "daemon") == 0) {
        pid_t child = fork();
        if (child == 0) _exit(in_daemon());
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        return WEXITSTATUS(status);
    }
    return 0;
}
