/* The exact search of an inverted index by windows of rows and bounds of blocks (sparse.h says how). */
#include <math.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "base/cancel.h"
#include "base/integers.h"
#include "base/memory.h"
#include "vectors/sparse/sparse.h"

/* Where a search is in the blocks of a term. */
typedef struct term_place {
    int64_t block;  /* the first block that may have rows of this window or of later ones */
    int64_t loaded; /* the block that `entries` has; -1: none */
    int32_t at;     /* entries of it that are done */
    sparse_entries entries;
} term_place;

typedef struct window {
    int64_t first; /* row */
    float sums[SPARSE_WINDOW];
    uint64_t touched[SPARSE_WINDOW / 64]; /* rows that have a term of the query */
} window;

static bool is_admitted(const sparse_search *s, uint32_t row)
{
    return !s->admitted || (row < s->admitted_rows && s->admitted[row / 64] >> (row % 64) & 1);
}

ww_status sparse_offer(const sparse_search *s, key_list *list, uint32_t row, float score)
{
    if (!is_admitted(s, row) || (s->range && !(score >= s->bound)))
        return WW_OK;
    list->total++;
    if (s->limit == 0)
        return WW_OK;
    const uint64_t key = canon_make_key(CANON_DOT, score, row);
    if (list->cut && key > list->key_max)
        return WW_OK;
    return key_list_add(list, s->limit, key) ? WW_OK : memory_failed("the hits of a search", sizeof key);
}

/* The first row of the blocks that are left: rows that are done come before it or in it. INT64_MAX: no block is left. */
static int64_t next_row(const sparse_search *s, const term_place *places)
{
    int64_t first = INT64_MAX;
    for (int64_t t = 0; t < s->term_count; t++)
        if (places[t].block < s->terms[t].block_count)
            first = min_i64(first, s->terms[t].blocks[places[t].block].first);
    return first;
}

/* No row of the window has a score above the result.
 *
 * A row has each term or not, so its exact sum is at most the sum of the greatest products, as far as they are positive. The
 * chain of n multiply-adds rounds n times, each time by at most 2^-24 of a sum that never exceeds `size`, the sum of the
 * greatest magnitudes, times (1 + 2^-24)^n < 1.004 for n <= 65536, or by 2^-150 where the sum is subnormal. Twice that also
 * covers the rounding of the sums below, of which each product is exact. */
static float window_bound(const sparse_search *s, const term_place *places, int64_t first)
{
    const int64_t end = first + SPARSE_WINDOW;
    double sum = 0.0, size = 0.0, n = 0.0;
    for (int64_t t = 0; t < s->term_count; t++) {
        const sparse_term *term = &s->terms[t];
        double best = 0.0, largest = 0.0;
        bool any = false;
        for (int64_t b = places[t].block; b < term->block_count && term->blocks[b].first < end; b++) {
            const double low = (double)term->weight * (double)term->blocks[b].low;
            const double high = (double)term->weight * (double)term->blocks[b].high;
            best = fmax(best, fmax(low, high));
            largest = fmax(largest, fmax(fabs(low), fabs(high)));
            any = true;
        }
        sum += best;
        size += largest;
        n += any;
    }
    const double bound = sum + n * (0x1p-23 * size + 0x1p-149);
    const float rounded = (float)bound;
    return (double)rounded < bound ? nextafterf(rounded, INFINITY) : rounded;
}

/* Can no row of the window become a hit? Rows come in ascending order, so one with the score of the k-th hit comes after it. */
static bool is_excluded(const sparse_search *s, const key_list *list, float bound, int64_t first)
{
    if (s->range)
        return bound < s->bound;
    return list->cut && canon_make_key(CANON_DOT, bound + 0.0f, (uint32_t)first) > list->key_max;
}

/* Adds a block's entries within the window. */
static void add_entries(window *w, float weight, term_place *place, int32_t count)
{
    const uint32_t *rows = place->entries.rows;
    const float *values = place->entries.values;
    const int64_t first = w->first, end = first + SPARSE_WINDOW;
    int32_t i = place->at;
    for (; i < count && rows[i] < first; i++)
        continue;
    for (; i < count && rows[i] < end; i++) {
        const uint32_t row = (uint32_t)(rows[i] - first);
        w->sums[row] = fmaf(weight, values[i], w->sums[row]);
        w->touched[row / 64] |= UINT64_C(1) << (row % 64);
    }
    place->at = i;
}

/* Adds all blocks of a term that reach into the window. */
static ww_status add_term(sparse_search *s, window *w, term_place *place, int64_t t)
{
    const sparse_term *term = &s->terms[t];
    const int64_t end = w->first + SPARSE_WINDOW;
    for (int64_t b = place->block; b < term->block_count && term->blocks[b].first < end; b++) {
        if (place->loaded != b) {
            const ww_status status = s->load(s->user, t, b, &place->entries);
            if (status != WW_OK)
                return status;
            place->loaded = b;
            place->at = 0;
            s->blocks_read++;
        }
        add_entries(w, term->weight, place, term->blocks[b].count);
    }
    return WW_OK;
}

/* Leaves the blocks that end in this window behind. */
static void leave_window(const sparse_search *s, term_place *places, int64_t first)
{
    for (int64_t t = 0; t < s->term_count; t++)
        while (places[t].block < s->terms[t].block_count && s->terms[t].blocks[places[t].block].last < first + SPARSE_WINDOW)
            places[t].block++;
}

static ww_status offer_window(const sparse_search *s, const window *w, key_list *list)
{
    ww_status status = WW_OK;
    for (int32_t word = 0; word < SPARSE_WINDOW / 64; word++)
        for (uint64_t bits = w->touched[word]; status == WW_OK && bits != 0; bits &= bits - 1) {
            const int32_t row = 64 * word + __builtin_ctzll(bits);
            status = sparse_offer(s, list, (uint32_t)(w->first + row), w->sums[row] + 0.0f);
        }
    if (list->count >= 2 * s->limit && s->limit > 0)
        (void)key_list_cut(list, s->limit);
    return status;
}

static ww_status search_window(sparse_search *s, window *w, term_place *places, key_list *list)
{
    ww_status status = WW_OK;
    memset(w->sums, 0, sizeof w->sums);
    memset(w->touched, 0, sizeof w->touched);
    for (int64_t t = 0; status == WW_OK && t < s->term_count; t++)
        status = add_term(s, w, &places[t], t);
    return status == WW_OK ? offer_window(s, w, list) : status;
}

ww_status sparse_search_run(sparse_search *s, key_list *list)
{
    window *w = memory_alloc(sizeof *w);
    term_place *places = memory_alloc_zeroed((size_t)s->term_count + 1, sizeof *places);
    ww_status status = w && places ? WW_OK : memory_failed("a sparse search", sizeof *w);
    for (int64_t t = 0; status == WW_OK && t < s->term_count; t++)
        places[t].loaded = -1;
    for (int64_t row, done = 0; status == WW_OK && (row = next_row(s, places)) != INT64_MAX; done = w->first + SPARSE_WINDOW) {
        w->first = max_i64(row, done) / SPARSE_WINDOW * SPARSE_WINDOW;
        if (!is_excluded(s, list, window_bound(s, places, w->first), w->first))
            status = search_window(s, w, places, list);
        leave_window(s, places, w->first);
        if (status == WW_OK && cancel_asked())
            status = ww_fail(WW_CANCELLED, "the search was cancelled");
    }
    memory_free(places);
    memory_free(w);
    return status;
}
