/* Attention over 131,072 positions: the bits of the definition, in whatever pieces the cache was filled, for one query and for
 * several, with all keys and with a window.
 */
#include <stdlib.h>
#include <string.h>

#include "support/attention.h"
#include "support/devices.h"

enum { POSITIONS = TEST_INSTRUMENTED ? 20000 : 131072, QUERIES = 3, SIZE = 32 };

/* The positions of the queries: the last, the first of the last chunk, and one in the middle of a chunk before. */
static void place(attention_tokens *t)
{
    const int32_t positions[QUERIES] = {POSITIONS - 1, (POSITIONS - 1) / ATTENTION_CHUNK * ATTENTION_CHUNK, POSITIONS - 700};
    for (int i = 0; i < QUERIES; i++) {
        t->sequences[i] = 0;
        t->positions[i] = positions[i];
    }
}

static float *attend(const attention_scene *s, const attention_tokens *t, const attention_job *job)
{
    float *got = malloc(sizeof(float) * (size_t)(t->count * s->shape.heads * SIZE));
    CHECK_OK(s->device->backend->tensors->attention(s->device, job));
    CHECK_OK(s->device->backend->tensors->read(s->device, got, &t->device_out));
    return got;
}

static void check_masks(const attention_scene *s, const attention_tokens *t)
{
    static const attention_mask masks[] = {{.causal = 1}, {.causal = 1, .window = 4096}};
    const size_t bytes = sizeof(float) * (size_t)(t->count * s->shape.heads * SIZE);
    for (size_t m = 0; m < 2; m++) {
        attention_job job = scene_job(s, t, masks[m]);
        float *expected = attention_expected(s, t, &job);
        for (int runs = 0; runs < 2; runs++) {
            job.runs = runs != 0;
            float *got = attend(s, t, &job);
            if (memcmp(got, expected, bytes) != 0)
                fail_msg("%d positions, mask %zu, %s: other bits than the definition's", (int)POSITIONS, m,
                         runs ? "a run" : "one by one");
            free(got);
        }
        free(expected);
    }
}

static void check_type(ww_device *device, int32_t type, int64_t piece)
{
    test_random random = {.state = 77};
    const attention_shape shape = {
        .type = type, .heads = 2, .kv_heads = 1, .head_size = SIZE, .sequences = 1, .lengths = {POSITIONS}};
    attention_scene s = scene_make(device, &random, &shape);
    scene_fill(&s, &random, piece);
    attention_tokens t = tokens_make(&s, &random, QUERIES);
    place(&t);
    tokens_send(&s, &t);
    check_masks(&s, &t);
    tokens_free(&s, &t);
    scene_free(&s);
}

static void far_positions_have_the_defined_bits(void **state)
{
    check_type(*state, ATTENTION_F16, POSITIONS);
    if (device_is_slow(*state))
        return;
    check_type(*state, ATTENTION_F16, 4097);
    check_type(*state, ATTENTION_Q8_0, 65536);
    check_type(*state, ATTENTION_F32, 65536);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(far_positions_have_the_defined_bits)};
    return RUN_ON_EVERY_DEVICE("attention over long contexts", tests);
}
