/* A set of multivectors on a device (multi.h says how they are kept). A search goes through a segment in chunks, whose
 * similarities stay in a cache. Of a chunk of which the query admits few rows, only those are read. */
#include <string.h>

#include <warpwave/tensor_rows.h>

#include "arithmetic/canon.h"
#include "base/array.h"
#include "base/cancel.h"
#include "base/integers.h"
#include "base/memory.h"
#include "device/backend.h"
#include "vectors/multi/multi.h"
#include "vectors/sparse/sparse.h"

enum {
    SLOTS_MIN = 8,                  /* rows of a new segment */
    SEGMENT_BYTES = 1 << 30,        /* of its vectors, unless one row is larger */
    STAGED_BYTES = 1 << 24,         /* copied to the device at a time */
    CHUNK_NUMBERS_HOST = 1 << 18,   /* similarities of a chunk: 1 MiB, for a core's cache */
    CHUNK_NUMBERS_DEVICE = 1 << 23, /* 32 MiB, for a GPU's */
    GATHERED_SHARE = 2,             /* a chunk is read whole if at least one row in this many is admitted */
    ALIGNED = 4,                    /* scores of a chunk start at a multiple of 16 bytes */
};

ww_status multi_device_check(const ww_device *device)
{
    return device_check_single(device, "multivectors");
}

/* ---- adding -------------------------------------------------------------------------------------------------------------- */

/* The length of the segments for rows with `count` vectors: 1, 2, 3, 4, 6, 8, 12, ... */
static int32_t length_for(int32_t count)
{
    int32_t power = 1;
    while (power < count)
        power *= 2;
    return power >= 4 && power / 4 * 3 >= count ? power / 4 * 3 : power;
}

static void segment_free(multi_segment *s)
{
    ww_tensor_release(&s->vectors);
    memory_free(s->rows);
}

void multi_set_free(multi_set *set)
{
    for (int64_t i = 0; i < set->segment_count; i++)
        segment_free(&set->segments[i]);
    memory_free(set->segments);
    *set = (multi_set){.device = set->device, .dim = set->dim, .metric = set->metric};
}

int64_t multi_set_bytes(const multi_set *set)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < set->segment_count; i++)
        bytes += set->segments[i].capacity * set->segments[i].length * set->dim * (int64_t)sizeof(float);
    return bytes;
}

/* Finds a segment of this length with room, or makes one for up to `wanted` rows. */
static ww_status segment_ready(multi_set *set, int32_t length, int64_t wanted, multi_segment **found)
{
    int64_t slots = SLOTS_MIN;
    for (int64_t i = 0; i < set->segment_count; i++) {
        multi_segment *s = &set->segments[i];
        *found = s;
        if (s->length == length && s->count + s->added < s->capacity)
            return WW_OK;
        slots += s->length == length ? s->capacity : 0;
    }
    const int64_t row_bytes = (int64_t)length * set->dim * (int64_t)sizeof(float);
    slots = min_i64(max_i64(slots, wanted), max_i64(1, SEGMENT_BYTES / row_bytes));
    ww_status status = array_reserve(&set->segments, &set->segment_room, set->segment_count + 1, sizeof *set->segments,
                                     "segments of multivectors");
    if (status != WW_OK)
        return status;
    multi_segment made = {.length = length, .capacity = slots, .rows = memory_alloc((size_t)slots * sizeof *made.rows)};
    status = made.rows ? WW_OK : memory_failed("the numbers of rows", (size_t)slots * sizeof *made.rows);
    if (status == WW_OK)
        status = ww_tensor_empty(set->device, WW_F32, 3, (const int64_t[]){slots, length, set->dim}, &made.vectors);
    if (status != WW_OK) {
        segment_free(&made);
        return status;
    }
    set->segments[set->segment_count] = made;
    *found = &set->segments[set->segment_count++];
    return WW_OK;
}

/* Writes a row as a segment has it. */
static void fill_row(const multi_set *set, const ww_multivector *v, int32_t length, float *to)
{
    const size_t dim = (size_t)set->dim;
    multi_prepare(set->metric, v, to);
    for (int32_t i = v->count; i < length; i++)
        memcpy(to + (size_t)i * dim, to, dim * sizeof *to);
}

/* Copies staged rows behind those of a segment. */
static ww_status append(multi_segment *s, const float *staged, int64_t count)
{
    ww_tensor place = {0};
    ww_status status = ww_tensor_narrow(&s->vectors, 0, s->count + s->added, count, &place);
    if (status == WW_OK)
        status = ww_tensor_write(&place, staged);
    ww_tensor_release(&place);
    if (status == WW_OK)
        s->added += count;
    return status;
}

typedef struct adding {
    const ww_multivector *rows;
    const uint32_t *numbers;
    int64_t count;
    float *staged;
    int64_t staged_numbers; /* room */
} adding;

/* Adds the rows that belong into segments of one length. */
static ww_status add_length(multi_set *set, const adding *a, int32_t length)
{
    const int64_t row_numbers = (int64_t)length * set->dim, at_once = a->staged_numbers / row_numbers;
    int64_t wanted = 0, staged = 0;
    multi_segment *s = NULL;
    ww_status status = WW_OK;
    for (int64_t i = 0; i < a->count; i++)
        wanted += a->rows[i].count > 0 && length_for(a->rows[i].count) == length;
    for (int64_t i = 0; status == WW_OK && wanted > 0 && i < a->count; i++) {
        if (a->rows[i].count == 0 || length_for(a->rows[i].count) != length)
            continue;
        if (staged == 0)
            status = segment_ready(set, length, wanted, &s);
        if (status != WW_OK)
            break;
        fill_row(set, &a->rows[i], length, a->staged + staged * row_numbers);
        s->rows[s->count + s->added + staged++] = a->numbers[i];
        wanted--;
        if (staged < at_once && s->count + s->added + staged < s->capacity && wanted > 0)
            continue;
        status = append(s, a->staged, staged);
        staged = 0;
    }
    return status;
}

ww_status multi_set_add(multi_set *set, const ww_multivector *rows, const uint32_t *numbers, int64_t count)
{
    int64_t longest = 0, all = 0;
    for (int64_t i = 0; i < count; i++) {
        if (rows[i].count > 0 && rows[i].dim != set->dim)
            return multi_wrong_dim("the index", set->dim, rows[i].dim);
        longest = max_i64(longest, rows[i].count > 0 ? length_for(rows[i].count) : 0);
        all += rows[i].count > 0 ? length_for(rows[i].count) : 0;
    }
    if (all == 0)
        return WW_OK;
    adding a = {rows, numbers, count, NULL, 0};
    a.staged_numbers = max_i64(longest, min_i64(all, STAGED_BYTES / (int64_t)sizeof(float) / set->dim)) * set->dim;
    a.staged = memory_alloc((size_t)a.staged_numbers * sizeof *a.staged);
    ww_status status = a.staged ? WW_OK : memory_failed("multivectors", (size_t)a.staged_numbers * sizeof *a.staged);
    for (int32_t n = 1, last = 0; status == WW_OK && n <= WW_MULTI_MAX; n++) {
        if (length_for(n) == last)
            continue;
        last = length_for(n);
        status = add_length(set, &a, last);
    }
    for (int64_t i = 0; i < set->segment_count; i++) {
        multi_segment *s = &set->segments[i];
        set->rows += status == WW_OK ? s->added : 0;
        s->count += status == WW_OK ? s->added : 0;
        s->added = 0;
    }
    memory_free(a.staged);
    return status;
}

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

/* The search of one query. */
typedef struct searching {
    const multi_set *set;
    sparse_search offer;            /* what is a hit */
    int32_t query_count;            /* its vectors */
    ww_tensor query;                /* [dim, query_count] */
    ww_tensor similarities, maxima; /* room for a chunk: [rows] */
    int64_t chunk_numbers;
    uint32_t *slots;  /* admitted ones of a chunk; room for all of the largest segment */
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

/* Queues the scores of rows [count, length, dim], to lie at `at`. */
static ww_status score_rows(searching *s, const ww_tensor *rows, int64_t at)
{
    const int64_t count = rows->layout.shape[0], length = rows->layout.shape[1], q = s->query_count;
    ww_tensor flat = {0}, sims = {0}, by_row = {0}, maxima = {0}, scores = {0};
    ww_status status = ww_tensor_reshape(rows, 2, (const int64_t[]){count * length, s->set->dim}, &flat);
    if (status == WW_OK)
        status = part_of(&s->similarities, 0, 2, (const int64_t[]){count * length, q}, &sims);
    if (status == WW_OK)
        status = part_of(&s->similarities, 0, 3, (const int64_t[]){count, length, q}, &by_row);
    if (status == WW_OK)
        status = part_of(&s->maxima, 0, 2, (const int64_t[]){count, q}, &maxima);
    if (status == WW_OK)
        status = part_of(&s->scores, at, 1, &count, &scores);
    if (status == WW_OK)
        status = ww_tensor_matmul(&flat, &s->query, WW_MATH_CANONICAL, &sims);
    if (status == WW_OK)
        status = ww_tensor_reduce(WW_REDUCE_MAX, &by_row, (const int32_t[]){1}, 1, &maxima);
    if (status == WW_OK)
        status = ww_tensor_reduce(WW_REDUCE_SUM, &maxima, (const int32_t[]){1}, 1, &scores);
    ww_tensor_release(&flat);
    ww_tensor_release(&sims);
    ww_tensor_release(&by_row);
    ww_tensor_release(&maxima);
    ww_tensor_release(&scores);
    return status;
}

static bool is_admitted(const sparse_search *o, uint32_t row)
{
    return !o->admitted || (row < o->admitted_rows && o->admitted[row / 64] >> (row % 64) & 1);
}

/* Scores the admitted rows of a chunk of slots; `scored` counts the scores of the segment. */
static ww_status score_chunk(searching *s, const multi_segment *part, int64_t first, int64_t count, int64_t *scored)
{
    int64_t admitted = 0;
    ww_tensor rows = {0}, ids = {0}, gathered = {0};
    for (int64_t i = 0; i < count; i++)
        if (is_admitted(&s->offer, part->rows[first + i]))
            s->slots[admitted++] = (uint32_t)(first + i);
    if (admitted == 0)
        return WW_OK;
    const bool whole = admitted * GATHERED_SHARE >= count;
    const int64_t many = whole ? count : admitted;
    for (int64_t i = 0; i < many; i++)
        s->rows[*scored + i] = part->rows[whole ? first + i : s->slots[i]];
    ww_status status = whole ? ww_tensor_narrow(&part->vectors, 0, first, count, &rows)
                             : ww_tensor_from_host(s->set->device, WW_U32, 1, &admitted, s->slots, &ids);
    if (status == WW_OK && !whole)
        status = ww_tensor_index_select(&part->vectors, &ids, 0, &gathered);
    if (status == WW_OK)
        status = score_rows(s, whole ? &rows : &gathered, *scored);
    *scored += round_up_i64(many, ALIGNED);
    ww_tensor_release(&rows);
    ww_tensor_release(&ids);
    ww_tensor_release(&gathered);
    return status;
}

/* Rows of a chunk: a multiple of ALIGNED, so that only the last chunk leaves a gap behind its scores. */
static int64_t chunk_rows(const searching *s, const multi_segment *part)
{
    const int64_t rows = s->chunk_numbers / part->length / s->query_count;
    return max_i64(1, rows / ALIGNED) * ALIGNED;
}

static ww_status search_segment(searching *s, const multi_segment *part, key_list *list)
{
    const int64_t at_once = chunk_rows(s, part);
    int64_t scored = 0;
    ww_status status = WW_OK;
    memset(s->rows, 0xff, (size_t)(part->count + ALIGNED) * sizeof *s->rows);
    for (int64_t first = 0; status == WW_OK && first < part->count; first += at_once) {
        status = cancel_asked() ? ww_fail(WW_CANCELLED, "the search was cancelled")
                                : score_chunk(s, part, first, min_i64(at_once, part->count - first), &scored);
    }
    ww_tensor scores = {0};
    if (status == WW_OK && scored > 0)
        status = part_of(&s->scores, 0, 1, &scored, &scores);
    if (status == WW_OK && scored > 0)
        status = ww_tensor_to_host(&scores, s->host);
    ww_tensor_release(&scores);
    for (int64_t i = 0; status == WW_OK && i < scored; i++)
        if (s->rows[i] != UINT32_MAX) /* a gap between chunks */
            status = sparse_offer(&s->offer, list, s->rows[i], s->host[i]);
    return status;
}

/* Makes the query's matrix. */
static ww_status query_ready(searching *s, const ww_multivector *v)
{
    float *prepared = memory_alloc((size_t)v->count * (size_t)v->dim * sizeof *prepared);
    if (!prepared)
        return memory_failed("the vectors of a query", (size_t)v->count * (size_t)v->dim * sizeof *prepared);
    multi_prepare(s->set->metric, v, prepared);
    ww_tensor_release(&s->query);
    s->query_count = v->count;
    ww_status status = ww_tensor_from_host(s->set->device, WW_F32, 2, (const int64_t[]){v->count, v->dim}, prepared, &s->query);
    memory_free(prepared);
    return status == WW_OK ? ww_tensor_transpose(&s->query, 0, 1, &s->query) : status;
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
        for (int64_t i = 0; status == WW_OK && i < set->segment_count; i++)
            status = search_segment(&s, &set->segments[i], &lists[q]);
    }
    search_free(&s);
    return status;
}
