/* A disk that fails below Python: the n-th call of the C library about a file below a folder.

   Loaded by LD_PRELOAD. disk_fail(folder, n, error, lasting) arms it, disk_calls() tells how many calls
   there were, disk_failed() how many of them failed and disk_path() about which file the first did. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char below[PATH_MAX], last[PATH_MAX], path_failed[PATH_MAX];
static long fail_at = -1, calls = 0, failed = 0;
static int number = 0, lasting = 0;

void disk_fail(const char *folder, long n, int error, int all) {
    strncpy(below, folder, sizeof below - 1);
    fail_at = n, number = error, lasting = all, calls = failed = 0;
    path_failed[0] = 0;
}
long disk_calls(void) { return calls; }
long disk_failed(void) { return failed; }
const char *disk_path(void) { return path_failed; }

static int is_below(const char *path) {
    char whole[PATH_MAX];
    if (!below[0] || !path || strstr(path, "__path_hook__")) return 0; /* of Python's imports */
    if (path[0] != '/') {
        char here[PATH_MAX];
        if (!getcwd(here, sizeof here)) return 0;
        if (snprintf(whole, sizeof whole, "%s/%s", here, path) >= (int)sizeof whole) return 0;
        path = whole;
    }
    size_t length = strlen(below);
    snprintf(last, sizeof last, "%s", path);
    return strncmp(path, below, length) == 0 && path[length] == '/';
}

static int is_file(int handle) {
    char link[64], path[PATH_MAX];
    if (!below[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return is_below(path);
}

static int fails(void) {
    long at = __sync_fetch_and_add(&calls, 1);
    if (fail_at < 0 || at < fail_at || (at > fail_at && !lasting)) return 0;
    if (!__sync_fetch_and_add(&failed, 1)) snprintf(path_failed, sizeof path_failed, "%s", last);
    errno = number;
    return 1;
}

#define ORIGINAL(name) \
    static __typeof__(&name) original = NULL; \
    if (!original) original = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int handle, const void *data, size_t size) {
    ORIGINAL(write);
    return is_file(handle) && fails() ? -1 : original(handle, data, size);
}
ssize_t writev(int handle, const struct iovec *data, int count) {
    ORIGINAL(writev);
    return is_file(handle) && fails() ? -1 : original(handle, data, count);
}
int fsync(int handle) {
    ORIGINAL(fsync);
    return is_file(handle) && fails() ? -1 : original(handle);
}
int rename(const char *from, const char *to) {
    ORIGINAL(rename);
    return is_below(to) && !access(from, F_OK) && fails() ? -1 : original(from, to);
}
int renameat(int a, const char *from, int b, const char *to) {
    ORIGINAL(renameat);
    return is_below(to) && fails() ? -1 : original(a, from, b, to);
}
int mkdir(const char *path, mode_t mode) {
    ORIGINAL(mkdir);
    return is_below(path) && access(path, F_OK) && fails() ? -1 : original(path, mode);
}

#define OPENED(name) \
    int name(const char *path, int flags, ...) { \
        ORIGINAL(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = va_arg(more, mode_t); \
        va_end(more); \
        int writes = (flags & O_ACCMODE) != O_RDONLY; \
        if ((writes || number == EIO) && !(flags & O_DIRECTORY) && is_below(path) && fails()) return -1; \
        return original(path, flags, mode); \
    }
OPENED(open)
OPENED(open64)
