/* The search of a set of multivectors: each query goes through the segments in chunks, whose similarities stay in a cache. Of a
 * segment of which the query admits few rows, only those are read.
 *
 * On a GPU a search of many rows first estimates all scores by fast products. A bound of their error excludes rows that cannot
 * be hits, and only the others are scored canonically. The answer is the same. */
#include <math.h>
#include <string.h>

#include <warpwave/tensor_rows.h>

#include "arithmetic/canon.h"
#include "base/cancel.h"
#include "base/integers.h"
#include "base/memory.h"
#include "device/backend.h"
#include "vectors/multi/multi.h"
#include "vectors/sparse/sparse.h"

enum {
    CHUNK_NUMBERS_HOST = 1 << 18,   /* similarities of a chunk: 1 MiB, for a core's cache */
    CHUNK_NUMBERS_DEVICE = 1 << 24, /* 64 MiB: larger than a GPU's cache, but fewer launches */
    GATHERED_SHARE = 2,             /* a segment is read whole if at least one row in this many is admitted */
    ALIGNED = 4,                    /* scores of a chunk start at a multiple of 16 bytes */
    ESTIMATED_MIN = 64,             /* rows from which scores are estimated first ... */
    ESTIMATED_SHARE = 8,            /* ... and as many times the hits that are wanted */
};

/* The search of one query. */
typedef struct searching {
    const multi_set *set;
    sparse_search offer;            /* what is a hit */
    int32_t query_count;            /* its vectors */
    double query_length;            /* the sum of their lengths */
    ww_tensor query;                /* [query_count, dim] */
    ww_tensor similarities, maxima; /* room for a chunk */
    int64_t chunk_numbers;
    bool fast;        /* scores are estimates */
    uint32_t *slots;  /* admitted ones of a segment; room for all of the largest */
    uint32_t *rows;   /* of the scores of a segment */
    float *host;      /* scores */
    ww_tensor scores; /* as many */
} searching;

/* A view of the first elements of a tensor of rank 1, from `first`, in a shape. */
static ww_status part_of(const ww_tensor *from, int64_t first, int32_t rank, const int64_t *shape, ww_tensor *view)
{
    ww_layout layout = ww_layout_contiguous(rank, shape);
    layout.offset = first;
    return ww_tensor_view(from, &layout, view);
}

/* What the scores of a chunk are computed in: views. */
typedef struct scoring {
    ww_tensor flat, query, sims, by_row, maxima, scores;
} scoring;

static ww_status scoring_make(const searching *s, const ww_tensor *rows, int64_t at, scoring *made)
{
    const bool fast = s->fast;
    const int64_t count = rows->layout.shape[0], length = rows->layout.shape[1], n = count * length, q = s->query_count;
    ww_status status = ww_tensor_reshape(rows, 2, (const int64_t[]){n, s->set->dim}, &made->flat);
    if (status == WW_OK)
        status = ww_tensor_transpose(fast ? &made->flat : &s->query, 0, 1, fast ? &made->flat : &made->query);
    if (status == WW_OK)
        status = part_of(&s->similarities, 0, 2, fast ? (const int64_t[]){q, n} : (const int64_t[]){n, q}, &made->sims);
    if (status == WW_OK)
        status = part_of(&s->similarities, 0, 3,
                         fast ? (const int64_t[]){q, count, length} : (const int64_t[]){count, length, q}, &made->by_row);
    if (status == WW_OK)
        status = part_of(&s->maxima, 0, 2, fast ? (const int64_t[]){q, count} : (const int64_t[]){count, q}, &made->maxima);
    return status == WW_OK ? part_of(&s->scores, at, 1, &count, &made->scores) : status;
}

/* Queues the scores of rows [count, length, dim], to lie at `at`. The similarities of a row are beside each other where fast
 * products estimate them, because a GPU finds their maximum faster then. */
static ww_status score_rows(const searching *s, const ww_tensor *rows, int64_t at)
{
    const bool fast = s->fast;
    scoring v = {0};
    ww_status status = scoring_make(s, rows, at, &v);
    if (status == WW_OK)
        status = fast ? ww_tensor_matmul(&s->query, &v.flat, WW_MATH_FAST, &v.sims)
                      : ww_tensor_matmul(&v.flat, &v.query, WW_MATH_CANONICAL, &v.sims);
    if (status == WW_OK)
        status = ww_tensor_reduce(WW_REDUCE_MAX, &v.by_row, (const int32_t[]){fast ? 2 : 1}, 1, &v.maxima);
    if (status == WW_OK)
        status = ww_tensor_reduce(WW_REDUCE_SUM, &v.maxima, (const int32_t[]){fast ? 0 : 1}, 1, &v.scores);
    ww_tensor *views[] = {&v.flat, &v.query, &v.sims, &v.by_row, &v.maxima, &v.scores};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        ww_tensor_release(views[i]);
    return status;
}

static bool is_admitted(const sparse_search *o, uint32_t row)
{
    return !o->admitted || (row < o->admitted_rows && o->admitted[row / 64] >> (row % 64) & 1);
}

/* Scores `count` rows of a segment from `first`: of all its rows if `whole`, else of those in s->slots. */
static ww_status score_chunk(searching *s, const multi_segment *part, bool whole, int64_t first, int64_t count)
{
    ww_tensor rows = {0}, ids = {0};
    ww_status status = whole ? ww_tensor_narrow(&part->vectors, 0, first, count, &rows)
                             : ww_tensor_from_host(s->set->device, WW_U32, 1, &count, s->slots + first, &ids);
    if (status == WW_OK && !whole)
        status = ww_tensor_index_select(&part->vectors, &ids, 0, &rows);
    if (status == WW_OK)
        status = score_rows(s, &rows, first);
    ww_tensor_release(&rows);
    ww_tensor_release(&ids);
    return status;
}

/* Rows of a chunk: a multiple of ALIGNED. */
static int64_t chunk_rows(const searching *s, const multi_segment *part)
{
    const int64_t rows = s->chunk_numbers / part->length / s->query_count;
    return max_i64(1, rows / ALIGNED) * ALIGNED;
}

/* Scores at least the admitted rows of a segment: s->host has `scored` scores, of s->rows. */
static ww_status score_segment(searching *s, const multi_segment *part, int64_t *scored)
{
    const int64_t at_once = chunk_rows(s, part);
    int64_t admitted = 0;
    for (int64_t i = 0; i < part->count; i++)
        if (is_admitted(&s->offer, part->rows[i]))
            s->slots[admitted++] = (uint32_t)i;
    const bool whole = admitted * GATHERED_SHARE >= part->count;
    *scored = whole ? part->count : admitted;
    if (admitted == 0)
        return WW_OK;
    ww_status status = WW_OK;
    for (int64_t first = 0; status == WW_OK && first < *scored; first += at_once) {
        status = cancel_asked() ? ww_fail(WW_CANCELLED, "the search was cancelled")
                                : score_chunk(s, part, whole, first, min_i64(at_once, *scored - first));
    }
    ww_tensor scores = {0};
    if (status == WW_OK)
        status = part_of(&s->scores, 0, 1, scored, &scores);
    if (status == WW_OK)
        status = ww_tensor_to_host(&scores, s->host);
    ww_tensor_release(&scores);
    for (int64_t i = 0; i < *scored; i++)
        s->rows[i] = part->rows[whole ? i : s->slots[i]];
    return status;
}

static ww_status search_segment(searching *s, const multi_segment *part, key_list *list)
{
    int64_t scored;
    ww_status status = score_segment(s, part, &scored);
    for (int64_t i = 0; status == WW_OK && i < scored; i++)
        status = sparse_offer(&s->offer, list, s->rows[i], s->host[i]);
    return status;
}

/* ---- estimates ----------------------------------------------------------------------------------------------------------- */

typedef struct estimate {
    uint32_t row;
    float score;
} estimate;

/* How far an estimate may be from the canonical score. Let q and x be the lengths of two vectors, and u = 2^-24.
 *
 * A fast product keeps 10 bits of the fractions of its factors, even if it cuts the rest off: each factor errs by less than
 * 2^-10 of itself, a product by less than 2^-9 + 2^-20. Its additions, if they cut as well, and those of the canonical product
 * err by at most dim 4u of the products' sizes, whose sum is at most q x. Sums of 1024 maxima take 22 additions each, and err
 * by 44u. So a similarity errs by less than (2^-9 + 2^-17 + dim 2^-21) q x with room to spare, its maximum over the vectors of
 * a row by no more, and a score by the sum over the query. Factors below 2^-126 may count as 0: at most 1024 x 65536 products
 * change by 2^-126 of the other factor. */
static double error_of(const searching *s)
{
    const double x = s->set->norm_max, q = s->query_length;
    return (0x1p-9 + 0x1p-17 + s->set->dim * 0x1p-21) * q * x + 0x1p-100 * (q + x + 1);
}

/* Estimates the scores of all admitted rows. */
static ww_status estimate_all(searching *s, estimate *all, int64_t *count)
{
    ww_status status = WW_OK;
    s->fast = true;
    for (int64_t i = 0; status == WW_OK && i < s->set->segment_count; i++) {
        int64_t scored;
        status = score_segment(s, &s->set->segments[i], &scored);
        for (int64_t j = 0; status == WW_OK && j < scored; j++)
            if (is_admitted(&s->offer, s->rows[j]))
                all[(*count)++] = (estimate){s->rows[j], s->host[j]};
    }
    s->fast = false;
    return status;
}

/* The least estimate of a hit. */
static ww_status least_estimate(const searching *s, const estimate *all, int64_t count, double *least)
{
    *least = -INFINITY;
    if (s->offer.range)
        *least = (double)s->offer.bound - error_of(s);
    if (s->offer.range || count <= s->offer.limit)
        return WW_OK;
    uint64_t *keys = memory_alloc((size_t)count * sizeof *keys);
    if (!keys)
        return memory_failed("estimates of scores", (size_t)count * sizeof *keys);
    for (int64_t i = 0; i < count; i++)
        keys[i] = canon_make_key(CANON_DOT, all[i].score, all[i].row);
    /* `limit` rows have canonical scores of at least this estimate less the error, so a hit's estimate is at most that much
     * lower again. */
    *least = (double)canon_key_score(CANON_DOT, keys_select(keys, count, s->offer.limit)) - 2 * error_of(s);
    memory_free(keys);
    return WW_OK;
}

/* Sets the bits of the rows that may be hits. */
static ww_status find_candidates(searching *s, estimate *all, uint64_t *bits)
{
    int64_t count = 0;
    double least;
    ww_status status = estimate_all(s, all, &count);
    if (status == WW_OK)
        status = least_estimate(s, all, count, &least);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        if (!((double)all[i].score < least)) /* an estimate that is not a number excludes nothing */
            bits[all[i].row / 64] |= UINT64_C(1) << (all[i].row % 64);
    return status;
}

static bool is_worth_estimating(const searching *s)
{
    return !s->set->device->backend->on_host && s->set->rows >= ESTIMATED_MIN &&
           (s->offer.range ? s->offer.bound > -INFINITY : s->set->rows / ESTIMATED_SHARE >= s->offer.limit);
}

static ww_status search_segments(searching *s, key_list *list)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < s->set->segment_count; i++)
        status = search_segment(s, &s->set->segments[i], list);
    return status;
}

static ww_status search_candidates(searching *s, key_list *list)
{
    uint32_t last = 0;
    for (int64_t i = 0; i < s->set->segment_count; i++)
        for (int64_t j = 0; j < s->set->segments[i].count; j++)
            last = s->set->segments[i].rows[j] > last ? s->set->segments[i].rows[j] : last;
    const size_t words = (size_t)last / 64 + 1, bytes = (size_t)s->set->rows * sizeof(estimate) + words * sizeof(uint64_t);
    uint64_t *bits = memory_alloc_zeroed(words, sizeof *bits);
    estimate *all = memory_alloc((size_t)s->set->rows * sizeof *all);
    ww_status status = bits && all ? find_candidates(s, all, bits) : memory_failed("estimates of scores", bytes);
    memory_free(all);
    if (status == WW_OK) {
        const sparse_search offer = s->offer;
        s->offer.admitted = bits;
        s->offer.admitted_rows = (int64_t)last + 1;
        status = search_segments(s, list);
        s->offer.admitted = offer.admitted;
        s->offer.admitted_rows = offer.admitted_rows;
    }
    memory_free(bits);
    return status;
}

/* ---- the search ---------------------------------------------------------------------------------------------------------- */

/* Makes the query's matrix. */
static ww_status query_ready(searching *s, const ww_multivector *v)
{
    float *prepared = memory_alloc((size_t)v->count * (size_t)v->dim * sizeof *prepared);
    if (!prepared)
        return memory_failed("the vectors of a query", (size_t)v->count * (size_t)v->dim * sizeof *prepared);
    multi_prepare(s->set->metric, v, prepared);
    ww_tensor_release(&s->query);
    s->query_count = v->count;
    s->query_length = 0;
    for (int32_t i = 0; i < v->count; i++)
        s->query_length += multi_length(prepared + (size_t)i * (size_t)v->dim, v->dim);
    ww_status status = ww_tensor_from_host(s->set->device, WW_F32, 2, (const int64_t[]){v->count, v->dim}, prepared, &s->query);
    memory_free(prepared);
    return status;
}

static ww_status search_ready(searching *s, const ww_query *query)
{
    int64_t slots = 0, sims = 0, maxima = 0;
    for (int64_t q = 0; q < query->query_count; q++)
        for (int64_t i = 0; i < s->set->segment_count; i++) {
            const multi_segment *part = &s->set->segments[i];
            s->query_count = query->multi->vectors[q].count;
            if (s->query_count == 0)
                continue;
            const int64_t rows = min_i64(part->count, chunk_rows(s, part));
            slots = max_i64(slots, part->count + ALIGNED);
            sims = max_i64(sims, rows * part->length * s->query_count);
            maxima = max_i64(maxima, rows * s->query_count);
        }
    const size_t bytes = (size_t)slots * sizeof *s->rows;
    s->slots = memory_alloc(bytes);
    s->rows = memory_alloc(bytes);
    s->host = memory_alloc(bytes);
    ww_status status = s->slots && s->rows && s->host ? WW_OK : memory_failed("a search of multivectors", 3 * bytes);
    if (status == WW_OK)
        status = ww_tensor_empty(s->set->device, WW_F32, 1, &sims, &s->similarities);
    if (status == WW_OK)
        status = ww_tensor_empty(s->set->device, WW_F32, 1, &maxima, &s->maxima);
    return status == WW_OK ? ww_tensor_zeros(s->set->device, WW_F32, 1, &slots, &s->scores) : status;
}

static void search_free(searching *s)
{
    ww_tensor_release(&s->query);
    ww_tensor_release(&s->similarities);
    ww_tensor_release(&s->maxima);
    ww_tensor_release(&s->scores);
    memory_free(s->slots);
    memory_free(s->rows);
    memory_free(s->host);
}

ww_status multi_set_search(const multi_set *set, const ww_query *query, multi_admitted admitted, key_list *lists)
{
    searching s = {.set = set,
                   .offer = {.admitted = admitted.bits,
                             .admitted_rows = admitted.rows,
                             .range = query->mode == WW_QUERY_RANGE,
                             .bound = query->bound,
                             .limit = sparse_limit(query)},

                   .chunk_numbers = set->device->backend->on_host ? CHUNK_NUMBERS_HOST : CHUNK_NUMBERS_DEVICE};
    bool any = false;
    ww_status status = WW_OK;
    for (int64_t q = 0; status == WW_OK && q < query->query_count; q++) {
        const ww_multivector *v = &query->multi->vectors[q];
        any |= v->count > 0;
        if (v->count > 0 && v->dim != set->dim)
            status = multi_wrong_dim("the index", set->dim, v->dim);
    }
    any &= set->rows > 0 && (s.offer.range || s.offer.limit > 0);
    if (status == WW_OK && any)
        status = search_ready(&s, query);
    for (int64_t q = 0; any && status == WW_OK && q < query->query_count; q++) {
        if (query->multi->vectors[q].count == 0)
            continue;
        status = query_ready(&s, &query->multi->vectors[q]);
        if (status == WW_OK)
            status = is_worth_estimating(&s) ? search_candidates(&s, &lists[q]) : search_segments(&s, &lists[q]);
    }
    search_free(&s);
    return status;
}
