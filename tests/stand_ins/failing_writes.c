/* A disk that refuses: LD_PRELOAD this, and the Nth change below a folder fails, with an error of the test's choice.

   FAULT_UNDER   folder below which changes are counted
   FAULT_STATE   a file of four longs that all processes share: changes tried so far; the number of the one that fails,
                 0 for none; whether all later ones fail too, as on a full disk; the errno
   FAULT_TELL    a file that is told what failed
   A change is an open for writing, a write, a truncation, a sync, a lock, a rename, a link or a new folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct state { _Atomic long count; long at, lasts, number; };

static struct state *state;
static const char *under;

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

__attribute__((constructor)) static void begin(void) {
    const char *place = getenv("FAULT_STATE");
    under = getenv("FAULT_UNDER");
    if (!place || !under) return;
    int (*really_open)(const char *, int, ...) = next("open");
    int file = really_open(place, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *memory = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED) state = memory;
}

static int is_below(const char *path) {
    size_t length = under ? strlen(under) : 0;
    return length && strncmp(path, under, length) == 0 && (path[length] == '/' || !path[length]);
}

/* Whether this change has to fail. */
static int refused(const char *what, const char *path) {
    if (!state || !is_below(path)) return 0;
    long now = atomic_fetch_add(&state->count, 1) + 1;
    int fails = state->at && (now == state->at || (state->lasts && now > state->at));
    if (fails && now == state->at && getenv("FAULT_TELL")) {
        int (*really_open)(const char *, int, ...) = next("open");
        int file = really_open(getenv("FAULT_TELL"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
        dprintf(file, "%s %s", what, path);
        close(file);
    }
    if (fails) errno = (int)state->number;
    return fails;
}

static int refused_name(const char *what, int folder, const char *path) {
    char whole[2 * PATH_MAX], base[PATH_MAX], link[64];
    if (!state || !path) return 0;
    if (path[0] == '/') return refused(what, path);
    snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length < 0) return 0;
    base[length] = 0;
    snprintf(whole, sizeof whole, "%s/%s", base, path);
    return refused(what, whole);
}

static int refused_file(const char *what, int file) {
    char path[PATH_MAX], link[64];
    if (!state) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return refused(what, path);
}

static int changes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)); }

#define MODE(flags, mode) do { if ((flags) & (O_CREAT | O_TMPFILE)) { \
    va_list more; va_start(more, flags); mode = va_arg(more, int); va_end(more); } } while (0)
#define OPEN(name) int name(const char *path, int flags, ...) { \
    int mode = 0; MODE(flags, mode); \
    if (changes(flags) && refused_name("open", AT_FDCWD, path)) return -1; \
    return ((int (*)(const char *, int, ...))next(#name))(path, flags, mode); }
#define OPENAT(name) int name(int folder, const char *path, int flags, ...) { \
    int mode = 0; MODE(flags, mode); \
    if (changes(flags) && refused_name("open", folder, path)) return -1; \
    return ((int (*)(int, const char *, int, ...))next(#name))(folder, path, flags, mode); }
#define ON_FILE(type, name, parameters, file, arguments) type name parameters { \
    if (refused_file(#name, file)) return -1; \
    return ((type (*) parameters)next(#name)) arguments; }
#define ON_NAME(name, parameters, folder, path, arguments) int name parameters { \
    if (refused_name(#name, folder, path)) return -1; \
    return ((int (*) parameters)next(#name)) arguments; }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
ON_FILE(ssize_t, write, (int file, const void *data, size_t size), file, (file, data, size))
ON_FILE(ssize_t, pwrite, (int file, const void *data, size_t size, off_t place), file, (file, data, size, place))
ON_FILE(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t place), file, (file, data, size, place))
ON_FILE(ssize_t, writev, (int file, const struct iovec *parts, int many), file, (file, parts, many))
ON_FILE(ssize_t, sendfile64, (int file, int from, off64_t *place, size_t size), file, (file, from, place, size))
ON_FILE(int, ftruncate, (int file, off_t size), file, (file, size))
ON_FILE(int, ftruncate64, (int file, off64_t size), file, (file, size))
ON_FILE(int, fsync, (int file), file, (file))
ON_FILE(int, fdatasync, (int file), file, (file))
ON_FILE(int, flock, (int file, int how), file, (file, how))
ON_NAME(rename, (const char *from, const char *to), AT_FDCWD, to, (from, to))
ON_NAME(renameat, (int here, const char *from, int there, const char *to), there, to, (here, from, there, to))
ON_NAME(link, (const char *from, const char *to), AT_FDCWD, to, (from, to))
ON_NAME(linkat, (int here, const char *from, int there, const char *to, int how), there, to, (here, from, there, to, how))

/* A folder that is there is no change, and no system takes it for one. */
static int is_there(int folder, const char *path) { return faccessat(folder, path, F_OK, 0) == 0; }

int mkdirat(int folder, const char *path, mode_t mode) {
    if (!is_there(folder, path) && refused_name("mkdir", folder, path)) return -1;
    return ((int (*)(int, const char *, mode_t))next("mkdirat"))(folder, path, mode);
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
