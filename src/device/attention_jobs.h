/* Attention as a backend sees it (arithmetic/attention.h says what it computes): two jobs, checked. tensor_jobs.h includes
 * this.
 *
 * Everything that changes from one step of a model to the next is in device memory: positions, sequences, pages, lengths. So a
 * recorded step (record_begin) can be replayed after that memory has changed. The host only passes upper bounds for the work.
 */
#ifndef WW_DEVICE_ATTENTION_JOBS_H
#define WW_DEVICE_ATTENTION_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/attention.h"

/* Tokens of some sequences, and where their keys and values are. All pointers are device memory. */
typedef struct attention_batch {
    int64_t tokens;           /* at least 1 */
    const int32_t *sequences; /* for each token: a row of `pages` and of `lengths` */
    const int32_t *positions; /* of each token, starting at 0 */
    const uint64_t *pages;    /* sequences x pages_stride addresses: page c has positions 256c to 256c + 255 */
    int64_t pages_stride;
    const int32_t *lengths; /* keys of each sequence, including those of the batch */
    attention_layer layer;
} attention_batch;

/* With a rope, rotates q in place and k before it is stored. Rounds k and v to the cache's type and writes them to the pages.
 * Two tokens of one sequence must not have the same position. A q8_0 block that cannot hold its elements becomes NaN. */
typedef struct attention_store_job {
    attention_batch batch;
    int32_t heads; /* of q */
    float *q;      /* tokens x (heads x head_size), rows q_stride floats apart; NULL: no queries are rotated */
    const float *k, *v;
    int64_t q_stride, k_stride, v_stride;
    int32_t rope;                 /* an attention_rope */
    int32_t half;                 /* pairs to rotate, at most head_size / 2 */
    const float *cosines, *sines; /* rope_positions x half; larger positions are the caller's error and use the last row */
    int64_t rope_positions;       /* rows of the tables */
} attention_store_job;

/* `store` is done first, if there is one, in the same launch if the device can do that. Then q is that of `store` and need not
 * be rotated in place. Without `runs`, each token must belong to another sequence. */
typedef struct attention_job {
    attention_batch batch;
    const attention_store_job *store; /* for the same batch; NULL: keys and values are already stored, and q is rotated */
    int32_t heads; /* a multiple of the layer's kv_heads: head h uses the keys of head h / (heads / kv_heads) */
    const float *q;
    int64_t q_stride; /* floats */
    attention_mask mask;
    float scale;
    float cap;           /* for scores; 0: none */
    const float *sinks;  /* one per head; NULL: none */
    const float *slopes; /* one per head: how fast scores fall with the distance of a key; NULL: none */
    int32_t keys_max;    /* later keys are ignored; this bounds the work, and pages_stride must cover it */
    bool runs;           /* hint: most tokens are next to others of their sequence, as in a prompt */
    float *out;          /* tokens x (heads x head_size), dense */
} attention_job;

#endif
