/* Some queries of one token and one key head against one chunk: a step of decoding. attention_args.h lists all kernels.
 *
 * Grid: x is chunk, query heads and key head, chunk fastest; y is the token. A thread has a key: it reads it in pieces of 16
 * bytes, next to its neighbours', and has 8 accumulators for each query head. For the values it has 8 elements and every eighth
 * key. Latency limits this kernel, so a thread keeps many loads in flight, and a block has few query heads if there are enough
 * compute units. Each block writes a part; the last block of a token's heads merges their parts, unless there is only one.
 *
 * The kernel can also store the token's own key and value in the cache. Every block of the chunk that they belong to writes the
 * same bytes, so that no block waits for another. Then it also rotates the queries.
 */
#include "kernels/attention/attention_cache.h"
#include "kernels/attention/attention_put.h"

#include "kernels/simt/last_block.h"

/* What a block works on. */
typedef struct chunk_work {
    int64_t token;
    int32_t chunk, kv_head;
    int32_t first, count; /* query heads of the group */
    attention_range keys; /* visible keys in the chunk */
    bool alone;           /* the only chunk */
} chunk_work;

/* Shared memory, in floats; `each` is how many query heads a block has. */
typedef struct chunk_shared {
    float *q, *p, *sums;               /* each x size, each x CHUNK, each x LANES x size */
    float *wave_largest, *largest, *l; /* each x waves of 32, each, each */
} chunk_shared;

/* Loads that a thread keeps in flight: fewer if it has more accumulators. */
#define KEY_PIECES(each)   ((each) == 1 ? 8 : 4)
#define VALUE_PIECES(each) ((each) == 1 ? 16 : 8)

DEVICE void join_piece(const attention_piece *k, const float *q, int32_t each, int32_t size, int32_t i,
                       float sums[ATTENTION_PASS][ATTENTION_LANES])
{
    UNROLL for (int32_t g = 0; g < each; g++)
    {
        const f32x4 low = load_f32x4(AT_RANGE(q, g * size + i, 4)), high = load_f32x4(AT_RANGE(q, g * size + i + 4, 4));
        sums[g][0] = fma_f32(low.x, k->x[0], sums[g][0]);
        sums[g][1] = fma_f32(low.y, k->x[1], sums[g][1]);
        sums[g][2] = fma_f32(low.z, k->x[2], sums[g][2]);
        sums[g][3] = fma_f32(low.w, k->x[3], sums[g][3]);
        sums[g][4] = fma_f32(high.x, k->x[4], sums[g][4]);
        sums[g][5] = fma_f32(high.y, k->x[5], sums[g][5]);
        sums[g][6] = fma_f32(high.z, k->x[6], sums[g][6]);
        sums[g][7] = fma_f32(high.w, k->x[7], sums[g][7]);
    }
}

/* Sets the scores of the thread's key with each query. */
DEVICE void score_key(int32_t type, int32_t each, const attention_args *args, const attention_page *page, const float *q,
                      int32_t key, float *scores)
{
    const int32_t size = args->layer.head_size;
    float sums[ATTENTION_PASS][ATTENTION_LANES];
    UNROLL for (int32_t g = 0; g < each; g++) UNROLL for (int32_t a = 0; a < ATTENTION_LANES; a++) sums[g][a] = 0.0f;
    int32_t i = 0;
    UNROLL_BY(1) for (; i + KEY_PIECES(each) * ATTENTION_LANES <= size; i += KEY_PIECES(each) * ATTENTION_LANES)
    {
        attention_piece k[KEY_PIECES(1)];
        UNROLL for (int32_t n = 0; n < KEY_PIECES(each); n++) k[n] = key_piece(type, args, page, key, i + n * ATTENTION_LANES);
        UNROLL for (int32_t n = 0; n < KEY_PIECES(each); n++) join_piece(&k[n], q, each, size, i + n * ATTENTION_LANES, sums);
    }
    UNROLL_BY(1) for (; i < size; i += ATTENTION_LANES)
    {
        const attention_piece k = key_piece(type, args, page, key, i);
        join_piece(&k, q, each, size, i, sums);
    }
    UNROLL for (int32_t g = 0; g < each; g++) scores[g] = attention_fold(sums[g]) * args->scale;
}

/* A thread's share of the sums of values: it has one accumulator for 8 elements, for every `teams`th query. */
typedef struct value_share {
    int32_t teams, team, at, lane_of;
} value_share;

DEVICE void join_value(const attention_piece *v, const float *p, int32_t each, const value_share *share, int32_t j, bool seen,
                       float sums[ATTENTION_PASS][ATTENTION_LANES])
{
    UNROLL for (int32_t g = 0; g < each; g++)
    {
        if (share->team + g * share->teams >= each)
            continue;
        const float of_key = AT(p, (share->team + g * share->teams) * ATTENTION_CHUNK + j);
        UNROLL for (int32_t e = 0; e < ATTENTION_LANES; e++)
        {
            const float sum = fma_f32(of_key, v->x[e], sums[g][e]);
            sums[g][e] = seen ? sum : sums[g][e];
        }
    }
}

/* Computes 8 accumulators of the results of some queries; this thread has one of them for 8 elements: every eighth key. For
 * keys that are not visible it reads the last visible one, without effect. */
DEVICE void sum_values(int32_t type, int32_t each, const attention_args *args, const attention_page *page,
                       const chunk_work *work, const chunk_shared *shared)
{
    const int32_t size = args->layer.head_size, pieces = size / ATTENTION_LANES, own = (int32_t)thread_index() % size;
    value_share share;
    share.teams = ATTENTION_THREADS / size;
    share.team = (int32_t)thread_index() / size;
    share.at = own % pieces * ATTENTION_LANES;
    share.lane_of = own / pieces;
    if (share.team >= share.teams || share.team >= each)
        return;
    float sums[ATTENTION_PASS][ATTENTION_LANES];
    UNROLL for (int32_t g = 0; g < each; g++) UNROLL for (int32_t e = 0; e < ATTENTION_LANES; e++) sums[g][e] = 0.0f;
    enum { STEP = ATTENTION_LANES };
    const int32_t end = work->keys.end, last = end - 1, span = (VALUE_PIECES(each) - 1) * STEP;
    int32_t j = work->keys.first + ((share.lane_of - work->keys.first) & (STEP - 1));
    UNROLL_BY(1) for (; j < end; j += VALUE_PIECES(each) * STEP)
    {
        attention_piece v[VALUE_PIECES(1)];
        const bool whole = j + span < end;
        UNROLL for (int32_t n = 0; n < VALUE_PIECES(each); n++) v[n] =
            value_piece(type, args, page, j + n * STEP < end ? j + n * STEP : last, share.at);
        if (whole) {
            UNROLL for (int32_t n = 0; n < VALUE_PIECES(each); n++)
                join_value(&v[n], shared->p, each, &share, j + n * STEP, true, sums);
        } else {
            UNROLL for (int32_t n = 0; n < VALUE_PIECES(each); n++)
                join_value(&v[n], shared->p, each, &share, j + n * STEP < end ? j + n * STEP : last, j + n * STEP < end, sums);
        }
    }
    UNROLL for (int32_t g = 0; g < each; g++)
    {
        if (share.team + g * share.teams >= each)
            continue;
        UNROLL for (int32_t e = 0; e < ATTENTION_LANES; e++)
            AT(shared->sums, ((share.team + g * share.teams) * ATTENTION_LANES + share.lane_of) * size + share.at + e) =
                sums[g][e];
    }
}

/* Writes the part of each query, or its result if there is only one part. */
DEVICE void leave_parts(const attention_args *args, const chunk_work *work, const chunk_shared *shared)
{
    const int32_t size = args->layer.head_size;
    for (int32_t i = (int32_t)thread_index(); i < work->count * size; i += ATTENTION_THREADS) {
        const int32_t g = i / size, e = i % size, head = work->kv_head * args->group + work->first + g;
        float sums[ATTENTION_LANES];
        UNROLL for (int32_t a = 0; a < ATTENTION_LANES; a++) sums[a] = AT(shared->sums, (g * ATTENTION_LANES + a) * size + e);
        const float o = attention_fold(sums);
        if (work->alone) {
            result_of(args, work->token, head)[e] = result_of_one(args, head, o, AT(shared->l, g), AT(shared->largest, g));
            continue;
        }
        float *part = part_of(args, work->token, head, work->chunk);
        part[ATTENTION_PART_SUMS + e] = o;
        if (e == 0) {
            part[0] = AT(shared->largest, g);
            part[1] = AT(shared->l, g);
        }
    }
}

/* Loads the queries, rotated if attention_store has not done it; zeros if there are fewer than `each`. */
DEVICE void take_queries(int32_t each, const attention_args *args, const chunk_work *work, const chunk_shared *shared)
{
    const int32_t size = args->layer.head_size, position = args->store.k ? args->positions[work->token] : 0;
    const float *q = args->q + work->token * args->q_stride + (int64_t)(work->kv_head * args->group + work->first) * size;
    const int32_t rope = args->store.k ? args->store.rope : ATTENTION_ROPE_NONE;
    const int64_t row =
        (position < args->store.rope_positions ? position : args->store.rope_positions - 1) * (int64_t)args->store.half;
    for (int32_t i = (int32_t)thread_index(); i < each * size; i += ATTENTION_THREADS) {
        const float *head = q + i / size * size;
        AT(shared->q, i) = i >= work->count * size       ? 0.0f
                           : rope == ATTENTION_ROPE_NONE ? q[i]
                                                         : attention_roped(head, i % size, rope, args->store.half,
                                                                           args->store.cosines + row, args->store.sines + row);
    }
}

/* Lowers the scores of the thread's key with each query by the key's distance. */
DEVICE void slope_scores(int32_t each, const attention_args *args, const chunk_work *work, int32_t key, float *scores)
{
    const float *slopes = args->slopes + work->kv_head * args->group + work->first;
    const int32_t distance = args->positions[work->token] - (work->chunk * ATTENTION_CHUNK + key);
    UNROLL for (int32_t g = 0; g < each; g++) if (g < work->count) scores[g] = attention_sloped(scores[g], slopes[g], distance);
}

/* Computes the parts or results of `each` query heads. All threads of the block call it. */
DEVICE void run_heads(int32_t type, int32_t each, const attention_args *args, const attention_page *page,
                      const chunk_work *work, const chunk_shared *shared)
{
    enum { WAVES = ATTENTION_THREADS / 32 };
    const int32_t key = (int32_t)thread_index();
    const bool seen = key >= work->keys.first && key < work->keys.end;
    float scores[ATTENTION_PASS];
    UNROLL for (int32_t g = 0; g < each; g++) scores[g] = -MATH_INF_F32;
    if (seen)
        score_key(type, each, args, page, shared->q, key, scores);
    if (seen && args->cap > 0.0f)
        UNROLL for (int32_t g = 0; g < each; g++) scores[g] = attention_capped(scores[g], args->cap);
    if (seen && args->slopes)
        slope_scores(each, args, work, key, scores);
    UNROLL for (int32_t g = 0; g < each; g++)
    {
        const float highest = largest_of_32(scores[g]);
        if (key % 32 == 0)
            AT(shared->wave_largest, g * WAVES + key / 32) = highest;
    }
    barrier();
    UNROLL for (int32_t g = 0; g < each; g++)
    {
        float highest = AT(shared->wave_largest, g * WAVES);
        UNROLL for (int32_t w = 1; w < WAVES; w++) highest = row_larger_f32(highest, AT(shared->wave_largest, g * WAVES + w));
        AT(shared->p, g * ATTENTION_CHUNK + key) = seen ? row_exponential_f32(scores[g], highest) : 0.0f;
        if (key == 0)
            AT(shared->largest, g) = highest;
    }
    barrier();
    const int32_t own = key - (ATTENTION_THREADS - 64); /* the last threads have the fewest values to sum */
    if (own >= 0) { /* two waves of 32 or one of 64; each of the first 32 threads has one accumulator of a query */
        const int32_t g = own / ATTENTION_LANES % each, a = own % ATTENTION_LANES;
        float sum = 0.0f;
        UNROLL_BY(8)
        for (int32_t j = a; j < ATTENTION_CHUNK; j += ATTENTION_LANES)
            sum += AT(shared->p, g * ATTENTION_CHUNK + j);
        sum = fold_of_8(sum);
        if (own < each * ATTENTION_LANES && a == 0)
            AT(shared->l, g) = sum;
    }
    sum_values(type, each, args, page, work, shared);
    barrier();
    leave_parts(args, work, shared);
}

DEVICE void no_keys(const attention_args *args, const chunk_work *work)
{
    float *out = result_of(args, work->token, work->kv_head * args->group + work->first);
    for (int32_t i = (int32_t)thread_index(); i < work->count * args->layer.head_size; i += ATTENTION_THREADS)
        out[i] = 0.0f;
}

/* Prefetches all visible keys and values for this block: more than a thread could hold in registers. */
DEVICE void prefetch_chunk(int32_t type, const attention_args *args, const attention_page *page, attention_range keys)
{
    enum { LINE = 128 };
    const int32_t key_bytes = args->layer.head_size * (int32_t)attention_element_bytes(type);
    const int32_t first = keys.first / ATTENTION_GROUP * ATTENTION_GROUP * key_bytes; /* keys are stored in groups */
    const int32_t end = (keys.end + ATTENTION_GROUP - 1) / ATTENTION_GROUP * ATTENTION_GROUP * key_bytes;
    for (int32_t i = first + (int32_t)thread_index() * LINE; i < end; i += ATTENTION_THREADS * LINE)
        prefetch_line(page->keys + i);
    for (int32_t i = keys.first * key_bytes + (int32_t)thread_index() * LINE; i < keys.end * key_bytes;
         i += ATTENTION_THREADS * LINE)
        prefetch_line(page->values + i);
}

/* Stores the token's key and value of this head in their page. The blocks of the chunk that they belong to do this, or those of
 * the last chunk. */
DEVICE void put_token(int32_t type, const attention_args *args, const chunk_work *work)
{
    const attention_store_args *store = &args->store;
    const int32_t own = (int32_t)thread_index(), size = args->layer.head_size, kv_heads = args->layer.kv_heads;
    const int32_t home = args->positions[work->token] / ATTENTION_CHUNK;
    if ((home < args->chunks ? home : args->chunks - 1) != work->chunk)
        return;
    if (type == ATTENTION_Q8_0) {
        const int32_t blocks = size / ATTENTION_BLOCK, head = work->kv_head + (own < blocks ? 0 : kv_heads);
        if (own < 2 * blocks)
            put_block(store, work->token, head * blocks + own % blocks);
        return;
    }
    for (int32_t i = own; i < 2 * size; i += ATTENTION_THREADS) {
        const stored_head h = stored_head_of(store, work->token, work->kv_head + (i < size ? 0 : kv_heads));
        put_element(store, &h, i % size);
    }
}

/* The last block of these heads merges their parts. */
DEVICE void merge_parts(const attention_args *args, const chunk_work *work, attention_range chunks)
{
    const int32_t size = args->layer.head_size, first = work->kv_head * args->group + work->first;
    for (int32_t i = (int32_t)thread_index(); i < work->count * size; i += ATTENTION_THREADS) {
        const int32_t head = first + i / size;
        result_of(args, work->token, head)[i % size] =
            merged(args, head, part_of(args, work->token, head, chunks.first), chunks.end - chunks.first, i % size);
    }
}

/* The previous kernel computes q, k and v, or is this kernel for other tokens. It changes neither the masks nor the page table,
 * so these can be read before it ends. */
DEVICE void attention_chunk(int32_t type, const attention_args *args)
{
    SHARED_DYNAMIC(float, memory);
    SHARED(float, wave_largest, ATTENTION_PASS *(ATTENTION_THREADS / 32));
    SHARED(float, largest, ATTENTION_PASS);
    SHARED(float, l, ATTENTION_PASS);
    SHARED(uint32_t, ticket, 1);
    const int32_t size = args->layer.head_size, passes = (args->group + args->each - 1) / args->each;
    const int32_t heads = (int32_t)block_index() / args->chunks; /* which query heads */
    chunk_work work;
    work.token = args->first_token + block_index_y();
    work.chunk = (int32_t)block_index() % args->chunks;
    work.kv_head = heads / passes;
    work.first = heads % passes * args->each;
    work.count = args->group - work.first < args->each ? args->group - work.first : args->each;
    const attention_range seen = seen_by(args, work.token), chunks = attention_chunks(seen);
    const int32_t count = chunks.end - chunks.first;
    const bool looks = work.chunk >= chunks.first && work.chunk < chunks.end;
    work.keys = attention_in_chunk(seen, work.chunk);
    work.alone = count == 1;
    attention_page page = {NULL, NULL, NULL, NULL};
    if (looks) {
        page = page_of(args, args->sequences[work.token], work.chunk, work.kv_head);
        prefetch_chunk(type, args, &page, work.keys);
    }
    launches_wait();
    launches_next();
    chunk_shared shared;
    shared.q = memory;
    shared.p = memory + args->each * size;
    shared.sums = shared.p + args->each * ATTENTION_CHUNK;
    shared.wave_largest = wave_largest;
    shared.largest = largest;
    shared.l = l;
    if (args->store.k)
        put_token(type, args, &work);
    if (count <= 0 && work.chunk == 0)
        no_keys(args, &work);
    if (!looks)
        return;
    take_queries(args->each, args, &work, &shared);
    barrier();
    if (args->each == 1)
        run_heads(type, 1, args, &page, &work, &shared);
    else if (args->each == 2)
        run_heads(type, 2, args, &page, &work, &shared);
    else
        run_heads(type, ATTENTION_PASS, args, &page, &work, &shared);
    uint32_t *ready = args->ready + ((work.token - args->first_token) * args->layer.kv_heads * passes + heads);
    if (count == 1 || !block_is_last(ready, (uint32_t)count, ticket))
        return;
    if (thread_index() == 0)
        *ready = 0;
    merge_parts(args, &work, chunks);
}

KERNEL(attention_chunk_f16, attention_args, ATTENTION_THREADS)
{
    attention_chunk(ATTENTION_F16, &args);
}

KERNEL(attention_chunk_f32, attention_args, ATTENTION_THREADS)
{
    attention_chunk(ATTENTION_F32, &args);
}

KERNEL(attention_chunk_q8_0, attention_args, ATTENTION_THREADS)
{
    attention_chunk(ATTENTION_Q8_0, &args);
}
