/* Host memory with a count and a fault hook. The count costs one relaxed atomic per call, which is nothing beside malloc. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/integers.h"
#include "base/text.h"

#undef memory_failed

static atomic_int_least64_t blocks_held;
static atomic_int_least64_t fail_countdown; /* 0: off */

static bool must_fail(void)
{
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0)
        return false;
    return atomic_fetch_sub_explicit(&fail_countdown, 1, memory_order_relaxed) == 1;
}

static void *counted(void *block)
{
    if (block)
        atomic_fetch_add_explicit(&blocks_held, 1, memory_order_relaxed);
    return block;
}

void *memory_alloc(size_t bytes)
{
    return must_fail() ? NULL : counted(malloc(bytes ? bytes : 1));
}

void *memory_alloc_zeroed(size_t count, size_t element_bytes)
{
    size_t bytes;
    if (!size_multiply(count, element_bytes, &bytes) || must_fail())
        return NULL;
    return counted(calloc(bytes ? bytes : 1, 1));
}

void *memory_alloc_aligned(size_t bytes)
{
    if (bytes > SIZE_MAX - CACHE_LINE_BYTES || must_fail())
        return NULL;
    const size_t rounded = round_up_size(bytes, CACHE_LINE_BYTES);
    return counted(aligned_alloc(CACHE_LINE_BYTES, rounded ? rounded : CACHE_LINE_BYTES));
}

void *memory_resize(void *block, size_t bytes)
{
    if (must_fail())
        return NULL;
    void *moved = realloc(block, bytes ? bytes : 1);
    if (moved && !block)
        counted(moved);
    return moved;
}

char *memory_copy_text(const char *text, size_t length)
{
    char *copy = memory_alloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

void memory_free(void *block)
{
    if (block)
        atomic_fetch_sub_explicit(&blocks_held, 1, memory_order_relaxed);
    free(block);
}

bool size_multiply(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

ww_status memory_failed(const char *what, size_t bytes)
{
    char asked[32], available[32];
    return ww_fail(WW_OUT_OF_MEMORY, "%s: %s asked, %s free on this machine", what, human_bytes(asked, (int64_t)bytes),
                   human_bytes(available, memory_available_bytes()));
}

int64_t memory_total_bytes(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
}

/* MemAvailable counts caches that the system would give up, which is what an allocation can really get. */
int64_t memory_available_bytes(void)
{
    int64_t available = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    if (file) {
        char line[128];
        long long kib;
        while (available == 0 && fgets(line, sizeof line, file))
            if (sscanf(line, "MemAvailable: %lld kB", &kib) == 1)
                available = kib * 1024;
        fclose(file);
    }
    return available ? available : (int64_t)sysconf(_SC_AVPHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
}

void memory_fail_at(int64_t n)
{
    atomic_store(&fail_countdown, n);
}

int64_t memory_blocks_held(void)
{
    return atomic_load(&blocks_held);
}
