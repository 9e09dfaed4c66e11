/* The screen of a search on the CPU (arithmetic/screen.h): which rows need no score.
 *
 * A unit of up to 64 rows is multiplied with the queries in groups of sixteen: first integer products of codes, then the test.
 * Kept rows are prefetched at once and scored after all groups, which tightens the limits for the next unit. If a query keeps
 * many rows of a unit, the whole unit is scored for it, by the kernels for that; a group in which most queries do so is not
 * screened for a while. Every worker has its own limits, from the best k-th score that any worker knows.
 */
#include "base/memory.h"
#include "cpu/search/screen_state.h"

enum {
    BATCH_QUERIES_MIN = 4,   /* fewer queries are screened one by one */
    SCREENED_ROWS_MIN = 8,   /* fewer admitted rows in a word are scored without a screen */
    DENSE_PART = 8,          /* if a larger fraction of a unit is kept, score all of it */
    PAUSE_MAX = 64,          /* maximum number of units for which a group is not screened */
    LEAD_HELP = 3,           /* leading parts are worth testing if they exclude more than this fraction of the groups */
    PREFETCHED_BYTES = 1024, /* of a kept row; the hardware prefetches the rest */
};

/* A unit of rows. */
typedef struct unit {
    const segment *seg;
    int64_t row; /* the first row, in the segment */
    int32_t count;
    uint64_t admitted;
    int32_t admitted_count;
    const int8_t *codes;
    screen_rows rows;
    const uint8_t *highs; /* NULL: the segment has none */
    screen_rows high_rows;
    strip_bounds runs;
} unit;

void screen_begin_item(const scan *s, int32_t worker, int32_t begin, int32_t end)
{
    screen_learn_from_others(s, worker, begin, end);
    if (s->screen->products->begin)
        s->screen->products->begin();
}

void screen_end_item(const scan *s)
{
    if (s->screen->products->end)
        s->screen->products->end();
}

/* ---- kept rows ----------------------------------------------------------------------------------------------------------- */

static float sum_of_pair(const scan *s, int32_t type, const float *query, const void *row)
{
    const bool l2 = s->job->metric == CANON_L2;
    if (type != ROW_F32)
        return s->isa->pair_typed(&(typed_pair){.type = type, .l2 = l2, .padded = s->padded, .query = query, .row = row});
    return l2 ? s->isa->squares(query, row, s->padded) : s->isa->dot(query, row, s->padded);
}

static void score_kept(const scan *s, int32_t worker, const unit *u)
{
    screen_worker *w = &s->screen->workers[worker];
    const int64_t row_bytes = (int64_t)s->padded * (int64_t)row_type_bytes(u->seg->type);
    const char *rows = (const char *)u->seg->rows.data + u->row * row_bytes;
    const float *norms = (const float *)u->seg->norms.data + u->row;
    for (int32_t i = 0; i < w->kept_count; i++) {
        const kept_rows *entry = &w->kept[i];
        const float *query = s->queries + (int64_t)entry->query * s->padded;
        float sums[UNIT_ROWS];
        for (uint64_t left = entry->rows; left != 0; left &= left - 1) {
            const int32_t r = __builtin_ctzll(left);
            sums[r] = sum_of_pair(s, u->seg->type, query, rows + r * row_bytes);
        }
        s->counts[worker].scored += __builtin_popcountll(entry->rows);
        offer(s, worker, entry->query, sums, norms, (uint32_t)(u->seg->first_row + u->row), entry->rows);
    }
    w->kept_count = 0;
}

static void keep_for_later(const scan *s, int32_t worker, const unit *u, int32_t query, uint64_t rows)
{
    screen_worker *w = &s->screen->workers[worker];
    const int64_t row_bytes = (int64_t)s->padded * (int64_t)row_type_bytes(u->seg->type);
    for (uint64_t left = rows; left != 0; left &= left - 1) {
        const char *row = (const char *)u->seg->rows.data + (u->row + __builtin_ctzll(left)) * row_bytes;
        for (int64_t i = 0; i < min_i64(row_bytes, PREFETCHED_BYTES); i += CACHE_LINE_BYTES)
            __builtin_prefetch(row + i);
    }
    w->kept[w->kept_count++] = (kept_rows){.rows = rows, .query = query};
    if (w->kept_count == KEPT_MAX)
        score_kept(s, worker, u);
}

static void score_unit(const scan *s, int32_t worker, const unit *u, int32_t begin, int32_t end)
{
    bool *fallback = s->screen->workers[worker].fallback;
    for (int32_t q = begin; q < end; q++)
        fallback[q] = true;
    scan_rows(s, worker, u->seg, u->row, u->count, u->admitted, begin, end);
}

/* Handles the rows of the unit that queries begin..end of one group keep: keep[q] has them for each query q in `any`; the other
 * queries keep none. */
static void dispatch_kept(const scan *s, int32_t worker, const unit *u, uint64_t keep[GROUP], uint32_t any, int32_t begin,
                          int32_t end)
{
    screen_worker *w = &s->screen->workers[worker];
    scan_counts *counts = &s->counts[worker];
    const int32_t first = begin / GROUP * GROUP, sparse_max = u->count / DENSE_PART;
    uint8_t *pause = &w->pause[begin / GROUP];
    int32_t dense = 0, numbers[GROUP];
    for (uint32_t left = any; left != 0; left &= left - 1) {
        const int32_t q = __builtin_ctz(left);
        keep[q] &= u->admitted;
        numbers[q] = __builtin_popcountll(keep[q]);
        counts->kept += numbers[q];
        dense += numbers[q] > sparse_max;
    }
    if (dense * 2 > end - begin) {
        *pause = (uint8_t)(*pause == 0 ? 1 : min_i64(*pause * 2, PAUSE_MAX));
        w->wait[begin / GROUP] = *pause;
        score_unit(s, worker, u, begin, end);
        return;
    }
    *pause = 0;
    for (uint32_t left = any; left != 0; left &= left - 1) {
        const int32_t q = __builtin_ctz(left);
        if (numbers[q] > sparse_max)
            score_unit(s, worker, u, first + q, first + q + 1);
        else if (numbers[q] > 0)
            keep_for_later(s, worker, u, first + q, keep[q]);
    }
}

/* ---- units of rows ------------------------------------------------------------------------------------------------------- */

/* Scores all rows for a group that is not screened now: it is paused, or one of its queries has no threshold. */
static void leave_out(const scan *s, int32_t worker, const unit *u, int32_t begin, int32_t end)
{
    uint8_t *wait = &s->screen->workers[worker].wait[begin / GROUP];
    if (*wait > 0) {
        --*wait;
        score_unit(s, worker, u, begin, end);
    } else {
        scan_rows(s, worker, u->seg, u->row, u->count, u->admitted, begin, end);
    }
}

/* Returns true if a quick test should be tried. After two units in a row for which it did not help, it is skipped for one unit,
 * then for three, and so on. */
static bool trial_is_due(screen_trial *trial)
{
    const bool due = trial->wait == 0;
    trial->wait -= trial->wait > 0;
    return due;
}

static void trial_has_helped(screen_trial *trial, bool helped)
{
    trial->helps = helped;
    trial->pause = (uint8_t)(helped ? 0 : trial->pause == 0 ? 1 : min_i64(trial->pause * 2, PAUSE_MAX));
    trial->wait = (uint8_t)(trial->pause > 0 ? trial->pause - 1 : 0);
}

static bool lead_is_due(const scan *s, screen_worker *w)
{
    return s->padded >= LEAD_MIN && !s->screen->offsets && trial_is_due(&w->lead_trial);
}

/* Returns true if the leading parts of the codes show that no query keeps a row of the unit. */
static bool excluded_by_lead(const scan *s, int32_t worker, const unit *u, int32_t begin, int32_t end)
{
    const screen *sc = s->screen;
    screen_worker *w = &sc->workers[worker];
    if (!lead_is_due(s, w))
        return false;
    lead_take(w->lead, u->codes, &u->rows, u->count, s->padded);
    uint64_t keep = 0;
    for (int32_t q = begin; q < end && keep == 0; q++) {
        lead_products(w->lead, sc->products, sc->codes + (int64_t)q * s->padded, sc->rests[q], u->count, w->products);
        keep = u->admitted & s->isa->filter_one(w->products, &u->rows, u->count, &w->limits[q / GROUP], q % GROUP);
    }
    trial_has_helped(&w->lead_trial, keep == 0);
    return keep == 0;
}

/* Returns true if the high planes show that no query keeps a row of the unit. */
static bool excluded_by_highs(const scan *s, int32_t worker, const unit *u, int32_t begin, int32_t end)
{
    const screen *sc = s->screen;
    screen_worker *w = &sc->workers[worker];
    if (!s->planes || !u->highs || !trial_is_due(&w->high_trial))
        return false;
    uint64_t keep = 0;
    for (int32_t q = begin; q < end && keep == 0; q++) {
        sc->products->one_high(sc->codes + (int64_t)q * s->padded, u->highs, u->count, s->padded, w->products);
        keep = u->admitted & s->isa->filter_one(w->products, &u->high_rows, u->count, &w->limits[q / GROUP], q % GROUP);
    }
    trial_has_helped(&w->high_trial, keep == 0);
    return keep == 0;
}

static void screen_small_batch(const scan *s, int32_t worker, unit *u, int32_t begin, int32_t end)
{
    const screen *sc = s->screen;
    screen_worker *w = &sc->workers[worker];
    int32_t ready = begin;
    while (ready < end && w->thresholds[ready] != NO_THRESHOLD)
        ready++;
    if (w->wait[begin / GROUP] > 0 || ready < end) {
        leave_out(s, worker, u, begin, end);
        return;
    }
    s->counts[worker].screened += u->admitted_count * (end - begin);
    if (excluded_by_lead(s, worker, u, begin, end) || excluded_by_highs(s, worker, u, begin, end))
        return;
    uint64_t keep[GROUP];
    for (int32_t q = begin; q < end; q++) {
        sc->products->one(sc->codes + (int64_t)q * s->padded, u->codes, u->count, s->padded, w->products);
        for (int32_t r = 0; sc->offsets && r < u->count; r++)
            w->products[r] += sc->offsets[q];
        keep[q % GROUP] = s->isa->filter_one(w->products, &u->rows, u->count, &w->limits[q / GROUP], q % GROUP);
    }
    dispatch_kept(s, worker, u, keep, ((UINT32_C(1) << (end - begin)) - 1) << begin % GROUP, begin, end);
}

static bool some_of(const uint16_t candidates[SCREEN_STRIPS], int32_t row_count)
{
    uint32_t all = 0;
    for (int32_t run = 0; run < row_count / SCREEN_STRIP; run++)
        all |= candidates[run];
    return all != 0;
}

/* Queries begin..end while they are multiplied with a unit: whole groups, except for the last one. */
typedef struct passing {
    const scan *s;
    int32_t worker;
    const unit *u;
    int32_t begin, end;
} passing;

static void dispatch_group(void *context, int32_t group, const int32_t *products, const uint16_t candidates[SCREEN_STRIPS])
{
    const passing *p = context;
    screen_worker *w = &p->s->screen->workers[p->worker];
    const int32_t q = p->begin + group * GROUP;
    if (!some_of(candidates, p->u->count)) {
        w->pause[q / GROUP] = 0;
        return;
    }
    uint64_t keep[GROUP];
    const uint32_t any = p->s->isa->filter_rows(products, &p->u->rows, p->u->count, &w->limits[q / GROUP], candidates, keep);
    dispatch_kept(p->s, p->worker, p->u, keep, any, q, (int32_t)min_i64(q + GROUP, p->end));
}

/* Corrects the products of a group if codes are smaller than the rows' numbers. */
static void add_offsets(const screen *sc, int32_t *products, int32_t row_count, int32_t group)
{
    for (int32_t r = 0; sc->offsets && r < row_count; r++)
        for (int32_t q = 0; q < GROUP; q++)
            products[r * GROUP + q] += sc->offsets[group * GROUP + q];
}

static void screen_some(const scan *s, int32_t worker, const unit *u, const int8_t *codes, int32_t begin, int32_t end)
{
    const screen *sc = s->screen;
    const screen_worker *w = &sc->workers[worker];
    const int8_t *packed = sc->packed + begin / GROUP * sc->group_bytes;
    const screen_limits *limits = &w->limits[begin / GROUP];
    const int32_t groups = (end - begin + GROUP - 1) / GROUP;
    passing p = {s, worker, u, begin, end};
    s->counts[worker].screened += u->admitted_count * (end - begin);
    if (sc->products->groups_filtered && !sc->offsets) {
        const filtered_groups job = {.packed = packed,
                                     .group_count = groups,
                                     .prepared = codes,
                                     .row_count = u->count,
                                     .padded = s->padded,
                                     .out = w->products,
                                     .bounds = &u->runs,
                                     .limits = limits,
                                     .ready = dispatch_group,
                                     .context = &p};
        sc->products->groups_filtered(&job);
        return;
    }
    for (int32_t first = 0; first < groups; first += GROUPS_MAX) {
        const int32_t some = (int32_t)min_i64(GROUPS_MAX, groups - first);
        sc->products->groups(packed + first * sc->group_bytes, some, codes, u->count, s->padded, w->products);
        for (int32_t g = 0; g < some; g++) {
            int32_t *products = w->products + g * UNIT_ROWS * GROUP;
            add_offsets(sc, products, u->count, begin / GROUP + first + g);
            uint16_t candidates[SCREEN_STRIPS];
            s->isa->filter_strips(products, &u->runs, u->count, &limits[first + g], candidates);
            dispatch_group(&p, first + g, products, candidates);
        }
    }
}

/* Finds the groups that the leading parts of the codes exclude. Returns false if it did not try. */
static bool exclude_groups(const scan *s, int32_t worker, const unit *u, int32_t begin, int32_t end)
{
    const screen *sc = s->screen;
    screen_worker *w = &sc->workers[worker];
    const screen_products *products = sc->products;
    if (!sc->lead_packed || !lead_is_due(s, w))
        return false;
    float rests[SCREEN_STRIPS];
    lead_take(w->lead, u->codes, &u->rows, u->count, s->padded);
    lead_rests_of_runs(w->lead, u->rows.scales, u->count, rests);
    const int8_t *codes = w->lead->codes;
    if (products->prepare) {
        products->prepare(codes, u->count, LEAD_CODES, w->lead->prepared);
        codes = w->lead->prepared;
    }
    const int64_t group_bytes = packed_group_bytes(products, LEAD_CODES);
    const int32_t group_end = (end + GROUP - 1) / GROUP;
    int32_t excluded = 0;
    for (int32_t first = begin / GROUP; first < group_end; first += GROUPS_MAX) {
        const int32_t some = (int32_t)min_i64(GROUPS_MAX, group_end - first);
        products->groups(sc->lead_packed + first * group_bytes, some, codes, u->count, LEAD_CODES, w->products);
        for (int32_t g = 0; g < some; g++) {
            const int32_t *of_group = w->products + g * UNIT_ROWS * GROUP, group = first + g;
            w->excluded[group] =
                !s->isa->filter_leads(of_group, &u->runs, rests, u->count, &w->limits[group], sc->rests + group * GROUP);
            excluded += w->excluded[group];
        }
    }
    trial_has_helped(&w->lead_trial, excluded * LEAD_HELP > group_end - begin / GROUP);
    return true;
}

static void screen_groups(const scan *s, int32_t worker, unit *u, int32_t begin, int32_t end)
{
    const screen *sc = s->screen;
    const screen_worker *w = &sc->workers[worker];
    const int8_t *codes = u->codes;
    const int64_t bytes = (int64_t)u->count * s->padded;
    for (int64_t i = 0; i < bytes; i += CACHE_LINE_BYTES) /* prefetch the next unit into the second-level cache */
        __builtin_prefetch(codes + bytes + i, 0, 2);
    if (sc->products->prepare) {
        sc->products->prepare(codes, u->count, s->padded, w->prepared);
        codes = w->prepared;
    }
    s->isa->bound_strips(&u->rows, u->count, &u->runs);
    const bool by_lead = exclude_groups(s, worker, u, begin, end);
    int32_t first = begin; /* groups from here to q are ready and wait for one call */
    for (int32_t q = begin; q < end;) {
        const int32_t next = (int32_t)min_i64(q + GROUP, end);
        const bool now = (w->wait[q / GROUP] | w->without_threshold[q / GROUP]) == 0;
        const bool excluded = now && by_lead && w->excluded[q / GROUP];
        if (!now || excluded) {
            if (first < q)
                screen_some(s, worker, u, codes, first, q);
            first = next;
        }
        if (!now)
            leave_out(s, worker, u, q, next);
        if (excluded) {
            w->pause[q / GROUP] = 0;
            s->counts[worker].screened += u->admitted_count * (next - q);
        }
        q = next;
    }
    if (first < end)
        screen_some(s, worker, u, codes, first, end);
}

/* After the segment's last row memory has no values: the test reads copies of the last row there. */
static void fill_tail(float *tail, const float **from, int32_t rows_left)
{
    for (int32_t r = 0; r < UNIT_ROWS; r++)
        tail[r] = (*from)[r < rows_left ? r : rows_left - 1];
    *from = tail;
}

/* Finds the codes and bounds of a unit's rows. */
static void find_unit(const scan *s, screen_worker *w, unit *u)
{
    const segment *seg = u->seg;
    const buffer *codes = row_type_is_bytes(seg->type) ? &seg->rows : &seg->codes;
    u->codes = (const int8_t *)codes->data + u->row * s->padded;
    u->rows.scales = (const float *)seg->scales.data + u->row;
    u->rows.residuals = (const float *)seg->residuals.data + u->row;
    u->rows.norms = (const float *)seg->norms.data + u->row;
    if (seg->highs.data) {
        u->highs = (const uint8_t *)seg->highs.data + u->row * (s->padded / 2);
        u->high_rows.residuals = (const float *)seg->high_residuals.data + u->row;
    }
    const int64_t rows_left = seg->count - u->row;
    if (rows_left < u->count) {
        fill_tail(w->tail[0], &u->rows.scales, (int32_t)rows_left);
        fill_tail(w->tail[1], &u->rows.residuals, (int32_t)rows_left);
        fill_tail(w->tail[2], &u->rows.norms, (int32_t)rows_left);
        if (u->highs)
            fill_tail(w->tail[3], &u->high_rows.residuals, (int32_t)rows_left);
    }
    u->high_rows.scales = u->rows.scales;
    u->high_rows.norms = u->rows.norms;
}

static void screen_unit(const scan *s, int32_t worker, unit *u, int32_t begin, int32_t end)
{
    find_unit(s, &s->screen->workers[worker], u);
    if (end - begin < BATCH_QUERIES_MIN)
        screen_small_batch(s, worker, u, begin, end);
    else
        screen_groups(s, worker, u, begin, end);
    score_kept(s, worker, u);
}

/* A few rows are more often excluded together, so units are small if leading parts help. */
static int32_t unit_rows(const scan *s, int32_t worker, int32_t queries)
{
    const screen *sc = s->screen;
    if (queries < BATCH_QUERIES_MIN)
        return UNIT_ROWS;
    return sc->lead_packed && sc->workers[worker].lead_trial.helps ? SCREEN_STRIP : sc->unit_rows;
}

void screen_word(const scan *s, int32_t worker, const segment *seg, int64_t word, int32_t begin, int32_t end)
{
    const uint64_t admitted = admitted_rows(s->job, seg, word);
    if (__builtin_popcountll(admitted) < SCREENED_ROWS_MIN) {
        if (admitted != 0)
            scan_word(s, worker, seg, word, begin, end);
        return;
    }
    const int32_t rows = unit_rows(s, worker, end - begin);
    for (int32_t first = 0; first < UNIT_ROWS; first += rows) {
        unit u = {.seg = seg, .row = word * UNIT_ROWS + first, .count = rows, .admitted = admitted >> first};
        if (rows < UNIT_ROWS)
            u.admitted &= (UINT64_C(1) << rows) - 1;
        u.admitted_count = __builtin_popcountll(u.admitted);
        if (u.admitted != 0)
            screen_unit(s, worker, &u, begin, end);
    }
}
