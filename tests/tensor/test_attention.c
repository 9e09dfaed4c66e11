/* Attention on every device, to the bit, against the definition written down plainly (support/attention.h): types of cache,
 * shapes, masks, rope, orders of tokens, and every division of the work.
 */
#include <stdlib.h>
#include <string.h>

#include "device/backend.h"
#include "support/attention.h"
#include "support/devices.h"

static const attention_mask masks[] = {{.causal = 0},
                                       {.causal = 1},
                                       {.causal = 1, .window = 40},
                                       {.causal = 1, .window = 300},
                                       {.causal = 0, .window = 30},
                                       {.causal = 0, .window = 280}};

static void compare(const attention_scene *s, const attention_tokens *t, const attention_job *job, const char *what)
{
    const int64_t row = (int64_t)s->shape.heads * s->shape.head_size;
    float *expected = attention_expected(s, t, job), *got = malloc(sizeof(float) * (size_t)(t->count * row));
    CHECK_OK(s->device->backend->tensors->read(s->device, got, &t->device_out));
    for (int64_t i = 0; i < t->count * row; i++)
        if (memcmp(got + i, expected + i, sizeof *got) != 0)
            fail_msg("%s: token %lld (sequence %d, position %d), element %lld: %.9g, not %.9g", what, (long long)(i / row),
                     t->sequences[i / row], t->positions[i / row], (long long)(i % row), (double)got[i], (double)expected[i]);
    free(expected);
    free(got);
}

/* In both ways, if there are two. */
static void attend_and_compare(const attention_scene *s, const attention_tokens *t, attention_mask mask, const char *what)
{
    attention_job job = scene_job(s, t, mask);
    for (int runs = 0; runs < 2; runs++) {
        job.runs = runs != 0;
        CHECK_OK(s->device->backend->tensors->attention(s->device, &job));
        compare(s, t, &job, what);
    }
}

/* Queries at the end of the sequences, as if the last tokens had just been fed. */
static void place_last(const attention_scene *s, attention_tokens *t)
{
    const int64_t each = t->count / s->shape.sequences;
    for (int64_t i = 0; i < t->count; i++) {
        t->sequences[i] = (int32_t)(i / each < s->shape.sequences ? i / each : s->shape.sequences - 1);
        const int64_t left = (t->sequences[i] + 1 == s->shape.sequences ? t->count : (t->sequences[i] + 1) * each) - i;
        t->positions[i] = s->shape.lengths[t->sequences[i]] - (int32_t)left;
    }
}

static void try_shape(ww_device *device, const attention_shape *shape, int64_t tokens, int64_t piece, const char *what)
{
    test_random random = {.state = 21};
    attention_scene s = scene_make(device, &random, shape);
    scene_fill(&s, &random, piece);
    attention_tokens t = tokens_make(&s, &random, tokens);
    place_last(&s, &t);
    tokens_send(&s, &t);
    scene_store(&s, &t); /* once more, and their q are rotated */
    const size_t count = sizeof masks / sizeof *masks, any = (size_t)(shape->head_size / 8 + shape->type + shape->heads);
    for (size_t m = 0; m < (device_is_slow(device) ? 1 : count); m++)
        attend_and_compare(&s, &t, masks[(any + m) % count], what);
    tokens_free(&s, &t);
    scene_free(&s);
}

static void every_type_and_head_size_has_the_defined_bits(void **state)
{
    static const int32_t sizes[] = {32, 40, 64, 80, 96, 128, 160, 256};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int32_t type = ATTENTION_F16; type <= ATTENTION_Q8_0; type++) {
            const attention_shape shape = {.type = type,
                                           .heads = 6,
                                           .kv_heads = 2,
                                           .head_size = sizes[i],
                                           .sequences = 1,
                                           .lengths = {290},
                                           .rope = (int32_t)i % 3,
                                           .half = sizes[i] / 2};
            if (type == ATTENTION_Q8_0 && sizes[i] % 32 != 0)
                continue;
            try_shape(*state, &shape, 5, 290, "a head size");
        }
}

static void several_sequences_and_lengths_have_the_defined_bits(void **state)
{
    static const int32_t lengths[][SCENE_SEQUENCES] = {{1, 2, 3, 4}, {255, 256, 257, 258}, {8, 513, 300, 700}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        attention_shape shape = {.heads = 4, .kv_heads = 4, .head_size = 32, .sequences = 4, .rope = 1, .half = 8};
        memcpy(shape.lengths, lengths[i], sizeof shape.lengths);
        try_shape(*state, &shape, 4, 13, "one token of each");
        shape.heads = 20; /* groups of five */
        try_shape(*state, &shape, i == 0 ? 4 : device_is_slow(*state) ? 16 : 32, 512, "some tokens of each");
    }
}

static void one_head_of_keys_serves_many_queries(void **state)
{
    const attention_shape shape = {.heads = 71, .kv_heads = 1, .head_size = 64, .sequences = 1, .lengths = {70}};
    try_shape(*state, &shape, 3, 70, "71 heads on one");
}

static void a_prompt_has_the_bits_of_its_tokens_fed_one_by_one(void **state)
{
    const int32_t length = device_is_slow(*state) ? 280 : 600;
    const attention_shape shape = {
        .heads = 3, .kv_heads = 1, .head_size = 64, .sequences = 1, .lengths = {length}, .rope = 2, .half = 32};
    try_shape(*state, &shape, length, length, "a prompt");
}

/* Neighbours in the batch belong to other sequences: no two tokens share their keys. */
static void tokens_in_any_order_have_the_same_bits(void **state)
{
    test_random random = {.state = 5};
    const attention_shape shape = {.heads = 4, .kv_heads = 2, .head_size = 64, .sequences = 3, .lengths = {270, 40, 300}};
    attention_scene s = scene_make(*state, &random, &shape);
    scene_fill(&s, &random, 100);
    attention_tokens t = tokens_make(&s, &random, 41);
    for (int32_t i = 0; i < t.count; i++) {
        t.sequences[i] = i % 3;
        t.positions[i] = (int32_t)random_below(&random, (uint64_t)shape.lengths[i % 3]);
    }
    tokens_send(&s, &t);
    for (size_t m = 0; m < sizeof masks / sizeof *masks; m++)
        attend_and_compare(&s, &t, masks[m], "mixed tokens");
    tokens_free(&s, &t);
    scene_free(&s);
}

/* Most exponentials are 0, and whole chunks count for nothing. */
static void scores_that_differ_much_have_the_defined_bits(void **state)
{
    for (int32_t type = ATTENTION_F16; type <= ATTENTION_Q8_0; type++) {
        const attention_shape shape = {
            .type = type, .heads = 2, .kv_heads = 2, .head_size = 64, .sequences = 2, .lengths = {520, 300}, .large = true};
        try_shape(*state, &shape, 6, 520, "large scores");
    }
}

/* A value that does not fit in f16 is infinite in the cache: queries that see it get NaN or infinity, others are not
 * affected. */
static void an_infinite_value_affects_only_queries_that_see_it(void **state)
{
    for (int32_t type = ATTENTION_F16; type <= ATTENTION_Q8_0; type += 2) {
        test_random random = {.state = 9};
        const attention_shape shape = {
            .type = type, .heads = 2, .kv_heads = 1, .head_size = 32, .sequences = 1, .lengths = {40}};
        attention_scene s = scene_make(*state, &random, &shape);
        s.v[20 * 32 + 7] = type == ATTENTION_F16 ? 1e30f : __builtin_inff();
        s.v_kept[20 * 32 + 7] = __builtin_inff();
        for (int32_t i = 0; type == ATTENTION_Q8_0 && i < 32; i++)
            s.v_kept[20 * 32 + i] = __builtin_nanf("");
        scene_fill(&s, &random, 40);
        attention_tokens t = tokens_make(&s, &random, 40);
        for (int32_t i = 0; i < t.count; i++)
            t.positions[i] = i;
        tokens_send(&s, &t);
        attend_and_compare(&s, &t, masks[1], "an infinite value");
        tokens_free(&s, &t);
        scene_free(&s);
    }
}

/* ---- a step that puts its own keys and values first ---------------------------------------------------------------------- */

static void clear_pages(const attention_scene *s)
{
    char *ones = malloc(s->pages.bytes);
    memset(ones, 0xff, s->pages.bytes);
    CHECK_OK(s->device->backend->tensors->write(s->device, &s->pages, ones));
    free(ones);
}

/* Everything of each sequence but its last key, which comes with the query. */
static void fill_but_the_last(const attention_scene *s, test_random *random)
{
    for (int32_t sequence = 0; sequence < s->shape.sequences; sequence++) {
        if (s->shape.lengths[sequence] == 1)
            continue;
        attention_tokens t = tokens_make(s, random, s->shape.lengths[sequence] - 1);
        for (int32_t i = 0; i < t.count; i++) {
            t.sequences[i] = sequence;
            t.positions[i] = i;
        }
        tokens_send(s, &t);
        scene_store(s, &t);
        tokens_free(s, &t);
    }
}

static void expect_pages(const attention_scene *s, const char *expected, const char *what)
{
    char *got = malloc(s->pages.bytes);
    CHECK_OK(s->device->backend->tensors->read(s->device, got, &s->pages));
    if (memcmp(got, expected, s->pages.bytes) != 0)
        fail_msg("%s: the cache has other bytes than behind attention_store", what);
    free(got);
}

static void try_step(ww_device *device, const attention_shape *shape, bool runs, const char *what)
{
    test_random random = {.state = 33};
    attention_scene s = scene_make(device, &random, shape);
    scene_fill(&s, &random, 300);
    char *whole = malloc(s.pages.bytes);
    CHECK_OK(device->backend->tensors->read(device, whole, &s.pages));
    clear_pages(&s);
    fill_but_the_last(&s, &random);
    attention_tokens t = tokens_make(&s, &random, shape->sequences);
    place_last(&s, &t);
    tokens_send(&s, &t);
    buffer memory;
    const attention_store_job store = scene_store_job(&s, &t, &memory);
    attention_job job = scene_job(&s, &t, masks[1]);
    job.store = &store;
    job.runs = runs;
    CHECK_OK(device->backend->tensors->attention(device, &job));
    compare(&s, &t, &job, what);
    expect_pages(&s, whole, what);
    device->backend->tensors->release(device, &memory);
    free(whole);
    tokens_free(&s, &t);
    scene_free(&s);
}

static void a_step_that_stores_its_keys_has_the_defined_bits(void **state)
{
    static const int32_t lengths[][SCENE_SEQUENCES] = {{1, 256, 257, 40}, {513, 8, 512, 300}};
    for (int32_t type = ATTENTION_F16; type <= ATTENTION_Q8_0; type++)
        for (int32_t rope = 0; rope < 3; rope++) {
            attention_shape shape = {.type = type,
                                     .heads = rope == 1 ? 10 : 6,
                                     .kv_heads = 2,
                                     .head_size = rope == 2 ? 160 : 64,
                                     .sequences = 4,
                                     .rope = rope,
                                     .half = rope == 1 ? 24 : 32};
            memcpy(shape.lengths, lengths[rope == 1], sizeof shape.lengths);
            try_step(*state, &shape, false, "a step");
            if (rope == 1)
                try_step(*state, &shape, true, "a step by tiles");
        }
}

/* For any number of query heads per block. */
static void a_step_of_any_shape_has_the_defined_bits(void **state)
{
    static const int32_t groups[] = {1, 3, 4, 9};
    ww_device *device = *state;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (int32_t sequences = 1; sequences <= SCENE_SEQUENCES; sequences += 3) {
            const attention_shape shape = {.heads = 4 * groups[i],
                                           .kv_heads = 4,
                                           .head_size = 32,
                                           .sequences = sequences,
                                           .lengths = {260, 129, 64, 5},
                                           .rope = 1,
                                           .half = 16};
            const int32_t units = device->info.compute_units;
            for (int32_t shared = 1; shared <= 4096;
                 shared *= 8) { /* a block has as many heads as leave a block for each unit */
                device->info.compute_units = shared;
                try_step(device, &shape, false, "a shape");
            }
            device->info.compute_units = units;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_head_size_has_the_defined_bits),
        cmocka_unit_test(several_sequences_and_lengths_have_the_defined_bits),
        cmocka_unit_test(one_head_of_keys_serves_many_queries),
        cmocka_unit_test(a_prompt_has_the_bits_of_its_tokens_fed_one_by_one),
        cmocka_unit_test(tokens_in_any_order_have_the_same_bits),
        cmocka_unit_test(scores_that_differ_much_have_the_defined_bits),
        cmocka_unit_test(an_infinite_value_affects_only_queries_that_see_it),
        cmocka_unit_test(a_step_that_stores_its_keys_has_the_defined_bits),
        cmocka_unit_test(a_step_of_any_shape_has_the_defined_bits),
    };
    return RUN_ON_EVERY_DEVICE("attention", tests);
}
