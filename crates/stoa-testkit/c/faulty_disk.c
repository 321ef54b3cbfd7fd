/*
 * A disk that fails on command, for programs that write through libc.
 *
 * Preloaded (LD_PRELOAD) into a program, this stands before the calls that change files. A call
 * counts if its kind is asked for and its path contains both texts of the control block, which is
 * a file that is mapped by the program and by the test: so the test arms and heals the disk while
 * the program runs. The environment variable FAULTY_DISK names the file; its layout is that of
 * `faulty_disk.rs`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, RENAME = 4, OPEN = 8, TRUNCATE = 16, MKDIR = 32, UNLINK = 64 };
enum { FAULT_EIO = 0, FAULT_ENOSPC = 1, FAULT_SHORT = 2 };

struct control {
    _Atomic uint32_t armed;
    _Atomic uint32_t kinds;
    _Atomic uint32_t fault;
    uint32_t reserved;
    _Atomic uint64_t skip;   /* so many calls succeed first */
    _Atomic uint64_t times;  /* so many fail then; 0: all */
    _Atomic uint64_t seen;   /* calls that counted since it was armed */
    _Atomic uint64_t failed; /* of them, failed */
    char root[512];
    char part[512];
};

static struct control *control;

__attribute__((constructor)) static void map_control(void) {
    const char *name = getenv("FAULTY_DISK");
    if (!name) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return;
    void *at = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (at != MAP_FAILED) control = at;
}

/* Whether this call of `kind` on `path` is to fail. */
static int fails(uint32_t kind, const char *path) {
    if (!control || !atomic_load(&control->armed) || !(atomic_load(&control->kinds) & kind)) return 0;
    if (!path || !strstr(path, control->root) || !strstr(path, control->part)) return 0;
    uint64_t number = atomic_fetch_add(&control->seen, 1);
    uint64_t skip = atomic_load(&control->skip), times = atomic_load(&control->times);
    if (number < skip || (times && number - skip >= times)) return 0;
    atomic_fetch_add(&control->failed, 1);
    return 1;
}

static int fails_fd(uint32_t kind, int fd) {
    if (!control || !atomic_load(&control->armed) || !(atomic_load(&control->kinds) & kind)) return 0;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    int saved = errno, answer = fails(kind, path);
    errno = saved;
    return answer;
}

static int refuse(void) {
    errno = atomic_load(&control->fault) == FAULT_EIO ? EIO : ENOSPC;
    return -1;
}

/* How much of a failing write is done: half of it where short writes are asked for. */
static size_t done_of(size_t count) {
    return atomic_load(&control->fault) == FAULT_SHORT ? count / 2 : 0;
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *bytes, size_t count) {
    NEXT(write);
    if (!fails_fd(WRITE, fd)) return next(fd, bytes, count);
    size_t part = done_of(count);
    return part ? next(fd, bytes, part) : refuse();
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    NEXT(pwrite);
    if (!fails_fd(WRITE, fd)) return next(fd, bytes, count, at);
    size_t part = done_of(count);
    return part ? next(fd, bytes, part, at) : refuse();
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    NEXT(pwrite64);
    if (!fails_fd(WRITE, fd)) return next(fd, bytes, count, at);
    size_t part = done_of(count);
    return part ? next(fd, bytes, part, at) : refuse();
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    if (!fails_fd(WRITE, fd)) return next(fd, parts, count);
    return done_of(2) && count > 1 ? next(fd, parts, count / 2) : refuse();
}

int fsync(int fd) {
    NEXT(fsync);
    return fails_fd(SYNC, fd) ? refuse() : next(fd);
}

int fdatasync(int fd) {
    NEXT(fdatasync);
    return fails_fd(SYNC, fd) ? refuse() : next(fd);
}

int ftruncate(int fd, off_t length) {
    NEXT(ftruncate);
    return fails_fd(TRUNCATE, fd) ? refuse() : next(fd, length);
}

int ftruncate64(int fd, off64_t length) {
    NEXT(ftruncate64);
    return fails_fd(TRUNCATE, fd) ? refuse() : next(fd, length);
}

int fallocate(int fd, int mode, off_t from, off_t length) {
    NEXT(fallocate);
    return fails_fd(TRUNCATE, fd) ? refuse() : next(fd, mode, from, length);
}

int fallocate64(int fd, int mode, off64_t from, off64_t length) {
    NEXT(fallocate64);
    return fails_fd(TRUNCATE, fd) ? refuse() : next(fd, mode, from, length);
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    return fails(RENAME, to) ? refuse() : next(from, to);
}

int renameat(int at, const char *from, int to_at, const char *to) {
    NEXT(renameat);
    return fails(RENAME, to) ? refuse() : next(at, from, to_at, to);
}

int link(const char *from, const char *to) {
    NEXT(link);
    return fails(RENAME, to) ? refuse() : next(from, to);
}

int linkat(int at, const char *from, int to_at, const char *to, int flags) {
    NEXT(linkat);
    return fails(RENAME, to) ? refuse() : next(at, from, to_at, to, flags);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    return fails(MKDIR, path) ? refuse() : next(path, mode);
}

int unlink(const char *path) {
    NEXT(unlink);
    return fails(UNLINK, path) ? refuse() : next(path);
}

/* Only opens that may make a file: a full disk still opens what is there. */
#define OPENING(name, path) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    } \
    NEXT(name); \
    if ((flags & O_CREAT) && fails(OPEN, path)) return refuse()

int open(const char *path, int flags, ...) {
    OPENING(open, path);
    return next(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    OPENING(open64, path);
    return next(path, flags, mode);
}

int openat(int at, const char *path, int flags, ...) {
    OPENING(openat, path);
    return next(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
    OPENING(openat64, path);
    return next(at, path, flags, mode);
}
