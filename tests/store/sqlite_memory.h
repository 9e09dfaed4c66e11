/* Makes SQLite's allocations fail through SQLite's interface for that: between sqlite_memory_begin() and _end(), the n-th
 * allocation after sqlite_memory_fail_at(n) returns NULL, and with `forever` all later ones do, too.
 */
#ifndef TESTS_SQLITE_MEMORY_H
#define TESTS_SQLITE_MEMORY_H

#include "support/check.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

static struct sqlite_memory {
    sqlite3_mem_methods real;
    int64_t fails_in; /* 0: never */
    bool forever, failed;
} sqlite_memory;

static inline bool sqlite_memory_fails(void)
{
    if (sqlite_memory.fails_in == 0 || (sqlite_memory.fails_in > 1 && sqlite_memory.fails_in-- > 0))
        return false;
    sqlite_memory.failed = true;
    if (!sqlite_memory.forever)
        sqlite_memory.fails_in = 0;
    return true;
}

static inline void *sqlite_memory_alloc(int bytes)
{
    return sqlite_memory_fails() ? NULL : sqlite_memory.real.xMalloc(bytes);
}

static inline void *sqlite_memory_resize(void *block, int bytes)
{
    return sqlite_memory_fails() ? NULL : sqlite_memory.real.xRealloc(block, bytes);
}

static inline void sqlite_memory_begin(void)
{
    sqlite3_shutdown();
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_memory.real), SQLITE_OK);
    sqlite3_mem_methods faulty = sqlite_memory.real;
    faulty.xMalloc = sqlite_memory_alloc;
    faulty.xRealloc = sqlite_memory_resize;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &faulty), SQLITE_OK);
    sqlite3_initialize();
}

static inline void sqlite_memory_end(void)
{
    sqlite3_shutdown();
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &sqlite_memory.real), SQLITE_OK);
    sqlite3_initialize();
}

static inline void sqlite_memory_fail_at(int64_t n, bool forever)
{
    sqlite_memory.fails_in = n;
    sqlite_memory.forever = forever;
    if (n > 0)
        sqlite_memory.failed = false;
}

#endif
