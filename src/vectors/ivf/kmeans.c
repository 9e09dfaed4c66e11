/* k-means: computes the centroids of an index from a sample of the rows. If the device can, it keeps the sample in its own
 * memory for all iterations, so only centroids are sent to it.
 *
 * An iteration finds the nearest centroid of every sample row by an exact search, and moves each centroid to the mean of its
 * rows. Sums are in double precision, in the order of the sample, and one thread sums a whole list. So centroids do not depend
 * on the device or the number of threads. A list without rows gets the sample row that is farthest from its centroid. Except
 * for rounding, no step increases the loss; if the loss does not decrease, the previous centroids are kept.
 */
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/philox.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "vectors/ivf/ivf.h"

ww_status ivf_progress_add(ivf_progress *progress, int64_t more)
{
    progress->done += more;
    if (!progress_tell(progress->told, progress->user, min_i64(progress->done, progress->total), progress->total))
        return WW_OK;
    return ww_fail(WW_CANCELLED, "building the index was cancelled by its progress callback; nothing was changed");
}

typedef struct kmeans {
    ivf *index;
    ww_collection *collection;
    const kmeans_job *job;
    ivf_place *places; /* one per sample row */
    int64_t *starts;   /* where each list starts in `order`, nlist + 1 */
    uint32_t *order;   /* rows of the sample by list */
    double *sums;      /* dim for each list */
    float *before;     /* the centroids of the previous iteration */
    canon_key *keys;   /* one per sample row: the score with its centroid, and the row */
} kmeans;

static ww_status kmeans_take_memory(kmeans *m)
{
    const size_t nlist = (size_t)m->index->nlist, dim = (size_t)m->index->dim, count = (size_t)m->job->count;
    m->places = memory_alloc(count * sizeof *m->places);
    m->starts = memory_alloc((nlist + 1) * sizeof *m->starts);
    m->order = memory_alloc(count * sizeof *m->order);
    m->sums = memory_alloc(nlist * dim * sizeof *m->sums);
    m->before = memory_alloc(nlist * dim * sizeof *m->before);
    m->keys = memory_alloc(count * sizeof *m->keys);
    if (m->places && m->starts && m->order && m->sums && m->before && m->keys)
        return WW_OK;
    return memory_failed("k-means", nlist * dim * (sizeof *m->sums + sizeof *m->before) +
                                        count * (sizeof *m->places + sizeof *m->order + sizeof *m->keys));
}

static void kmeans_free_memory(kmeans *m)
{
    memory_free(m->keys);
    memory_free(m->before);
    memory_free(m->sums);
    memory_free(m->order);
    memory_free(m->starts);
    memory_free(m->places);
}

/* The first centroids are sample rows; every choice is equally likely. This part of the seed's sequence does not overlap the
 * part for the sample. */
static void first_centroids(const kmeans *m)
{
    const uint64_t sequence = UINT64_C(1) << 40;
    const int32_t dim = m->index->dim;
    int64_t taken = 0;
    for (int64_t i = 0; i < m->job->count && taken < m->index->nlist; i++) {
        const uint64_t word = philox(m->job->seed, sequence + (uint64_t)i).word[0];
        if (word * (uint64_t)(m->job->count - i) >> 32 < (uint64_t)(m->index->nlist - taken))
            memcpy(m->index->centroids + taken++ * dim, m->job->sample + i * dim, (size_t)dim * sizeof(float));
    }
}

/* Finds the lists of the sample by the current centroids, and the loss. */
static ww_status assign(kmeans *m, double *loss)
{
    ivf *index = m->index;
    store_destroy(&index->store);
    ww_status status = centroids_create(&index->store, m->collection->device, m->collection->stream, index->centroids,
                                        (ivf_size){index->nlist, index->dim});
    const bool here = m->job->sample_here != NULL;
    const float *sample = here ? m->job->sample_here : m->job->sample;
    const int64_t piece = ivf_piece_rows(index->dim);
    for (int64_t first = 0; status == WW_OK && first < m->job->count; first += piece) {
        const int64_t count = min_i64(piece, m->job->count - first);
        status = centroids_nearest(index, (ivf_vectors){sample + first * index->dim, count, here}, m->places + first);
        if (status == WW_OK)
            status = ivf_progress_add(m->job->progress, count);
    }
    *loss = 0.0;
    for (int64_t i = 0; status == WW_OK && i < m->job->count; i++) {
        const double score = (double)m->places[i].score;
        *loss += index->assigned == CANON_L2 ? score * score : 1.0 - score;
    }
    return status;
}

/* Sorts the rows of the sample by list, in their order. */
static void sort_by_list(const kmeans *m)
{
    const int64_t nlist = m->index->nlist;
    memset(m->starts, 0, (size_t)(nlist + 1) * sizeof *m->starts);
    for (int64_t i = 0; i < m->job->count; i++)
        m->starts[m->places[i].list + 1]++;
    for (int64_t l = 0; l < nlist; l++)
        m->starts[l + 1] += m->starts[l];
    for (int64_t i = 0; i < m->job->count; i++)
        m->order[m->starts[m->places[i].list]++] = (uint32_t)i;
    for (int64_t l = nlist; l > 0; l--)
        m->starts[l] = m->starts[l - 1];
    m->starts[0] = 0;
}

/* Moves a centroid to the mean of its rows. For cosine any multiple of the mean works; this takes the one of length 1. */
static void move_centroid(void *context, int64_t list, int32_t worker)
{
    (void)worker;
    const kmeans *m = context;
    const int32_t dim = m->index->dim;
    const int64_t count = m->starts[list + 1] - m->starts[list];
    double *sum = m->sums + list * dim;
    float *centroid = m->index->centroids + list * dim;
    if (count == 0)
        return;
    memset(sum, 0, (size_t)dim * sizeof *sum);
    for (int64_t i = m->starts[list]; i < m->starts[list + 1]; i++) {
        const float *row = m->job->sample + (int64_t)m->order[i] * dim;
        for (int32_t d = 0; d < dim; d++)
            sum[d] += (double)row[d];
    }
    for (int32_t d = 0; d < dim; d++)
        centroid[d] = (float)(sum[d] / (double)count);
    ivf_make_unit(m->index, centroid, 1);
}

/* Gives each list without rows a new centroid: the farthest sample row, then the second farthest, and so on. */
static void reseed_empty(const kmeans *m)
{
    const int32_t dim = m->index->dim;
    int64_t left = m->job->count, empty = 0;
    for (int64_t l = 0; l < m->index->nlist; l++)
        empty += m->starts[l + 1] == m->starts[l];
    if (empty == 0)
        return;
    for (int64_t i = 0; i < m->job->count; i++)
        m->keys[i] = canon_make_key(m->index->assigned, m->places[i].score, (uint32_t)i);
    keys_sort(m->keys, m->job->count);
    for (int64_t l = 0; l < m->index->nlist && left > 0; l++)
        if (m->starts[l + 1] == m->starts[l])
            memcpy(m->index->centroids + l * dim, m->job->sample + (int64_t)canon_key_row(m->keys[--left]) * dim,
                   (size_t)dim * sizeof(float));
}

ww_status kmeans_train(ivf *index, ww_collection *c, const kmeans_job *job)
{
    kmeans m = {.index = index, .collection = c, .job = job};
    const size_t bytes = (size_t)index->nlist * (size_t)index->dim * sizeof *index->centroids;
    double last = 0.0;
    ww_status status = kmeans_take_memory(&m);
    if (status == WW_OK)
        first_centroids(&m);
    for (int32_t i = 0; status == WW_OK && i < job->iterations; i++) {
        double loss;
        status = assign(&m, &loss);
        if (status != WW_OK)
            break;
        if (i > 0 && loss >= last) {
            memcpy(index->centroids, m.before, bytes);
            break;
        }
        last = loss;
        memcpy(m.before, index->centroids, bytes);
        sort_by_list(&m);
        if (job->threads)
            (void)pool_run(job->threads, index->nlist, move_centroid, NULL, &m);
        else
            pool_run_here(index->nlist, move_centroid, &m);
        reseed_empty(&m);
    }
    job->progress->done = job->count * job->iterations; /* it may have ended early */
    store_destroy(&index->store);
    if (status == WW_OK)
        status = centroids_create(&index->store, c->device, c->stream, index->centroids, (ivf_size){index->nlist, index->dim});
    kmeans_free_memory(&m);
    return status;
}
