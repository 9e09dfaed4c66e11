/* Attention as a backend sees it (arithmetic/attention.h says what it computes): two jobs, checked. Included by tensor_jobs.h.
 *
 * Everything that changes from one step of a model to the next is in device memory: positions, sequences, pages, lengths. So a
 * recorded step (record_begin) can be replayed with other contents of that memory. The host says only how large the work may
 * become.
 */
#ifndef WW_DEVICE_ATTENTION_JOBS_H
#define WW_DEVICE_ATTENTION_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/attention.h"

/* Tokens of some sequences, and where the keys and values of these lie; all pointers are device memory. */
typedef struct attention_batch {
    int64_t tokens;           /* at least 1 */
    const int32_t *sequences; /* of each token: a row of `pages` and of `lengths` */
    const int32_t *positions; /* of each token, from 0 */
    const uint64_t *pages;    /* sequences x pages_stride addresses: page c has positions 256c to 256c + 255 */
    int64_t pages_stride;
    const int32_t *lengths; /* keys of each sequence, those of the batch among them */
    attention_layer layer;
} attention_batch;

/* Rotates q in place and k on its way, if there is a rope, and puts k and v, rounded to the cache's type, into the pages. Two
 * tokens of one sequence with one position are not allowed. A q8_0 block that cannot hold its elements becomes NaN. */
typedef struct attention_store_job {
    attention_batch batch;
    int32_t heads; /* of q */
    float *q;      /* tokens x (heads x head_size), rows q_stride floats apart; NULL: no queries are rotated */
    const float *k, *v;
    int64_t q_stride, k_stride, v_stride;
    int32_t rope;                 /* of attention_rope */
    int32_t half;                 /* pairs that are rotated, at most head_size / 2 */
    const float *cosines, *sines; /* rope_positions x half; a position past them is a caller's error, taken as the last */
    int64_t rope_positions;       /* rows of the tables */
} attention_store_job;

/* With `store` that is done first, by the same launch where a device can; then q need not be rotated where it is, and is that
 * of `store`. Without `runs` no two of its tokens are of one sequence. */
typedef struct attention_job {
    attention_batch batch;
    const attention_store_job *store; /* of the same batch; NULL: keys and values are there, and q is rotated */
    int32_t heads;                    /* a multiple of the layer's kv_heads: head h meets keys of head h / (heads / kv_heads) */
    const float *q;
    int64_t q_stride; /* floats */
    attention_mask mask;
    float scale;
    float cap;           /* of scores; 0: none */
    const float *sinks;  /* of each head; NULL: none */
    const float *slopes; /* of each head, by which scores fall with the distance of a key; NULL: none */
    int32_t keys_max;    /* keys beyond are not looked at: bounds the work, and pages_stride covers it */
    bool runs;           /* hint: most tokens stand beside others of their sequence, as in a prompt */
    float *out;          /* tokens x (heads x head_size), dense */
} attention_job;

#endif
