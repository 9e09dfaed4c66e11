/* One token's queries of one head of keys against one chunk: a step of decoding (attention_args.h has the ladder).
 *
 * Grid: x is chunk and head of keys, chunk fastest; y the token. A thread has a key: it reads it in pieces of 16 bytes, side by
 * side with its neighbours', and has 8 accumulators for each of up to four query heads. For the values it has 8 elements and
 * every eighth key. What a block leaves is a part; the last block of a token's head merges its parts, or there was only one.
 */
#include "kernels/attention/attention_cache.h"

#include "kernels/simt/last_block.h"

/* The query heads of a pass: how many, which first, and where the token and the chunk are. */
typedef struct chunk_pass {
    int64_t token;
    int32_t chunk, kv_head;
    int32_t first, count; /* heads of the group */
    attention_range keys; /* that are seen, in the chunk */
    bool alone;           /* the only chunk */
} chunk_pass;

/* Shared memory, in floats. */
typedef struct chunk_shared {
    float *q, *p, *sums; /* PASS x size, PASS x CHUNK, PASS x LANES x size */
} chunk_shared;

/* Sets the scores of the thread's key with each query. */
DEVICE void score_key(int32_t type, const attention_args *args, const attention_page *page, const float *q, int32_t key,
                      float *scores)
{
    const int32_t size = args->layer.head_size;
    float sums[ATTENTION_PASS][ATTENTION_LANES];
    UNROLL for (int32_t g = 0; g < ATTENTION_PASS; g++) UNROLL for (int32_t a = 0; a < ATTENTION_LANES; a++) sums[g][a] = 0.0f;
    UNROLL_BY(2) for (int32_t i = 0; i < size; i += ATTENTION_LANES)
    {
        const attention_piece k = key_piece(type, args, page, key, i);
        UNROLL for (int32_t g = 0; g < ATTENTION_PASS; g++)
        {
            const f32x4 low = load_f32x4(AT_RANGE(q, g * size + i, 4)), high = load_f32x4(AT_RANGE(q, g * size + i + 4, 4));
            sums[g][0] = fma_f32(low.x, k.x[0], sums[g][0]);
            sums[g][1] = fma_f32(low.y, k.x[1], sums[g][1]);
            sums[g][2] = fma_f32(low.z, k.x[2], sums[g][2]);
            sums[g][3] = fma_f32(low.w, k.x[3], sums[g][3]);
            sums[g][4] = fma_f32(high.x, k.x[4], sums[g][4]);
            sums[g][5] = fma_f32(high.y, k.x[5], sums[g][5]);
            sums[g][6] = fma_f32(high.z, k.x[6], sums[g][6]);
            sums[g][7] = fma_f32(high.w, k.x[7], sums[g][7]);
        }
    }
    UNROLL for (int32_t g = 0; g < ATTENTION_PASS; g++) scores[g] = attention_fold(sums[g]) * args->scale;
}

/* 8 accumulators of the results of some queries, of which this thread has one for 8 elements: every eighth key. */
DEVICE void sum_values(int32_t type, const attention_args *args, const attention_page *page, const chunk_pass *pass,
                       const chunk_shared *shared)
{
    const int32_t size = args->layer.head_size, pieces = size / ATTENTION_LANES;
    const int32_t teams = ATTENTION_THREADS / size, team = (int32_t)thread_index() / size;
    const int32_t own = (int32_t)thread_index() % size, at = own % pieces * ATTENTION_LANES, lane_of = own / pieces;
    if (team >= teams)
        return;
    float sums[ATTENTION_PASS][ATTENTION_LANES];
    UNROLL for (int32_t g = 0; g < ATTENTION_PASS; g++) UNROLL for (int32_t e = 0; e < ATTENTION_LANES; e++) sums[g][e] = 0.0f;
    const int32_t begin = pass->keys.first + ((lane_of - pass->keys.first) & (ATTENTION_LANES - 1));
    UNROLL_BY(4) for (int32_t j = begin; j < pass->keys.end; j += ATTENTION_LANES)
    {
        const attention_piece v = value_piece(type, args, page, j, at);
        UNROLL for (int32_t g = 0; g < ATTENTION_PASS; g++)
        {
            if (team + g * teams >= ATTENTION_PASS)
                continue;
            const float p = AT(shared->p, (team + g * teams) * ATTENTION_CHUNK + j);
            UNROLL for (int32_t e = 0; e < ATTENTION_LANES; e++) sums[g][e] = fma_f32(p, v.x[e], sums[g][e]);
        }
    }
    UNROLL for (int32_t g = 0; g < ATTENTION_PASS; g++)
    {
        if (team + g * teams >= ATTENTION_PASS)
            continue;
        UNROLL for (int32_t e = 0; e < ATTENTION_LANES; e++)
            AT(shared->sums, ((team + g * teams) * ATTENTION_LANES + lane_of) * size + at + e) = sums[g][e];
    }
}

/* The part of each query of the pass, or its result where there is one part. `largest` and `l` are shared. */
DEVICE void leave_parts(const attention_args *args, const chunk_pass *pass, const chunk_shared *shared, const float *largest,
                        const float *l)
{
    const int32_t size = args->layer.head_size;
    for (int32_t i = (int32_t)thread_index(); i < pass->count * size; i += ATTENTION_THREADS) {
        const int32_t g = i / size, e = i % size, head = pass->kv_head * args->group + pass->first + g;
        float sums[ATTENTION_LANES];
        UNROLL for (int32_t a = 0; a < ATTENTION_LANES; a++) sums[a] = AT(shared->sums, (g * ATTENTION_LANES + a) * size + e);
        const float o = attention_fold(sums);
        if (pass->alone) {
            result_of(args, pass->token, head)[e] = attention_result_of_one(o, AT(l, g));
            continue;
        }
        float *part = part_of(args, pass->token, head, pass->chunk);
        part[ATTENTION_PART_SUMS + e] = o;
        if (e == 0) {
            part[0] = AT(largest, g);
            part[1] = AT(l, g);
        }
    }
}

/* Some query heads of the group. All threads of the block; shared memory is free again behind it. */
DEVICE void run_pass(int32_t type, const attention_args *args, const attention_page *page, const chunk_pass *pass,
                     const chunk_shared *shared)
{
    SHARED(float, wave_largest, ATTENTION_PASS *(ATTENTION_THREADS / 32));
    SHARED(float, largest, ATTENTION_PASS);
    SHARED(float, l, ATTENTION_PASS);
    const int32_t size = args->layer.head_size, key = (int32_t)thread_index();
    const float *q = args->q + pass->token * args->q_stride + (int64_t)(pass->kv_head * args->group + pass->first) * size;
    for (int32_t i = key; i < ATTENTION_PASS * size; i += ATTENTION_THREADS)
        AT(shared->q, i) = i < pass->count * size ? q[i] : 0.0f;
    barrier();
    const bool seen = key >= pass->keys.first && key < pass->keys.end;
    float scores[ATTENTION_PASS];
    UNROLL for (int32_t g = 0; g < ATTENTION_PASS; g++) scores[g] = -MATH_INF_F32;
    if (seen)
        score_key(type, args, page, shared->q, key, scores);
    UNROLL for (int32_t g = 0; g < ATTENTION_PASS; g++)
    {
        const float most = largest_of_32(scores[g]);
        if (key % 32 == 0)
            AT(wave_largest, g * (ATTENTION_THREADS / 32) + key / 32) = most;
    }
    barrier();
    UNROLL for (int32_t g = 0; g < ATTENTION_PASS; g++)
    {
        float most = AT(wave_largest, g * (ATTENTION_THREADS / 32));
        UNROLL for (int32_t w = 1; w < ATTENTION_THREADS / 32; w++) most =
            row_larger_f32(most, AT(wave_largest, g * (ATTENTION_THREADS / 32) + w));
        AT(shared->p, g * ATTENTION_CHUNK + key) = seen ? row_exponential_f32(scores[g], most) : 0.0f;
        if (key == 0)
            AT(largest, g) = most;
    }
    barrier();
    if (key < 64) { /* two waves of 32 or one of 64: the first 32 threads have an accumulator of a query each */
        const int32_t g = key / ATTENTION_LANES % ATTENTION_PASS, a = key % ATTENTION_LANES;
        float sum = 0.0f;
        for (int32_t j = a; j < ATTENTION_CHUNK; j += ATTENTION_LANES)
            sum += AT(shared->p, g * ATTENTION_CHUNK + j);
        sum = fold_of_8(sum);
        if (key < 32 && a == 0)
            AT(l, g) = sum;
    }
    sum_values(type, args, page, pass, shared);
    barrier();
    leave_parts(args, pass, shared, largest, l);
    barrier();
}

DEVICE void no_keys(const attention_args *args, int64_t token, int32_t kv_head)
{
    const int32_t count = args->group * args->layer.head_size;
    float *out = result_of(args, token, kv_head * args->group);
    for (int32_t i = (int32_t)thread_index(); i < count; i += ATTENTION_THREADS)
        out[i] = 0.0f;
}

/* Brings the keys and values that are seen towards this block, all at once: more than a thread could have in registers. */
DEVICE void prefetch_chunk(int32_t type, const attention_args *args, const attention_page *page, attention_range keys)
{
    enum { LINE = 128 };
    const int32_t key_bytes = args->layer.head_size * attention_element_bytes(type);
    const int32_t first = keys.first / ATTENTION_GROUP * ATTENTION_GROUP * key_bytes; /* keys lie by groups */
    const int32_t end = (keys.end + ATTENTION_GROUP - 1) / ATTENTION_GROUP * ATTENTION_GROUP * key_bytes;
    for (int32_t i = first + (int32_t)thread_index() * LINE; i < end; i += ATTENTION_THREADS * LINE)
        prefetch_line(page->keys + i);
    for (int32_t i = keys.first * key_bytes + (int32_t)thread_index() * LINE; i < keys.end * key_bytes;
         i += ATTENTION_THREADS * LINE)
        prefetch_line(page->values + i);
}

/* What stands in front of this kernel is attention_store, or itself for other tokens: neither writes who sees what, nor where
 * pages are. */
DEVICE void attention_chunk(int32_t type, const attention_args *args)
{
    SHARED_DYNAMIC(float, memory);
    SHARED(uint32_t, ticket, 1);
    const int32_t size = args->layer.head_size;
    const int32_t chunk = (int32_t)block_index() % args->chunks, kv_head = (int32_t)block_index() / args->chunks;
    const int64_t token = args->first_token + block_index_y();
    const attention_range seen = seen_by(args, token), chunks = attention_chunks(seen);
    const int32_t count = chunks.end - chunks.first;
    const bool looks = chunk >= chunks.first && chunk < chunks.end;
    attention_page page = {NULL, NULL, NULL, NULL};
    if (looks) {
        page = page_of(args, args->sequences[token], chunk, kv_head);
        prefetch_chunk(type, args, &page, attention_in_chunk(seen, chunk));
    }
    launches_wait();
    launches_next();
    if (count <= 0 && chunk == 0)
        no_keys(args, token, kv_head);
    if (!looks)
        return;
    chunk_shared shared;
    shared.q = memory;
    shared.p = memory + ATTENTION_PASS * size;
    shared.sums = shared.p + ATTENTION_PASS * ATTENTION_CHUNK;
    chunk_pass pass;
    pass.token = token;
    pass.chunk = chunk;
    pass.kv_head = kv_head;
    pass.keys = attention_in_chunk(seen, chunk);
    pass.alone = count == 1;
    for (pass.first = 0; pass.first < args->group; pass.first += ATTENTION_PASS) {
        const int32_t left = args->group - pass.first;
        pass.count = left < ATTENTION_PASS ? left : ATTENTION_PASS;
        run_pass(type, args, &page, &pass, &shared);
    }
    uint32_t *ready = args->ready + (token - args->first_token) * args->layer.kv_heads + kv_head;
    if (count == 1 || !block_is_last(ready, (uint32_t)count, ticket))
        return;
    if (thread_index() == 0)
        *ready = 0;
    for (int32_t i = (int32_t)thread_index(); i < args->group * size; i += ATTENTION_THREADS) {
        const int32_t head = kv_head * args->group + i / size;
        result_of(args, token, head)[i % size] = merged(args, part_of(args, token, head, chunks.first), count, i % size);
    }
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
