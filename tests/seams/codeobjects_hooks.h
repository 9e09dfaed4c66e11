/* A step of a model's session, as tests of code objects have it done (codeobjects_hooks.c): everything is the host's memory,
 * and dense. */
#ifndef TESTS_SEAMS_CODEOBJECTS_HOOKS_H
#define TESTS_SEAMS_CODEOBJECTS_HOOKS_H

#include <stddef.h>
#include <stdint.h>

/* A sequence of `keys` tokens. The last `tokens` have queries, and keys and values that are not in the cache yet. */
typedef struct codeobjects_step {
    const float *q;               /* tokens x heads x head_size */
    const float *k, *v;           /* keys x kv_heads x head_size */
    const float *cosines, *sines; /* keys x half */
    float *out;                   /* like q */
    void *cache;                  /* the contents of the pages afterwards: `cache_bytes` */
    size_t cache_bytes;
    int32_t keys, tokens;
    int32_t type, heads, kv_heads, head_size, rope, half;
} codeobjects_step;

#endif
