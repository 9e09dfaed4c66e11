/* The list of large blocks. Its lock also protects the last reading of free memory, which is used for a few milliseconds,
 * because reading it again takes about as long as a small search. */
#include "base/system/large_blocks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/integers.h"
#include "base/system/limits.h"

enum {
    READING_NS = 20 * 1000 * 1000, /* how long a reading is used */
    PAGES_AT_ONCE = 16384,
};

typedef struct large_block {
    struct large_block *next;
    char *data;
    size_t bytes;
    size_t used; /* bytes known to be written, in whole pages; increases up to `bytes` */
} large_block;

/* Memory that Linux has promised belongs to the process, whichever thread asked for it. `lock` protects all of it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_handlers = PTHREAD_ONCE_INIT;
static large_block *blocks;
static size_t unused;       /* the sum of `bytes` minus `used` over all blocks */
static size_t reserved;     /* bytes of blocks that are not listed yet */
static int64_t last_free;   /* the last reading ... */
static int64_t last_ns;     /* ... and its time; 0: never */
static size_t listed_since; /* bytes that were listed after it: they may be used by now */
static const char *limits_root;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void add_fork_handlers(void)
{
    /* If there is no memory for the handlers, a forked child may have to wait. */
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

static void take_lock(void)
{
    pthread_once(&fork_handlers, add_fork_handlers);
    pthread_mutex_lock(&lock);
}

/* MemAvailable includes caches that the system would free, so it is what can really be allocated. */
static int64_t machine_free(void)
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

/* Called without the lock, because it reads files. */
static int64_t read_free(const char *root)
{
    const process_limits limits = limits_read(root ? root : "");
    return root ? limits.memory_left_bytes : min_i64(machine_free(), limits.memory_left_bytes);
}

static void note_free(int64_t free_bytes)
{
    last_free = free_bytes;
    last_ns = clock_nanoseconds();
    listed_since = 0;
}

/* Counts the pages of a block that are in memory. Blocks are never freed partly, so a written page stays used. If the system
 * does not tell, the whole block counts as used. */
static size_t block_used(const large_block *block)
{
    unsigned char present[PAGES_AT_ONCE];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t skip = (page - (size_t)(uintptr_t)block->data % page) % page;
    const size_t end = (block->bytes - skip) / page * page; /* a large block has many pages */
    size_t absent = 0;
    for (size_t at = 0; at < end; at += PAGES_AT_ONCE * page) {
        const size_t bytes = min_size(end - at, PAGES_AT_ONCE * page);
        if (mincore(block->data + skip + at, bytes, present) != 0)
            continue;
        for (size_t i = 0; i < bytes / page; i++)
            absent += !(present[i] & 1);
    }
    return block->bytes - absent * page;
}

static void count_unused(void)
{
    for (large_block *block = blocks; block; block = block->next) {
        if (block->used == block->bytes)
            continue;
        const size_t used = block_used(block);
        unused -= used > block->used ? used - block->used : 0;
        block->used = used > block->used ? used : block->used;
    }
}

/* Returns true if `bytes` more certainly fit, judging by the last reading. */
static bool fits_by_last_reading(size_t bytes)
{
    if (last_ns == 0 || clock_nanoseconds() - last_ns > READING_NS)
        return false;
    return (double)bytes + (double)reserved + (double)unused + (double)listed_since <= (double)last_free;
}

bool large_block_reserve(size_t bytes)
{
    take_lock();
    bool fit = fits_by_last_reading(bytes);
    reserved += fit ? bytes : 0;
    const char *root = limits_root;
    pthread_mutex_unlock(&lock);
    if (fit)
        return true;
    const int64_t free_bytes = read_free(root);
    take_lock();
    note_free(free_bytes);
    fit = (double)bytes + (double)reserved + (double)unused <= (double)last_free;
    if (!fit) { /* promised memory may have been used since the last reading */
        count_unused();
        fit = (double)bytes + (double)reserved + (double)unused <= (double)last_free;
    }
    reserved += fit ? bytes : 0;
    pthread_mutex_unlock(&lock);
    return fit;
}

static void list(void *block, size_t bytes, size_t was_reserved)
{
    large_block *entry = block ? malloc(sizeof *entry) : NULL; /* not counted, because it is not a block of a caller */
    take_lock();
    reserved -= was_reserved;
    if (entry) {
        *entry = (large_block){.next = blocks, .data = block, .bytes = bytes};
        blocks = entry;
        unused += bytes;
        listed_since += bytes;
    }
    pthread_mutex_unlock(&lock);
}

void large_block_list(void *block, size_t bytes)
{
    list(block, bytes, bytes);
}

void large_block_relist(void *block, size_t bytes)
{
    list(block, bytes, 0);
}

void large_block_forget(void *block)
{
    take_lock();
    large_block **link = &blocks;
    while (*link && (*link)->data != block)
        link = &(*link)->next;
    large_block *entry = *link;
    if (entry) {
        *link = entry->next;
        unused -= entry->bytes - entry->used;
    }
    pthread_mutex_unlock(&lock);
    free(entry);
}

int64_t large_blocks_available(void)
{
    take_lock();
    const char *root = limits_root;
    pthread_mutex_unlock(&lock);
    const int64_t free_bytes = read_free(root);
    take_lock();
    note_free(free_bytes);
    count_unused();
    const double left = (double)last_free - (double)reserved - (double)unused;
    pthread_mutex_unlock(&lock);
    return left > 0 ? (int64_t)left : 0;
}

void large_blocks_limits_root(const char *root)
{
    take_lock();
    limits_root = root;
    last_ns = 0;
    pthread_mutex_unlock(&lock);
}
