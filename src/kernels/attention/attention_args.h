/* Arguments of the attention kernels. arithmetic/attention.h defines what they compute; src/gpu/tensor/attention.c launches
 * them:
 *
 *   attention_store        rotates queries; rotates and rounds keys and values and puts them into the pages
 *   attention_chunk_TYPE   few queries that share keys, as in a step of decoding: a block has one token, one key head with
 *                          one to four of its query heads, and one chunk; a thread has a key. Bound by reading the cache. The
 *                          last block of a token's heads merges their chunks. It can also do the work of attention_store.
 *   attention_tile_TYPE    many queries that share keys, as in a prompt: a block has 32 queries and one chunk, and multiplies
 *                          tiles in shared memory. Bound by fused multiply-adds.
 *   attention_merge        merges the chunks of each query, after attention_tile_TYPE
 */
#ifndef WW_KERNELS_ATTENTION_ATTENTION_ARGS_H
#define WW_KERNELS_ATTENTION_ATTENTION_ARGS_H

#include "arithmetic/attention.h"

enum {
    ATTENTION_THREADS = 256,                   /* per block; in attention_chunk one per key */
    ATTENTION_PASS = 4,                        /* maximum number of query heads of a block of attention_chunk */
    ATTENTION_ROWS = 32,                       /* queries of a tile */
    ATTENTION_KEYS = 64,                       /* of a tile, processed at a time */
    ATTENTION_STAGE = 64,                      /* elements of the head, processed at a time */
    ATTENTION_WIDTH = 128,                     /* elements of the result, processed at a time */
    ATTENTION_ROWS_APART = ATTENTION_ROWS + 4, /* stride of elements of staged queries: 8 elements use all banks */
    ATTENTION_KEYS_APART = ATTENTION_KEYS + 4, /* the same for keys */
    ATTENTION_PART_SUMS = 4,                   /* floats before o_c in a part: m_c and l_c; 16 bytes, so o_c is aligned */
};

typedef struct attention_store_args {
    float *q;
    const float *k, *v;
    const float *cosines, *sines;
    const int32_t *sequences, *positions;
    const uint64_t *pages;
    int64_t q_stride, k_stride, v_stride, pages_stride, rope_positions;
    int64_t tokens;
    attention_layer layer;
    int32_t heads, rope, half;
    int32_t unused;
} attention_store_args;

typedef struct attention_args {
    const float *q;
    float *out;
    float *parts;    /* from token first_token on: tokens x heads x chunks, ATTENTION_PART_SUMS + head_size floats each */
    uint32_t *ready; /* tokens x kv_heads counters, 0 */
    const int32_t *sequences, *positions, *lengths;
    const uint64_t *pages;
    int64_t q_stride, pages_stride;
    int64_t first_token, tokens; /* of this launch */
    attention_layer layer;
    attention_mask mask;
    float scale, cap;     /* cap 0: none */
    int32_t heads, group; /* query heads, and query heads per key head */
    int32_t chunks, keys_max;
    int32_t each; /* query heads per block of attention_chunk: 1, 2 or ATTENTION_PASS */
    int32_t unused;
    const float *sinks;  /* of each head; NULL: none */
    const float *slopes; /* of each head; NULL: none */
    attention_store_args
        store; /* attention_chunk first stores its tokens' keys and values; k is NULL if they are already in the cache */
} attention_args;

/* Floats of dynamic shared memory: attention_chunk holds the queries, the exponentials and 8 accumulators of the results;
 * attention_tile holds the exponentials, then a stage of queries and keys, or of values. */
CANON_FUNCTION int32_t attention_chunk_floats(int32_t head_size, int32_t each)
{
    return each * (head_size + ATTENTION_CHUNK + ATTENTION_LANES * head_size);
}

CANON_FUNCTION int32_t attention_tile_floats(int32_t head_size)
{
    const int32_t scores = ATTENTION_STAGE * (ATTENTION_ROWS_APART + ATTENTION_KEYS_APART);
    const int32_t width = head_size < ATTENTION_WIDTH ? head_size : ATTENTION_WIDTH;
    const int32_t values = ATTENTION_CHUNK / ATTENTION_LANES * width;
    return ATTENTION_CHUNK * ATTENTION_ROWS + (scores > values ? scores : values);
}

#endif
