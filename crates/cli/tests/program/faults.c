// Lets one call of the system fail, as a full or a broken disk does. Loaded into the program with LD_PRELOAD.
//
//   FAULTS_BENEATH   the folder in which calls count; the program must name its files by absolute paths
//   FAULTS_LOG       a file that gets a line `call path` for each call that was made to fail;
//                    without FAULTS_CALL for each call
//   FAULTS_CALL      the calls that are counted, by the word that the functions below have for them
//   FAULTS_AT        the number, from 1 on, of the one that fails
//   FAULTS_HOW       eio: it fails with EIO; enospc: with ENOSPC; short: it writes half of its bytes, and from
//                    then on nothing more can be written or created
//
// Calls are made directly, without the functions of the C library that these ones replace.
//
// Not reached: listing a folder once it is open (readdir64), permissions (fchmod), locks (flock), positions
// (lseek64), and the copy that takes the place of a hard link where there are none (copy_file_range, sendfile64).
// The program maps no files into memory.

#define _LARGEFILE64_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long counted;
static atomic_bool disk_is_full;

static int is(const char *variable, const char *word) {
    const char *value = getenv(variable);
    return value && strcmp(value, word) == 0;
}

static void note(const char *call, const char *path) {
    char line[PATH_MAX + 32];
    int length = snprintf(line, sizeof line, "%s %s\n", call, path);
    int log = syscall(SYS_openat, AT_FDCWD, getenv("FAULTS_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    syscall(SYS_write, log, line, length);
    syscall(SYS_close, log);
}

// Whether a call fails; `errno` then says why.
static int fails(const char *call, const char *path) {
    const char *beneath = getenv("FAULTS_BENEATH");
    if (!beneath || !path || strncmp(path, beneath, strlen(beneath)) != 0) return 0;
    if (!getenv("FAULTS_CALL")) {
        note(call, path);
        return 0;
    }
    int takes_room = !strcmp(call, "write") || !strcmp(call, "create") || !strcmp(call, "mkdir");
    int is_next = is("FAULTS_CALL", call) && atomic_fetch_add(&counted, 1) + 1 == atol(getenv("FAULTS_AT"));
    if (!is_next && !(takes_room && disk_is_full)) return 0;
    note(call, path);
    errno = is("FAULTS_HOW", "eio") ? EIO : ENOSPC;
    return 1;
}

// The same of a call with an open file.
static int fails_with(const char *call, int file) {
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return fails(call, path);
}

static int open_file(const char *path, int flags, mode_t mode) {
    if (fails(flags & O_CREAT ? "create" : "open", path)) return -1;
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open_file(path, flags, mode);
}

DIR *opendir(const char *path) {
    int file = open_file(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return file < 0 ? NULL : fdopendir(file);
}

int mkdir(const char *path, mode_t mode) {
    return fails("mkdir", path) ? -1 : syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

ssize_t read(int file, void *bytes, size_t length) {
    return fails_with("read", file) ? -1 : syscall(SYS_read, file, bytes, length);
}

ssize_t write(int file, const void *bytes, size_t length) {
    int was_full = disk_is_full;
    if (!fails_with("write", file)) return syscall(SYS_write, file, bytes, length);
    if (!is("FAULTS_HOW", "short")) return -1;
    disk_is_full = 1;
    // Of one byte there is no half.
    return was_full || length < 2 ? -1 : syscall(SYS_write, file, bytes, length / 2);
}

int ftruncate64(int file, off64_t length) {
    return fails_with("truncate", file) ? -1 : syscall(SYS_ftruncate, file, length);
}

int fsync(int file) {
    return fails_with("sync", file) ? -1 : syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    return fails_with("sync", file) ? -1 : syscall(SYS_fdatasync, file);
}

int rename(const char *from, const char *to) {
    return fails("rename", to) ? -1 : syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    return fails("link", to) ? -1 : syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

int unlink(const char *path) {
    return fails("unlink", path) ? -1 : syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

// Without GNU's header, which would let the compiler take `path` for something: the standard library asks for nothing
// at all to see whether the system has this call.
int statx(int folder, const char *path, int flags, unsigned mask, void *found) {
    int is_open = path && !*path;
    if (is_open ? fails_with("stat", folder) : fails("stat", path)) return -1;
    return syscall(SYS_statx, folder, path, flags, mask, found);
}
