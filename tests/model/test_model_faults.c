/* Models and sessions while memory runs out, or the device fails: a status, nothing leaked, and everything as it was. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/devices.h"
#include "support/faulty.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

enum { VOCABULARY = 96, WIDTH = 64, ATTEMPTS_MAX = 3000, PROMPT = 6 };

static ww_device *device;
static ww_model *decoder, *encoder;
static ww_session *session, *other;
static const int32_t prompt[PROMPT] = {3, 14, 15, 92, 65, 35};
static float expected[VOCABULARY];

static ww_status call_open(void)
{
    ww_model *model = NULL;
    const ww_status status = ww_model_open(scratch_path("decoder.gguf"), device, NULL, &model);
    assert_int_equal(status == WW_OK, model != NULL);
    ww_model_close(model);
    return status;
}

static ww_status call_create(void)
{
    ww_session *made = NULL;
    ww_status status = ww_session_create(decoder, &made);
    if (status == WW_OK)
        status = ww_session_feed(made, prompt, PROMPT);
    ww_session_destroy(made);
    return status;
}

/* Afterwards the session is what it was: a feed that worked is taken back. */
static ww_status call_feed(void)
{
    ww_session *fork = NULL;
    ww_status status = ww_session_fork(session, &fork);
    if (status == WW_OK)
        status = ww_session_feed(fork, prompt, 2);
    ww_session_destroy(fork);
    return status;
}

static ww_status call_feed_many(void)
{
    ww_session *forks[2] = {NULL, NULL};
    const int32_t *const ids[2] = {prompt, prompt + 1};
    const size_t counts[2] = {1, 3};
    ww_status status = ww_session_fork(session, &forks[0]);
    if (status == WW_OK)
        status = ww_session_fork(other, &forks[1]);
    if (status == WW_OK)
        status = ww_sessions_feed(forks, ids, counts, 2);
    ww_session_destroy(forks[0]);
    ww_session_destroy(forks[1]);
    return status;
}

static ww_status call_sample(void)
{
    ww_sampling sampling = ww_sampling_default();
    int32_t token;
    sampling.temperature = 1.0;
    sampling.top_k = 5;
    sampling.repetition_penalty = 1.2;
    return ww_session_sample(session, &sampling, &token);
}

static ww_status call_save(void)
{
    return ww_session_save(session, scratch_path("saved"));
}

static ww_status call_load(void)
{
    ww_session *loaded = NULL;
    const ww_status status = ww_session_load(decoder, scratch_path("whole"), &loaded);
    assert_int_equal(status == WW_OK, loaded != NULL);
    ww_session_destroy(loaded);
    return status;
}

static ww_status call_embed(void)
{
    const size_t counts[2] = {4, 2};
    float vectors[2 * WIDTH];
    return ww_model_embed_tokens(encoder, prompt, counts, 2, vectors);
}

static const struct {
    const char *name;
    ww_status (*call)(void);
} calls[] = {
    {"open", call_open},     {"create", call_create}, {"feed", call_feed}, {"feed many", call_feed_many},
    {"sample", call_sample}, {"save", call_save},     {"load", call_load}, {"embed", call_embed},
};
enum { CALLS = sizeof calls / sizeof *calls };

static void begin(void **state)
{
    device = *state;
    CHECK_OK(ww_model_open(scratch_path("decoder.gguf"), device, NULL, &decoder));
    CHECK_OK(ww_model_open(scratch_path("encoder.gguf"), device, NULL, &encoder));
    CHECK_OK(ww_session_create(decoder, &session));
    CHECK_OK(ww_session_create(decoder, &other));
    CHECK_OK(ww_session_feed(session, prompt, PROMPT));
    CHECK_OK(ww_session_feed(other, prompt, 2));
    CHECK_OK(ww_session_logits(session, expected));
    CHECK_OK(ww_session_save(session, scratch_path("whole")));
    for (int c = 0; c < CALLS; c++)
        CHECK_OK(calls[c].call()); /* what a model keeps for its next call is made now */
}

/* The session, and what it would become, are what they were. */
static void check_unchanged(const char *name)
{
    float logits[VOCABULARY];
    CHECK_OK(ww_session_logits(session, logits));
    if (ww_session_length(session) != PROMPT || memcmp(logits, expected, sizeof logits) != 0)
        fail_msg("%s: the session has changed", name);
    ww_session *fork;
    float next[VOCABULARY], fresh[VOCABULARY];
    CHECK_OK(ww_session_fork(session, &fork));
    CHECK_OK(ww_session_feed(fork, prompt, 1));
    CHECK_OK(ww_session_logits(fork, next));
    CHECK_OK(ww_session_truncate(fork, 0));
    CHECK_OK(ww_session_feed(fork, prompt, PROMPT));
    CHECK_OK(ww_session_feed(fork, prompt, 1));
    CHECK_OK(ww_session_logits(fork, fresh));
    ww_session_destroy(fork);
    assert_memory_equal(next, fresh, sizeof next);
}

static void end(void)
{
    ww_session_destroy(other);
    ww_session_destroy(session);
    ww_model_close(encoder);
    ww_model_close(decoder);
}

static void every_call_survives_a_failure_of_every_allocation(void **state)
{
    begin(state);
    /* Emulated devices take their time for the many allocations of opening, which the CPU has, too. */
    for (int c = device_is_slow(device) ? 1 : 0; c < CALLS; c++) {
        int64_t n = 1;
        for (; n < ATTEMPTS_MAX; n++) {
            const int64_t held = memory_blocks_held();
            memory_fail_at(n);
            const ww_status status = calls[c].call();
            memory_fail_at(0);
            if (status == WW_OK)
                break;
            if (status != WW_OUT_OF_MEMORY)
                fail_msg("%s, allocation %d: %s: %s", calls[c].name, (int)n, ww_status_name(status), ww_error_message());
            /* Pages that were made stay with the model for the next session. */
            if (memory_blocks_held() - held > 8)
                fail_msg("%s, allocation %d: %d blocks more", calls[c].name, (int)n, (int)(memory_blocks_held() - held));
        }
        assert_true(n < ATTEMPTS_MAX);
        assert_true(n > 1);
        check_unchanged(calls[c].name);
    }
    end();
}

static void every_call_survives_a_failure_of_every_call_of_the_backend(void **state)
{
    begin(state);
    for (int after = 0; after < 2; after++)
        for (int c = device_is_slow(device) ? 1 : 0; c < CALLS; c++) {
            long n = 1;
            for (; n < ATTEMPTS_MAX; n++) {
                faulty_attach(device);
                faults = (fault_plan){.first = n, .count = 1, .after_work = after};
                const ww_status status = calls[c].call();
                faulty_detach(device);
                if (status == WW_OK)
                    break;
                if (status != WW_DRIVER_ERROR || !strstr(ww_error_message(), "injected"))
                    fail_msg("%s, call %ld: %s: %s", calls[c].name, n, ww_status_name(status), ww_error_message());
            }
            assert_true(n < ATTEMPTS_MAX);
            assert_true(n > 1 || c > 0); /* what is only queued has no call that is counted */
            check_unchanged(calls[c].name);
        }
    end();
}

static void write_model(const char *architecture, ww_quant_type type, const char *name)
{
    tiny_model m;
    tiny_shape shape = tiny_default(architecture);
    shape.type = type;
    shape.layers = 1;
    tiny_make(&m, &shape);
    tiny_write(&m, scratch_path(name));
    tiny_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_survives_a_failure_of_every_allocation),
        cmocka_unit_test(every_call_survives_a_failure_of_every_call_of_the_backend),
    };
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    write_model("llama", WW_QUANT_Q8_0, "decoder.gguf");
    write_model("bert", WW_QUANT_F32, "encoder.gguf");
    const int failed = RUN_ON_EVERY_DEVICE("model faults", tests);
    return scratch_teardown(&scratch) != 0 || failed;
}
