/* The exact search of an inverted index by windows of rows and bounds of blocks (sparse.h says how).
 *
 * In a window that is not excluded, the terms with the least bounds, as many as no hit can be made of alone, are minor:
 * frequent words, mostly. The sums of the other terms say which rows may still become hits. If these are few, only they are
 * scored, and only the blocks of minor terms that reach to one of them are read.
 */
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

/* What a term may add to a row of the window: the greatest product, if it is positive, and the greatest magnitude. */
typedef struct term_bound {
    double best, largest;
    bool any, minor;
} term_bound;

enum {
    MINOR_TERMS_MAX = 64, /* with more terms none is minor */
    CANDIDATES_MAX = 64   /* rows of a window that are scored one by one */
};

typedef struct window {
    int64_t first; /* row */
    float sums[SPARSE_WINDOW];
    uint64_t touched[SPARSE_WINDOW / 64]; /* rows that have a term of the query */
    int32_t order[MINOR_TERMS_MAX];       /* of the terms, by their bounds in the window before */
    uint32_t candidates[CANDIDATES_MAX];  /* rows that may be hits, ascending */
    float scores[CANDIDATES_MAX];
    int32_t candidate_count;
} window;

/* A search that runs. */
typedef struct running {
    sparse_search *s;
    window *w;
    term_place *places;
    term_bound *bounds;
    key_list *list;
} running;

static bool is_admitted(const sparse_search *s, uint32_t row)
{
    return !s->admitted || (row < s->admitted_rows && s->admitted[row / 64] >> (row % 64) & 1);
}

ww_status sparse_offer(sparse_search *s, key_list *list, uint32_t row, float score)
{
    s->rows_scored++;
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

static term_bound bound_term(const sparse_term *term, const term_place *place, int64_t end)
{
    term_bound bound = {0};
    for (int64_t b = place->block; b < term->block_count && term->blocks[b].first < end; b++) {
        const double low = (double)term->weight * (double)term->blocks[b].low;
        const double high = (double)term->weight * (double)term->blocks[b].high;
        bound.best = fmax(bound.best, fmax(low, high));
        bound.largest = fmax(bound.largest, fmax(fabs(low), fabs(high)));
        bound.any = true;
    }
    return bound;
}

/* The sums of bounds. */
typedef struct bound_sum {
    double best, size, n;
} bound_sum;

static void sum_bound(bound_sum *sum, const term_bound *bound)
{
    sum->best += bound->best;
    sum->size += bound->largest;
    sum->n += bound->any;
}

/* No row that has only these terms has a score above the result.
 *
 * A row has each term or not, so its exact sum is at most the sum of the greatest products, as far as they are positive. The
 * chain of n multiply-adds rounds n times, each time by at most 2^-24 of a sum that never exceeds `size`, the sum of the
 * greatest magnitudes, times (1 + 2^-24)^n < 1.004 for n <= 65536, or by 2^-150 where the sum is subnormal. Twice that also
 * covers the rounding of the sums here, of which each product is exact. */
static float bound_of(const bound_sum *sum)
{
    const double bound = sum->best + sum->n * (0x1p-23 * sum->size + 0x1p-149);
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

static ww_status load_block(sparse_search *s, term_place *place, int64_t t, int64_t b)
{
    if (place->loaded == b && !s->single)
        return WW_OK;
    const ww_status status = s->load(s->user, t, b, &place->entries);
    place->loaded = status == WW_OK ? b : -1;
    place->at = 0;
    s->blocks_read++;
    return status;
}

/* Adds all blocks of a term that reach into the window. */
static ww_status add_term(sparse_search *s, window *w, term_place *place, int64_t t)
{
    const sparse_term *term = &s->terms[t];
    const int64_t end = w->first + SPARSE_WINDOW;
    for (int64_t b = place->block; b < term->block_count && term->blocks[b].first < end; b++) {
        const ww_status status = load_block(s, place, t, b);
        if (status != WW_OK)
            return status;
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

static void cut_list(const sparse_search *s, key_list *list)
{
    if (list->count >= 2 * s->limit && s->limit > 0)
        (void)key_list_cut(list, s->limit);
}

static ww_status offer_window(sparse_search *s, const window *w, key_list *list)
{
    ww_status status = WW_OK;
    for (int32_t word = 0; word < SPARSE_WINDOW / 64; word++)
        for (uint64_t bits = w->touched[word]; status == WW_OK && bits != 0; bits &= bits - 1) {
            const int32_t row = 64 * word + __builtin_ctzll(bits);
            status = sparse_offer(s, list, (uint32_t)(w->first + row), w->sums[row] + 0.0f);
        }
    cut_list(s, list);
    return status;
}

/* Adds the terms to the sums; without `minor` only those that are not minor. */
static ww_status add_terms(const running *r, bool minor)
{
    ww_status status = WW_OK;
    memset(r->w->sums, 0, sizeof r->w->sums);
    memset(r->w->touched, 0, sizeof r->w->touched);
    for (int64_t t = 0; status == WW_OK && t < r->s->term_count; t++)
        if (minor || !r->bounds[t].minor)
            status = add_term(r->s, r->w, &r->places[t], t);
    return status;
}

/* Finds the minor terms: of the terms by their bounds, the most that no hit can have alone. Returns how many there are; `sum`
 * gets their bounds. */
static int64_t find_minor(const running *r, bound_sum *sum)
{
    int32_t *order = r->w->order;
    const int64_t count = r->s->term_count;
    int64_t minor = 0;
    *sum = (bound_sum){0};
    if (count > MINOR_TERMS_MAX)
        return 0;
    for (int64_t i = 1; i < count; i++) { /* the order changes little from window to window */
        const int32_t t = order[i];
        int64_t to = i;
        for (; to > 0 && r->bounds[order[to - 1]].best > r->bounds[t].best; to--)
            order[to] = order[to - 1];
        order[to] = t;
    }
    for (; minor < count; minor++) {
        bound_sum more = *sum;
        sum_bound(&more, &r->bounds[order[minor]]);
        if (!is_excluded(r->s, r->list, bound_of(&more), r->w->first))
            break;
        *sum = more;
        r->bounds[order[minor]].minor = true;
    }
    return minor;
}

/* The score that a row has at least if it is a hit. */
static double least_score(const running *r)
{
    return r->s->range ? (double)r->s->bound : (double)canon_key_score(CANON_DOT, r->list->key_max);
}

/* Which rows may be hits by the sums of the terms that are not minor? False: too many.
 *
 * The sum of a row in `sums` and its score differ from the exact ones by at most half of 2^-23 of `size`, and so on, for each
 * term (bound_of()), so the score is at most the sum plus what minor terms may add, plus twice that. */
static bool find_candidates(const running *r, const bound_sum *all, const bound_sum *minor)
{
    window *w = r->w;
    const double more = minor->best + all->n * (0x1p-22 * all->size + 0x1p-148);
    const float least = nextafterf((float)(least_score(r) - more), -INFINITY);
    w->candidate_count = 0;
    for (int32_t word = 0; word < SPARSE_WINDOW / 64; word++)
        for (uint64_t bits = w->touched[word]; bits != 0; bits &= bits - 1) {
            const int32_t row = 64 * word + __builtin_ctzll(bits);
            if (w->sums[row] < least || !is_admitted(r->s, (uint32_t)(w->first + row)))
                continue;
            if (w->candidate_count == CANDIDATES_MAX)
                return false;
            w->scores[w->candidate_count] = 0.0f;
            w->candidates[w->candidate_count++] = (uint32_t)(w->first + row);
        }
    return true;
}

/* Adds a block to the scores of candidates `from` and later that it reaches to. */
static void score_block(window *w, const sparse_term *term, int64_t b, const sparse_entries *entries, int32_t from)
{
    for (int32_t c = from, low = 0; c < w->candidate_count && w->candidates[c] <= term->blocks[b].last; c++) {
        int32_t high = term->blocks[b].count;
        while (low < high) {
            const int32_t middle = low + (high - low) / 2;
            if (entries->rows[middle] < w->candidates[c])
                low = middle + 1;
            else
                high = middle;
        }
        if (low < term->blocks[b].count && entries->rows[low] == w->candidates[c])
            w->scores[c] = fmaf(term->weight, entries->values[low], w->scores[c]);
    }
}

/* Adds a term to the scores of the candidates. */
static ww_status score_term(const running *r, int64_t t)
{
    const sparse_term *term = &r->s->terms[t];
    term_place *place = &r->places[t];
    int32_t from = 0;
    for (int64_t b = place->block; b < term->block_count; b++) {
        while (from < r->w->candidate_count && r->w->candidates[from] < term->blocks[b].first)
            from++;
        if (from == r->w->candidate_count)
            break;
        if (r->w->candidates[from] > term->blocks[b].last)
            continue;
        const ww_status status = load_block(r->s, place, t, b);
        if (status != WW_OK)
            return status;
        score_block(r->w, term, b, &place->entries, from);
    }
    return WW_OK;
}

static ww_status score_candidates(const running *r)
{
    ww_status status = WW_OK;
    for (int64_t t = 0; status == WW_OK && r->w->candidate_count > 0 && t < r->s->term_count; t++)
        status = score_term(r, t);
    for (int32_t c = 0; status == WW_OK && c < r->w->candidate_count; c++)
        status = sparse_offer(r->s, r->list, r->w->candidates[c], r->w->scores[c] + 0.0f);
    cut_list(r->s, r->list);
    return status;
}

static ww_status search_window(const running *r)
{
    bound_sum all = {0}, minor = {0};
    ww_status status = WW_OK;
    for (int64_t t = 0; t < r->s->term_count; t++) {
        r->bounds[t] = bound_term(&r->s->terms[t], &r->places[t], r->w->first + SPARSE_WINDOW);
        sum_bound(&all, &r->bounds[t]);
    }
    if (is_excluded(r->s, r->list, bound_of(&all), r->w->first))
        return WW_OK;
    if (find_minor(r, &minor) > 0) {
        status = add_terms(r, false);
        if (status != WW_OK || find_candidates(r, &all, &minor))
            return status == WW_OK ? score_candidates(r) : status;
        for (int64_t t = 0; t < r->s->term_count; t++)
            r->places[t].at = 0; /* the blocks that are read are added again */
    }
    status = add_terms(r, true);
    return status == WW_OK ? offer_window(r->s, r->w, r->list) : status;
}

ww_status sparse_search_run(sparse_search *s, key_list *list)
{
    const size_t count = (size_t)s->term_count + 1;
    window *w = memory_alloc(sizeof *w);
    term_place *places = memory_alloc_zeroed(count, sizeof *places);
    term_bound *bounds = memory_alloc_zeroed(count, sizeof *bounds);
    const running r = {s, w, places, bounds, list};
    ww_status status = w && places && bounds ? WW_OK : memory_failed("a sparse search", sizeof *w);
    for (int64_t t = 0; status == WW_OK && t < s->term_count; t++) {
        places[t].loaded = -1;
        if (t < MINOR_TERMS_MAX)
            w->order[t] = (int32_t)t;
    }
    for (int64_t row, done = 0; status == WW_OK && (row = next_row(s, places)) != INT64_MAX; done = w->first + SPARSE_WINDOW) {
        w->first = max_i64(row, done) / SPARSE_WINDOW * SPARSE_WINDOW;
        status = search_window(&r);
        leave_window(s, places, w->first);
        if (status == WW_OK && cancel_asked())
            status = ww_fail(WW_CANCELLED, "the search was cancelled");
    }
    memory_free(bounds);
    memory_free(places);
    memory_free(w);
    return status;
}
