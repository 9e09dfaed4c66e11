/* System calls that fail on demand: the n-th of a kind, once.
 *
 * This redefines functions of the C library, so that programs that link it, or load it before all other libraries (LD_PRELOAD,
 * for the command), call these instead. Calls inside the C library, such as the writes of stdio, are not affected: full disks
 * and closed pipes test those.
 */
#ifndef TESTS_FAULTS_INJECT_H
#define TESTS_FAULTS_INJECT_H

#include <stdbool.h>

typedef enum inject_kind {
    INJECT_NONE,
    INJECT_OPEN,        /* EMFILE */
    INJECT_READ,        /* EIO */
    INJECT_READ_SHORT,  /* half of the request, which is not a failure */
    INJECT_WRITE,       /* ENOSPC */
    INJECT_WRITE_SHORT, /* half of the request, which is not a failure */
    INJECT_INTERRUPT,   /* EINTR from a read or a write, which is not a failure */
    INJECT_SYNC,        /* EIO */
    INJECT_RENAME,      /* EACCES */
    INJECT_THREAD,      /* EAGAIN: a thread that cannot be created */
    INJECT_MAP,         /* ENODEV from mmap() of a file, which is then read */
    INJECT_POPULATE,    /* EIO where a page of a mapped file is brought into memory */
    INJECT_ALLOCATION,  /* malloc and its kin; only in the command */
    INJECT_KINDS
} inject_kind;

/* "write", ...; as WARPWAVE_INJECT=write:3 has them, which arms the command. */
static inline const char *inject_name(inject_kind kind)
{
    static const char *const names[INJECT_KINDS] = {"none",        "open",      "read",      "short-read", "write",
                                                    "short-write", "interrupt", "sync",      "rename",     "thread",
                                                    "map",         "populate",  "allocation"};
    return names[kind];
}

/* From now on, the n-th call of the kind fails, once. INJECT_NONE: none fails. */
void inject_arm(inject_kind kind, long n);

/* Has it failed since it was armed last? */
bool inject_fired(void);

#endif
