/* A cache with several sequences for tests of attention, and the definition of attention in plain loops over host arrays. It
 * shares nothing with the library except its exponential and its rounding to q8_0.
 */
#ifndef TESTS_SUPPORT_ATTENTION_H
#define TESTS_SUPPORT_ATTENTION_H

#include <stdbool.h>

#include "device/tensor_jobs.h"
#include "support/check.h"
#include "support/data/random.h"

enum { SCENE_SEQUENCES = 4 };

typedef struct attention_shape {
    int32_t type, heads, kv_heads, head_size;
    int32_t sequences, lengths[SCENE_SEQUENCES];
    int32_t rope, half;
    bool large; /* scores differ so much that most exponentials are 0 */
} attention_shape;

/* Sequences of random keys and values, not in the cache yet. */
typedef struct attention_scene {
    ww_device *device;
    attention_shape shape;
    int32_t longest, pages_each; /* of a sequence */
    int64_t page_bytes;
    float *k, *v;           /* sequences x longest x kv_heads x head_size, as projected */
    float *k_kept, *v_kept; /* their values in the cache: rotated, rounded */
    float *cosines, *sines;
    buffer pages, table, lengths, rope_cosines, rope_sines;
} attention_scene;

attention_scene scene_make(ww_device *device, test_random *random, const attention_shape *shape);
void scene_free(attention_scene *scene);

/* Some tokens of it with queries of their own. */
typedef struct attention_tokens {
    int64_t count;
    int32_t *sequences, *positions;
    float *q; /* as projected, not rotated */
    buffer device_sequences, device_positions, device_q, device_out;
} attention_tokens;

attention_tokens tokens_make(const attention_scene *scene, test_random *random, int64_t count);
void tokens_send(const attention_scene *scene, attention_tokens *tokens); /* sequences and positions, after they were set */
void tokens_free(const attention_scene *scene, attention_tokens *tokens);

/* The jobs; store() and attend() also run them. */
attention_batch scene_batch(const attention_scene *scene, const attention_tokens *tokens);
void scene_store(const attention_scene *scene, const attention_tokens *tokens);
/* Keys and values of a token in one row, as one projection gives them, in `memory`, which the caller releases; q is rotated in
 * place. */
attention_store_job scene_store_job(const attention_scene *scene, const attention_tokens *tokens, buffer *memory);
/* All tokens of the scene, in pieces of `piece`. */
void scene_fill(const attention_scene *scene, test_random *random, int64_t piece);
attention_job scene_job(const attention_scene *scene, const attention_tokens *tokens, attention_mask mask);

/* By the definition: count x heads x head_size; free() it. */
float *attention_expected(const attention_scene *scene, const attention_tokens *tokens, const attention_job *job);

buffer buffer_of(ww_device *device, const void *bytes, size_t count);

#endif
