/* A context of 128k: 131,072 tokens are fed to a model of one layer that sees a window, so that this takes seconds. What it
 * gives does not depend on pieces, goes on with the same bits on another device, and is what a window of the same tokens gives
 * at the beginning of a text: rope, scaled or not, turns as far there as here.
 *
 * Once without scaling and in one piece; the rest where WARPWAVE_NIGHTLY is set (make check-models).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/data/random.h"
#include "support/devices.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

enum { CONTEXT = TEST_INSTRUMENTED ? 8192 : 131072, WINDOW = 24, VOCABULARY = 96, LAST = 7 };

static int32_t ids[CONTEXT];

static ww_model *open_long(ww_device *device, const char *file)
{
    ww_model *model;
    CHECK_OK(ww_model_open(scratch_path(file), device, NULL, &model));
    return model;
}

static void write_long(const char *scaling, const char *file)
{
    tiny_model m;
    tiny_shape shape = tiny_default("llama");
    shape.layers = 1;
    shape.context = CONTEXT;
    shape.window = WINDOW;
    shape.type = WW_QUANT_F32; /* coded activations would differ by more than angles do */
    shape.scaling = scaling;
    shape.scaling_factor = 8.0;
    tiny_make(&m, &shape);
    tiny_write(&m, scratch_path(file));
    tiny_free(&m);
}

static ww_session *fed(ww_model *model, const int32_t *from, size_t count, size_t piece)
{
    ww_session *session;
    CHECK_OK(ww_session_create(model, &session));
    for (size_t at = 0; at < count; at += piece)
        CHECK_OK(ww_session_feed(session, from + at, count - at < piece ? count - at : piece));
    return session;
}

/* Far from the start as at the start: the token sees only the window, and angles differ only by their roundings. */
static void check_near(ww_model *model, const float *logits)
{
    float near_logits[VOCABULARY];
    ww_session *near_session = fed(model, ids + CONTEXT - WINDOW, WINDOW, WINDOW);
    CHECK_OK(ww_session_logits(near_session, near_logits));
    ww_session_destroy(near_session);
    for (int i = 0; i < VOCABULARY; i++)
        if (!(fabsf(logits[i] - near_logits[i]) < 0.002f))
            fail_msg("logit %d is %g behind %d tokens and %g behind %d", i, (double)logits[i], (int)CONTEXT,
                     (double)near_logits[i], WINDOW);
}

/* A kind of rope, and the CPU's results with it: files of the model and of a session some tokens before its end. */
typedef struct long_text {
    const char *scaling, *model, *session;
    bool computed;
    float expected[VOCABULARY]; /* after all tokens */
} long_text;

static long_text plain = {.model = "plain.gguf", .session = "plain"};
static long_text linear = {.scaling = "linear", .model = "linear.gguf", .session = "linear"};
static long_text yarn = {.scaling = "yarn", .model = "yarn.gguf", .session = "yarn"};

static void compute(long_text *l)
{
    char full[64];
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    write_long(l->scaling, l->model);
    ww_model *model = open_long(cpu, l->model);
    ww_session *session = fed(model, ids, CONTEXT - LAST, CONTEXT);
    CHECK_OK(ww_session_save(session, scratch_path(l->session)));
    CHECK_OK(ww_session_feed(session, ids + CONTEXT - LAST, LAST));
    CHECK_OK(ww_session_logits(session, l->expected));
    assert_int_equal(ww_session_length(session), CONTEXT);
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_session_feed(session, ids, 1));
    snprintf(full, sizeof full, "the context is full: the session has %d tokens", (int)CONTEXT);
    assert_non_null(strstr(ww_error_message(), full));
    ww_session_destroy(session);
    check_near(model, l->expected);
    ww_model_close(model);
    ww_device_close(cpu);
    l->computed = true;
}

/* Continues from the CPU's session. */
static void check_goes_on(ww_device *device, long_text *l)
{
    float logits[VOCABULARY];
    ww_session *session;
    if (!l->computed)
        compute(l);
    ww_model *model = open_long(device, l->model);
    CHECK_OK(ww_session_load(model, scratch_path(l->session), &session));
    for (int i = 0; i < LAST; i++)
        CHECK_OK(ww_session_feed(session, &ids[CONTEXT - LAST + i], 1));
    CHECK_OK(ww_session_logits(session, logits));
    if (memcmp(logits, l->expected, sizeof logits) != 0)
        fail_msg("%s: other bits behind %d tokens than on the CPU", l->model, (int)CONTEXT);
    ww_session_destroy(session);
    ww_model_close(model);
}

static void a_context_of_128k_has_the_same_bits_everywhere(void **state)
{
    check_goes_on(*state, &plain);
}

static void so_it_has_with_scaled_rope(void **state)
{
    check_goes_on(*state, &linear);
    check_goes_on(*state, &yarn);
}

static void pieces_do_not_change_bits(void **state)
{
    float logits[VOCABULARY];
    if (device_is_slow(*state))
        return; /* there only attention is tested: test_attention_long.c */
    ww_model *model = open_long(*state, plain.model);
    ww_session *session = fed(model, ids, CONTEXT, 4097);
    CHECK_OK(ww_session_logits(session, logits));
    assert_memory_equal(logits, plain.expected, sizeof logits);
    ww_session_destroy(session);
    ww_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_of_128k_has_the_same_bits_everywhere),
    };
    const struct CMUnitTest nightly[] = {
        cmocka_unit_test(a_context_of_128k_has_the_same_bits_everywhere),
        cmocka_unit_test(so_it_has_with_scaled_rope),
        cmocka_unit_test(pieces_do_not_change_bits),
    };
    void *scratch;
    test_random random = {31};
    if (scratch_setup(&scratch) != 0)
        return 1;
    for (int i = 0; i < CONTEXT; i++)
        ids[i] = (int32_t)random_below(&random, VOCABULARY);
    const int failed = getenv("WARPWAVE_NIGHTLY") ? RUN_ON_EVERY_DEVICE("long contexts", nightly)
                                                  : RUN_ON_EVERY_DEVICE("long contexts", tests);
    return scratch_teardown(&scratch) != 0 || failed;
}
