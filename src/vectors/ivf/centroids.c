/* Centroids on the device. Finds the nearest centroid of each row by an exact search with k = 1, whose bits are the same
 * everywhere. */
#include "vectors/ivf/ivf.h"

#include <math.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/row_types.h"
#include "base/integers.h"
#include "base/memory.h"
#include "vectors/query/fetch.h"

enum {
    PIECE_BYTES = 16 * 1024 * 1024, /* bytes of rows that are compared with centroids at a time */
    PIECE_ROWS_MAX = 65536,         /* rows at a time, at most, so that callbacks are called often enough */
};

int64_t ivf_piece_rows(int32_t dim)
{
    /* At least 64, because dim is at most 65536. */
    return min_i64(PIECE_BYTES / ((int64_t)dim * (int64_t)sizeof(float)), PIECE_ROWS_MAX);
}

static ww_status write_centroids(row_store *store, const float *centroids, ivf_size size)
{
    const backend *api = store->device->backend;
    ww_status status = WW_OK;
    for (int64_t s = 0, first = 0; status == WW_OK && first < size.nlist; s++) {
        const segment *to = &store->segments[s];
        const int64_t count = min_i64(to->capacity, size.nlist - first);
        int64_t refused = -1;
        status = api->rows_write(store->device, (row_range){to, 0, count, size.dim}, centroids + first * size.dim, size.dim,
                                 &refused);
        if (status == WW_OK && refused >= 0)
            status = ww_fail(WW_INVALID_ARGUMENT, "the rows are so large that a centroid's squared norm is not finite");
        first += count;
    }
    return status;
}

ww_status centroids_create(row_store *store, ww_device *device, device_stream *stream, const float *centroids, ivf_size size)
{
    const row_shape shape = {.dim = size.dim, .type = ROW_F32, .screen = true};
    ww_status status = store_create(store, device, stream, shape);
    if (status != WW_OK)
        return status;
    status = store_grow(store, size.nlist);
    if (status == WW_OK)
        status = write_centroids(store, centroids, size);
    if (status == WW_OK) {
        store_commit(store, size.nlist);
        store->rows_live = size.nlist;
        store_mark(store, 0, size.nlist, true);
        status = store_push_live(store);
    }
    if (status != WW_OK)
        store_destroy(store);
    return status;
}

static double length_of(const float *vector, int32_t dim)
{
    double squares = 0.0;
    for (int32_t i = 0; i < dim; i++)
        squares += (double)vector[i] * (double)vector[i];
    return sqrt(squares);
}

ww_status centroids_nearest(const ivf *index, ivf_vectors vectors, ivf_place *places)
{
    ww_device *device = index->store.device;
    const size_t bytes = (size_t)vectors.count * (sizeof(int64_t) + sizeof(float));
    int64_t *rows = memory_alloc(bytes);
    if (!rows)
        return memory_failed("the lists of rows", bytes);
    float *scores = (float *)(rows + vectors.count);
    const search_job job = {.metric = index->assigned,
                            .dim = index->dim,
                            .type = ROW_F32,
                            .segments = index->store.segments,
                            .segment_count = store_segments_used(&index->store),
                            .queries = vectors.vectors,
                            .queries_on_device = vectors.on_device,
                            .query_count = vectors.count,
                            .query_stride = index->dim,
                            .k = 1,
                            .rows = rows,
                            .scores = scores,
                            .screen = true};
    const ww_status status = device->backend->rows_search(device, &job);
    for (int64_t i = 0; status == WW_OK && i < vectors.count; i++)
        places[i] = (ivf_place){.list = (uint32_t)rows[i], .score = scores[i]};
    memory_free(rows);
    return status;
}

void centroids_mark_unbounded(const ivf *index, const float *vectors, int64_t count, ivf_place *places)
{
    for (int64_t i = 0; index->assigned == CANON_COSINE && i < count; i++)
        places[i].unbounded = proof_norm_is_wild(index, length_of(vectors + i * index->dim, index->dim));
}

double ivf_squares_between(const float *a, const float *b, int32_t dim)
{
    double sum = 0.0;
    for (int32_t i = 0; i < dim; i++) {
        const double t = (double)a[i] - (double)b[i];
        sum += t * t;
    }
    return sum;
}

void ivf_make_unit(const ivf *index, float *vectors, int64_t count)
{
    if (index->assigned != CANON_COSINE)
        return;
    for (int64_t r = 0; r < count; r++) {
        float *vector = vectors + r * index->dim;
        const double length = length_of(vector, index->dim);
        for (int32_t i = 0; length > 0.0 && i < index->dim; i++)
            vector[i] = (float)((double)vector[i] / length);
    }
}

ww_status ivf_read_rows(const ww_collection *c, const int64_t *rows, int64_t count, float *vectors)
{
    int64_t starts[2] = {0, count};
    ww_results wanted = {.query_count = 1, .starts = starts, .rows = (int64_t *)rows, .vectors = vectors};
    return results_read_vectors(&wanted, c);
}
