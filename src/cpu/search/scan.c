/* Scores blocks of rows against blocks of queries; each worker keeps its own k best for each query.
 *
 * Euclidean distances to many queries are first estimated by dot products: |q|^2 + |x|^2 - 2 q.x costs half of the canonical
 * sum, and a rigorous bound of its error excludes most rows. The few others get their canonical sums, so the bits are the same.
 */
#include "cpu/search/search_state.h"

enum {
    DOTS_QUERIES = 3, /* with fewer queries, memory is the limit, and less arithmetic is no faster */
    DOTS_RATIO = 32,  /* minimum number of rows tried per likely row: scoring a single row costs as much as several in a
                         block */
};

/* Dot products are faster while they exclude nearly all rows. They do not exclude enough while the heaps fill, while the limits
 * are loose, and among near duplicates. Then the rest of the item is scored directly. */
static bool dots_pay(const scan *s, int32_t worker, int32_t query, int32_t queries)
{
    const scan_counts *seen = &s->counts[worker];
    return s->job->metric == CANON_L2 && queries >= DOTS_QUERIES && seen->likely * DOTS_RATIO <= seen->looked_at &&
           has_limit(s, worker, query);
}

/* Finds the rows among `admitted` that may enter the query's results, and puts their canonical sums into `sums`, which holds
 * the sums of all rows before the call or, if `by_dots`, their dot products. */
static uint64_t candidates_of(const scan *s, int32_t worker, int32_t query, bool by_dots, const float *rows, const float *norms,
                              int32_t count, uint64_t admitted, float *sums)
{
    const float limit = s->limits[(int64_t)worker * s->query_count + query], query_norm = s->query_norms[query];
    const bool limited = has_limit(s, worker, query);
    uint64_t candidates = admitted;
    if (limited && by_dots)
        candidates &= s->isa->filter_dots(sums, count, limit, query_norm, norms, filter_slack(s->padded));
    else if (limited)
        candidates &= s->isa->filter_sums(s->job->metric, sums, count, limit, query_norm, norms);
    if (!by_dots)
        return candidates;
    for (uint64_t left = candidates; left != 0; left &= left - 1) {
        const int32_t r = __builtin_ctzll(left);
        sums[r] = s->isa->squares(s->queries + (int64_t)query * s->padded, rows + (int64_t)r * s->padded, s->padded);
    }
    s->counts[worker].likely += __builtin_popcountll(candidates);
    return candidates;
}

/* Returns the rows as floats: in the segment, or widened once for all queries. Returns NULL for a single query, for which
 * widening would be slower. */
static const float *rows_as_floats(const scan *s, int32_t worker, const segment *seg, int64_t row, int32_t count,
                                   int32_t queries)
{
    if (seg->type == ROW_F32)
        return (const float *)seg->rows.data + row * s->padded;
    if (queries == 1)
        return NULL;
    float *wide = s->wide + (int64_t)worker * s->block_rows * s->padded;
    const char *rows = (const char *)seg->rows.data + row * s->padded * (int64_t)row_type_bytes(seg->type);
    s->isa->widen(seg->type, rows, wide, (int64_t)count * s->padded);
    return wide;
}

static void scan_block(const scan *s, int32_t worker, const segment *seg, int64_t row, int32_t count, uint64_t admitted,
                       int32_t begin, int32_t end)
{
    const float *rows = rows_as_floats(s, worker, seg, row, count, end - begin);
    const float *norms = (const float *)seg->norms.data + row;
    float *sums = s->sums + (int64_t)worker * QUERY_GROUP * SUMS_ROWS_MAX;
    for (int32_t group = begin; group < end; group += QUERY_GROUP) {
        const int32_t queries = (int32_t)min_i64(QUERY_GROUP, end - group);
        const bool by_dots = dots_pay(s, worker, group, queries);
        sums_job job = {.metric = by_dots ? CANON_DOT : s->job->metric,
                        .queries = s->queries + (int64_t)group * s->padded,
                        .query_count = queries,
                        .row_count = count,
                        .padded = s->padded,
                        .sums = sums};
        job.rows =
            rows ? (const void *)rows : (const char *)seg->rows.data + row * s->padded * (int64_t)row_type_bytes(seg->type);
        if (rows)
            s->isa->sums(&job);
        else
            s->isa->sums_typed(seg->type, &job);
        s->counts[worker].looked_at += by_dots ? queries * count : 0;
        for (int32_t q = 0; q < queries; q++) {
            float *query_sums = sums + q * SUMS_ROWS_MAX;
            const uint64_t candidates = candidates_of(s, worker, group + q, by_dots, rows, norms, count, admitted, query_sums);
            s->counts[worker].scored += __builtin_popcountll(by_dots ? candidates : admitted);
            if (candidates != 0)
                offer(s, worker, group + q, query_sums, norms, (uint32_t)(seg->first_row + row), candidates);
        }
    }
}

/* Rows are widened in blocks, as many as there is memory for. */
void scan_rows(const scan *s, int32_t worker, const segment *seg, int64_t row, int32_t count, uint64_t admitted, int32_t begin,
               int32_t end)
{
    const int32_t rows_max = (int32_t)at_least_one(seg->type == ROW_F32 ? SUMS_ROWS_MAX : s->block_rows);
    const int64_t there = min_i64(seg->count - row, SUMS_ROWS_MAX); /* a unit of the screen may extend past the last row */
    const int32_t end_row = (int32_t)min_i64(count, there);
    for (int32_t first = 0; first < end_row && first < SUMS_ROWS_MAX; first += rows_max) {
        const int32_t rows = (int32_t)min_i64(rows_max, end_row - first);
        const uint64_t bits = rows < 64 ? admitted >> first & ((UINT64_C(1) << (rows & 63)) - 1) : admitted;
        if (bits != 0)
            scan_block(s, worker, seg, row + first, rows, bits, begin, end);
    }
}

uint64_t admitted_rows(const search_job *job, const segment *seg, int64_t word)
{
    uint64_t admitted = ((const uint64_t *)seg->live.data)[word];
    if (job->mask && admitted != 0) {
        const int64_t first = seg->first_row + word * 64;
        const int64_t covered = job->mask_rows - first;
        if (covered <= 0)
            return 0;
        admitted &= job->mask[first / 64];
        if (covered < 64)
            admitted &= (UINT64_C(1) << covered) - 1;
    }
    return admitted;
}

/* If most rows are admitted, skipping the others would take longer than scoring them. */
void scan_word(const scan *s, int32_t worker, const segment *seg, int64_t word, int32_t begin, int32_t end)
{
    uint64_t admitted = admitted_rows(s->job, seg, word);
    const bool dense = __builtin_popcountll(admitted) >= SUMS_ROWS_MAX / 2;
    while (admitted != 0) {
        const int32_t first = __builtin_ctzll(admitted);
        const uint64_t rest = admitted >> first;
        int32_t run = 64 - __builtin_clzll(rest);
        if (!dense && ~rest != 0)
            run = (int32_t)min_i64(run, __builtin_ctzll(~rest));
        run = (int32_t)min_i64(run, s->block_rows);
        const uint64_t bits = rest & (UINT64_MAX >> (64 - run));
        scan_rows(s, worker, seg, word * 64 + first, run, bits, begin, end);
        admitted &= ~(bits << first);
    }
}

/* Finds the segment by bisection. If several segments start with the same word, all but the last are empty. */
int64_t segment_of_word(const scan *s, int64_t word)
{
    int64_t low = 0, high = s->job->segment_count - 1;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (s->first_words[middle] <= word)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}
