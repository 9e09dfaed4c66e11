/* Scores of many queries against all rows: a block takes tiles of 64 queries x 64 rows, or of 16 x 256, four by four pairs a
 * thread.
 *
 * Bound by arithmetic. A thread owns its pairs whole: it walks over the sixteen groups of accumulators (packed.h), through all
 * runs of one group before the next, folds the four accumulators of each pair, and adds what came before in the order of
 * the canonical fold: a tree over neighbours, walked from left to right with at most four sums waiting. So nothing is shuffled,
 * and a pair costs eight registers.
 *
 * Rows and queries come through shared memory in slices of a few steps (16 bytes of each row and query), the next slice on its
 * way while one is worked on. A row of a slice is followed by 16 spare bytes, which spreads rows over the memory banks.
 */
#include "kernels/simt.h"

#include "kernels/cursor.h"
#include "kernels/packed.h"
#include "kernels/topk.h"

enum {
    BATCH_SIDE = 4, /* rows, and queries, of a thread */
    BATCH_PAIRS = BATCH_SIDE * BATCH_SIDE,
    BATCH_WORDS_MAX = SEARCH_TALL_WORDS,
    BATCH_QUERIES_MAX = SEARCH_WIDE_QUERIES,
    BATCH_COPIES_MAX = 4 /* of 16 bytes, that a thread makes for the rows of a slice, or for the queries */
};

/* A kernel's shape, known when it is compiled: words * 64 * queries is 4096, 16 pairs for each of 256 threads. */
typedef struct batch_shape {
    int32_t words; /* of 64 rows in a tile */
    int32_t queries;
    int32_t steps; /* in a slice; divides 16 */
    bool l2;
} batch_shape;

DEVICE int32_t batch_rows(batch_shape shape)
{
    return shape.words * SEARCH_WORD_ROWS;
}

/* Floats from one row of a slice to the next. */
DEVICE int32_t batch_stride(batch_shape shape)
{
    return shape.steps * 4 + 4;
}

/* Floats of a slice, the rows' part and then the queries'. */
DEVICE int32_t batch_slice(batch_shape shape)
{
    return (batch_rows(shape) + shape.queries) * batch_stride(shape);
}

/* A thread's first query and row in the tile; the others are a quarter of the tile apart. Threads that share a row or a query
 * alternate, so that their reads of shared memory come together. */
DEVICE int32_t batch_query_of(batch_shape shape)
{
    const uint32_t thread = thread_index();
    return (int32_t)((thread & 1) | (thread >> 1 & 2) | (shape.words == 1 ? thread >> 4 & 12 : 0));
}

DEVICE int32_t batch_row_of(batch_shape shape)
{
    const uint32_t thread = thread_index();
    return (int32_t)((thread >> 1 & 1) | (thread >> 2 & (shape.words == 1 ? 14 : 62)));
}

/* Where the block is in its sequence of slices: the one to be worked on lies in half `half` of the shared memory. */
typedef struct batch_feed {
    float *slices;         /* shared: two halves of a slice each */
    const row_word *tiles; /* shared: this tile's words and the next one's, taking turns; rows are NULL behind the last */
    int32_t tile;          /* which of the two is this one */
    const float *queries;
    const float *zeros; /* 16 bytes of them */
    int32_t runs;
    int32_t slice; /* that will be fetched next */
    int32_t step;  /* of the slice being worked on */
    int32_t half;
    f32x4_copy rows_copies[BATCH_COPIES_MAX], queries_copies[BATCH_COPIES_MAX];
} batch_feed;

/* Copy `copy` of a thread goes to this row (of the rows' or the queries' part) and step of a slice. */
DEVICE int32_t batch_copy_row(batch_shape shape, int32_t copy)
{
    return copy * (SEARCH_THREADS / shape.steps) + (int32_t)thread_index() / shape.steps;
}

DEVICE float *batch_copy_to(batch_shape shape, const batch_feed *feed, int32_t row)
{
    const int32_t step = (int32_t)thread_index() % shape.steps;
    return AT_RANGE(feed->slices, (feed->half ^ 1) * batch_slice(shape) + row * batch_stride(shape) + step * 4, 4);
}

/* Runs are taken in twos. Where they are odd a run of zeros is added, which changes no score: fma(0, 0, sum) is sum but for the
 * sign of a zero. */
DEVICE int32_t batch_runs(const batch_feed *feed)
{
    return feed->runs + (feed->runs & 1);
}

/* Starts the copy of the next slice, if there is one, into the half that is not worked on. */
DEVICE void batch_fetch(batch_shape shape, batch_feed *feed)
{
    const bool behind = feed->slice * shape.steps == PACKED_GROUPS * batch_runs(feed);
    const row_word *words = feed->tiles + (feed->tile ^ (int32_t)behind) * shape.words;
    feed->slice = behind ? 0 : feed->slice;
    if (AT(words, 0).rows == 0)
        return;
    const int32_t step = feed->slice * shape.steps + (int32_t)thread_index() % shape.steps;
    const int32_t run = step % batch_runs(feed), group = step / batch_runs(feed);
    const int32_t at = packed_at(feed->runs, run, group);
    const bool there = run < feed->runs;
    const int32_t floats = feed->runs * CANON_LANES; /* times 64 rows or queries is 2^22 at most */
    UNROLL
    for (int32_t i = 0; i < batch_rows(shape) * shape.steps / SEARCH_THREADS; i++) {
        const int32_t row = batch_copy_row(shape, i);
        const float *from =
            IN_GLOBAL(const float, AT(words, row / SEARCH_WORD_ROWS).rows) + (row % SEARCH_WORD_ROWS * floats + at);
        f32x4_copy_begin(&feed->rows_copies[i], batch_copy_to(shape, feed, row), there ? from : feed->zeros);
    }
    UNROLL
    for (int32_t i = 0; i * SEARCH_THREADS < shape.queries * shape.steps; i++) {
        const int32_t query = batch_copy_row(shape, i);
        const float *from = feed->queries + (query * floats + at);
        if (query < shape.queries)
            f32x4_copy_begin(&feed->queries_copies[i], batch_copy_to(shape, feed, batch_rows(shape) + query),
                             there ? from : feed->zeros);
    }
    feed->slice++;
}

/* Waits for the slice that was fetched, makes it the one to work on, and fetches the next. By all threads. */
DEVICE void batch_advance(batch_shape shape, batch_feed *feed)
{
    UNROLL
    for (int32_t i = 0; i < batch_rows(shape) * shape.steps / SEARCH_THREADS; i++)
        f32x4_copy_end(&feed->rows_copies[i], batch_copy_to(shape, feed, batch_copy_row(shape, i)));
    UNROLL
    for (int32_t i = 0; i * SEARCH_THREADS < shape.queries * shape.steps; i++)
        if (batch_copy_row(shape, i) < shape.queries)
            f32x4_copy_end(&feed->queries_copies[i], batch_copy_to(shape, feed, batch_rows(shape) + batch_copy_row(shape, i)));
    barrier();
    feed->half ^= 1;
    feed->step = 0;
    batch_fetch(shape, feed);
}

/* One step: four accumulators of each pair. The first of a group starts from zero. */
DEVICE void batch_step(batch_shape shape, bool first, const float *rows, const float *queries, f32x4 *acc)
{
    f32x4 x[BATCH_SIDE], q[BATCH_SIDE];
    UNROLL
    for (int32_t i = 0; i < BATCH_SIDE; i++) {
        x[i] = load_f32x4(AT_RANGE(rows, i * (batch_rows(shape) / BATCH_SIDE * batch_stride(shape)), 4));
        q[i] = load_f32x4(AT_RANGE(queries, i * (shape.queries / BATCH_SIDE * batch_stride(shape)), 4));
    }
    UNROLL
    for (int32_t i = 0; i < BATCH_PAIRS; i++) {
        const f32x4 a = q[i % BATCH_SIDE], b = x[i / BATCH_SIDE];
        const f32x4 from = first ? F32X4_ZERO : acc[i];
        if (shape.l2) {
            const f32x4 t = f32x4_sub(a, b);
            acc[i] = f32x4_fma(t, t, from);
        } else {
            acc[i] = f32x4_fma(a, b, from);
        }
    }
}

/* Two steps: the next ones of the slice, or the first ones of the next slice. */
DEVICE void batch_steps(batch_shape shape, bool first, batch_feed *feed, f32x4 *acc)
{
    if (feed->step == shape.steps)
        batch_advance(shape, feed);
    const float *slice = feed->slices + feed->half * batch_slice(shape) + feed->step * 4;
    const float *rows = slice + batch_row_of(shape) * batch_stride(shape);
    const float *queries = slice + (batch_rows(shape) + batch_query_of(shape)) * batch_stride(shape);
    batch_step(shape, first, rows, queries, acc);
    batch_step(shape, false, rows + 4, queries + 4, acc);
    feed->step += 2;
}

/* The sums of one group of accumulators. */
DEVICE void batch_group(batch_shape shape, batch_feed *feed, float *sums)
{
    f32x4 acc[BATCH_PAIRS];
    batch_steps(shape, true, feed, acc);
    UNROLL_BY(1)
    for (int32_t run = 2; run < feed->runs; run += 2)
        batch_steps(shape, false, feed, acc);
    UNROLL
    for (int32_t i = 0; i < BATCH_PAIRS; i++) {
        sums[i] = (acc[i].x + acc[i].y) + (acc[i].z + acc[i].w);
        SETTLE(sums[i]);
    }
}

DEVICE void batch_add(float *to, const float *more)
{
    UNROLL
    for (int32_t i = 0; i < BATCH_PAIRS; i++) {
        to[i] = to[i] + more[i];
        SETTLE(to[i]);
    }
}

/* 2, 4, 8 and 16 groups: neighbours are added first. */
DEVICE void batch_groups_2(batch_shape shape, batch_feed *feed, float *sums)
{
    float more[BATCH_PAIRS];
    batch_group(shape, feed, sums);
    batch_group(shape, feed, more);
    batch_add(sums, more);
}

DEVICE void batch_groups_4(batch_shape shape, batch_feed *feed, float *sums)
{
    float more[BATCH_PAIRS];
    batch_groups_2(shape, feed, sums);
    batch_groups_2(shape, feed, more);
    batch_add(sums, more);
}

DEVICE void batch_groups_8(batch_shape shape, batch_feed *feed, float *sums)
{
    float more[BATCH_PAIRS];
    batch_groups_4(shape, feed, sums);
    batch_groups_4(shape, feed, more);
    batch_add(sums, more);
}

/* All of a tile: the totals of the thread's pairs. The two halves are one piece of code, which the instruction cache holds. */
DEVICE void batch_tile(batch_shape shape, batch_feed *feed, float *sums)
{
    float first[BATCH_PAIRS];
    UNROLL_BY(1)
    for (int32_t half = 0; half < 2; half++) {
        UNROLL
        for (int32_t i = 0; i < BATCH_PAIRS; i++)
            first[i] = half == 0 ? 0.0f : sums[i];
        batch_groups_8(shape, feed, sums);
    }
    batch_add(sums, first);
}

/* Which tiles a block scores: every step-th from `number` on. In shared memory, since one thread looks for them. */
typedef struct batch_search {
    search_rows rows;
    uint32_t number, step;
    uint32_t segment; /* where the last one found was */
} batch_search;

/* Writes the words of the next tile that has rows to score to the shared `words`; the first of them has no rows if there is
 * none. By one thread. */
DEVICE void batch_find(batch_shape shape, batch_search *search, row_word *words)
{
    const uint32_t count = (uint32_t)shape.words, last = AT(search, 0).rows.word_count - 1;
    uint64_t admitted = 0;
    for (; AT(search, 0).number * count <= last && admitted == 0; AT(search, 0).number += AT(search, 0).step)
        for (uint32_t i = 0; i < count; i++) {
            /* Behind the end the last word stands in, with no row that counts. */
            const uint32_t word = AT(search, 0).number * count + i;
            row_word found = row_word_at(&AT(search, 0).rows, word < last ? word : last, &AT(search, 0).segment);
            found.admitted = word <= last ? found.admitted : 0;
            admitted |= found.admitted;
            AT(words, i) = found;
        }
    if (admitted == 0)
        AT(words, 0).rows = 0;
}

/* Which of the thread's pairs pass the gate, a bit each. `metric` is known when it is compiled. */
DEVICE uint32_t batch_open(batch_shape shape, int32_t metric, const topk *top, const float *query_norms, const float *row_norms,
                           const row_word *words, const float *sums)
{
    const uint32_t row = (uint32_t)batch_row_of(shape), rows_apart = (uint32_t)batch_rows(shape) / BATCH_SIDE;
    const uint32_t query = (uint32_t)batch_query_of(shape), queries_apart = (uint32_t)shape.queries / BATCH_SIDE;
    const bool cosine = metric == CANON_COSINE;
    uint32_t open = 0;
    UNROLL
    for (uint32_t i = 0; i < BATCH_PAIRS; i++) {
        const uint32_t q = query + i % BATCH_SIDE * queries_apart, r = row + i / BATCH_SIDE * rows_apart;
        const bool passes = topk_gate_open(metric, AT(top->gate, q), sums[i], cosine ? AT(query_norms, q) : 0.0f,
                                           cosine ? AT(row_norms, r) : 0.0f);
        const uint64_t admitted = AT(words, r / SEARCH_WORD_ROWS).admitted;
        open |= (uint32_t)(passes && (admitted >> r % SEARCH_WORD_ROWS & 1)) << i;
    }
    return open;
}

/* Offers what passes the gate, one pair after the other: few do. */
DEVICE void batch_offer(batch_shape shape, const search_args *args, const topk *top, const float *query_norms,
                        const float *row_norms, const row_word *words, const float *sums)
{
    const uint32_t row = (uint32_t)batch_row_of(shape), rows_apart = (uint32_t)batch_rows(shape) / BATCH_SIDE;
    const uint32_t query = (uint32_t)batch_query_of(shape), queries_apart = (uint32_t)shape.queries / BATCH_SIDE;
    const bool cosine = top->metric == CANON_COSINE;
    uint32_t open;
    if (shape.l2)
        open = batch_open(shape, CANON_L2, top, query_norms, row_norms, words, sums);
    else if (cosine)
        open = batch_open(shape, CANON_COSINE, top, query_norms, row_norms, words, sums);
    else
        open = batch_open(shape, CANON_DOT, top, query_norms, row_norms, words, sums);
    for (; open != 0; open &= open - 1) {
        const uint32_t pair = (uint32_t)__builtin_ctz(open);
        float sum = sums[0];
        UNROLL
        for (uint32_t i = 1; i < BATCH_PAIRS; i++)
            sum = pair == i ? sums[i] : sum;
        const uint32_t q = query + pair % BATCH_SIDE * queries_apart, r = row + pair / BATCH_SIDE * rows_apart;
        topk_offer(top, &args->lists, q, sum, cosine ? AT(query_norms, q) : 0.0f, cosine ? AT(row_norms, r) : 0.0f,
                   AT(words, r / SEARCH_WORD_ROWS).first_row + r % SEARCH_WORD_ROWS);
    }
}

/* Scores the tiles of a part, one after the other, until there is none. */
DEVICE void batch_score(batch_shape shape, const search_args *args, const topk *top, const float *query_norms, float *row_norms,
                        row_word *tiles, batch_search *search, batch_feed *feed)
{
    if (thread_index() == 0) {
        AT(search, 0).rows = args->rows;
        AT(search, 0).number = block_index();
        AT(search, 0).step = args->lists.parts;
        AT(search, 0).segment = 0;
        batch_find(shape, search, tiles);
        batch_find(shape, search, tiles + shape.words);
    }
    barrier();
    batch_fetch(shape, feed);
    for (;;) {
        row_word *words = tiles + feed->tile * shape.words;
        if (AT(words, 0).rows == 0)
            return;
        /* The norms are asked for before the tile and used after it. */
        const bool mine = top->metric == CANON_COSINE && thread_index() < (uint32_t)batch_rows(shape);
        const uint32_t within = thread_index() % SEARCH_WORD_ROWS;
        const float norm = mine ? IN_GLOBAL(const float, AT(words, thread_index() / SEARCH_WORD_ROWS).norms)[within] : 0.0f;
        float sums[BATCH_PAIRS];
        batch_tile(shape, feed, sums);
        if (mine)
            AT(row_norms, thread_index()) = norm;
        barrier();
        batch_offer(shape, args, top, query_norms, row_norms, words, sums);
        barrier();
        if (thread_index() == 0)
            batch_find(shape, search, words);
        topk_tend(top, &args->lists, args->lists.trigger, args->lists.kept_max);
        feed->tile ^= 1;
    }
}

DEVICE void search_batch(batch_shape shape, const search_args *args, float *slices)
{
    SHARED(uint64_t, threshold, BATCH_QUERIES_MAX);
    SHARED(uint32_t, length, BATCH_QUERIES_MAX);
    SHARED(float, gate, BATCH_QUERIES_MAX);
    SHARED(float, query_norms, BATCH_QUERIES_MAX);
    SHARED(float, row_norms, BATCH_WORDS_MAX *SEARCH_WORD_ROWS);
    SHARED(row_word, tiles, 2 * BATCH_WORDS_MAX);
    SHARED(batch_search, search, 1);
    const uint32_t queries = (uint32_t)shape.queries, first_query = block_index_y() * queries;
    const size_t first_list = (size_t)block_index() * args->queries.slots + first_query;
    const uint32_t queries_left = args->queries.count - first_query;
    const topk top = {threshold,
                      length,
                      gate,
                      args->lists.keys + first_list * args->lists.capacity,
                      args->queries.worst + first_query,
                      queries,
                      queries_left < queries ? queries_left : queries,
                      shape.l2 ? CANON_L2 : args->rows.metric};
    topk_begin(&top);
    if (thread_index() < queries)
        AT(query_norms, thread_index()) = args->queries.norms[first_query + thread_index()];
    batch_feed feed;
    feed.slices = slices;
    feed.tiles = tiles;
    feed.tile = 0;
    feed.queries = args->queries.packed + (size_t)first_query * (size_t)(args->rows.runs * CANON_LANES);
    feed.zeros = args->queries.zeros;
    feed.runs = args->rows.runs;
    feed.slice = 0;
    feed.step = shape.steps;
    feed.half = 1;
    batch_score(shape, args, &top, query_norms, row_norms, tiles, search, &feed);
    topk_end(&top, &args->lists, args->lists.counts + first_list);
}

#define SEARCH_BATCH(name, words, queries, steps, l2)                                                                          \
    KERNEL(name, search_args, SEARCH_THREADS)                                                                                  \
    {                                                                                                                          \
        SHARED(float, slices, 2 * ((words) * SEARCH_WORD_ROWS + (queries)) * ((steps) * 4 + 4));                               \
        const batch_shape shape = {words, queries, steps, l2};                                                                 \
        search_batch(shape, &args, slices);                                                                                    \
    }

SEARCH_BATCH(search_wide_dot, SEARCH_WIDE_WORDS, SEARCH_WIDE_QUERIES, 8, false)
SEARCH_BATCH(search_wide_l2, SEARCH_WIDE_WORDS, SEARCH_WIDE_QUERIES, 8, true)
SEARCH_BATCH(search_tall_dot, SEARCH_TALL_WORDS, SEARCH_TALL_QUERIES, 4, false)
SEARCH_BATCH(search_tall_l2, SEARCH_TALL_WORDS, SEARCH_TALL_QUERIES, 4, true)
