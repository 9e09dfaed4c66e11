/* Grammars while memory runs out: a status, no leak, and a grammar and a session that continue as if nothing had happened. */
#include <string.h>

#include "model/model.h"
#include "support/data/vocabulary.h"
#include "support/memory.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

enum { ATTEMPTS_MAX = 5000, STEPS = 6 };

static ww_model *model;
static const char schema[] =
    "{\"properties\": {\"a\": {\"enum\": [1, \"x\"]}, \"b\": {\"$ref\": \"#/$defs/c\"}}, \"required\": [\"b\"],"
    " \"additionalProperties\": {\"pattern\": \"^a+$\"}, \"$defs\": {\"c\": {\"type\": \"array\","
    " \"items\": {\"type\": \"integer\"}, \"minItems\": 1}}}";

static void setup(void)
{
    static test_vocabulary v;
    ww_device *device;
    tiny_model m;
    tiny_shape shape = tiny_default("llama");
    v = vocabulary_empty("gpt2");
    v.pre = "gpt-2";
    v.merge_count = 0;
    vocabulary_add_alphabet(&v);
    v.eos = vocabulary_add(&v, "<end>", 3, 0);
    v.kinds_written = v.count;
    shape.vocabulary = v.count;
    shape.layers = 1;
    shape.tokens = &v;
    tiny_make(&m, &shape);
    tiny_write(&m, scratch_path("model.gguf"));
    tiny_free(&m);
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_model_open(scratch_path("model.gguf"), device, NULL, &model));
    ww_device_close(device);
}

static ww_status create(ww_grammar **grammar)
{
    *grammar = NULL;
    return ww_grammar_create(model, WW_GRAMMAR_JSON_SCHEMA, schema, strlen(schema), grammar);
}

static void making_a_grammar_survives_a_failure_of_every_allocation(void **state)
{
    int64_t n = 1;
    (void)state;
    for (; n < ATTEMPTS_MAX; n++) {
        ww_grammar *grammar = NULL;
        const bool ordered = model->token_order != NULL;
        const int64_t held = blocks_held();
        fail_allocation_at(n);
        const ww_status status = create(&grammar);
        fail_allocation_at(0);
        ww_grammar_destroy(grammar);
        /* The order of tokens stays with the model: three blocks. */
        assert_int_equal(blocks_held() - held, !ordered && model->token_order ? 3 : 0);
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_null(grammar);
    }
    assert_true(n > 10 && n < ATTEMPTS_MAX);
}

/* Samples and accepts, one token after the other. Each is tried with a failure of every allocation first. */
static void a_step_that_failed_can_be_made_again_and_gives_the_same_token(void **state)
{
    ww_grammar *tried, *calm;
    ww_session *session;
    ww_sampling sampling = ww_sampling_default();
    int failures = 0;
    (void)state;
    CHECK_OK(create(&tried));
    CHECK_OK(create(&calm));
    CHECK_OK(ww_session_create(model, &session));
    CHECK_OK(ww_session_feed(session, (const int32_t[]){5}, 1));
    sampling.temperature = 1.0;
    sampling.top_k = 3;
    sampling.frequency_penalty = 0.5;
    for (int step = 0; step < STEPS; step++) {
        int32_t token = -1, expected = -1;
        ww_status sampled = WW_OUT_OF_MEMORY, accepted = WW_OUT_OF_MEMORY;
        sampling.grammar = calm;
        CHECK_OK(ww_session_sample(session, &sampling, &expected));
        CHECK_OK(ww_grammar_accept(calm, expected));
        sampling.grammar = tried;
        for (int64_t n = 1; sampled != WW_OK && n < ATTEMPTS_MAX; n++, failures += sampled != WW_OK) {
            fail_allocation_at(n);
            sampled = ww_session_sample(session, &sampling, &token);
            fail_allocation_at(0);
            assert_true(sampled == WW_OK || sampled == WW_OUT_OF_MEMORY);
        }
        assert_int_equal(token, expected);
        for (int64_t n = 1; accepted != WW_OK && n < ATTEMPTS_MAX; n++, failures += accepted != WW_OK) {
            fail_allocation_at(n);
            accepted = ww_grammar_accept(tried, token);
            fail_allocation_at(0);
            assert_true(accepted == WW_OK || accepted == WW_OUT_OF_MEMORY);
        }
        CHECK_OK(accepted);
        CHECK_OK(ww_session_feed(session, &token, 1));
    }
    assert_true(failures > STEPS);
    ww_grammar_destroy(tried);
    ww_grammar_destroy(calm);
    ww_session_destroy(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(making_a_grammar_survives_a_failure_of_every_allocation),
        cmocka_unit_test(a_step_that_failed_can_be_made_again_and_gives_the_same_token),
    };
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    setup();
    const int failed = cmocka_run_group_tests_name("grammar faults", tests, NULL, NULL);
    ww_model_close(model);
    return scratch_teardown(&scratch) != 0 || failed;
}
