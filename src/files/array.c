/* Sizes of arrays in files, and reads by several threads.
 *
 * The threads are started for a read and ended with it. That costs a tenth of a millisecond, while the smallest such read takes
 * several milliseconds, and a handle without threads can be used after fork().
 */
#include "files/array.h"

#include <pthread.h>
#include <string.h>

#include "base/integers.h"
#include "base/pool.h"
#include "base/structs.h"
#include "base/system/cores.h"
#include "base/text.h"

enum { PIECE_BYTES = 8 << 20, PARALLEL_BYTES_MIN = 4 * PIECE_BYTES, THREADS_MAX = 8 };

STRUCT_INIT(ww_array_info, {.name = "", .element = WW_ELEMENT_UNKNOWN})

bool array_size(ww_array_info *info)
{
    bool empty = false, fits = true;
    info->elements = 1;
    for (int32_t i = 0; i < WW_ARRAY_RANK_MAX; i++) {
        if (i >= info->rank)
            info->shape[i] = 1;
        if (info->shape[i] < 0)
            return false;
        empty = empty || info->shape[i] == 0;
        if (info->shape[i] > 0)
            fits = fits && !__builtin_mul_overflow(info->elements, info->shape[i], &info->elements);
    }
    if (empty)
        info->elements = 0;
    else if (!fits)
        return false;
    return !__builtin_mul_overflow(info->elements, ww_element_bytes(info->element), &info->bytes);
}

ww_status array_range_check(const char *call, const ww_array_info *info, int64_t offset, const void *to, size_t bytes)
{
    if (!to && bytes > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: to is NULL", call);
    if (offset < 0 || offset > info->bytes || bytes > (uint64_t)(info->bytes - offset))
        return ww_fail(WW_OUT_OF_RANGE, "%s: %zu bytes at offset %lld requested of an array of %lld bytes", call, bytes,
                       (long long)offset, (long long)info->bytes);
    return WW_OK;
}

/* ---- reading by several threads ------------------------------------------------------------------------------------------ */

typedef struct shared_read {
    const file_source *source;
    int64_t offset;
    unsigned char *to;
    int64_t bytes;
    pthread_mutex_t lock;
    int64_t failed_piece; /* the first piece that failed; INT64_MAX: none */
    ww_status status;
    char message[512];
} shared_read;

static void read_piece(void *context, int64_t piece, int32_t worker)
{
    shared_read *r = context;
    const int64_t first = piece * PIECE_BYTES;
    (void)worker;
    const ww_status status =
        source_read(r->source, r->offset + first, r->to + first, (size_t)min_i64(r->bytes - first, PIECE_BYTES));
    if (status == WW_OK)
        return;
    pthread_mutex_lock(&r->lock);
    if (piece < r->failed_piece) {
        r->failed_piece = piece;
        r->status = status;
        text_copy(r->message, sizeof r->message, ww_error_message());
    }
    pthread_mutex_unlock(&r->lock);
}

ww_status source_read_parallel(const file_source *source, int64_t offset, void *to, size_t bytes)
{
    int32_t cores[THREADS_MAX], threads = 1;
    pool *readers = NULL;
    if (bytes < PARALLEL_BYTES_MIN || source->bytes)
        return source_read(source, offset, to, bytes);
    const ww_status status = cores_to_use(cores, THREADS_MAX, &threads);
    if (status != WW_OK)
        return status;
    if (threads < 2 || pool_create(NULL, threads, &readers) != WW_OK)
        return source_read(source, offset, to, bytes); /* if threads cannot be started, this one reads everything */
    shared_read r = {.source = source, .offset = offset, .to = to, .bytes = (int64_t)bytes, .failed_piece = INT64_MAX};
    pthread_mutex_init(&r.lock, NULL);
    pool_run(readers, divide_up_i64(r.bytes, PIECE_BYTES), read_piece, NULL, &r);
    pool_destroy(readers);
    pthread_mutex_destroy(&r.lock);
    return r.failed_piece == INT64_MAX ? WW_OK : ww_fail(r.status, "%s", r.message);
}
