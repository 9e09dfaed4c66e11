/* Buffers on the CPU: aligned blocks of host memory, counted; large ones in huge pages. */
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "cpu/cpu.h"

enum {
    BUFFER_ALIGNMENT = 256,
    HUGE_PAGE = 2 << 20, /* larger buffers are aligned to this */
};

void cpu_count_bytes(cpu_device *cpu, int64_t bytes)
{
    const int64_t now = atomic_fetch_add(&cpu->ours_bytes, bytes) + bytes;
    int64_t peak = atomic_load(&cpu->peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&cpu->peak_bytes, &peak, now))
        continue;
}

/* The allocated block starts before the aligned data, where buffer_destroy() finds its address. Large buffers ask for huge
 * pages: then a scan of all rows waits for fewer address translations, and the first access causes fewer page faults. */
ww_status cpu_buffer_create(ww_device *device, size_t bytes, buffer *out)
{
    const size_t alignment = bytes >= (size_t)HUGE_PAGE ? HUGE_PAGE : BUFFER_ALIGNMENT;
    const size_t extra = alignment + sizeof(void *);
    if (bytes > PTRDIFF_MAX - extra)
        return memory_failed("buffer on cpu", bytes);
    char *block = memory_alloc(bytes + extra);
    if (!block)
        return memory_failed("buffer on cpu", bytes);
    char *data = block + extra - ((uintptr_t)block + extra) % alignment;
    memcpy(data - sizeof block, &block, sizeof block);
    if (alignment == HUGE_PAGE)
        (void)madvise(data, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE); /* a hint only: ordinary pages work, too */
    *out = (buffer){.data = data, .bytes = bytes};
    cpu_count_bytes((cpu_device *)device, (int64_t)bytes);
    return WW_OK;
}

void cpu_buffer_destroy(ww_device *device, buffer *b)
{
    if (b->data) {
        char *block;
        memcpy(&block, (char *)b->data - sizeof block, sizeof block);
        memory_free(block);
        cpu_count_bytes((cpu_device *)device, -(int64_t)b->bytes);
    }
    *b = (buffer){0};
}
