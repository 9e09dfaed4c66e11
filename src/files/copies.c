/* Ranges of a file in memory. */
#include "files/copies.h"

#include "base/memory.h"
#include "files/array.h"

void copies_create(file_copies *copies, int64_t count)
{
    *copies = (file_copies){.count = count};
    pthread_mutex_init(&copies->lock, NULL);
}

void copies_destroy(file_copies *copies)
{
    for (int64_t i = 0; copies->bytes && i < copies->count; i++)
        memory_free(copies->bytes[i]);
    memory_free(copies->bytes);
    pthread_mutex_destroy(&copies->lock);
    *copies = (file_copies){0};
}

static ww_status read_range(file_copies *copies, const file_source *source, file_range range)
{
    if (!copies->bytes)
        copies->bytes = memory_alloc_zeroed((size_t)copies->count, sizeof *copies->bytes);
    void *made = copies->bytes ? memory_alloc_aligned((size_t)range.bytes) : NULL;
    if (!made)
        return memory_failed("a part of a file that is wanted in memory", (size_t)range.bytes);
    const ww_status status = source_read_parallel(source, range.offset, made, (size_t)range.bytes);
    if (status == WW_OK)
        copies->bytes[range.index] = made;
    else
        memory_free(made);
    return status;
}

ww_status copies_get(file_copies *copies, const file_source *source, file_range range, int64_t align, const void **bytes)
{
    if (source->bytes && (uintptr_t)(source->bytes + range.offset) % (uintptr_t)align == 0) {
        *bytes = source->bytes + range.offset;
        return WW_OK;
    }
    ww_status status = WW_OK;
    pthread_mutex_lock(&copies->lock);
    if (!copies->bytes || !copies->bytes[range.index])
        status = read_range(copies, source, range);
    if (status == WW_OK)
        *bytes = copies->bytes[range.index];
    pthread_mutex_unlock(&copies->lock);
    return status;
}
