/* Adds a rank's slice of a file, read in pieces. The shard must be empty: then the rows have the same numbers as in the file,
 * and a failure half-way can be undone. */
#include <inttypes.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/system/process.h"
#include "base/text.h"
#include "mpi/cluster.h"
#include "mpi/slices.h"

enum { READ_BYTES = 64 << 20 };

typedef struct slice {
    ww_matrix *file;
    const char *path;
    int64_t first, count; /* rows of the file */
    int64_t dim;
    ww_progress progress;
    void *user;
} slice;

static ww_status check_shard(ww_collection *shard)
{
    ww_collection_info info = ww_collection_info_default();
    const ww_status status = ww_collection_describe(shard, &info);
    if (status == WW_OK && info.mask_rows > 0)
        return ww_fail(
            WW_INVALID_ARGUMENT,
            "ww_cluster_add_file: the shard has %" PRId64
            " rows already, so its rows would not be numbered as in the file; add more rows to the collection instead",
            info.mask_rows);
    return status;
}

static ww_status open_slice(const ww_cluster *c, const ww_matrix_options *options, slice *s)
{
    ww_matrix_info info = ww_matrix_info_default();
    ww_status status = ww_matrix_open_with(s->path, options, &s->file);
    if (status == WW_OK)
        status = ww_matrix_describe(s->file, &info);
    if (status != WW_OK)
        return status;
    if (info.dim != c->dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s has vectors of dimension %" PRId64 ", the cluster has %d", s->path, info.dim,
                       c->dim);
    s->first = slice_first(info.rows, c->rank, c->ranks);
    s->count = slice_first(info.rows, c->rank + 1, c->ranks) - s->first;
    s->dim = info.dim;
    if (s->count > WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE,
                       "%s: %" PRId64 " rows for this rank; the maximum of a shard is %" PRId64 "; use more ranks", s->path,
                       s->count, WW_ROWS_MAX);
    return WW_OK;
}

/* Adds `count` rows from `done` of the slice on. Rows of smaller types lose nothing on their way through f32. */
static ww_status add_piece(ww_collection *shard, const slice *s, int64_t done, int64_t count, float *piece)
{
    const int64_t row = s->first + done;
    const char **ids = NULL;
    ww_status status = ww_matrix_read_f32(s->file, row, count, piece);
    if (status == WW_OK)
        status = ww_matrix_check_finite(s->file, row, count, piece);
    if (status == WW_OK && count > 0 && ww_matrix_id(s->file, row)) {
        ids = memory_alloc((size_t)count * sizeof *ids);
        status = ids ? WW_OK : memory_failed("ids of a file", (size_t)count * sizeof *ids);
        for (int64_t i = 0; i < count && ids; i++)
            ids[i] = ww_matrix_id(s->file, row + i);
    }
    if (status == WW_OK) {
        ww_rows rows = ww_rows_default();
        rows.count = count;
        rows.dim = (int32_t)s->dim;
        rows.vectors = piece;
        rows.ids = ids;
        status = ww_collection_add(shard, &rows);
        if (status != WW_OK)
            status =
                ww_fail(status, "%s: %s (the batch starts at row %" PRId64 " of the file)", s->path, ww_error_message(), row);
    }
    memory_free(ids);
    return status;
}

static ww_status add_slice(ww_collection *shard, const slice *s)
{
    const size_t row_bytes = (size_t)s->dim * sizeof(float);
    const int64_t piece_rows = min_i64(max_i64(1, (int64_t)(READ_BYTES / row_bytes)), max_i64(1, s->count));
    float *piece = memory_alloc((size_t)piece_rows * row_bytes);
    ww_status status =
        piece ? ww_collection_reserve(shard, s->count) : memory_failed("rows of a file", (size_t)piece_rows * row_bytes);
    for (int64_t done = 0; done < s->count && status == WW_OK; done += piece_rows) {
        const int64_t count = min_i64(piece_rows, s->count - done);
        status = add_piece(shard, s, done, count, piece);
        if (status == WW_OK && progress_tell(s->progress, s->user, done + count, s->count))
            status = ww_fail(WW_CANCELLED, "ww_cluster_add_file: cancelled after %" PRId64 " rows", done + count);
    }
    memory_free(piece);
    return status;
}

ww_status ww_cluster_add_file(ww_cluster *cluster, const char *path, const ww_matrix_options *options, ww_progress progress,
                              void *user)
{
    FLOAT_GUARD();
    slice s = {.path = path, .progress = progress, .user = user};
    if (!cluster || !path)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_cluster_add_file: %s is NULL", cluster ? "path" : "cluster");
    ww_status status = process_check(cluster->process, "cluster");
    if (status == WW_OK)
        status = check_shard(cluster->shard);
    if (status == WW_OK)
        status = open_slice(cluster, options, &s);
    if (status == WW_OK) {
        char why[FAILURE_BYTES];
        status = add_slice(cluster->shard, &s);
        if (status != WW_OK) {
            text_copy(why, sizeof why, ww_error_message());
            (void)ww_collection_clear(cluster->shard);
            status = ww_fail(status, "%s", why);
        }
    }
    ww_matrix_close(s.file);
    return status;
}
