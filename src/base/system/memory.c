/* Host memory, counted, with a hook for faults. Counting costs one relaxed atomic per call, which is little compared with
 * malloc. */
#include "base/memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/hooks.h"
#include "base/integers.h"
#include "base/memory_hooks.h"
#include "base/system/large_blocks.h"
#include "base/system/limits.h"
#include "base/text.h"

#undef memory_failed

enum { ALIGNMENT_USUAL = _Alignof(max_align_t) };

/* For tests: how many blocks there are, and which allocation fails. Nothing else depends on them. */
static atomic_int_least64_t blocks_held;
static atomic_int_least64_t fail_countdown; /* 0: off */
static atomic_int_least64_t failures_made;

static bool must_fail(void)
{
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0)
        return false;
    if (atomic_fetch_sub_explicit(&fail_countdown, 1, memory_order_relaxed) != 1)
        return false;
    atomic_fetch_add_explicit(&failures_made, 1, memory_order_relaxed);
    return true;
}

static void *counted(void *block)
{
    if (block)
        atomic_fetch_add_explicit(&blocks_held, 1, memory_order_relaxed);
    return block;
}

/* A large block is only allocated if it fits besides the promised ones (base/system/large_blocks.h). */
static bool large_reserved(size_t bytes)
{
    return bytes < LARGE_BLOCK_BYTES || hooks_memory() || large_block_reserve(bytes);
}

static void *large_listed(void *block, size_t bytes)
{
    if (bytes >= LARGE_BLOCK_BYTES && !hooks_memory())
        large_block_list(block, bytes);
    return block;
}

/* Called before a block is freed. A smaller block with a large usable size is simply not found in the list. */
static void large_forgotten(void *block)
{
    if (block && !hooks_memory() && malloc_usable_size(block) >= LARGE_BLOCK_BYTES)
        large_block_forget(block);
}

/* Of these sizes: C's memory, or the program's. */
static void *block_take(size_t bytes, size_t alignment)
{
    const ww_hooks *hooks = hooks_memory();
    if (hooks)
        return hooks->allocate(bytes, alignment, hooks->user);
    return alignment == CACHE_LINE_BYTES ? aligned_alloc(alignment, bytes) : malloc(bytes);
}

static void *block_take_zeroed(size_t bytes)
{
    const ww_hooks *hooks = hooks_memory();
    void *block = hooks ? hooks->allocate(bytes, ALIGNMENT_USUAL, hooks->user) : calloc(bytes, 1);
    return hooks && block ? memset(block, 0, bytes) : block;
}

static void *block_resize(void *block, size_t bytes)
{
    const ww_hooks *hooks = hooks_memory();
    return hooks ? hooks->resize(block, bytes, hooks->user) : realloc(block, bytes);
}

static void block_release(void *block)
{
    const ww_hooks *hooks = hooks_memory();
    if (!hooks)
        free(block);
    else if (block)
        hooks->release(block, hooks->user);
}

void *memory_alloc(size_t bytes)
{
    if (must_fail() || !large_reserved(bytes))
        return NULL;
    return counted(large_listed(block_take(bytes ? bytes : 1, ALIGNMENT_USUAL), bytes));
}

void *memory_alloc_zeroed(size_t count, size_t element_bytes)
{
    size_t bytes;
    if (!size_multiply(count, element_bytes, &bytes) || must_fail() || !large_reserved(bytes))
        return NULL;
    return counted(large_listed(block_take_zeroed(bytes ? bytes : 1), bytes));
}

void *memory_alloc_aligned(size_t bytes)
{
    if (bytes > SIZE_MAX - CACHE_LINE_BYTES || must_fail() || !large_reserved(bytes))
        return NULL;
    const size_t rounded = round_up_size(bytes, CACHE_LINE_BYTES);
    return counted(large_listed(block_take(rounded ? rounded : CACHE_LINE_BYTES, CACHE_LINE_BYTES), bytes));
}

void *memory_resize(void *block, size_t bytes)
{
    if (must_fail() || !large_reserved(bytes))
        return NULL;
    const size_t before = block && !hooks_memory() ? malloc_usable_size(block) : 0;
    large_forgotten(block); /* before another thread can get the same address */
    void *moved = block_resize(block, bytes ? bytes : 1);
    large_listed(moved, bytes);
    if (!moved && before >= LARGE_BLOCK_BYTES) /* the block did not change, so it is listed again */
        large_block_relist(block, before);
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
    large_forgotten(block);
    block_release(block);
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

/* Returns the address space that RLIMIT_AS leaves; all of it if `used` is 0. */
static int64_t address_space_left(int64_t used)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= (rlim_t)INT64_MAX)
        return INT64_MAX;
    return max_i64((int64_t)limit.rlim_cur - used, 0);
}

static int64_t address_space_used(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%lld", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * (int64_t)sysconf(_SC_PAGESIZE);
}

int64_t memory_total_bytes(void)
{
    const int64_t physical = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    return min_i64(min_i64(physical, limits_read("").memory_bytes), address_space_left(0));
}

int64_t memory_available_bytes(void)
{
    return min_i64(large_blocks_available(), address_space_left(address_space_used()));
}

void memory_fail_at(int64_t n)
{
    atomic_store(&fail_countdown, n);
}

int64_t memory_blocks_held(void)
{
    return atomic_load(&blocks_held);
}

int64_t memory_failures_made(void)
{
    return atomic_load(&failures_made);
}
