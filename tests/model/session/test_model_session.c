/* Sessions: feeding, forking, saving, generating; a refused call changes nothing. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "support/devices.h"
#include "support/models/tiny.h"
#include "support/scratch.h"
#include "tensor/tensor.h"

enum { VOCABULARY = 96, CONTEXT = 1024 };

static ww_model *model;
static const int32_t prompt[] = {3, 14, 15, 92, 65, 35, 8, 9, 79, 32, 38};
enum { PROMPT = sizeof prompt / sizeof *prompt };

static ww_model *open_model(ww_device *device, int64_t context)
{
    ww_model_options options = ww_model_options_default();
    ww_model *opened;
    options.context = context;
    CHECK_OK(ww_model_open(scratch_path("model.gguf"), device, &options, &opened));
    return opened;
}

static void begin(void **state)
{
    model = open_model(*state, 0);
}

static ww_session *fed(const int32_t *ids, size_t count)
{
    ww_session *session;
    CHECK_OK(ww_session_create(model, &session));
    CHECK_OK(ww_session_feed(session, ids, count));
    return session;
}

static void check_same(ww_session *a, ww_session *b)
{
    float of_a[VOCABULARY], of_b[VOCABULARY];
    assert_int_equal(ww_session_length(a), ww_session_length(b));
    CHECK_OK(ww_session_logits(a, of_a));
    CHECK_OK(ww_session_logits(b, of_b));
    assert_memory_equal(of_a, of_b, sizeof of_a);
}

static void a_fork_and_its_original_continue_independently(void **state)
{
    begin(state);
    ww_session *session = fed(prompt, PROMPT), *fork, *alone;
    CHECK_OK(ww_session_fork(session, &fork));
    check_same(session, fork);
    CHECK_OK(ww_session_feed(fork, (const int32_t[]){1, 2}, 2));
    CHECK_OK(ww_session_feed(session, (const int32_t[]){4}, 1));
    CHECK_OK(ww_session_feed(fork, (const int32_t[]){5}, 1));
    alone = fed(prompt, PROMPT);
    CHECK_OK(ww_session_feed(alone, (const int32_t[]){4}, 1));
    check_same(session, alone);
    CHECK_OK(ww_session_truncate(alone, PROMPT));
    CHECK_OK(ww_session_feed(alone, (const int32_t[]){1, 2, 5}, 3));
    check_same(fork, alone);
    ww_session_destroy(session);
    CHECK_OK(ww_session_feed(fork, prompt, 2));
    CHECK_OK(ww_session_feed(alone, prompt, 2));
    check_same(fork, alone);
    ww_session_destroy(fork);
    ww_session_destroy(alone);
    ww_model_close(model);
}

static void a_saved_session_goes_on_with_the_same_bits_on_another_device(void **state)
{
    ww_device *cpu;
    ww_session *loaded;
    begin(state);
    ww_session *session = fed(prompt, PROMPT);
    CHECK_OK(ww_session_save(session, scratch_path("session")));
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_model *elsewhere = open_model(cpu, 0);
    CHECK_OK(ww_session_load(elsewhere, scratch_path("session"), &loaded));
    check_same(session, loaded);
    CHECK_OK(ww_session_feed(session, prompt, 5));
    CHECK_OK(ww_session_feed(loaded, prompt, 5));
    check_same(session, loaded);
    int32_t ids[PROMPT + 5];
    CHECK_OK(ww_session_tokens(loaded, 0, ids, PROMPT + 5));
    assert_memory_equal(ids, prompt, sizeof prompt);
    CHECK_OK(ww_session_save(loaded, scratch_path("back")));
    ww_session_destroy(loaded);
    CHECK_OK(ww_session_load(model, scratch_path("back"), &loaded));
    check_same(session, loaded);
    ww_session_destroy(loaded);
    ww_session_destroy(session);
    ww_model_close(elsewhere);
    ww_device_close(cpu);
    ww_model_close(model);
}

static void files_that_are_no_session_of_the_model_are_refused(void **state)
{
    ww_session *loaded = NULL;
    size_t size;
    begin(state);
    ww_session *session = fed(prompt, PROMPT);
    CHECK_OK(ww_session_save(session, scratch_path("session")));
    char *bytes = scratch_content(scratch_path("session"), &size);
    static const size_t places[] = {0, 10, 48, 52, 56, 64, 72, 80, 90, 200, 5000};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        bytes[places[i]] ^= 1;
        scratch_write("wrong", bytes, size);
        bytes[places[i]] ^= 1;
        assert_int_not_equal(ww_session_load(model, scratch_path("wrong"), &loaded), WW_OK);
        assert_non_null(strstr(ww_error_message(), "wrong"));
    }
    for (size_t cut = 0; cut < size; cut += size / 7) {
        scratch_write("wrong", bytes, cut);
        CHECK_FAILS(WW_CORRUPT_FILE, ww_session_load(model, scratch_path("wrong"), &loaded));
    }
    ww_model_options options = ww_model_options_default();
    ww_model *other;
    options.cache = WW_QUANT_F32;
    CHECK_OK(ww_model_open(scratch_path("model.gguf"), *state, &options, &other));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_session_load(other, scratch_path("session"), &loaded));
    ww_model_close(other);
    CHECK_FAILS(WW_IO_ERROR, ww_session_load(model, scratch_path("missing"), &loaded));
    assert_null(loaded);
    free(bytes);
    ww_session_destroy(session);
    ww_model_close(model);
}

static void a_full_context_is_a_status_and_changes_nothing(void **state)
{
    model = open_model(*state, PROMPT + 2);
    ww_session *session = fed(prompt, PROMPT), *twin;
    CHECK_OK(ww_session_fork(session, &twin));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_session_feed(session, prompt, 3));
    assert_non_null(
        strstr(ww_error_message(), "the context is full: the session has 11 tokens, and 3 more do not fit into 13"));
    check_same(session, twin);
    ww_generation_end end;
    ww_generation generation = ww_generation_default();
    CHECK_OK(ww_session_generate(session, &generation, &end));
    assert_int_equal(end, WW_GENERATION_CONTEXT);
    assert_int_equal(ww_session_length(session), PROMPT + 2);
    ww_session_destroy(twin);
    ww_session_destroy(session);
    ww_model_close(model);
    model = NULL;
    ww_model_options options = ww_model_options_default();
    options.context = CONTEXT + 1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_model_open(scratch_path("model.gguf"), *state, &options, &model));
    assert_null(model);
}

static void nonsensical_arguments_are_refused(void **state)
{
    begin(state);
    ww_session *session = fed(prompt, PROMPT), *empty, *twin;
    float logits[VOCABULARY];
    int32_t token;
    CHECK_OK(ww_session_create(model, &empty));
    CHECK_OK(ww_session_fork(session, &twin));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_session_logits(empty, logits));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_session_sample(empty, NULL, &token));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_session_generate(empty, NULL, NULL));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_session_feed(session, (const int32_t[]){1, VOCABULARY}, 2));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_session_feed(session, (const int32_t[]){-1}, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_session_feed(session, NULL, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_session_feed(NULL, prompt, 1));
    CHECK_OK(ww_session_feed(session, NULL, 0));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_session_truncate(session, PROMPT + 1));
    const int32_t *const ids[2] = {prompt, prompt};
    const size_t counts[2] = {1, 1};
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_sessions_feed((ww_session *const[]){session, session}, ids, counts, 2));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_sessions_feed((ww_session *const[]){session, NULL}, ids, counts, 2));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_sessions_feed((ww_session *const[]){session, empty},
                                                  (const int32_t *const[]){prompt, (const int32_t[]){999}}, counts, 2));
    CHECK_FAILS(WW_UNSUPPORTED, ww_model_tokenize(model, "a", 1, 0, &token, 1, (size_t[]){0}));
    CHECK_FAILS(WW_UNSUPPORTED, ww_model_embed_tokens(model, prompt, counts, 1, logits));
    check_same(session, twin);
    ww_session_destroy(empty);
    ww_session_destroy(twin);
    ww_session_destroy(session);
    ww_model_close(model);
}

static void a_session_outlives_the_model_that_was_closed(void **state)
{
    begin(state);
    ww_session *session = fed(prompt, PROMPT);
    ww_model_close(model);
    CHECK_OK(ww_session_feed(session, prompt, 2));
    ww_session_destroy(session);
}

static void the_same_seed_generates_the_same_text_and_another_another(void **state)
{
    begin(state);
    ww_sampling sampling = ww_sampling_default();
    ww_generation generation = ww_generation_default();
    int32_t ids[3][PROMPT + 12];
    sampling.temperature = 1.5;
    sampling.top_k = 50;
    sampling.top_p = 0.95;
    sampling.min_p = 0.01;
    sampling.repetition_penalty = 1.1;
    generation.tokens = 12;
    generation.sampling = &sampling;
    for (int i = 0; i < 3; i++) {
        ww_session *session = fed(prompt, PROMPT);
        ww_generation_end end;
        sampling.seed = i == 2 ? 8 : 7;
        CHECK_OK(ww_session_generate(session, &generation, &end));
        assert_int_equal(end, WW_GENERATION_LENGTH);
        CHECK_OK(ww_session_tokens(session, 0, ids[i], PROMPT + 12));
        ww_session_destroy(session);
    }
    assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
    assert_memory_not_equal(ids[0], ids[2], sizeof ids[0]);
    ww_model_close(model);
}

static atomic_bool cancelling;

static void *cancel_when_it_runs(void *session)
{
    while (atomic_load(&cancelling)) {
        ww_session_cancel(session);
        sched_yield();
    }
    return NULL;
}

static void a_cancelled_session_is_unchanged(void **state)
{
    begin(state);
    ww_session *session = fed(prompt, PROMPT), *twin;
    int32_t many[512];
    pthread_t thread;
    ww_status status = WW_OK;
    CHECK_OK(ww_session_fork(session, &twin));
    for (int i = 0; i < 512; i++)
        many[i] = i % VOCABULARY;
    ww_session_cancel(session); /* nothing runs: nothing is cancelled */
    CHECK_OK(ww_session_feed(session, NULL, 0));
    atomic_store(&cancelling, true);
    assert_int_equal(pthread_create(&thread, NULL, cancel_when_it_runs, session), 0);
    for (int i = 0; i < 1000 && status == WW_OK; i++) {
        status = ww_session_feed(session, many, device_is_slow(*state) ? 4 : 512);
        if (status == WW_OK)
            CHECK_OK(ww_session_truncate(session, PROMPT));
    }
    atomic_store(&cancelling, false);
    pthread_join(thread, NULL);
    assert_int_equal(status, WW_CANCELLED);
    assert_int_equal(ww_session_length(session), PROMPT);
    CHECK_OK(ww_session_feed(session, prompt, 2));
    CHECK_OK(ww_session_feed(twin, prompt, 2));
    check_same(session, twin);
    ww_session_destroy(twin);
    ww_session_destroy(session);
    ww_model_close(model);
}

/* Otherwise steps could become slow again without a failing test. */
static void steps_are_recorded_where_the_device_can(void **state)
{
    begin(state);
    ww_session *session = fed(prompt, PROMPT), *other = fed(prompt, 3);
    const int32_t *const ids[2] = {prompt, prompt + 1};
    const size_t counts[2] = {1, 1};
    for (int i = 0; i < 3; i++)
        CHECK_OK(ww_session_feed(session, prompt + i, 1));
    for (int i = 0; i < 3; i++)
        CHECK_OK(ww_sessions_feed((ww_session *const[]){session, other}, ids, counts, 2));
    int recorded = 0;
    for (int i = 0; i < RECORDED_STEPS; i++) {
        recorded += model->work.steps[i].recording != NULL;
        assert_false(model->work.steps[i].refused);
    }
    assert_int_equal(recorded, tensors_of(*state)->record_begin ? 2 : 0);
    ww_session_destroy(other);
    ww_session_destroy(session);
    ww_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fork_and_its_original_continue_independently),
        cmocka_unit_test(a_saved_session_goes_on_with_the_same_bits_on_another_device),
        cmocka_unit_test(files_that_are_no_session_of_the_model_are_refused),
        cmocka_unit_test(a_full_context_is_a_status_and_changes_nothing),
        cmocka_unit_test(nonsensical_arguments_are_refused),
        cmocka_unit_test(a_session_outlives_the_model_that_was_closed),
        cmocka_unit_test(the_same_seed_generates_the_same_text_and_another_another),
        cmocka_unit_test(a_cancelled_session_is_unchanged),
        cmocka_unit_test(steps_are_recorded_where_the_device_can),
    };
    void *scratch;
    tiny_model tiny;
    if (scratch_setup(&scratch) != 0)
        return 1;
    tiny_shape shape = tiny_default("llama");
    shape.type = WW_QUANT_Q8_0;
    tiny_make(&tiny, &shape);
    tiny_write(&tiny, scratch_path("model.gguf"));
    tiny_free(&tiny);
    const int failed = RUN_ON_EVERY_DEVICE("model sessions", tests);
    return scratch_teardown(&scratch) != 0 || failed;
}
