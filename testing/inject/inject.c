/* System calls that fail on demand. Calls that do not fail go to the next definition of the same name. */
#include "inject/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { POPULATE_READ = 22 }; /* MADV_POPULATE_READ, which older headers lack */

static atomic_int armed;
static atomic_long countdown;
static atomic_bool fired;

void inject_arm(inject_kind kind, long n)
{
    atomic_store(&armed, INJECT_NONE);
    if (kind == INJECT_NONE)
        return;
    atomic_store(&fired, false);
    atomic_store(&countdown, n);
    atomic_store(&armed, kind);
}

bool inject_fired(void)
{
    return atomic_load(&fired);
}

/* Returns true if this call must fail. In the command, the library cannot be asked whether it did, so it creates a file
 * then. */
static bool fails(inject_kind kind)
{
    if (atomic_load(&armed) != (int)kind || atomic_fetch_sub(&countdown, 1) != 1)
        return false;
    atomic_store(&fired, true);
    const char *mark = getenv("WARPWAVE_INJECT_MARK");
    if (mark) {
        const long file = syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file >= 0)
            syscall(SYS_close, file);
    }
    return true;
}

/* The next definition of the same function. */
#define NEXT(name)                                                                                                             \
    static _Atomic(void *) found;                                                                                              \
    __typeof__(name) *next;                                                                                                    \
    if (!atomic_load(&found))                                                                                                  \
        atomic_store(&found, dlsym(RTLD_NEXT, #name));                                                                         \
    void *const at = atomic_load(&found);                                                                                      \
    memcpy(&next, &at, sizeof next)

/* Fails a read or write, or makes it transfer fewer bytes than requested. */
static bool refuses(inject_kind kind, inject_kind partial, int error, size_t *bytes)
{
    const bool fail = fails(kind), interrupt = fails(INJECT_INTERRUPT);
    if (fail || interrupt)
        errno = fail ? error : EINTR;
    if (fails(partial) && *bytes > 1)
        *bytes /= 2;
    return fail || interrupt;
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the names of the C library are of its own */
ssize_t write(int file, const void *from, size_t bytes)
{
    NEXT(write);
    return refuses(INJECT_WRITE, INJECT_WRITE_SHORT, ENOSPC, &bytes) ? -1 : next(file, from, bytes);
}

ssize_t read(int file, void *to, size_t bytes)
{
    NEXT(read);
    return refuses(INJECT_READ, INJECT_READ_SHORT, EIO, &bytes) ? -1 : next(file, to, bytes);
}

ssize_t pread(int file, void *to, size_t bytes, off_t offset)
{
    NEXT(pread);
    return refuses(INJECT_READ, INJECT_READ_SHORT, EIO, &bytes) ? -1 : next(file, to, bytes, offset);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    NEXT(open);
    if (fails(INJECT_OPEN)) {
        errno = EMFILE;
        return -1;
    }
    return next(path, flags, mode);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    NEXT(mmap);
    if (file >= 0 && fails(INJECT_MAP)) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return next(address, bytes, protection, flags, file, offset);
}

int madvise(void *address, size_t bytes, int advice)
{
    NEXT(madvise);
    if (advice == POPULATE_READ && fails(INJECT_POPULATE)) {
        errno = EIO;
        return -1;
    }
    return next(address, bytes, advice);
}

int fsync(int file)
{
    NEXT(fsync);
    if (fails(INJECT_SYNC)) {
        errno = EIO;
        return -1;
    }
    return next(file);
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    if (fails(INJECT_RENAME)) {
        errno = EACCES;
        return -1;
    }
    return next(from, to);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    NEXT(pthread_create);
    return fails(INJECT_THREAD) ? EAGAIN : next(thread, attributes, run, argument);
}

#ifdef INJECT_PRELOAD
/* glibc's allocator: dlsym cannot be used for it, because it allocates, too. */
void *__libc_malloc(size_t bytes);                 /* NOLINT: the names are glibc's */
void *__libc_calloc(size_t count, size_t bytes);   /* NOLINT */
void *__libc_realloc(void *block, size_t bytes);   /* NOLINT */
void *__libc_memalign(size_t align, size_t bytes); /* NOLINT */

static bool no_memory(void)
{
    const bool none = fails(INJECT_ALLOCATION);
    if (none)
        errno = ENOMEM;
    return none;
}

void *malloc(size_t bytes)
{
    return no_memory() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return no_memory() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return no_memory() ? NULL : __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return no_memory() ? NULL : __libc_memalign(align, bytes);
}

/* WARPWAVE_INJECT=write:3 */
__attribute__((constructor)) static void arm_by_environment(void)
{
    const char *wanted = getenv("WARPWAVE_INJECT");
    for (int kind = 1; wanted && kind < INJECT_KINDS; kind++) {
        const size_t length = strlen(inject_name((inject_kind)kind));
        if (strncmp(wanted, inject_name((inject_kind)kind), length) == 0 && wanted[length] == ':')
            inject_arm((inject_kind)kind, strtol(wanted + length + 1, NULL, 10));
    }
}

static int (*command_main)(int, char **, char **);

static void disarm(void)
{
    inject_arm(INJECT_NONE, 0);
}

/* What runs after the program's own handlers of its exit is not the command's: gcov writes its counts there, and crashes
 * without memory. This handler is registered before all of the program's, so it is called last. */
static int main_between(int count, char **arguments, char **environment)
{
    if (atexit(disarm) != 0)
        return 99;
    return command_main(count, arguments, environment);
}

/* Starts main(). A constructor of this library would be too early for atexit(). */
int __libc_start_main(int (*run)(int, char **, char **), int count, char **arguments, void (*begin)(void), void (*end)(void),
                      void (*end_of_loader)(void), void *stack_end); /* NOLINT */
int __libc_start_main(int (*run)(int, char **, char **), int count, char **arguments, void (*begin)(void), void (*end)(void),
                      void (*end_of_loader)(void), void *stack_end) /* NOLINT */
{
    NEXT(__libc_start_main);
    command_main = run;
    return next(main_between, count, arguments, begin, end, end_of_loader, stack_end);
}
#endif
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
